//! Mirrors and devices behind each other: the worked scenarios of md under Linux 6.12, and that nothing is lost.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::VecDeque;

use iosched_block::{
    ArrayConfig, DiskId, Event, KernelProfile, Level, QueueConfig, SchedulerChoice, Stack, Submit,
    Timeline, TraceEvent,
};
use iosched_devices::{Command, Completion, Device};
use iosched_engine::World;
use iosched_schedulers::registry;
use iosched_schedulers::{BlockPath, Cgroup, TaskInfo};
use iosched_types::{Bio, Flags, IoPrio, Nanos, Op, TaskId, units::MS};
use proptest::prelude::*;

const TASKS: u32 = 4;
const SECTORS: u64 = 400 * 2048;
const OFFSET: u64 = 2048;
/// Events after which a run counts as stuck.
const MOST_EVENTS: u32 = 400_000;

/// Each command takes as long, any number at once. It remembers what is written.
struct Leg {
    time: Nanos,
    queue: VecDeque<Completion>,
}

impl Device for Leg {
    fn capacity(&self) -> u64 {
        SECTORS * 512
    }
    fn submit(&mut self, now: Nanos, command: Command) {
        let done = Completion { id: command.id, t_start: now, t_done: now + self.time };
        self.queue.push_back(done);
    }
    fn next_wakeup(&self) -> Option<Nanos> {
        self.queue.front().map(|c| c.t_done)
    }
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.queue.front().is_some_and(|c| c.t_done <= now) {
            done.extend(self.queue.pop_front());
        }
    }
    fn in_flight(&self) -> usize {
        self.queue.len()
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

#[derive(Clone, Debug)]
struct Setup {
    kernel: &'static str,
    scheduler: &'static str,
    level: Level,
    rotational: [bool; 2],
    write_cache: bool,
    depth: u32,
    bitmap: bool,
    optimal_io: u64,
    write_mostly: Vec<usize>,
    time: Nanos,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            kernel: "6.12",
            scheduler: "mq-deadline",
            level: Level::Raid1,
            rotational: [true; 2],
            write_cache: true,
            depth: 32,
            bitmap: false,
            optimal_io: 0,
            write_mostly: Vec::new(),
            time: 5 * MS,
        }
    }
}

/// Tasks over an array.
struct Run {
    stack: Stack,
    tl: Timeline,
    /// What tasks still have to submit; the first may be blocked.
    queued: Vec<VecDeque<Bio>>,
    blocked: Vec<bool>,
    done: Vec<(Nanos, u32)>,
    todo: Vec<(Vec<Bio>, bool)>,
}

fn leg(setup: &Setup, rotational: bool) -> QueueConfig {
    // The rules of md by version, also between the profiles.
    let name = if setup.kernel == "6.1" { "6.12" } else { setup.kernel };
    let mut profile = KernelProfile::find(name).unwrap();
    profile.version = setup.kernel.into();
    let (descriptor, generation) =
        registry::resolve(setup.scheduler, profile.kernel_version()).unwrap();
    let path = descriptor.path_of(generation);
    let task = |pid| TaskInfo { pid, ..TaskInfo::default() };
    QueueConfig {
        disk: DiskId::default(),
        profile,
        path,
        scheduler: SchedulerChoice { descriptor, generation, tunables: Vec::new() },
        device: Box::new(Leg { time: setup.time, queue: VecDeque::new() }),
        queue_depth: setup.depth,
        at_once: 0,
        hw_queues: 1,
        rotational,
        write_cache: setup.write_cache,
        fua: false,
        budget: path == BlockPath::Mq,
        max_hw_sectors_kb: 1280,
        zone_sectors: 0,
        settings: Vec::new(),
        tasks: (0..TASKS).map(task).collect(),
        cgroups: vec![Cgroup::default()],
        cpus: 1,
        tag_start: 0,
    }
}

