//! The cores alone, under closed loops at a device of constant latency.

use iosched_block::KernelProfile;
use iosched_engine::EventQueue;
use iosched_types::units::MS;

use super::*;

/// The next step of a process of the loop when its piece is done.
#[derive(Clone, Debug, Default)]
struct Proc {
    in_flight: u32,
    done: VecDeque<Nanos>,
    /// A completion was there when the look for one began.
    finds: bool,
    starts: Nanos,
    asleep: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Core(u16),
    Done(TaskId, Nanos),
}

/// Processes that keep `depth` I/Os under way at a device that takes `device` for each.
struct Loop {
    cores: Cores,
    procs: Vec<Proc>,
    depth: u32,
    device: Nanos,
    /// I/Os of each process.
    each: Vec<u64>,
    events: EventQueue<Event>,
    finished: u64,
    latency: u64,
}

const LATENCY: Nanos = 56_500;

impl Loop {
    /// Processes that stay on their cores.
    fn new(family: &str, cores: u16, procs: u16, depth: u32) -> Loop {
        let seat = |p: u16| Seat { core: p % cores, allowed: vec![p % cores], nice: 0 };
        Loop::on((0..procs).map(seat).collect(), family, cores, depth)
    }

    fn on(seats: Vec<Seat>, family: &str, cores: u16, depth: u32) -> Loop {
        Loop::under("6.12", seats, family, cores, depth)
    }

    fn under(kernel: &str, seats: Vec<Seat>, family: &str, cores: u16, depth: u32) -> Loop {
        let procs = seats.len();
        let mut profile = KernelProfile::find(kernel).unwrap().cpu;
        profile.cold_percent = 100;
        let costs = Costs::new(&profile, family).unwrap();
        let mut all = Loop {
            cores: Cores::new(costs, cores, seats),
            procs: vec![Proc { asleep: true, ..Proc::default() }; procs],
            depth,
            device: LATENCY,
            each: vec![0; procs],
            events: EventQueue::new(),
            finished: 0,
            latency: 0,
        };
        for t in 0..procs as TaskId {
            all.procs[t as usize].asleep = false;
            all.cores.wake(u64::from(t) * 77, t);
        }
        all
    }

    fn next(&mut self, now: Nanos, t: TaskId) {
        let p = &mut self.procs[t as usize];
        if p.in_flight < self.depth {
            p.starts = now;
            self.cores.begin(now, t, Piece::Submit, 0);
        } else {
            self.look(now, t);
        }
    }

    fn look(&mut self, now: Nanos, t: TaskId) {
        let p = &mut self.procs[t as usize];
        p.finds = !p.done.is_empty();
        self.cores.begin(now, t, Piece::Reap, 0);
    }

    fn submit(&mut self, now: Nanos, t: TaskId) {
        let p = &mut self.procs[t as usize];
        p.in_flight += 1;
        self.events.push(now + self.device, Event::Done(t, p.starts));
        self.next(now, t);
    }

    fn piece(&mut self, now: Nanos, t: TaskId, piece: Piece) {
        match piece {
            Piece::Submit if self.cores.lock(now, t) => {}
            Piece::Submit | Piece::Locked => self.submit(now, t),
            Piece::SwitchIn if self.procs[t as usize].done.is_empty() => self.next(now, t),
            Piece::SwitchIn => self.look(now, t),
            Piece::Bio | Piece::Call => unreachable!("only programs make calls"),
            Piece::Reap => {
                let p = &mut self.procs[t as usize];
                if p.finds {
                    self.latency += now - p.done.pop_front().unwrap();
                    self.finished += 1;
                    self.each[t as usize] += 1;
                    p.in_flight -= 1;
                    self.next(now, t);
                } else if p.done.is_empty() {
                    p.asleep = true;
                    self.cores.leave(now, t);
                } else {
                    self.look(now, t);
                }
            }
        }
    }

