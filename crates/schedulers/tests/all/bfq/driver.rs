//! Processes, a device and a clock around one scheduler: what the scenarios need and nothing else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Dispatch, QueueFacts};
use iosched_types::units::MS;
use iosched_types::{Flags, Nanos, Op, ReqId, Request, Sector, TaskId};

/// What a process asks for next; `None` ends it.
pub(crate) type Script = Box<dyn FnMut(u64) -> Option<Request>>;

struct Process {
    script: Script,
    asked: u64,
    /// Who goes on when a request of this one completes, and after how long.
    wakes: usize,
    delay: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Done(ReqId, usize),
    Ask(usize),
    Timer,
}

/// A request that left the scheduler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Nanos,
    pub(crate) task: TaskId,
    pub(crate) sector: Sector,
    pub(crate) sectors: u32,
    pub(crate) op: Op,
}

/// The rig.
pub(crate) struct Rig {
    pub(crate) bench: Bench,
    depth: usize,
    service: Box<dyn FnMut(&Request) -> Nanos>,
    /// One request at a time inside the device, or all at once.
    serial: bool,
    free_at: Nanos,
    in_flight: usize,
    processes: Vec<Process>,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    seq: u64,
    timer: Option<Nanos>,
    pub(crate) now: Nanos,
    pub(crate) sent: Vec<Sent>,
    pub(crate) completed: u64,
    pub(crate) notes: Vec<(Nanos, String)>,
}

/// Queue facts with HZ 1000.
pub(crate) fn disk(rotational: bool) -> QueueFacts {
    QueueFacts { rotational, queue_depth: 32, nr_requests: 64, ..QueueFacts::default() }
}

impl Rig {
    pub(crate) fn new(
        name: &str,
        tunables: &[(&str, i64)],
        queue: QueueFacts,
        depth: usize,
        service: impl FnMut(&Request) -> Nanos + 'static,
    ) -> Rig {
        Rig {
            bench: Bench::on(name, tunables, queue),
            depth,
            service: Box::new(service),
            serial: true,
            free_at: 0,
            in_flight: 0,
            processes: Vec::new(),
            events: BinaryHeap::new(),
            seq: 0,
            timer: None,
            now: 0,
            sent: Vec::new(),
            completed: 0,
            notes: Vec::new(),
        }
    }

    pub(crate) fn parallel(mut self) -> Rig {
        self.serial = false;
        self
    }

    fn at(&mut self, t: Nanos, e: Event) {
        self.seq += 1;
        self.events.push(Reverse((t, self.seq, e)));
    }

    /// A process that starts at `start`, has `depth` requests outstanding and thinks for `think`.
    pub(crate) fn process(
        &mut self,
        start: Nanos,
        depth: usize,
        think: Nanos,
        mut script: impl FnMut(u64) -> Option<Request> + 'static,
    ) -> TaskId {
        let n = self.processes.len();
        let task = n as TaskId + 1;
        let script = Box::new(move |i| {
            script(i).map(|mut r| {
                // A script may speak for another process.
                r.task = if r.task == 0 { task } else { r.task };
                r
            })
        });
        self.processes.push(Process { script, asked: 0, wakes: n, delay: think });
        for _ in 0..depth {
            self.at(start, Event::Ask(n));
        }
        task
    }

    /// Completions of `task` let `other` go on after `delay`, instead of `task` itself.
    pub(crate) fn hands_over(&mut self, task: TaskId, other: TaskId, delay: Nanos) {
        let p = &mut self.processes[task as usize - 1];
        (p.wakes, p.delay) = (other as usize - 1, delay);
    }

    fn after_hook(&mut self) {
        if let Some(timer) = self.bench.out.timer.take() {
            self.timer = timer;
            if let Some(at) = timer {
                self.at(at, Event::Timer);
            }
        }
        self.bench.out.run_queue = false;
        if let Some(why) = &mut self.bench.out.why {
            self.notes.append(&mut why.notes);
        }
    }

