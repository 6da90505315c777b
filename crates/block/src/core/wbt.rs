//! Writeback throttling (blk-wbt, 4.10 and later): buffered writes wait so that reads stay fast.

use std::collections::VecDeque;

use iosched_types::{Bio, Flags, Nanos, Op, ReqId, Request, TaskId, units::MS, units::US};

use crate::state;

const WINDOW: Nanos = 100 * MS;
const BASE_DEPTH: u32 = 16;
const UNKNOWN_LIMIT: u32 = 5;
/// A writer that slept for dirty memory counts for so long.
const DIRTY_WAIT: Nanos = 1000 * MS;

/// Window length of a positive step: 100 ms · 16/√(256·(step+1)) in integers.
fn window_of(step: i32) -> Nanos {
    if step <= 0 {
        return WINDOW;
    }
    let root = u64::from((256 * (step as u32 + 1)).isqrt());
    (WINDOW * 16) / root
}

/// Depth at a step for a queue of `queue_depth`.
fn depth_of(step: i32, queue_depth: u32) -> u32 {
    if queue_depth == 1 {
        return if step > 0 { 1 } else { 2 };
    }
    let base = BASE_DEPTH.min(queue_depth);
    match step {
        0 => base,
        s if s > 0 => 1 + ((base - 1) >> s.min(31)),
        s => (1 + ((base - 1) << (-s).min(16))).min(3 * queue_depth / 4),
    }
}

/// State of the throttle of one queue.
#[derive(Debug)]
pub(crate) struct Wbt {
    target: Nanos,
    queue_depth: u32,
    write_cache: bool,
    step: i32,
    at_cap: bool,
    unknown: u32,
    depth: u32,
    normal: u32,
    background: u32,
    in_flight: [u32; 2],
    waiting: [VecDeque<TaskId>; 2],
    reads: u32,
    writes: u32,
    min_read: Nanos,
    oldest_read: Option<(ReqId, Nanos)>,
    last_unthrottled: Nanos,
    seen_unthrottled: bool,
    /// Until then writers count as held up by dirty memory.
    held_up_until: Nanos,
    /// The present moment, as far as anything happened.
    now: Nanos,
    generation: u32,
    armed: bool,
    /// Threads with a bio that is counted and has no request yet.
    charged: Vec<bool>,
}

/// What a window showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Latency {
    Ok,
    Exceeded,
    Unknown,
    UnknownWrites,
}

impl Wbt {
    pub(crate) fn new(
        target_us: Option<u64>,
        rotational: bool,
        queue_depth: u32,
        write_cache: bool,
    ) -> Self {
        let default = if rotational { 75 * MS } else { 2 * MS };
        let mut w = Wbt {
            target: target_us.map_or(default, |us| us * US),
            queue_depth,
            write_cache,
            step: 0,
            at_cap: false,
            unknown: 0,
            depth: 0,
            normal: 0,
            background: 0,
            in_flight: [0; 2],
            waiting: Default::default(),
            reads: 0,
            writes: 0,
            min_read: Nanos::MAX,
            oldest_read: None,
            last_unthrottled: 0,
            seen_unthrottled: false,
            held_up_until: 0,
            now: 0,
            generation: 0,
            armed: false,
            charged: Vec::new(),
        };
        w.set_limits();
        w
    }

    /// The largest depth that it gives.
    #[cfg(test)]
    pub(crate) fn most(&self) -> u32 {
        3 * self.queue_depth / 4
    }

    /// Whether a task sleeps here.
    pub(crate) fn holds(&self, task: TaskId) -> bool {
        self.waiting.iter().any(|w| w.contains(&task))
    }

    /// A task sleeps now because too much memory is dirty: its device is not held back for a second.
    pub(crate) fn writer_sleeps(&mut self, now: Nanos) {
        self.held_up_until = now + DIRTY_WAIT;
    }

    /// Whether a writer has slept for dirty memory of late.
    fn held_up(&self) -> bool {
        self.now < self.held_up_until
    }

