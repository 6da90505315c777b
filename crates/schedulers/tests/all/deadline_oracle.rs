//! deadline and mq-deadline against a slow, obvious model of their rules: one vector of waiting
//! requests, scanned and sorted anew for every decision.

use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Dispatch, MergeKind, QueueFacts};
use iosched_types::{Dir, IoPrio, Op, PrioClass, ReqId, Request};
use proptest::prelude::*;

/// One waiting request; the vector's order is the order of the FIFO.
#[derive(Clone, Debug)]
struct Item {
    id: ReqId,
    sector: u64,
    end: u64,
    dir: usize,
    level: usize,
    expiry: i64,
    /// When it entered the tree: orders equal starts.
    entered: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Old,
    Unique,
    Legacy,
    A,
    B,
    C,
    D,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    fifo_batch: i64,
    writes_starved: i64,
    expire: [i64; 2],
    aging: i64,
    hz: u32,
}

struct Model {
    kind: Kind,
    set: Settings,
    items: Vec<Item>,
    entered: u64,
    next: [[Option<ReqId>; 2]; 3],
    position: [[u64; 2]; 3],
    batching: i64,
    starved: i64,
    last_dir: usize,
    last_end: u64,
    /// Queued or in flight, per level.
    alive: [i64; 3],
    ejected: Vec<ReqId>,
}

const READ: usize = Dir::Read as usize;
const WRITE: usize = Dir::Write as usize;

impl Model {
    fn new(kind: Kind, set: Settings) -> Self {
        Model {
            kind,
            set,
            items: Vec::new(),
            entered: 0,
            next: Default::default(),
            position: Default::default(),
            batching: 0,
            starved: 0,
            last_dir: WRITE,
            last_end: 0,
            alive: [0; 3],
            ejected: Vec::new(),
        }
    }

    fn jiffies(&self, ms: u64) -> i64 {
        (ms * u64::from(self.set.hz) / 1000) as i64
    }

    fn get(&self, id: ReqId) -> &Item {
        self.items.iter().find(|i| i.id == id).expect("it waits")
    }

    fn fifo(&self, level: usize, dir: usize) -> Vec<&Item> {
        self.items.iter().filter(|i| i.level == level && i.dir == dir).collect()
    }

    fn sorted(&self, level: usize, dir: usize) -> Vec<&Item> {
        let mut v = self.fifo(level, dir);
        v.sort_by_key(|i| (i.sector, i.entered));
        v
    }

    fn successor(&self, id: ReqId) -> Option<ReqId> {
        let i = self.get(id);
        let v = self.sorted(i.level, i.dir);
        let at = v.iter().position(|x| x.id == id).expect("it waits");
        v.get(at + 1).map(|x| x.id)
    }

    fn eject(&mut self, sector: u64, dir: usize) {
        if !matches!(self.kind, Kind::Old | Kind::Unique) {
            return;
        }
        if let Some(i) = self.items.iter().find(|i| i.sector == sector && i.dir == dir) {
            let id = i.id;
            self.take(id);
            self.ejected.push(id);
        }
    }

    fn insert(&mut self, ms: u64, id: ReqId, r: &Request) {
        let dir = r.op.dir() as usize;
        self.eject(r.sector, dir);
        let levels = matches!(self.kind, Kind::B | Kind::C | Kind::D);
        let level = match r.prio.class {
            _ if !levels => 0,
            PrioClass::Rt => 0,
            PrioClass::Idle => 2,
            _ => 1,
        };
        self.entered += 1;
        self.alive[level] += 1;
        let expiry = self.jiffies(ms) + self.set.expire[dir];
        let (sector, end, entered) = (r.sector, r.end(), self.entered);
        self.items.push(Item { id, sector, end, dir, level, expiry, entered });
    }

    fn front(&mut self, id: ReqId, sector: u64) {
        let dir = self.get(id).dir;
        self.eject(sector, dir);
        self.entered += 1;
        let entered = self.entered;
        let i = self.items.iter_mut().find(|i| i.id == id).expect("it waits");
        (i.sector, i.entered) = (sector, entered);
    }

    fn absorb(&mut self, into: ReqId, gone: ReqId) {
        let g = self.get(gone).clone();
        let successor = self.successor(gone);
        if self.next[g.level][g.dir] == Some(gone) {
            self.next[g.level][g.dir] = successor;
        }
        if g.expiry < self.get(into).expiry {
            let at = self.items.iter().position(|i| i.id == into).expect("it waits");
            let mut moved = self.items.remove(at);
            moved.expiry = g.expiry;
            let at = self.items.iter().position(|i| i.id == gone).expect("it waits");
            self.items[at] = moved;
        } else {
            self.items.retain(|i| i.id != gone);
        }
    }

    /// A request leaves for dispatch.
    fn take(&mut self, id: ReqId) {
        let i = self.get(id).clone();
        let successor = self.successor(id);
        if matches!(self.kind, Kind::Old | Kind::Unique | Kind::Legacy | Kind::A) {
            self.next[0] = [None, None];
        }
        self.next[i.level][i.dir] = successor;
        self.position[i.level][i.dir] = i.sector;
        self.last_end = i.end;
        self.items.retain(|x| x.id != id);
    }