impl Run {
    fn new(setup: &Setup) -> Run {
        let config = ArrayConfig {
            level: setup.level,
            data_offset: OFFSET,
            bitmap_chunk: if setup.bitmap { 131_072 } else { 0 },
            optimal_io: setup.optimal_io,
            write_mostly: setup.write_mostly.clone(),
        };
        let legs = setup.rotational.iter().map(|r| leg(setup, *r)).collect();
        let mut stack = Stack::array(legs, &config).unwrap();
        stack.explain();
        Run {
            stack,
            tl: Timeline::default(),
            queued: vec![VecDeque::new(); TASKS as usize],
            blocked: vec![false; TASKS as usize],
            done: Vec::new(),
            todo: Vec::new(),
        }
    }

    /// A system call with these bios, under a plug if there are several.
    fn call(&mut self, task: TaskId, bios: &[Bio]) {
        let plug = bios.len() > 1;
        for bio in bios {
            let pieces = self.stack.split(*bio);
            self.queued[task as usize].extend(pieces);
        }
        if self.blocked[task as usize] {
            return;
        }
        if plug {
            self.stack.start_plug(task);
        }
        self.submit(task, false);
        if plug {
            self.stack.finish_plug(&mut self.tl, task);
        }
        self.stack.run_deferred(&mut self.tl);
        self.stack.next_call();
    }

    fn submit(&mut self, task: TaskId, mut resumed: bool) {
        while let Some(bio) = self.queued[task as usize].front().copied() {
            if self.stack.submit(&mut self.tl, &bio, resumed) == Submit::Blocked {
                self.blocked[task as usize] = true;
                self.stack.task_sleeps(&mut self.tl, task);
                return;
            }
            (resumed, self.blocked[task as usize]) = (false, false);
            self.queued[task as usize].pop_front();
        }
    }

    fn collect(&mut self) -> usize {
        let done = std::mem::take(&mut self.stack.out_mut().done);
        let n = done.len();
        self.done.extend(done.iter().map(|d| (d.at, d.bio)));
        for task in std::mem::take(&mut self.stack.out_mut().woken) {
            self.submit(task, true);
            self.stack.run_deferred(&mut self.tl);
        }
        n
    }

    /// Until so many bios are done.
    fn until(&mut self, bios: usize) {
        let mut events = 0;
        self.collect();
        while self.done.len() < bios {
            let at = self.next().unwrap_or_else(|| panic!("stuck with {:?}", self.stack));
            self.turn(at);
            self.collect();
            events += 1;
            assert!(events < MOST_EVENTS, "no end: {:?}", self.stack);
        }
    }

    /// One bio after the other; each a call.
    fn one_by_one(&mut self, task: TaskId, bios: &[Bio]) {
        for bio in bios {
            let n = self.done.len() + self.stack.split(*bio).count();
            self.call(task, std::slice::from_ref(bio));
            self.until(n);
        }
    }

    /// Nothing but the array's own timers is left; they run out.
    fn rest(&mut self) {
        while let Some(at) = self.next() {
            self.turn(at);
            assert_eq!(self.collect(), 0);
        }
    }

    /// Commands of each leg: time, letter, sector, sectors.
    fn commands(&mut self) -> Vec<Vec<(Nanos, char, u64, u32)>> {
        let traces = self.stack.take_traces(&self.tl);
        let of = |e: TraceEvent| match e {
            TraceEvent::Dispatch { issue, .. } => {
                Some((issue.t, issue.op.letter(), issue.sector, issue.sectors))
            }
            _ => None,
        };
        traces.into_iter().map(|t| t.events.into_iter().filter_map(of).collect()).collect()
    }

    /// The same without times, flushes and the array's own sectors.
    fn data(&mut self) -> Vec<Vec<String>> {
        let own = |c: &(Nanos, char, u64, u32)| c.1 == 'F' || c.2 < OFFSET;
        let text = |c: (Nanos, char, u64, u32)| format!("{}{}+{}", c.1, c.2, c.3);
        let legs = self.commands().into_iter();
        legs.map(|l| l.into_iter().filter(|c| !own(c)).map(text).collect()).collect()
    }
}