    /// I/Os a second and mean latency in ns over `span`, after as much time to settle.
    fn run(&mut self, span: Nanos) -> (f64, f64) {
        let mut settled = None;
        loop {
            for (at, core) in self.cores.due.drain(..) {
                self.events.push(at, Event::Core(core));
            }
            let (now, event) = self.events.pop().expect("somebody is always under way");
            if now >= span && settled.is_none() {
                settled = Some((self.finished, self.latency));
            }
            if now >= 2 * span {
                let (ios, latency) = settled.unwrap();
                let ios = (self.finished - ios) as f64;
                return (ios * 1e9 / span as f64, (self.latency - latency) as f64 / ios);
            }
            match event {
                Event::Core(core) => match self.cores.event(now, core) {
                    Ended::Nothing => {}
                    Ended::Piece(t, piece) => self.piece(now, t, piece),
                },
                Event::Done(t, started) => {
                    let p = &mut self.procs[t as usize];
                    let wakes = std::mem::take(&mut p.asleep);
                    p.done.push_back(started);
                    self.cores.completion(now, t, u32::MAX, wakes);
                }
            }
        }
    }
}

/// I/Os a second of an independent program of the same rules (cores, processes, depth; then none, mq-deadline,
/// kyber, bfq), at a device that takes 56.5 µs for everything.
const EXPECTED: [(u16, u16, u32, [f64; 4]); 9] = [
    (1, 1, 1, [15_865.0, 15_711.0, 15_674.0, 15_514.0]),
    (1, 1, 16, [247_563.0, 245_211.0, 244_648.0, 237_531.0]),
    (1, 1, 128, [359_712.0, 294_119.0, 281_690.0, 237_531.0]),
    (1, 16, 1, [165_099.0, 149_768.0, 146_477.0, 133_565.0]),
    (1, 64, 1, [139_334.0, 128_255.0, 125_834.0, 116_185.0]),
    (2, 2, 128, [719_424.0, 448_431.0, 563_368.0, 332_310.0]),
    (4, 4, 128, [1_438_885.0, 541_135.0, 1_126_732.0, 320_714.0]),
    (10, 10, 128, [3_597_122.0, 481_232.0, 2_817_219.0, 279_955.0]),
    (10, 40, 1, [617_951.0, 481_208.0, 610_687.0, 285_551.0]),
];

#[test]
fn closed_loops_agree_with_another_program() {
    for (cores, procs, depth, expected) in EXPECTED {
        for (family, iops) in ["none", "mq-deadline", "kyber", "bfq"].into_iter().zip(expected) {
            let (ours, _) = Loop::new(family, cores, procs, depth).run(20_000_000);
            let error = ours / iops - 1.0;
            assert!(error.abs() < 0.015, "{family} {cores}/{procs}/{depth}: {ours} beside {iops}");
        }
    }
}

#[test]
fn latency_is_what_a_closed_loop_makes_it() {
    let (iops, latency) = Loop::new("bfq", 10, 40, 1).run(20_000_000);
    assert!((iops * latency / 1e9 / 40.0 - 1.0).abs() < 0.01, "{iops} x {latency}");
}

#[test]
fn core_time_adds_up() {
    for family in ["none", "mq-deadline", "bfq"] {
        let mut all = Loop::new(family, 4, 4, 128);
        all.run(5_000_000);
        let busy: Nanos = all.cores.times().iter().map(CpuTime::total).sum();
        // Four cores, always busy; the last pieces are booked when they begin.
        let cores = busy as f64 / 10_000_000.0;
        assert!((3.97..4.03).contains(&cores), "{family}: {cores}");
        let spins = all.cores.times().iter().any(|t| t.spinning > 0);
        assert_eq!(spins, family != "none");
    }
}