    fn following(&self, level: usize, dir: usize) -> Option<ReqId> {
        match self.kind {
            Kind::D => {
                let v = self.sorted(level, dir);
                v.iter().find(|i| i.sector >= self.position[level][dir]).map(|i| i.id)
            }
            _ => self.next[level][dir],
        }
    }

    /// Which request a level gives; `latest` as in the aging pass.
    fn level(&mut self, ms: u64, level: usize, latest: Option<i64>) -> Option<ReqId> {
        let id = match self.running_batch(level) {
            Some(id) => id,
            None => self.new_batch(ms, level)?,
        };
        let i = self.get(id);
        if latest.is_some_and(|l| i.expiry - self.set.expire[i.dir] > l) {
            return None;
        }
        self.batching += 1;
        self.take(id);
        Some(id)
    }

    fn running_batch(&mut self, level: usize) -> Option<ReqId> {
        let next = match self.kind {
            Kind::B | Kind::C | Kind::D => self.following(level, self.last_dir),
            _ => self.next[0][WRITE].or(self.next[0][READ]),
        }?;
        if self.kind == Kind::Old && self.get(next).sector != self.last_end {
            self.batching += self.set.fifo_batch;
        }
        (self.batching < self.set.fifo_batch).then_some(next)
    }

    fn new_batch(&mut self, ms: u64, level: usize) -> Option<ReqId> {
        let [reads, writes] = [READ, WRITE].map(|d| !self.fifo(level, d).is_empty());
        let dir = if reads && writes {
            let starved = self.starved;
            self.starved += 1;
            if starved >= self.set.writes_starved { WRITE } else { READ }
        } else if reads {
            READ
        } else if writes {
            WRITE
        } else {
            return None;
        };
        if dir == WRITE {
            self.starved = 0;
        }
        let head = self.fifo(level, dir)[0];
        let (oldest, now) = (head.id, self.jiffies(ms));
        let expired = match self.kind {
            Kind::Old | Kind::Unique | Kind::Legacy => now > head.expiry,
            _ => now >= head.expiry,
        };
        self.last_dir = dir;
        let following = self.following(level, dir);
        if self.kind == Kind::Old {
            if let (false, Some(next)) = (expired, following) {
                return Some(next);
            }
            self.batching = 0;
            return Some(if expired { oldest } else { self.sorted(level, dir)[0].id });
        }
        self.batching = 0;
        Some(if expired { oldest } else { following.unwrap_or(oldest) })
    }

    fn dispatch(&mut self, ms: u64) -> Option<ReqId> {
        if !self.ejected.is_empty() {
            return Some(self.ejected.remove(0));
        }
        match self.kind {
            Kind::B => (0..3).find_map(|l| self.level(ms, l, None)),
            Kind::C | Kind::D => {
                if self.alive.iter().filter(|n| **n > 0).count() >= 2 {
                    let latest = self.jiffies(ms) - self.set.aging;
                    if let Some(id) = (1..3).find_map(|l| self.level(ms, l, Some(latest))) {
                        return Some(id);
                    }
                }
                for l in 0..3 {
                    let got = self.level(ms, l, None);
                    if got.is_some() || self.alive[l] > 0 {
                        return got;
                    }
                }
                None
            }
            _ => self.level(ms, 0, None),
        }
    }
}

/// One step of a random history; numbers choose among what is there.
#[derive(Clone, Debug)]
enum Step {
    Insert { op: Op, sector: u64, class: u8 },
    Dispatch,
    Complete(usize),
    Front(usize),
    Absorb(usize, usize),
    Sleep(u64),
}

fn steps(spread: u64) -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![4 => Just(Op::Read), 3 => Just(Op::Write), 1 => Just(Op::Discard)];
    let insert = (op, 0..spread, 0..4u8).prop_map(|(op, s, class)| Step::Insert {
        op,
        sector: 1000 + s * 8,
        class,
    });
    let step = prop_oneof![
        8 => insert,
        6 => Just(Step::Dispatch),
        4 => any::<usize>().prop_map(Step::Complete),
        1 => any::<usize>().prop_map(Step::Front),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Step::Absorb(a, b)),
        3 => (0..40u64).prop_map(Step::Sleep),
    ];
    prop::collection::vec(step, 0..250)
}

fn settings() -> impl Strategy<Value = Settings> {
    (0..6i64, -1..4i64, 0..100i64, 0..300i64, 0..300i64, prop_oneof![Just(1000u32), Just(250)])
        .prop_map(|(fifo_batch, writes_starved, r, w, aging, hz)| {
            let j = |ms: i64| (ms * i64::from(hz) + 999) / 1000;
            let expire = [j(r), j(w)];
            Settings { fifo_batch, writes_starved, expire, aging: j(aging), hz }
        })
}

struct Pair {
    bench: Bench,
    model: Model,
    in_flight: Vec<ReqId>,
    ms: u64,
    given: u64,
    taken: u64,
}