impl World for Run {
    type Event = Event;
    fn timeline(&mut self) -> &mut Timeline {
        &mut self.tl
    }
    fn device_next(&self) -> Nanos {
        self.stack.device_next()
    }
    fn device_event(&mut self) {
        self.stack.device_event(&mut self.tl);
        self.stack.run_deferred(&mut self.tl);
    }
    fn event(&mut self, event: Event) {
        match event {
            Event::Queue(disk, event) => self.stack.event(&mut self.tl, disk, event),
            Event::Array(event) => self.stack.array_event(&mut self.tl, event),
            Event::Host(n) => {
                let (bios, alone) = self.todo[n as usize].clone();
                let task = bios[0].task;
                if alone {
                    bios.iter().for_each(|b| self.call(task, std::slice::from_ref(b)));
                } else {
                    self.call(task, &bios);
                }
            }
        }
    }
}

fn bio(id: u32, op: Op, sector: u64, sectors: u32) -> Bio {
    let flags = match op {
        Op::Write => Flags::SYNC,
        Op::Flush => Flags::SYNC.with(Flags::PREFLUSH),
        _ => Flags::NONE,
    };
    let prio = IoPrio::default();
    Bio { id, op, flags, sector, sectors, task: 0, thread: 0, prio, cgroup: 0, cpu: 0 }
}

fn reads(sectors: &[u64], n: u32) -> Vec<Bio> {
    sectors.iter().enumerate().map(|(i, s)| bio(i as u32, Op::Read, *s, n)).collect()
}

/// Scenario 1: idle legs.
#[test]
fn reads_of_an_idle_mirror_stay_on_leg_0_and_change_under_2_6_18() {
    let bios = reads(&[204_800, 40_960, 614_400], 8);
    let mut new = Run::new(&Setup::default());
    new.one_by_one(0, &bios);
    assert_eq!(new.data(), [vec!["R206848+8", "R43008+8", "R616448+8"], vec![]]);
    let mut old = Run::new(&Setup { kernel: "2.6.18", scheduler: "deadline", ..Setup::default() });
    old.one_by_one(0, &bios);
    assert_eq!(old.data(), [vec!["R43008+8"], vec!["R206848+8", "R616448+8"]]);
}

/// Scenario 2.
#[test]
fn one_sequential_reader_stays_on_its_leg() {
    let at: Vec<u64> = (0..6).map(|i| 102_400 + i * 128).collect();
    let mut run = Run::new(&Setup::default());
    run.one_by_one(0, &reads(&at, 128));
    let data = run.data();
    assert_eq!((data[0].len(), data[1].len()), (6, 0));
}

/// Scenarios 3 and 4: with pauses both readers share leg 0, without each has a leg.
#[test]
fn two_sequential_readers_settle_on_a_leg_each_unless_they_pause() {
    let stream = |task: u32, from: u64| -> Vec<Bio> {
        let one = |i: u64| Bio {
            task,
            thread: task,
            ..bio(task * 1000 + i as u32, Op::Read, from + i * 128, 128)
        };
        (0..32).map(one).collect()
    };
    let (a, b) = (stream(0, 20_480), stream(1, 409_600));
    let mut paused = Run::new(&Setup::default());
    for (x, y) in a.iter().zip(&b) {
        paused.one_by_one(0, &[*x]);
        paused.one_by_one(1, &[*y]);
    }
    assert_eq!(paused.data()[1].len(), 0);
    let mut busy = Run::new(&Setup::default());
    for (x, y) in a.iter().zip(&b) {
        let n = busy.done.len();
        busy.call(0, &[*x]);
        busy.call(1, &[*y]);
        busy.until(n + 2);
    }
    let data = busy.data();
    assert!(data[0].len() == 32 && data[1].len() == 32, "{data:?}");
    assert_eq!(data[1][0], "R411648+128");
}