/// Whoever is switched in gets on, however often others take the core from it, and a smaller weight never gets more.
#[test]
fn no_process_starves_beside_one_of_great_weight() {
    let sets: [&[i8]; 7] = [
        &[0, 5, -20],
        &[0, 5, -10],
        &[0, 4, -10],
        &[5, 10, -5],
        &[-10, -5, -20],
        &[0, 5, 19, -20],
        &[0, 0, -20],
    ];
    for kernel in ["4.12", "6.12"] {
        for (nices, depth) in sets.into_iter().flat_map(|s| [(s, 1), (s, 64)]) {
            let seats = nices.iter().map(|n| Seat { core: 0, allowed: vec![0], nice: *n });
            let mut all = Loop::under(kernel, seats.collect(), "none", 1, depth);
            all.device = 8_000;
            all.run(1_000_000_000);
            let mut by_nice: Vec<(i8, u64)> =
                nices.iter().copied().zip(all.each.iter().copied()).collect();
            by_nice.sort_unstable();
            let what = format!("{kernel}, depth {depth}: {by_nice:?}");
            let total: u64 = all.each.iter().sum();
            let weights: u64 = nices.iter().map(|n| fair::weight(*n)).sum();
            for pair in by_nice.windows(2) {
                assert!(pair[1].1 as f64 <= 1.1 * pair[0].1 as f64, "{what}");
            }
            for (nice, ios) in &by_nice {
                // Who sleeps for the device cannot use a great share.
                let share = fair::weight(*nice) as f64 / weights as f64;
                let share = share.min(1.0 / nices.len() as f64);
                assert!(*ios as f64 >= 0.5 * share * total as f64, "{what}: {nice}");
            }
        }
    }
}

#[test]
fn an_interrupt_keeps_the_holder_of_the_lock() {
    let costs = Costs::new(&KernelProfile::find("6.12").unwrap().cpu, "bfq").unwrap();
    let mut cores = Cores::new(costs, 2, seats(&[(0, 0), (1, 0)]));
    for t in [0, 1] {
        cores.asleep[t as usize] = false;
        assert!(cores.lock(0, t));
    }
    assert_eq!(cores.due, [(1430, 0)]);
    cores.completion(500, 0, 0, false);
    assert_eq!(cores.event(1430, 0), Ended::Nothing);
    assert_eq!(cores.due.last(), Some(&(2230, 0)));
    assert_eq!(cores.event(2230, 0), Ended::Piece(0, Piece::Locked));
    // The other one spun all the time. It now holds the lock longer, because the lock comes from another core.
    assert_eq!(cores.times()[1].spinning, 2230);
    assert_eq!(cores.due.last(), Some(&(2230 + 1430 + 1454, 1)));
}

/// Processes that begin on these cores and may run on all, with these nice values.
fn seats(all: &[(u16, i8)]) -> Vec<Seat> {
    all.iter().map(|(core, nice)| Seat { core: *core, allowed: Vec::new(), nice: *nice }).collect()
}

/// Processes that hand over requests, each of which takes `piece`, without end and never wait, until `until`: the core
/// time each of them had.
fn busy(cores: u16, all: &[(u16, i8)], piece: Nanos, until: Nanos) -> Vec<Nanos> {
    let mut profile = KernelProfile::find("6.12").unwrap().cpu;
    profile.submit_ns = piece;
    let costs = Costs::new(&profile, "none").unwrap();
    let mut cores = Cores::new(costs, cores, seats(all));
    let mut events = EventQueue::new();
    (0..all.len() as TaskId).for_each(|t| cores.wake(0, t));
    loop {
        cores.due.drain(..).for_each(|(at, core)| events.push(at, core));
        let (now, core) = events.pop().unwrap();
        if now > until {
            return cores.times().iter().map(CpuTime::total).collect();
        }
        if let Ended::Piece(t, _) = cores.event(now, core) {
            cores.begin(now, t, Piece::Submit, 0);
        }
    }
}

#[test]
fn a_core_is_shared_by_weight() {
    let had = busy(1, &[(0, 0), (0, 5), (0, -5)], 100_000, 20_000_000_000);
    let all: Nanos = had.iter().sum();
    let weights = [1024.0, 336.0, 3125.0];
    for (had, weight) in had.iter().zip(weights) {
        let share = *had as f64 / all as f64;
        assert!((share / (weight / 4485.0) - 1.0).abs() < 0.02, "{share} for {weight}");
    }
}