impl Pair {
    fn new(kind: Kind, name: &str, set: Settings) -> Pair {
        let ms = |j: i64| j * 1000 / i64::from(set.hz);
        let mut tunables = vec![
            ("fifo_batch", set.fifo_batch),
            ("writes_starved", set.writes_starved),
            ("read_expire", ms(set.expire[0])),
            ("write_expire", ms(set.expire[1])),
        ];
        if matches!(kind, Kind::C | Kind::D) {
            tunables.push(("prio_aging_expire", ms(set.aging)));
        }
        let queue = QueueFacts { hz: set.hz, ..QueueFacts::default() };
        let bench = Bench::on(name, &tunables, queue);
        let model = Model::new(kind, set);
        Pair { bench, model, in_flight: Vec::new(), ms: 0, given: 0, taken: 0 }
    }

    fn now(&self) -> u64 {
        self.ms * 1_000_000
    }

    fn dispatch(&mut self) -> Option<ReqId> {
        let wanted = self.model.dispatch(self.ms);
        let got = match self.bench.dispatch(self.now()) {
            Dispatch::Request(id) => Some(id),
            _ => None,
        };
        assert_eq!(got, wanted, "at {} ms, waiting {:?}", self.ms, self.model.items);
        self.taken += u64::from(got.is_some());
        self.in_flight.extend(got);
        got
    }

    fn complete(&mut self, n: usize) {
        if self.in_flight.is_empty() {
            return;
        }
        let id = self.in_flight.remove(n % self.in_flight.len());
        self.finish_in_model(id);
        self.bench.complete(self.now(), id);
    }

    fn finish_in_model(&mut self, id: ReqId) {
        let levels = matches!(self.model.kind, Kind::B | Kind::C | Kind::D);
        let level = match self.bench.reqs[id].prio.class {
            _ if !levels => 0,
            PrioClass::Rt => 0,
            PrioClass::Idle => 2,
            _ => 1,
        };
        self.model.alive[level] -= 1;
    }

    fn front(&mut self, n: usize) {
        let Some(item) = self.model.items.get(n % self.model.items.len().max(1)) else { return };
        let (id, old) = (item.id, item.sector);
        self.model.front(id, old - 8);
        self.bench.reqs[id].sector -= 8;
        self.bench.reqs[id].sectors += 8;
        let now = self.now();
        self.bench.with(now, |s, c| s.merged(c, id, MergeKind::Front, old));
    }

    fn absorb(&mut self, a: usize, b: usize) {
        let n = self.model.items.len().max(1);
        let (Some(x), Some(y)) = (self.model.items.get(a % n), self.model.items.get(b % n)) else {
            return;
        };
        if x.id == y.id || (x.level, x.dir) != (y.level, y.dir) {
            return;
        }
        let (into, gone) = (x.id, y.id);
        self.finish_in_model(gone);
        self.model.absorb(into, gone);
        let now = self.now();
        self.bench.with(now, |s, c| {
            s.absorbed(c, into, gone);
            s.finished(c, gone);
        });
        self.bench.reqs.remove(gone);
        self.taken += 1;
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Insert { op, sector, class } => {
                let mut r = Request::new(op, sector, 8);
                let class = [PrioClass::None, PrioClass::Rt, PrioClass::Be, PrioClass::Idle]
                    [usize::from(class)];
                r.prio = IoPrio { class, level: 0 };
                let id = self.bench.insert_request(self.now(), r.clone());
                self.model.insert(self.ms, id, &r);
                self.given += 1;
            }
            Step::Dispatch => {
                self.dispatch();
            }
            Step::Complete(n) => self.complete(n),
            Step::Front(n) => self.front(n),
            Step::Absorb(a, b) => self.absorb(a, b),
            Step::Sleep(ms) => self.ms += ms,
        }
        let waiting = self.model.items.len();
        assert_eq!(self.bench.scheduler.has_work(), waiting > 0);
    }

    /// Nothing is lost, nothing comes twice: what went in comes out.
    fn drain(&mut self) {
        loop {
            while !self.in_flight.is_empty() {
                self.complete(0);
            }
            if self.dispatch().is_none() {
                break;
            }
        }
        assert_eq!(self.given, self.taken);
        assert!(self.bench.scheduler.is_empty() && self.bench.reqs.is_empty());
    }
}

const KINDS: [(Kind, &str); 7] = [
    (Kind::Old, "deadline@2.6.18"),
    (Kind::Unique, "deadline@2.6.32"),
    (Kind::Legacy, "deadline@3.12"),
    (Kind::A, "mq-deadline@4.12"),
    (Kind::B, "mq-deadline@5.15"),
    (Kind::C, "mq-deadline@6.1"),
    (Kind::D, "mq-deadline@6.12"),
];

fn compare(set: Settings, steps: &[Step]) {
    for (kind, name) in KINDS {
        let mut pair = Pair::new(kind, name, set);
        steps.iter().for_each(|s| pair.step(s));
        pair.drain();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]
    #[test]
    fn every_generation_decides_as_its_rules_say(set in settings(), steps in steps(4000)) {
        compare(set, &steps);
    }

    #[test]
    fn also_with_many_requests_at_the_same_place(set in settings(), steps in steps(12)) {
        compare(set, &steps);
    }
}