/// Scenario 5: a clean array is marked dirty before a write, and clean 204 ms after the last.
#[test]
fn an_idle_array_pays_six_commands_before_and_after_a_write() {
    let mut run = Run::new(&Setup::default());
    run.one_by_one(0, &[bio(0, Op::Write, 61_440, 8)]);
    let wrote = run.done[0].0;
    run.rest();
    for leg in run.commands() {
        let text: Vec<String> = leg.iter().map(|c| format!("{}{}", c.1, c.2)).collect();
        assert_eq!(text, ["F0", "W8", "F0", "W63488", "F0", "W8", "F0"]);
        assert_eq!(leg[4].0, wrote + 204 * MS);
    }
}

/// The array stays dirty while writes come more often than that.
#[test]
fn a_busy_array_is_marked_once() {
    let mut run = Run::new(&Setup::default());
    let bios: Vec<Bio> = (0..50).map(|i| bio(i, Op::Write, u64::from(i) * 800, 8)).collect();
    run.one_by_one(0, &bios);
    assert_eq!(run.stack.array_counters()[1], ("superblock writes", 1));
}

/// Scenarios 6 and 7: no bio crosses 64 MiB. Older kernels do not split.
#[test]
fn bios_are_split_at_64_mib_since_4_11() {
    let mut run = Run::new(&Setup::default());
    run.one_by_one(0, &[bio(0, Op::Write, 130_816, 512)]);
    run.one_by_one(0, &[bio(1, Op::Read, 130_816, 512)]);
    let data = run.data();
    let writes = vec!["W132864+256", "W133120+256"];
    assert_eq!(data[1], writes);
    assert_eq!(data[0], [writes, vec!["R132864+256", "R133120+256"]].concat());
    let mut old = Run::new(&Setup { kernel: "3.12", scheduler: "deadline", ..Setup::default() });
    old.one_by_one(0, &[bio(0, Op::Write, 130_816, 512)]);
    assert_eq!(old.data()[0], ["W132864+512"]);
}

/// Scenario 8: writes merge on the legs, and a flush goes to both at once.
#[test]
fn writes_merge_in_the_plug_of_each_leg_and_a_flush_goes_to_both() {
    let mut run = Run::new(&Setup::default());
    run.one_by_one(0, &[bio(9, Op::Write, 0, 8)]);
    run.call(0, &[bio(0, Op::Write, 16_000, 8), bio(1, Op::Write, 16_008, 8)]);
    run.until(3);
    run.one_by_one(0, &[bio(2, Op::Flush, 0, 0)]);
    for leg in run.commands() {
        let [.., write, flush] = leg.as_slice() else { panic!("{leg:?}") };
        assert_eq!((write.1, write.2, write.3), ('W', 18_048, 16));
        assert_eq!((flush.1, flush.0), ('F', write.0 + 5 * MS));
    }
}

/// Scenario 9: the first write to a chunk waits for the bitmap; the batch is one request a leg.
#[test]
fn a_batch_waits_for_the_bitmap_and_is_merged() {
    let mut run = Run::new(&Setup { bitmap: true, ..Setup::default() });
    run.one_by_one(0, &[bio(100, Op::Write, 0, 8)]);
    let batch: Vec<Bio> =
        (0..8).map(|i| bio(i, Op::Write, 409_600 + u64::from(i) * 8, 8)).collect();
    run.call(0, &batch);
    run.until(9);
    run.one_by_one(0, &[bio(101, Op::Write, 409_600, 8)]);
    for leg in run.commands() {
        let writes = leg.iter().filter(|c| c.1 == 'W');
        let text: Vec<String> = writes.map(|c| format!("{}+{}", c.2, c.3)).collect();
        // Bitmap, superblock, data; bitmap, batch; a chunk that is set costs nothing.
        assert_eq!(text, ["16+1", "8+1", "2048+8", "16+1", "411648+64", "411648+8"]);
    }
}

