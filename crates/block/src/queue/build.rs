//! Building a queue.

use iosched_devices::Device;
use iosched_schedulers::{
    BlockPath, BuildArgs, Cgroup, Facts, Merging, QueueFacts, Scheduler, TunableError,
    TunableValues, registry,
};
use iosched_types::{Nanos, Requests};

use super::{Lane, Queue};
use crate::config::{Limits, QueueConfig, SchedulerChoice, setting};
use crate::core::Core;
use crate::core::bios::BioPool;
use crate::core::drive::Drive;
use crate::core::elevator::Elevator;
use crate::core::flushes::Flushes;
use crate::core::rules::Rules;
use crate::core::runs::Runs;
use crate::core::sched::Sched;
use crate::core::switches::Switches;
use crate::core::threads::Threads;
use crate::core::throttle::Throttle;
use crate::core::trace::Explain;
use crate::legacy::Legacy;
use crate::mq::Mq;
use crate::outbox::Outbox;
use crate::profile::{CpuModel, KernelProfile, ShallowDepth};
use crate::stats::QueueStats;

impl Queue {
    /// Builds a queue.
    ///
    /// # Errors
    /// A tunable that the scheduler does not have or does not accept. The caller checks `queue/*` settings against
    /// [`queue_settings`](crate::queue_settings).
    pub fn new(mut cfg: QueueConfig) -> Result<Queue, TunableError> {
        let tasks = std::mem::take(&mut cfg.tasks);
        let (path, budget, tag_start) = (cfg.path, cfg.budget, cfg.tag_start);
        let at_once = cfg.at_once;
        let core = core(cfg)?;
        let lane = match path {
            BlockPath::Mq => Lane::Mq(Mq::new(&core, (budget, at_once), tag_start)),
            BlockPath::Legacy => Lane::Legacy(Legacy::new(&core)),
        };
        let mut q = Queue { core, lane, commands_at_once: false };
        q.set_throttle();
        q.core.threads.reserve(tasks.len());
        q.core.sched.reserve_tasks(tasks.len());
        for info in tasks {
            q.task_started(info);
        }
        Ok(q)
    }
}

/// `nr_requests` at least, where it is written (6.12 makes 4 of a 2).
const LEAST_REQUESTS: u32 = 4;

/// The parts of a queue without tasks.
fn core(mut cfg: QueueConfig) -> Result<Core, TunableError> {
    let settings = std::mem::take(&mut cfg.settings);
    let get = |name: &str| setting(&settings, name);
    let rules = rules(&cfg, &get);
    let rotational = get("rotational").map_or(cfg.rotational, |v| v != 0);
    let write_cache = get("write_cache").map_or(cfg.write_cache, |v| v != 0);
    let fua = get("fua").map_or(cfg.fua, |v| v != 0);
    let default_target = if rotational { 75_000 } else { 2_000 };
    let target = get("wbt_lat_usec").map(|v| u64::try_from(v).unwrap_or(default_target));
    let nr = get("nr_requests").map(|v| (v as u32).max(LEAST_REQUESTS));
    let async_depth = get("async_depth").map(|v| v as u32);
    let stamps = get("iostats") != Some(0) || !cfg.profile.mq.iostats_stamps;
    // Of disks of old kernels it is not known here which of them do.
    let tells_depth = cfg.budget || !cfg.profile.mq.budget_first;
    let facts = first_facts(&mut cfg, rules.limits().max_sectors, rotational, (nr, async_depth));
    let (nr, hw_queues) = (facts.nr_requests, facts.hw_queues);
    let to = &cfg.scheduler;
    let tunables = to.descriptor.resolve_tunables(to.generation.index, &facts, &to.tunables)?;
    let (sched, merging) = scheduler(cfg.scheduler, &tunables, facts, &cfg.profile, 0);
    Ok(Core {
        disk: cfg.disk,
        profile: cfg.profile,
        reqs: Requests::with_capacity(nr.min(4096) as usize + 8),
        bios: BioPool::default(),
        rules,
        sched,
        elevator: Elevator::new(merging, nr),
        threads: Threads::default(),
        drive: Drive::new(cfg.device),
        flushes: Flushes::new(hw_queues, write_cache, fua),
        throttle: Throttle::new(target, tells_depth),
        switches: Switches::default(),
        runs: Runs::default(),
        stamps,
        manual: false,
        ejected: Vec::new(),
        explain: Explain::default(),
        stats: QueueStats::default(),
        out: Outbox::default(),
    })
}

/// What may become one request.
fn rules(cfg: &QueueConfig, get: &dyn Fn(&str) -> Option<i64>) -> Rules {
    let (mq, profile) = (cfg.path == BlockPath::Mq, &cfg.profile);
    let max_kb = get("max_sectors_kb").map_or(profile.max_sectors_kb, |v| v as u32);
    let limits = Limits {
        max_sectors: max_kb.min(cfg.max_hw_sectors_kb.max(4)) * 2,
        max_segments: profile.max_segments,
        nomerges: get("nomerges").map_or(0, |v| v as u8),
    };
    let same_prio = mq && profile.mq.same_prio_merge;
    Rules::new(limits, same_prio)
}

