//! A small machine around a scheduler: a device of some depth with constant service time, processes that
//! think between requests, and a driver that asks for work whenever the device has room.

use std::collections::BTreeMap;

use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Dispatch, QueueFacts};
use iosched_types::units::MS;
use iosched_types::{Flags, IoPrio, Nanos, Op, ReqId, Request, Sector};

/// Milliseconds as ns.
pub(crate) fn ms(t: f64) -> Nanos {
    (t * 1e6).round() as Nanos
}

/// What a process does after each completion: think, then ask for the next.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) prio: IoPrio,
    pub(crate) cgroup: u32,
    pub(crate) sectors: u32,
    /// Where it goes on.
    pub(crate) at: Sector,
    /// Random within this many sectors, sequential when 0.
    pub(crate) spread: Sector,
    pub(crate) think: Nanos,
    /// Requests it keeps outstanding.
    pub(crate) depth: u32,
    /// Requests it still wants to issue.
    pub(crate) left: u32,
}

impl Process {
    pub(crate) fn reader(at: Sector) -> Process {
        Process {
            op: Op::Read,
            flags: Flags::NONE,
            prio: IoPrio::default(),
            cgroup: 0,
            sectors: 64,
            at,
            spread: 0,
            think: 0,
            depth: 1,
            left: u32::MAX,
        }
    }

    pub(crate) fn writer(at: Sector) -> Process {
        Process { op: Op::Write, ..Process::reader(at) }
    }

    pub(crate) fn random(self, spread: Sector) -> Process {
        Process { spread, sectors: 8, ..self }
    }

    pub(crate) fn prio(self, text: &str) -> Process {
        Process { prio: IoPrio::parse(text).unwrap(), ..self }
    }

    pub(crate) fn left(self, left: u32) -> Process {
        Process { left, ..self }
    }
}

/// One dispatched request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) at: Nanos,
    pub(crate) name: String,
    pub(crate) task: u32,
    pub(crate) why: Vec<String>,
}

enum Event {
    Submit(Request),
    /// A process asks for its next request.
    Ask(u32),
    Complete(ReqId),
    Timer(u64),
    Exit(u32),
}

pub(crate) struct Machine {
    pub(crate) b: Bench,
    pub(crate) now: Nanos,
    /// Requests the device holds at once.
    pub(crate) depth: usize,
    pub(crate) service: Nanos,
    /// One after the other, or all at the same time.
    pub(crate) serial: bool,
    pub(crate) sent: Vec<Sent>,
    /// (from, until, task) of idling as reported.
    pub(crate) idle: Vec<(Nanos, Nanos, Option<u32>)>,
    pub(crate) completed: BTreeMap<u32, u64>,
    pub(crate) submitted: u64,
    /// Time the device was busy.
    pub(crate) busy: Nanos,
    /// Requests that wait for another's completion: (that one's number, delay, request).
    waiting: Vec<(usize, Nanos, Request)>,
    /// Numbers of requests by their start sector, in order of submission.
    numbers: Vec<(Sector, usize)>,
    processes: BTreeMap<u32, Process>,
    events: BTreeMap<(Nanos, u64), Event>,
    seq: u64,
    timer: u64,
    in_device: usize,
    free_at: Nanos,
    random: u64,
}

impl Machine {
    pub(crate) fn new(name: &str, tunables: &[(&str, i64)]) -> Machine {
        Machine::on(name, tunables, QueueFacts::default())
    }

    pub(crate) fn on(name: &str, tunables: &[(&str, i64)], queue: QueueFacts) -> Machine {
        Machine {
            b: Bench::on(name, tunables, queue),
            now: 0,
            depth: 1,
            service: 5 * MS,
            serial: true,
            sent: Vec::new(),
            idle: Vec::new(),
            completed: BTreeMap::new(),
            submitted: 0,
            busy: 0,
            waiting: Vec::new(),
            numbers: Vec::new(),
            processes: BTreeMap::new(),
            events: BTreeMap::new(),
            seq: 0,
            timer: 0,
            in_device: 0,
            free_at: 0,
            random: 1,
        }
    }

    pub(crate) fn device(mut self, depth: usize, service_ms: f64) -> Machine {
        (self.depth, self.service) = (depth, ms(service_ms));
        self
    }

    fn push(&mut self, at: Nanos, e: Event) {
        self.seq += 1;
        self.events.insert((at, self.seq), e);
    }

    /// `n` requests of a process at `at`, one behind the other from `sector`.
    pub(crate) fn queue(
        &mut self,
        at: f64,
        task: u32,
        op: Op,
        sector: Sector,
        sectors: u32,
        n: u32,
    ) {
        for k in 0..n {
            let mut r = Request::new(op, sector + Sector::from(k * sectors), sectors);
            r.task = task;
            self.submit(at, r);
        }
    }

    pub(crate) fn submit(&mut self, at: f64, r: Request) {
        self.push(ms(at), Event::Submit(r));
    }

    /// A request `delay` ms after the completion of request number `first`. Requests that
    /// others wait for are known by their start sector.
    pub(crate) fn submit_after(&mut self, first: usize, delay: f64, r: Request) {
        self.waiting.push((first, ms(delay), r));
    }

    /// Says which number the request at a start sector has.
    pub(crate) fn number(&mut self, sector: Sector, n: usize) {
        self.numbers.push((sector, n));
    }