/// Scenario 10, as far as it is about reads.
#[test]
fn a_write_mostly_leg_is_not_read() {
    let mut run = Run::new(&Setup { write_mostly: vec![0], ..Setup::default() });
    run.one_by_one(0, &reads(&[0, 4000, 128], 8));
    assert_eq!(run.data()[0].len(), 0);
}

/// Scenario 12: with bios under way everywhere, disks are chosen by distance and solid-state legs by load.
#[test]
fn random_reads_use_both_legs() {
    let counts = |rotational: bool| {
        let mut run = Run::new(&Setup { rotational: [rotational; 2], ..Setup::default() });
        let mut place = 1u64;
        for i in 0..256u32 {
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            let at = (place >> 33) % 90_000 * 8;
            run.call(0, &[bio(i, Op::Read, at, 8)]);
            if i >= 15 {
                run.until(i as usize - 14);
            }
        }
        run.until(256);
        let stats = run.stack.leg_stats();
        (stats[0].reads, stats[0].changes + stats[1].changes)
    };
    let (disks, changes) = counts(true);
    assert!((100..=156).contains(&disks) && (90..=160).contains(&changes), "{disks} {changes}");
    let (solid, changes) = counts(false);
    assert!((120..=136).contains(&solid) && changes > 220, "{solid} {changes}");
}

/// Solid-state legs with an optimal size of 512 KiB: a long run changes leg since 6.9, and not before.
#[test]
fn a_long_run_leaves_its_leg_where_the_kernel_knows_how() {
    let legs = |kernel, rotational| {
        let setup = Setup { kernel, rotational, optimal_io: 1024, ..Setup::default() };
        let mut run = Run::new(&setup);
        // One bio of something else came before the reader's 96.
        let at: Vec<u64> = std::iter::once(0).chain((0..96).map(|i| 20_480 + i * 128)).collect();
        run.one_by_one(0, &reads(&at, 128));
        let data = run.data();
        (data[0].len(), data[1].len())
    };
    assert_eq!(legs("6.12", [false; 2]), (49, 48));
    assert_eq!(legs("6.1", [false; 2]), (97, 0));
    assert_eq!(legs("6.12", [true; 2]), (97, 0));
    assert_eq!(legs("6.12", [false, true]), (9, 88));
}

/// A volume over two disks: bios are split at the border, both parts are under way together.
#[test]
fn devices_one_behind_the_other_split_at_the_border() {
    let mut run = Run::new(&Setup { level: Level::Linear, ..Setup::default() });
    let border = SECTORS - OFFSET;
    run.one_by_one(0, &[bio(0, Op::Read, border - 256, 512)]);
    let legs = run.commands();
    assert_eq!((legs[0][0].2, legs[0][0].3), (SECTORS - 256, 256));
    assert_eq!((legs[1][0].2, legs[1][0].3), (OFFSET, 256));
    assert_eq!(legs[0][0].0, legs[1][0].0);
}

/// Before 6.11 a flush with data flushes first, and later ones wait for the next round.
#[test]
fn flushes_go_in_rounds_before_6_11() {
    let mut run = Run::new(&Setup { kernel: "6.1", ..Setup::default() });
    run.one_by_one(0, &[bio(9, Op::Write, 0, 8)]);
    let flags = Flags::SYNC.with(Flags::PREFLUSH);
    run.call(0, &[Bio { flags, ..bio(0, Op::Write, 4096, 8) }]);
    run.call(0, &[bio(1, Op::Flush, 0, 0)]);
    run.call(0, &[bio(2, Op::Flush, 0, 0)]);
    run.until(4);
    assert_eq!(run.stack.array_counters()[0], ("flush rounds", 2));
    let leg = &run.commands()[1];
    let write = leg.iter().find(|c| c.2 == 6144).unwrap();
    assert!(leg.iter().any(|c| c.1 == 'F' && c.0 + 5 * MS == write.0), "{leg:?}");
}