    /// Whether a bio may go on now; otherwise its task sleeps here.
    pub(crate) fn admit(&mut self, now: Nanos, bio: &Bio) -> bool {
        self.now = now;
        let thread = bio.thread as usize;
        if self.target == 0
            || !throttled(bio.op, bio.flags)
            || self.charged.get(thread).is_some_and(|c| *c)
        {
            return true;
        }
        let class = usize::from(bio.op == Op::Discard);
        if self.in_flight[class] >= self.limit(now, bio) {
            self.waiting[class].push_back(bio.thread);
            return false;
        }
        self.in_flight[class] += 1;
        if thread >= self.charged.len() {
            self.charged.resize(thread + 1, false);
        }
        self.charged[thread] = true;
        true
    }

    /// Books an allocated request.
    pub(crate) fn track(&mut self, bio: &Bio, r: &mut Request) {
        if let Some(charged) = self.charged.get_mut(bio.thread as usize)
            && std::mem::take(charged)
        {
            let class = if bio.op == Op::Discard { state::WBT_BACKGROUND } else { 0 };
            r.state |= state::WBT | class;
        }
    }

    /// A bio that the throttle counts has been let on: a window begins unless there is one. Gives its length and number.
    pub(crate) fn begin_window(&mut self, bio: &Bio) -> Option<(Nanos, u32)> {
        if self.armed || self.target == 0 || !throttled(bio.op, bio.flags) {
            return None;
        }
        self.arm()
    }

    /// A request finished: samples, limits, wake-ups. Outside a window nothing is sampled.
    pub(crate) fn done(&mut self, now: Nanos, id: ReqId, r: &Request, woken: &mut Vec<TaskId>) {
        self.now = now;
        if self.target == 0 {
            return;
        }
        if self.armed && r.op == Op::Read {
            self.reads += 1;
            self.min_read = self.min_read.min(now - r.t_issue);
        } else if self.armed {
            self.writes += 1;
        }
        if self.oldest_read.is_some_and(|(o, _)| o == id) {
            self.oldest_read = None;
        }
        if r.state & state::WBT == 0 {
            self.last_unthrottled = now;
            self.seen_unthrottled = true;
        } else {
            self.put(r.state, woken);
        }
    }

    /// A request was merged away. It is no longer counted, and gives no latency.
    pub(crate) fn absorbed(&mut self, bits: u16, woken: &mut Vec<TaskId>) {
        if bits & state::WBT != 0 {
            self.put(bits, woken);
        }
    }

    /// The monitoring window ended. The next one, if there is one, gives its length and number. A step towards less
    /// throttling lets all sleepers try again.
    pub(crate) fn window_ended(
        &mut self,
        now: Nanos,
        generation: u32,
        woken: &mut Vec<TaskId>,
    ) -> Option<(Nanos, u32)> {
        if generation != self.generation {
            return None;
        }
        self.armed = false;
        let latency = self.classify(now);
        let step = self.step;
        self.judge(latency);
        if self.step < step {
            woken.extend(self.waiting.iter_mut().flat_map(|w| w.drain(..)));
        }
        self.arm()
    }

    /// Begins a window if there is something to watch.
    fn arm(&mut self) -> Option<(Nanos, u32)> {
        if self.step == 0 && self.in_flight == [0; 2] {
            return None;
        }
        self.armed = true;
        self.generation = self.generation.wrapping_add(1);
        Some((window_of(self.step), self.generation))
    }

    /// A read went to the device: the oldest one outstanding is watched.
    pub(crate) fn read_issued(&mut self, id: ReqId, now: Nanos) {
        if self.oldest_read.is_none() {
            self.oldest_read = Some((id, now));
        }
    }

    fn set_limits(&mut self) {
        self.depth = depth_of(self.step, self.queue_depth);
        if self.depth <= 2 {
            (self.normal, self.background) = (self.depth, 1);
        } else {
            (self.normal, self.background) = (self.depth.div_ceil(2), self.depth.div_ceil(4));
        }
    }