#[test]
fn a_process_that_wakes_goes_to_an_idle_core() {
    // All begin on core 0: as many cores are busy as there are processes.
    let had = busy(4, &[(0, 0), (0, 0), (0, 0)], 1_560, 1_000_000_000);
    assert!(had.iter().all(|h| *h > 990_000_000), "{had:?}");
    // Where they may run on one core only, they share it.
    let costs = Costs::new(&KernelProfile::find("6.12").unwrap().cpu, "none").unwrap();
    let tied = |core| Seat { core, allowed: vec![core], nice: 0 };
    let mut cores = Cores::new(costs, 4, vec![tied(2), tied(2)]);
    [0, 1].iter().for_each(|t| cores.wake(0, *t));
    assert_eq!([cores.core_of(0), cores.core_of(1)], [2, 2]);
}

/// Each process computes for its time in pieces of 0.1 ms and ends: when each was done.
fn work(cores: u16, seats: Vec<Seat>, times: &[Nanos]) -> Vec<Nanos> {
    let costs = Costs::new(&KernelProfile::find("6.12").unwrap().cpu, "none").unwrap();
    let mut cores = Cores::new(costs, cores, seats);
    let (mut left, mut done) = (times.to_vec(), vec![0; times.len()]);
    let mut events = EventQueue::new();
    (0..times.len() as TaskId).for_each(|t| cores.wake(0, t));
    loop {
        cores.due.drain(..).for_each(|(at, core)| events.push(at, core));
        let Some((now, core)) = events.pop() else { return done };
        let Ended::Piece(t, piece) = cores.event(now, core) else { continue };
        let left = &mut left[t as usize];
        if piece == Piece::Call {
            *left -= 100_000;
        }
        if *left == 0 {
            done[t as usize] = now;
            cores.leave(now, t);
        } else {
            cores.begin_call(now, t, 100_000, 0);
        }
    }
}

#[test]
fn a_core_that_goes_idle_takes_over_who_waits() {
    // Three processes of 30 ms on two cores: one core has two of them. It gives one away when the other core is done with
    // its own, so that the last ends after 45 ms, not after 60.
    let done = work(2, seats(&[(0, 0); 3]), &[30_000_000; 3]);
    let last = *done.iter().max().unwrap();
    assert!((45_000_000..47_000_000).contains(&last), "{done:?}");
    // Unless it may not run there.
    let tied = |core| Seat { core, allowed: vec![core], nice: 0 };
    let done = work(2, vec![tied(0), tied(0), tied(1)], &[30_000_000; 3]);
    assert!((60_000_000..61_000_000).contains(done.iter().max().unwrap()), "{done:?}");
}

#[test]
fn who_ran_just_now_stays_on_its_core() {
    // By runtimes, so that the first has the core for a whole slice.
    let costs = Costs::new(&KernelProfile::find("4.12").unwrap().cpu, "none").unwrap();
    let mut cores = Cores::new(costs, 2, seats(&[(0, 0), (0, 0), (0, 0)]));
    (0..3).for_each(|t| cores.wake(0, t));
    assert_eq!([0, 1, 2].map(|t| cores.core_of(t)), [0, 1, 0]);
    let mut events = EventQueue::new();
    let mut moved = None;
    // Process 2 had the core 0 last when core 1 becomes idle.
    cores.ran[2] = 1_900_000;
    while moved.is_none() {
        cores.due.drain(..).for_each(|(at, core)| events.push(at, core));
        let (now, core) = events.pop().unwrap();
        if let Ended::Piece(t, _) = cores.event(now, core) {
            match t {
                1 if now >= 2_000_000 => cores.leave(now, 1),
                2 => moved = Some(now),
                _ => drop(cores.begin_call(now, t, 100_000, 0)),
            }
        }
    }
    assert_eq!(cores.core_of(2), 1);
    assert!((2_400_000..2_410_000).contains(&moved.unwrap()), "{moved:?}");
}

