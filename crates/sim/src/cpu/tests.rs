//! The cores alone, under closed loops at a device of constant latency.

use iosched_block::KernelProfile;
use iosched_engine::EventQueue;

use super::*;

/// What a process of the loop does next when its piece is done.
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

/// Processes that keep `depth` I/Os under way at a device that takes `LATENCY` for each.
struct Loop {
    cores: Cores,
    procs: Vec<Proc>,
    depth: u32,
    events: EventQueue<Event>,
    finished: u64,
    latency: u64,
}

const LATENCY: Nanos = 56_500;

impl Loop {
    fn new(family: &str, cores: u16, procs: u16, depth: u32) -> Loop {
        let mut profile = KernelProfile::find("6.12").unwrap().cpu;
        profile.cold_percent = 100;
        let costs = Costs::new(&profile, family).unwrap();
        let home = (0..procs).map(|p| p % cores).collect();
        let mut all = Loop {
            cores: Cores::new(costs, cores, home),
            procs: vec![Proc { asleep: true, ..Proc::default() }; usize::from(procs)],
            depth,
            events: EventQueue::new(),
            finished: 0,
            latency: 0,
        };
        for t in 0..u32::from(procs) {
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
        self.events.push(now + LATENCY, Event::Done(t, p.starts));
        self.next(now, t);
    }

    fn piece(&mut self, now: Nanos, t: TaskId, piece: Piece) {
        match piece {
            Piece::Submit if self.cores.lock(now, t) => {}
            Piece::Submit | Piece::Locked => self.submit(now, t),
            Piece::SwitchIn if self.procs[t as usize].done.is_empty() => self.next(now, t),
            Piece::SwitchIn => self.look(now, t),
            Piece::Reap => {
                let p = &mut self.procs[t as usize];
                if p.finds {
                    self.latency += now - p.done.pop_front().unwrap();
                    self.finished += 1;
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
                    self.cores.completion(now, t, wakes);
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

#[test]
fn an_interrupt_keeps_the_holder_of_the_lock() {
    let costs = Costs::new(&KernelProfile::find("6.12").unwrap().cpu, "bfq").unwrap();
    let mut cores = Cores::new(costs, 2, vec![0, 1]);
    for t in [0, 1] {
        cores.asleep[t as usize] = false;
        assert!(cores.lock(0, t));
    }
    assert_eq!(cores.due, [(1430, 0)]);
    cores.completion(500, 0, false);
    assert_eq!(cores.event(1430, 0), Ended::Nothing);
    assert_eq!(cores.due.last(), Some(&(2230, 0)));
    assert_eq!(cores.event(2230, 0), Ended::Piece(0, Piece::Locked));
    // The other one spun all the time, and now holds it longer, for the lock comes from another core.
    assert_eq!(cores.times()[1].spinning, 2230);
    assert_eq!(cores.due.last(), Some(&(2230 + 1430 + 1454, 1)));
}