    /// One step towards more throttling; refused at depth 1.
    fn scale_down(&mut self) {
        if self.depth == 1 {
            return;
        }
        self.step = if self.step < 0 { 0 } else { self.step + 1 };
        self.at_cap = false;
        self.set_limits();
    }

    /// One step towards less throttling; refused at the cap.
    fn scale_up(&mut self) {
        if self.at_cap {
            return;
        }
        self.step -= 1;
        self.set_limits();
        let cap = if self.queue_depth == 1 { 2 } else { 3 * self.queue_depth / 4 };
        self.at_cap = self.depth >= cap.max(1);
    }

    fn limit(&self, now: Nanos, bio: &Bio) -> u32 {
        if bio.op == Op::Discard {
            return self.background;
        }
        let urgent = bio.flags.0 & (Flags::SYNC.0 | Flags::META.0 | Flags::PRIO.0) != 0;
        if urgent || self.held_up() {
            return self.depth;
        }
        let recent = self.seen_unthrottled && now < self.last_unthrottled + WINDOW;
        if bio.flags.has(Flags::BACKGROUND) || recent { self.background } else { self.normal }
    }

    fn classify(&mut self, now: Nanos) -> Latency {
        self.now = now;
        if let Some((_, since)) = self.oldest_read {
            let age = now - since;
            if age > window_of(self.step) || (age > self.target && self.reads == 0) {
                return Latency::Exceeded;
            }
        }
        if self.reads < 1 || self.writes < 3 {
            let writing = self.writes > 0 || self.held_up() || self.in_flight != [0; 2];
            return if writing { Latency::UnknownWrites } else { Latency::Unknown };
        }
        if self.min_read > self.target { Latency::Exceeded } else { Latency::Ok }
    }

    fn judge(&mut self, latency: Latency) {
        match latency {
            Latency::Exceeded => {
                self.unknown = 0;
                self.scale_down();
            }
            Latency::Ok | Latency::UnknownWrites => {
                self.unknown = 0;
                self.scale_up();
            }
            Latency::Unknown => {
                self.unknown += 1;
                if self.unknown >= UNKNOWN_LIMIT {
                    self.unknown = 0;
                    self.step -= self.step.signum();
                    self.at_cap = false;
                    self.set_limits();
                }
            }
        }
        (self.reads, self.writes, self.min_read) = (0, 0, Nanos::MAX);
    }

    /// A counted request is gone; names the sleepers this wakes.
    fn put(&mut self, bits: u16, woken: &mut Vec<TaskId>) {
        let class = usize::from(bits & state::WBT_BACKGROUND != 0);
        self.in_flight[class] -= 1;
        for _ in 0..self.releases(class) {
            woken.extend(self.waiting[class].pop_front());
        }
    }

    /// How many sleepers of a class a completion lets go.
    fn releases(&self, class: usize) -> usize {
        let floor = match (class, self.write_cache) {
            (1, _) => self.background,
            (_, true) if !self.held_up() => 0,
            _ => self.normal,
        };
        let n = self.in_flight[class];
        if n > 0 && n >= floor {
            return 0;
        }
        let room = floor.saturating_sub(n);
        if n == 0 || room >= self.background / 2 { self.waiting[class].len() } else { 0 }
    }
}