#[test]
fn no_core_is_idle_when_a_process_wakes_that_may_run_there() {
    let anywhere: Vec<(u16, i8)> = (0..12).map(|n| (n % 4, 0)).collect();
    let (free, _) = Loop::on(seats(&anywhere), "none", 4, 1).run(20_000_000);
    let (tied, _) = Loop::new("none", 4, 12, 1).run(20_000_000);
    assert!(free >= tied, "{free} beside {tied}");
    // Three processes that begin on one of four cores are as fast as one a core.
    let (crowded, _) = Loop::on(seats(&[(0, 0); 3]), "none", 4, 1).run(20_000_000);
    let (apart, _) = Loop::new("none", 4, 3, 1).run(20_000_000);
    assert!((crowded / apart - 1.0).abs() < 0.05, "{crowded} beside {apart}");
}

#[test]
fn a_sleeper_that_wakes_preempts_who_had_much_more() {
    let costs = Costs::new(&KernelProfile::find("6.12").unwrap().cpu, "none").unwrap();
    let mut cores = Cores::new(costs, 1, seats(&[(0, 0), (0, 0)]));
    cores.wake(0, 0);
    let mut now = 0;
    // The first has the core to itself for 50 ms, then the other wakes.
    let run = |cores: &mut Cores, now: &mut Nanos, until: Nanos| loop {
        let (at, core) = cores.due.pop().unwrap();
        *now = at;
        if let Ended::Piece(t, _) = cores.event(at, core) {
            if at >= until {
                return t;
            }
            cores.begin(at, t, Piece::Submit, 0);
        }
    };
    assert_eq!(run(&mut cores, &mut now, 50_000_000), 0);
    cores.begin(now, 0, Piece::Submit, 0);
    cores.wake(now, 1);
    let woke = now;
    assert_eq!(run(&mut cores, &mut now, woke + 2_000), 0);
    assert!(!cores.begin(now, 0, Piece::Submit, 0), "it gives way at once");
    assert_eq!(run(&mut cores, &mut now, 0), 1);
    assert!(now - woke < 10_000, "{}", now - woke);
}

/// Who had much of the core goes behind the others who wake with it. Where core time is measured in ticks, nobody has had
/// anything between two of them, and all go on in the order in which they woke.
#[test]
fn between_two_ticks_nobody_has_had_anything() {
    let second_turn = |tick: Nanos| {
        let mut profile = KernelProfile::find("6.12").unwrap().cpu;
        profile.clock_tick_ns = tick;
        let costs = Costs::new(&profile, "none").unwrap();
        let mut cores = Cores::new(costs, 1, seats(&[(0, 0); 3]));
        (0..3).for_each(|t| cores.has_run(t));
        let mut events = EventQueue::new();
        let mut order = Vec::new();
        for begin in [0, MS] {
            order.clear();
            (0..3).for_each(|t| cores.wake(begin, t));
            cores.due.drain(..).for_each(|(at, core)| events.push(at, core));
            while let Some((now, core)) = events.pop() {
                match cores.event(now, core) {
                    Ended::Piece(t, Piece::SwitchIn) => {
                        order.push(t);
                        let work = if t == 0 { 50_000 } else { 1_000 };
                        assert!(cores.begin_call(now, t, 0, work));
                    }
                    Ended::Piece(t, _) => cores.leave(now, t),
                    Ended::Nothing => {}
                }
                cores.due.drain(..).for_each(|(at, core)| events.push(at, core));
            }
        }
        order
    };
    assert_eq!(second_turn(0).last(), Some(&0));
    assert_eq!(second_turn(4 * MS), [0, 1, 2]);
}

#[test]
fn the_same_processes_share_cores_in_the_same_way() {
    let all: Vec<(u16, i8)> = (0..40).map(|n| (n % 4, (n % 11) as i8 - 5)).collect();
    assert_eq!(busy(4, &all, 1_560, 200_000_000), busy(4, &all, 1_560, 200_000_000));
}

#[test]
fn a_hundred_thousand_processes_share_cores() {
    let all: Vec<(u16, i8)> = (0..100_000u32).map(|n| ((n % 8) as u16, 0)).collect();
    let had = busy(8, &all, 1_000_000, 150_000_000_000);
    let (least, most) = (had.iter().min().unwrap(), had.iter().max().unwrap());
    assert!(*least > 0 && most - least <= 2 * 4_100_000, "{least} to {most}");
}
