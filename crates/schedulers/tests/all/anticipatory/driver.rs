//! A device of a given depth and processes that think, around one scheduler. Events of one time are served in the order
//! in which they were scheduled.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Dispatch, QueueFacts};
use iosched_types::{Flags, Nanos, Op, ReqId, Request, Sector, TaskId};

pub(crate) const MS: Nanos = 1_000_000;

/// A process that reads one place after the other, thinking in between, and then exits.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pub(crate) think: Nanos,
    pub(crate) places: Vec<Sector>,
}

/// `n` adjacent places of 8 sectors.
pub(crate) fn sequential(from: Sector, n: u64) -> Vec<Sector> {
    (0..n).map(|i| from + 8 * i).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Task, and which of its requests.
    Arrive(TaskId, usize),
    Complete(ReqId),
    /// Request of a scenario, by index.
    Listed(usize),
    Timer,
}

/// One request that went to the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issued {
    pub(crate) at: Nanos,
    pub(crate) op: Op,
    pub(crate) sector: Sector,
    pub(crate) task: TaskId,
    pub(crate) inserted: Nanos,
    /// Left the scheduler at once because another request took its place in the tree.
    pub(crate) ejected: bool,
}

/// A request of a scenario file.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) at: Nanos,
    /// Counted from the completion of this one.
    pub(crate) after: Option<usize>,
    pub(crate) request: Request,
    /// Its process ends when it completes.
    pub(crate) exits: bool,
}

pub(crate) struct Driver {
    pub(crate) bench: Bench,
    pub(crate) depth: u32,
    pub(crate) service: fn(&Request) -> Nanos,
    pub(crate) issued: Vec<Issued>,
    pub(crate) completed: usize,
    pub(crate) inserted: usize,
    /// Times at which dispatch answered "idle", and until when.
    pub(crate) idle: Vec<(Nanos, Nanos)>,
    readers: Vec<Reader>,
    extra: Vec<Request>,
    listed: Vec<Listed>,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    seq: u64,
    timer: Option<Nanos>,
    inflight: u32,
    pending: Vec<ReqId>,
}

impl Driver {
    pub(crate) fn new(name: &str, tunables: &[(&str, i64)], queue: QueueFacts) -> Driver {
        Driver {
            bench: Bench::on(name, tunables, queue),
            depth: 1,
            service: |_| 5 * MS,
            issued: Vec::new(),
            completed: 0,
            inserted: 0,
            idle: Vec::new(),
            readers: Vec::new(),
            extra: Vec::new(),
            listed: Vec::new(),
            events: BinaryHeap::new(),
            seq: 0,
            timer: None,
            inflight: 0,
            pending: Vec::new(),
        }
    }

    fn at(&mut self, time: Nanos, event: Event) {
        self.seq += 1;
        self.events.push(Reverse((time, self.seq, event)));
    }

    /// Adds a process; its number is the order of adding, from 0.
    pub(crate) fn reader(&mut self, start_ms: u64, think_ms: u64, places: Vec<Sector>) -> TaskId {
        let task = self.readers.len() as TaskId;
        self.readers.push(Reader { think: think_ms * MS, places });
        self.at(start_ms * MS, Event::Arrive(task, 0));
        task
    }

    /// Adds one request of a process that does nothing else and does not exit.
    pub(crate) fn single(&mut self, at: Nanos, op: Op, sector: Sector, sync: bool) -> TaskId {
        let task = 1000 + self.extra.len() as TaskId;
        let mut r = Request::new(op, sector, 8);
        r.task = task;
        if sync && op == Op::Write {
            r.flags = Flags::SYNC;
        }
        self.extra.push(r);
        self.at(at, Event::Arrive(task, 0));
        task
    }

    /// Adds the requests of a scenario.
    pub(crate) fn list(&mut self, listed: Vec<Listed>) {
        for (i, l) in listed.iter().enumerate().filter(|(_, l)| l.after.is_none()) {
            self.at(l.at, Event::Listed(i));
        }
        self.listed = listed;
    }

