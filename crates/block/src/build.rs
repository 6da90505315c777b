//! Building a queue.

use std::collections::VecDeque;

use iosched_schedulers::{Actions, BlockPath, TunableError};
use iosched_types::{Nanos, Requests};

use crate::bios::BioPool;
use crate::config::{Limits, QueueConfig, setting};
use crate::flush::FlushQueue;
use crate::legacy::Legacy;
use crate::profile::{LegacyFlush, PlugKind};
use crate::queue::Queue;
use crate::stats::QueueStats;
use crate::switch::{self, Switches};

impl Queue {
    /// Builds a queue.
    ///
    /// # Errors
    /// A tunable that the scheduler does not have or does not accept. The caller checks `queue/*` settings against
    /// [`queue_settings`](crate::queue_settings).
    pub fn new(mut cfg: QueueConfig) -> Result<Queue, TunableError> {
        let settings = std::mem::take(&mut cfg.settings);
        let tasks = std::mem::take(&mut cfg.tasks);
        let get = |name| setting(&settings, name);
        let mq = cfg.path == BlockPath::Mq;
        let max_kb = get("max_sectors_kb").map_or(cfg.profile.max_sectors_kb, |v| v as u32);
        let max_kb = max_kb.min(cfg.max_hw_sectors_kb.max(4));
        let rotational = get("rotational").map_or(cfg.rotational, |v| v != 0);
        cfg.settings = settings.clone();
        let facts = switch::first_facts(&mut cfg, max_kb, rotational);
        let (nr, depth) = (facts.nr_requests, facts.queue_depth);
        let to = &cfg.scheduler;
        let tunables = to.descriptor.resolve_tunables(to.generation.index, &facts, &to.tunables)?;
        let (scheduler, merging) = switch::build(to, &tunables, &facts, &cfg.profile, 0);
        let write_cache = get("write_cache").map_or(cfg.write_cache, |v| v != 0);
        let default_target = if rotational { 75_000 } else { 2_000 };
        let target = get("wbt_lat_usec").map(|v| u64::try_from(v).unwrap_or(default_target));
        let hw_queues = facts.hw_queues;
        let device_plug = cfg.profile.plug.kind == PlugKind::Device;
        let mut q = Queue {
            disk: cfg.disk,
            limits: Limits {
                max_sectors: max_kb * 2,
                max_segments: cfg.profile.max_segments,
                nomerges: get("nomerges").map_or(0, |v| v as u8),
            },
            same_prio_merge: mq && cfg.profile.mq.same_prio_merge,
            limit_marks_nomerge: !mq && cfg.profile.legacy.flush == LegacyFlush::Barrier,
            plug_scan: cfg.profile.plug.merge_scan,
            path: cfg.path,
            merging,
            hooks: switch::hooks(&*scheduler, &cfg.scheduler),
            scheduler,
            none: mq && cfg.scheduler.descriptor.facts.bypass,
            tag_start: cfg.tag_start,
            choice: cfg.scheduler,
            out: Actions::default(),
            reqs: Requests::with_capacity(nr.min(4096) as usize + 8),
            bios: BioPool::default(),
            elevator: switch::fresh_elevator(nr),
            plugs: Vec::new(),
            hctx: Vec::new(),
            legacy: Legacy::new(nr, device_plug),
            flushes: (0..hw_queues.max(1)).map(|_| FlushQueue::default()).collect(),
            wbt: None,
            switches: Switches::default(),
            write_cache,
            fua: get("fua").map_or(cfg.fua, |v| v != 0),
            budget: cfg.budget,
            device: cfg.device,
            device_next: Nanos::MAX,
            finished_commands: Vec::new(),
            commands_at_once: false,
            scratch: Vec::new(),
            in_flight: 0,
            busy_since: 0,
            head: 0,
            queued: 0,
            run_pending: false,
            call: 0,
            run_some: VecDeque::new(),
            timer_gen: 0,
            idle_since: None,
            manual: false,
            stats: QueueStats::default(),
            done: Vec::new(),
            woken: Vec::new(),
            woken_behind: Vec::new(),
            issues: None,
            trace: None,
            profile: cfg.profile,
            facts,
        };
        if mq {
            q.build_hctxs(nr, depth);
        }
        q.set_throttle(target);
        q.plugs.reserve_exact(tasks.len());
        q.facts.tasks.reserve_exact(tasks.len());
        for info in tasks {
            q.task_started(info);
        }
        Ok(q)
    }
}