    fn release(&mut self, sector: Sector) {
        let Some(n) = self.numbers.iter().find(|(s, _)| *s == sector).map(|(_, n)| *n) else {
            return;
        };
        let now = self.now;
        let (ready, rest): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(|w| w.0 == n);
        self.waiting = rest;
        for (_, delay, r) in ready {
            self.push(now + delay, Event::Submit(r));
        }
    }

    pub(crate) fn start(&mut self, at: f64, task: u32, p: Process) {
        for _ in 0..p.depth {
            self.push(ms(at), Event::Ask(task));
        }
        self.processes.insert(task, p);
    }

    pub(crate) fn exit(&mut self, at: f64, task: u32) {
        self.push(ms(at), Event::Exit(task));
    }

    /// Runs until `until` ms or until nothing is left to happen.
    pub(crate) fn run(&mut self, until: f64) {
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > ms(until) {
                break;
            }
            let ((at, _), e) = entry.remove_entry();
            if matches!(e, Event::Timer(n) if n != self.timer) {
                // Set anew since. A question at this time would be one that no driver asks.
                continue;
            }
            self.now = at;
            // A timer that wishes for no run gets none.
            let timer = matches!(e, Event::Timer(_));
            self.happen(e);
            if !timer {
                self.settle();
            }
        }
    }

    fn happen(&mut self, e: Event) {
        let now = self.now;
        match e {
            Event::Submit(r) => {
                self.submitted += 1;
                self.b.insert_request(now, r);
                self.wishes();
                // Everything of the same moment is in the queue before the driver looks.
                let more = self.events.first_key_value().is_some_and(|((at, _), e)| {
                    *at == now && matches!(e, Event::Submit(_) | Event::Ask(_))
                });
                if !more {
                    self.pull();
                }
            }
            Event::Ask(task) => self.ask(task),
            Event::Complete(id) => self.finish(id),
            Event::Timer(_) => {
                self.b.with(now, |s, c| s.timer(c));
                self.after();
            }
            Event::Exit(task) => {
                self.b.with(now, |s, c| s.task_exited(c, task));
                self.after();
            }
        }
    }

    fn ask(&mut self, task: u32) {
        let Some(p) = self.processes.get_mut(&task) else { return };
        if p.left == 0 {
            return;
        }
        p.left -= 1;
        let mut sector = p.at;
        if p.spread > 0 {
            self.random = self
                .random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            sector += (self.random >> 24) % p.spread / 8 * 8;
        } else {
            p.at += Sector::from(p.sectors);
        }
        let mut r = Request::new(p.op, sector, p.sectors);
        (r.task, r.flags, r.prio, r.cgroup) = (task, p.flags, p.prio, p.cgroup);
        self.happen(Event::Submit(r));
    }

    fn finish(&mut self, id: ReqId) {
        let (task, sector) = (self.b.reqs[id].task, self.b.reqs[id].sector);
        self.in_device -= 1;
        self.release(sector);
        *self.completed.entry(task).or_default() += 1;
        self.b.complete(self.now, id);
        if let Some(p) = self.processes.get(&task) {
            let think = p.think;
            self.push(self.now + think, Event::Ask(task));
        }
        // The completion interrupt runs the queue before the process gets the CPU.
        self.wishes();
        self.pull();
    }

    fn after(&mut self) {
        let run = self.b.out.run_queue;
        self.wishes();
        if run {
            self.pull();
        }
    }

    fn settle(&mut self) {
        self.wishes();
        let quiet = self.events.first_key_value().is_none_or(|((at, _), _)| *at > self.now);
        if quiet {
            self.pull();
        }
    }

    /// Grants what the last hook asked for.
    fn wishes(&mut self) {
        if let Some(timer) = self.b.out.timer.take() {
            self.timer += 1;
            if let Some(at) = timer {
                let n = self.timer;
                self.push(at.max(self.now), Event::Timer(n));
            }
        }
        self.b.out.run_queue = false;
        for id in std::mem::take(&mut self.b.out.ejected) {
            self.b.with(self.now, |s, c| s.activated(c, id));
            self.deliver(id);
        }
    }

    fn pull(&mut self) {
        while self.in_device < self.depth {
            let d = self.b.dispatch(self.now);
            match d {
                Dispatch::Request(id) => self.deliver(id),
                Dispatch::Idle(i) => {
                    self.idle.push((self.now, i.until, i.for_task));
                    return self.wishes();
                }
                Dispatch::Empty => return self.wishes(),
            }
        }
        self.wishes();
    }

    fn deliver(&mut self, id: ReqId) {
        let from = if self.serial { self.free_at.max(self.now) } else { self.now };
        self.free_at = from + self.service;
        self.busy += self.service;
        self.in_device += 1;
        let why = self.b.out.why.as_mut().map(|w| std::mem::take(&mut w.notes)).unwrap_or_default();
        self.sent.push(Sent {
            at: self.now,
            name: self.b.name(id),
            task: self.b.reqs[id].task,
            why: why.into_iter().map(|(_, text)| text).collect(),
        });
        self.wishes();
        self.push(self.free_at, Event::Complete(id));
    }

    /// `1@0 2@5`: who was served when, in ms.
    pub(crate) fn order(&self) -> String {
        let words: Vec<String> =
            self.sent.iter().map(|s| format!("{}@{}", s.task, s.at as f64 / 1e6)).collect();
        words.join(" ")
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.b.scheduler.counters().iter().find(|(n, _)| *n == name).unwrap().1
    }

    /// Whether some reason contains `text`.
    pub(crate) fn said(&self, text: &str) -> bool {
        self.sent.iter().any(|s| s.why.iter().any(|w| w.contains(text)))
    }
}