    /// Runs until `end` or until nothing happens any more.
    pub(crate) fn run(&mut self, end: Nanos) {
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            if now > end {
                return;
            }
            match event {
                Event::Arrive(task, i) => self.arrive(now, task, i),
                Event::Complete(id) => self.complete(now, id),
                Event::Listed(i) => {
                    let mut r = self.listed[i].request.clone();
                    r.tag = i as u32;
                    self.inserted += 1;
                    self.bench.insert_request(now, r);
                }
                Event::Timer if self.timer == Some(now) => {
                    self.timer = None;
                    self.bench.with(now, |s, c| s.timer(c));
                }
                Event::Timer => continue,
            }
            self.actions(now);
            self.pull(now);
        }
    }

    fn arrive(&mut self, now: Nanos, task: TaskId, i: usize) {
        self.inserted += 1;
        let r = match task.checked_sub(1000) {
            Some(x) => self.extra[x as usize].clone(),
            None => {
                let mut r = Request::new(Op::Read, self.readers[task as usize].places[i], 8);
                r.task = task;
                r
            }
        };
        self.bench.insert_request(now, r);
    }

    fn complete(&mut self, now: Nanos, id: ReqId) {
        self.inflight -= 1;
        self.completed += 1;
        let task = self.bench.reqs[id].task;
        let sector = self.bench.reqs[id].sector;
        let index = self.bench.reqs[id].tag as usize;
        self.bench.complete(now, id);
        for i in 0..self.listed.len() {
            if self.listed[i].after == Some(index) {
                self.at(now + self.listed[i].at, Event::Listed(i));
            }
        }
        if self.listed.get(index).is_some_and(|l| l.exits) {
            self.bench.with(now, |s, c| s.task_exited(c, task));
        }
        let Some(reader) = self.readers.get(task as usize) else { return };
        let i = reader.places.iter().position(|&p| p == sector).unwrap() + 1;
        if i < reader.places.len() {
            let at = now + reader.think;
            self.at(at, Event::Arrive(task, i));
        } else {
            self.bench.with(now, |s, c| s.task_exited(c, task));
        }
    }

    fn actions(&mut self, now: Nanos) {
        let out = &mut self.bench.out;
        out.run_queue = false;
        self.pending.append(&mut out.ejected);
        if let Some(timer) = out.timer.take() {
            self.timer = timer;
            if let Some(at) = timer {
                assert!(at >= now, "a timer in the past");
                self.at(at, Event::Timer);
            }
        }
    }

    fn pull(&mut self, now: Nanos) {
        while self.inflight < self.depth {
            let (id, ejected) = if self.pending.is_empty() {
                match self.bench.with(now, |s, c| s.dispatch(c, 0)) {
                    Dispatch::Request(id) => (id, false),
                    Dispatch::Idle(idle) => {
                        assert!(idle.until >= now, "idles into the past");
                        self.idle.push((now, idle.until));
                        return self.actions(now);
                    }
                    Dispatch::Empty => return self.actions(now),
                }
            } else {
                (self.pending.remove(0), true)
            };
            self.actions(now);
            self.bench.with(now, |s, c| s.activated(c, id));
            self.inflight += 1;
            let r = &self.bench.reqs[id];
            let Request { op, sector, task, t_start: inserted, .. } = *r;
            let done = now + (self.service)(r);
            let name = self.name(task, op, sector);
            self.bench.out.why.as_mut().unwrap().notes.push((now, format!("→ {name}")));
            self.issued.push(Issued { at: now, op, sector, task, inserted, ejected });
            self.at(done, Event::Complete(id));
        }
    }

    /// `A0@0 A1@7`: the requests of readers by letter and number, with the time of issue in ms.
    pub(crate) fn order(&self) -> String {
        let words = self.issued.iter().map(|i| {
            let name = self.name(i.task, i.op, i.sector);
            format!("{name}@{}", i.at / MS)
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn name(&self, task: TaskId, op: Op, sector: Sector) -> String {
        let Some(reader) = self.readers.get(task as usize) else {
            return format!("{}{sector}", op.letter());
        };
        let n = reader.places.iter().position(|&p| p == sector).unwrap();
        format!("{}{n}", (b'A' + task as u8) as char)
    }

    /// Reasons noted so far.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let why = self.bench.out.why.as_ref().unwrap();
        why.notes.iter().map(|(t, s)| format!("{:>7.3} {s}", *t as f64 / 1e6)).collect()
    }

    /// A counter of the scheduler's.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.bench.scheduler.counters().iter().find(|(n, _)| *n == name).unwrap().1
    }
}