/// Whether the throttle counts this operation: writes except direct ones, and discards.
fn throttled(op: Op, flags: Flags) -> bool {
    match op {
        Op::Write => !flags.has(Flags(Flags::SYNC.0 | Flags::IDLE.0)),
        Op::Discard => true,
        Op::Read | Op::Flush => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bio(op: Op, flags: Flags) -> Bio {
        Bio {
            id: 0,
            op,
            flags,
            sector: 0,
            sectors: 8,
            task: 0,
            thread: 0,
            prio: Default::default(),
            cgroup: 0,
            cpu: 0,
        }
    }

    /// Spec scenario WB-1.
    #[test]
    fn the_flusher_gets_less_beside_a_reader() {
        let mut w = Wbt::new(None, false, 32, true);
        assert_eq!((w.depth, w.normal, w.background), (16, 8, 4));
        assert_eq!(w.limit(0, &bio(Op::Write, Flags::NONE)), 8);
        (w.last_unthrottled, w.seen_unthrottled) = (50 * MS, true);
        assert_eq!(w.limit(60 * MS, &bio(Op::Write, Flags::BACKGROUND)), 4);
        assert_eq!(w.limit(60 * MS, &bio(Op::Write, Flags::NONE)), 4);
        assert_eq!(w.limit(151 * MS, &bio(Op::Write, Flags::NONE)), 8);
        assert_eq!(w.limit(60 * MS, &bio(Op::Write, Flags::META)), 16);
    }

    /// While writers sleep for dirty memory the disk is not held back on account of readers.
    #[test]
    fn a_device_that_writers_wait_for_gets_all() {
        let mut w = Wbt::new(None, true, 32, true);
        (w.last_unthrottled, w.seen_unthrottled) = (50 * MS, true);
        w.writer_sleeps(60 * MS);
        w.now = 70 * MS;
        assert_eq!(w.limit(70 * MS, &bio(Op::Write, Flags::NONE)), 16);
        w.now = 1060 * MS;
        (w.last_unthrottled, w.seen_unthrottled) = (1050 * MS, true);
        assert_eq!(w.limit(1060 * MS, &bio(Op::Write, Flags::NONE)), 4);
    }

    /// Spec scenario WB-2.
    #[test]
    fn three_bad_windows_throttle_to_depth_two() {
        let mut w = Wbt::new(None, true, 32, true);
        let mut seen = Vec::new();
        for _ in 0..3 {
            w.judge(Latency::Exceeded);
            seen.push((w.depth, w.normal, w.background, window_of(w.step) / 100_000));
        }
        assert_eq!(seen, [(8, 4, 2, 727), (4, 2, 1, 592), (2, 2, 1, 500)]);
    }

    /// Nothing is sampled before the first counted write. When the window has shown no readers, all sleepers try again.
    #[test]
    fn the_end_of_a_window_wakes_those_who_may_have_more() {
        let mut w = Wbt::new(None, true, 32, true);
        let write = |thread| Bio { thread, ..bio(Op::Write, Flags::NONE) };
        assert_eq!(w.begin_window(&bio(Op::Read, Flags::NONE)), None);
        for thread in 0..9 {
            assert_eq!(w.admit(0, &write(thread)), thread < 8);
        }
        let (length, number) = w.begin_window(&write(0)).unwrap();
        assert_eq!((length, w.begin_window(&write(1))), (100 * MS, None));
        let mut woken = Vec::new();
        assert!(w.window_ended(104 * MS, number, &mut woken).is_some());
        assert_eq!((woken, w.normal), (vec![8], 12));
        assert!(w.admit(104 * MS, &write(8)));
    }

    /// Spec scenario WB-3.
    #[test]
    fn a_writer_alone_is_let_up_to_the_cap() {
        let mut w = Wbt::new(None, true, 32, true);
        for _ in 0..3 {
            w.judge(Latency::UnknownWrites);
            assert_eq!((w.depth, w.normal, w.background), (24, 12, 6));
        }
    }

    #[test]
    fn direct_writes_are_not_throttled() {
        assert!(!throttled(Op::Write, Flags(Flags::SYNC.0 | Flags::IDLE.0)));
        assert!(throttled(Op::Write, Flags::SYNC) && throttled(Op::Discard, Flags::NONE));
        assert!(!throttled(Op::Read, Flags::NONE));
    }

    #[test]
    fn windows_without_samples_drift_back_to_the_middle() {
        let mut w = Wbt::new(None, true, 32, true);
        w.judge(Latency::Exceeded);
        w.judge(Latency::Exceeded);
        for _ in 0..5 {
            w.judge(Latency::Unknown);
        }
        assert_eq!((w.step, w.depth), (1, 8));
    }
}