fn setup() -> impl Strategy<Value = Setup> {
    let kernels = prop::sample::select(vec![
        ("2.6.18", "deadline"),
        ("3.12", "cfq"),
        ("4.12", "bfq"),
        ("4.12", "noop"),
        ("6.1", "none"),
        ("6.12", "mq-deadline"),
        ("6.12", "bfq"),
    ]);
    let level = prop::sample::select(vec![Level::Raid1, Level::Raid1, Level::Linear]);
    (kernels, level, any::<[bool; 2]>(), any::<bool>(), any::<bool>(), 1u32..6).prop_map(
        |((kernel, scheduler), level, rotational, write_cache, bitmap, depth)| Setup {
            kernel,
            scheduler,
            level,
            rotational,
            write_cache,
            bitmap,
            depth,
            time: MS,
            ..Setup::default()
        },
    )
}

/// What, where, how many pages, whether with a flush.
type Piece = (u8, u64, u32, bool);
/// Of which task, after how many ms, each a call, what.
type Deed = (u32, u64, bool, Vec<Piece>);

fn deed() -> impl Strategy<Value = Deed> {
    // Near a border of 64 MiB, near the end of the first leg, and anywhere.
    let place = prop_oneof![Just(131_072u64), Just(SECTORS - OFFSET), 64..700_000u64];
    let one = (0u8..8, place, 1u32..64, any::<bool>());
    let pause = prop_oneof![Just(0u64), 0u64..20, 0u64..900];
    (0..TASKS, pause, any::<bool>(), prop::collection::vec(one, 1..10))
}

fn bios_of(setup: &Setup, task: u32, first: u32, list: &[Piece]) -> Vec<Bio> {
    let end = if setup.level == Level::Raid1 { SECTORS - OFFSET } else { 2 * (SECTORS - OFFSET) };
    let one = |(i, (what, place, pages, flush)): (usize, &Piece)| {
        let sectors = pages * 8;
        let at = (place - 64).min(end - u64::from(sectors)) / 8 * 8;
        let b = match what {
            0..4 => bio(0, Op::Read, at, sectors),
            4..7 => bio(0, Op::Write, at, sectors),
            _ => bio(0, Op::Flush, 0, 0),
        };
        let extra = match (b.op, flush) {
            (Op::Write, true) => Flags::PREFLUSH.with(Flags::FUA),
            _ => Flags::NONE,
        };
        Bio { id: first + i as u32, flags: b.flags.with(extra), task, thread: task, ..b }
    };
    list.iter().enumerate().map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Every bio is completed once, both legs of a mirror get the same writes, and the array comes to rest.
    #[test]
    fn nothing_is_lost_and_mirrors_are_equal(
        setup in setup(),
        deeds in prop::collection::vec(deed(), 1..24),
    ) {
        let mut run = Run::new(&setup);
        let (mut at, mut ids, mut want) = (0, 0, 0);
        for (n, (task, pause, alone, list)) in deeds.iter().enumerate() {
            at += pause * MS;
            let bios = bios_of(&setup, *task, ids, list);
            ids += bios.len() as u32;
            want += bios.iter().map(|b| run.stack.split(*b).count()).sum::<usize>();
            run.todo.push((bios, *alone));
            run.tl.events.push(at, Event::Host(n as u64));
        }
        run.until(want);
        run.rest();
        prop_assert_eq!(run.done.len(), want);
        prop_assert_eq!(run.stack.pending(), 0);
        prop_assert_eq!(run.stack.in_flight(), 0);
        prop_assert!(run.queued.iter().all(VecDeque::is_empty));
        if setup.level == Level::Raid1 {
            let written = |leg: &[(Nanos, char, u64, u32)]| {
                let mut all: Vec<u64> = leg
                    .iter()
                    .filter(|c| c.1 == 'W')
                    .flat_map(|c| c.2..c.2 + u64::from(c.3))
                    .collect();
                all.sort_unstable();
                all
            };
            let legs = run.commands();
            prop_assert_eq!(written(&legs[0]), written(&legs[1]));
        }
    }
}