/// The facts of a queue under its first scheduler; `nr` is `nr_requests` if it was set.
fn first_facts(
    cfg: &mut QueueConfig,
    max_sectors: u32,
    rotational: bool,
    (nr, async_depth): (Option<u32>, Option<u32>),
) -> QueueFacts {
    let none = cfg.scheduler.descriptor.facts.bypass;
    let depth = match (cfg.path, cfg.at_once) {
        // The single-queue path knows no tags: the driver fetches what it can have at the device.
        (BlockPath::Legacy, n @ 1..) => cfg.queue_depth.min(n).max(1),
        _ => cfg.queue_depth.max(1),
    };
    let default_nr = default_requests(&cfg.profile, cfg.path, none, depth);
    let nr = nr.unwrap_or(default_nr);
    let nr = if cfg.path == BlockPath::Mq && none { nr.min(depth) } else { nr };
    let cgroups = std::mem::take(&mut cfg.cgroups);
    let mut facts = QueueFacts {
        hz: cfg.profile.hz,
        rotational,
        queue_depth: depth,
        max_sectors,
        hw_queues: cfg.hw_queues.clamp(1, cfg.cpus.max(1)),
        cpus: cfg.cpus.max(1),
        capacity: Device::capacity(&*cfg.device) / 512,
        zone_sectors: cfg.zone_sectors,
        cpu_takes_no_time: cfg.profile.cpu.model != CpuModel::Cost,
        cgroups: if cgroups.is_empty() { vec![Cgroup::default()] } else { cgroups },
        ..QueueFacts::default()
    };
    set_requests(&mut facts, &cfg.profile, nr, default_nr);
    let before = async_depth_at_boot(cfg, &facts);
    set_async_depth(&mut facts, cfg.scheduler.descriptor.facts, (nr, default_nr), before);
    if let Some(depth) = async_depth.filter(|_| !none) {
        facts.async_depth = depth.clamp(1, nr);
        facts.async_in_force = facts.async_depth;
    }
    facts
}

/// `nr_requests`, unless it was set.
pub(super) fn default_requests(
    profile: &KernelProfile,
    path: BlockPath,
    none: bool,
    depth: u32,
) -> u32 {
    match (path, none) {
        (BlockPath::Mq, true) => depth,
        (BlockPath::Mq, false) => profile.mq.scheduler_tags.of(depth),
        (BlockPath::Legacy, _) => profile.nr_requests,
    }
}

/// Books how many requests there are.
pub(super) fn set_requests(
    facts: &mut QueueFacts,
    profile: &KernelProfile,
    nr: u32,
    default_nr: u32,
) {
    facts.nr_requests = nr;
    facts.limit_base = default_nr;
    facts.limit_unit = match profile.mq.shallow_depth {
        ShallowDepth::Word => QueueFacts::tag_word(nr),
        ShallowDepth::Map => default_nr,
    };
}

/// What `queue/async_depth` is under the scheduler that the machine starts with.
fn async_depth_at_boot(cfg: &QueueConfig, facts: &QueueFacts) -> u32 {
    let profile = &cfg.profile;
    let name = match facts.hw_queues {
        1 => &profile.default_scheduler,
        _ => &profile.default_scheduler_multi_queue,
    };
    match registry::family(name) {
        Ok(d) if !d.facts.bypass => {
            let nr = default_requests(profile, cfg.path, false, facts.queue_depth);
            default_async_depth(d.facts, nr)
        }
        _ => facts.queue_depth,
    }
}

fn default_async_depth(facts: Facts, nr: u32) -> u32 {
    (nr * facts.async_percent / 100).max(1)
}

/// Books `queue/async_depth` (7.1 and later) of a scheduler that was selected with so many requests, and then given `nr`.
/// `before` is what the one before it left.
pub(super) fn set_async_depth(
    facts: &mut QueueFacts,
    of: Facts,
    (nr, default_nr): (u32, u32),
    before: u32,
) {
    let default = default_async_depth(of, default_nr);
    if nr == default_nr {
        facts.async_depth = default;
        facts.async_in_force = if of.async_lags { before } else { default };
    } else {
        // It keeps its ratio.
        let scaled = u64::from(default) * u64::from(nr) / u64::from(default_nr.max(1));
        facts.async_depth = (scaled as u32).max(1);
        facts.async_in_force = facts.async_depth;
    }
}

/// Builds the scheduler and says which part looks for merges under it.
pub(super) fn scheduler(
    choice: SchedulerChoice,
    tunables: &TunableValues,
    facts: QueueFacts,
    profile: &KernelProfile,
    now: Nanos,
) -> (Sched, Merging) {
    let generation = choice.generation.index;
    let args = BuildArgs { generation, tunables, queue: &facts, now };
    let scheduler: Box<dyn Scheduler> = (choice.descriptor.build)(&args);
    let mut merging = scheduler.merging();
    if let Merging::Elevator { hash } = &mut merging
        && choice.descriptor.facts.without_merge_hash.contains(&generation)
    {
        // 2.6.18 keeps the hash inside each scheduler.
        *hash = *hash && profile.legacy.merge_hash;
    }
    (Sched::new(scheduler, choice, facts), merging)
}