    pub(crate) fn pump(&mut self) {
        while self.in_flight < self.depth {
            let got = self.bench.dispatch(self.now);
            self.after_hook();
            let Dispatch::Request(id) = got else { break };
            let r = self.bench.reqs[id].clone();
            self.sent.push(Sent {
                at: self.now,
                task: r.task,
                sector: r.sector,
                sectors: r.sectors,
                op: r.op,
            });
            let start = if self.serial { self.free_at.max(self.now) } else { self.now };
            self.free_at = start + (self.service)(&r);
            self.in_flight += 1;
            let from = r.bios.prev as usize;
            self.at(self.free_at, Event::Done(id, from));
        }
    }

    fn ask(&mut self, n: usize) {
        let p = &mut self.processes[n];
        let Some(mut r) = (p.script)(p.asked) else { return };
        p.asked += 1;
        // The block layer's own word: who asked.
        r.bios.prev = n as ReqId;
        self.bench.insert_request(self.now, r);
        self.after_hook();
    }

    fn handle(&mut self, e: Event) {
        match e {
            Event::Ask(n) => self.ask(n),
            Event::Done(id, from) => {
                self.in_flight -= 1;
                self.completed += 1;
                self.bench.complete(self.now, id);
                self.after_hook();
                if let Some(p) = self.processes.get(from) {
                    let (t, next) = (self.now + p.delay, p.wakes);
                    self.at(t, Event::Ask(next));
                }
            }
            Event::Timer => {
                if self.timer.is_some_and(|at| at <= self.now) {
                    self.timer = None;
                    let now = self.now;
                    self.bench.with(now, |s, c| s.timer(c));
                    self.after_hook();
                }
            }
        }
    }

    /// Runs to a time, or until nothing happens any more.
    pub(crate) fn run_to(&mut self, end: Nanos) {
        while let Some(Reverse((t, _, e))) = self.events.peek().copied() {
            if t > end {
                break;
            }
            self.events.pop();
            self.now = t;
            self.handle(e);
            self.pump();
        }
        self.now = self.now.max(end);
    }

    pub(crate) fn total_asked(&self) -> u64 {
        self.processes.iter().map(|p| p.asked).sum()
    }

    /// Requests of a task that were dispatched in an interval of ms.
    pub(crate) fn count(&self, task: TaskId, from_ms: u64, to_ms: u64) -> usize {
        let inside = |s: &&Sent| s.task == task && s.at >= from_ms * MS && s.at < to_ms * MS;
        self.sent.iter().filter(inside).count()
    }

    /// Times in ms at which a task's requests were dispatched.
    pub(crate) fn times(&self, task: TaskId) -> Vec<f64> {
        self.sent.iter().filter(|s| s.task == task).map(|s| s.at as f64 / 1e6).collect()
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        let all = self.bench.scheduler.counters();
        all.iter().find(|(n, _)| *n == name).expect("a counter of that name").1
    }

    pub(crate) fn noted(&self, part: &str) -> Vec<&str> {
        self.notes.iter().map(|(_, n)| n.as_str()).filter(|n| n.contains(part)).collect()
    }
}

pub(crate) fn read(sector: Sector, sectors: u32) -> Request {
    Request::new(Op::Read, sector, sectors)
}

pub(crate) fn write(sector: Sector, sectors: u32) -> Request {
    Request::new(Op::Write, sector, sectors)
}

pub(crate) fn sync_write(sector: Sector, sectors: u32) -> Request {
    let mut r = write(sector, sectors);
    r.flags = Flags::SYNC;
    r
}

/// A sequential reader from `start`.
pub(crate) fn sequential(start: Sector, sectors: u32) -> impl FnMut(u64) -> Option<Request> {
    move |n| Some(read(start + n * u64::from(sectors), sectors))
}

/// A random reader; `seed` chooses where.
pub(crate) fn random(seed: u64, sectors: u32) -> impl FnMut(u64) -> Option<Request> {
    move |n| {
        let x =
            (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed.wrapping_mul(0xd134_2543_de82_ef95);
        Some(read((x >> 34) / 8 * 8 + 8, sectors))
    }
}
