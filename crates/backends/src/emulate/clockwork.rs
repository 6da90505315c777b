//! Drives a device model by the wall clock: commands go in as they arrive, answers go out when the
//! model's time comes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use iosched_devices::{Command, Completion, Device};
use iosched_types::{Nanos, Op, Sector};

/// What is to be sent when a command completes.
pub(crate) trait Answer: Send + 'static {
    /// Sends it.
    fn send(self);
}

/// Figures of an emulated disk since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Commands completed, by read, write, discard, flush.
    pub commands: [u64; 4],
    /// Bytes, by read, write, discard.
    pub bytes: [u64; 3],
    /// Sum of the model's latencies (arrival to completion) in ns.
    pub latency: Nanos,
    /// Sum over commands of how much too late the answer was, in ns.
    pub late: Nanos,
    /// Answers more than 1 ms too late.
    pub very_late: u64,
    /// In flight now.
    pub in_flight: usize,
    /// Most in flight at once.
    pub max_in_flight: usize,
    /// Where the head is.
    pub position: Sector,
    /// Commands that did not start where the one before ended.
    pub seeks: u64,
    /// Distance between the end of one command and the start of the next, in arrival order, in sectors.
    pub travel: Sector,
}

impl Served {
    /// One line about the time since `before`: IOPS, latency, depth, head. At most 80 columns.
    #[must_use]
    pub fn live_line(&self, before: &Served, seconds: f64) -> String {
        let all = |s: &Served| s.commands.iter().sum::<u64>();
        let n = all(self).saturating_sub(all(before));
        let bytes = |s: &Served| s.bytes[0] + s.bytes[1];
        let moved = bytes(self).saturating_sub(bytes(before)) as f64 / seconds.max(1e-9);
        let latency = self.latency.saturating_sub(before.latency) as f64 / n.max(1) as f64;
        let text = format!(
            "{:>7} IOPS {:>7.1} MB/s  {:>9}  depth {:>4} (max {})  head at sector {}",
            iosched_types::units::show_count((n as f64 / seconds.max(1e-9)).round()),
            moved / 1e6,
            iosched_types::units::show_nanos(latency),
            self.in_flight,
            self.max_in_flight,
            self.position
        );
        text.chars().take(80).collect()
    }
}

struct Pending<A> {
    answer: A,
    op: Op,
    len: u64,
    arrived: Nanos,
}

struct Inner<A> {
    device: Box<dyn Device>,
    slots: Vec<Option<Pending<A>>>,
    free: Vec<u32>,
    done: Vec<Completion>,
    /// The latest time the device was given.
    last: Nanos,
    /// When the timer thread means to wake up.
    sleeping_until: Option<Nanos>,
    /// Answers go out this much before the model's time, to make up for the way back.
    lead: Nanos,
    stop: bool,
    served: Served,
    next_sector: Sector,
}

/// The driver. `A` is what answers a command.
pub(crate) struct Clockwork<A> {
    inner: Mutex<Inner<A>>,
    changed: Condvar,
    epoch: Instant,
}

/// Answers later than this are counted as very late.
const VERY_LATE: Nanos = 1_000_000;

impl<A: Answer> Clockwork<A> {
    pub(crate) fn new(device: Box<dyn Device>) -> Self {
        Clockwork {
            inner: Mutex::new(Inner {
                device,
                slots: Vec::new(),
                free: Vec::new(),
                done: Vec::new(),
                last: 0,
                sleeping_until: None,
                lead: 0,
                stop: false,
                served: Served::default(),
                next_sector: 0,
            }),
            changed: Condvar::new(),
            epoch: Instant::now(),
        }
    }

    fn now(&self) -> Nanos {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(Nanos::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<A>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command arrives now.
    pub(crate) fn submit(&self, op: Op, offset: u64, len: u64, fua: bool, answer: A) {
        let mut ready = Vec::new();
        let mut inner = self.lock();
        let now = self.now();
        inner.pump(now, &mut ready);
        let id = inner.enter(Pending { answer, op, len, arrived: now }, offset);
        // Completions are sent a little early, so the device may have been advanced beyond now.
        let at = now.max(inner.last);
        inner.device.submit(at, Command { id, op, offset, len, fua });
        inner.last = at;
        inner.pump(now, &mut ready);
        let next = inner.device.next_wakeup();
        let sooner = match (next, inner.sleeping_until) {
            (Some(t), Some(s)) => t < s,
            (Some(_), None) => true,
            (None, _) => false,
        };
        drop(inner);
        if sooner {
            self.changed.notify_one();
        }
        ready.into_iter().for_each(Answer::send);
    }

    /// Answers when the model's time comes; returns when [`stop`](Self::stop) was called.
    pub(crate) fn run_timer(&self) {
        let mut ready: Vec<A> = Vec::new();
        let mut inner = self.lock();
        while !inner.stop {
            inner.pump(self.now(), &mut ready);
            if !ready.is_empty() {
                drop(inner);
                ready.drain(..).for_each(Answer::send);
                inner = self.lock();
                continue;
            }
            let next = inner.device.next_wakeup();
            inner.sleeping_until = next;
            inner = match next {
                None => self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(t) => {
                    let wait = t.saturating_sub(inner.lead).saturating_sub(self.now());
                    let wait = Duration::from_nanos(wait);
                    let woken = self.changed.wait_timeout(inner, wait);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            inner.sleeping_until = None;
        }
    }

    /// Ends the timer thread; commands still in flight are dropped unanswered.
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    /// From now on every command is answered at once.
    pub(crate) fn hurry(&self) {
        self.lock().lead = Nanos::MAX;
        self.changed.notify_all();
    }

    /// Puts another device in place; gives it back while commands are in flight.
    pub(crate) fn replace(
        &self,
        device: Box<dyn Device>,
        lead: Nanos,
    ) -> Result<(), Box<dyn Device>> {
        let mut inner = self.lock();
        if inner.slots.iter().any(Option::is_some) {
            return Err(device);
        }
        inner.device = device;
        inner.lead = lead;
        inner.served = Served::default();
        inner.next_sector = 0;
        // The new device has its own past: it is at rest at any time from now on.
        inner.last = self.now();
        Ok(())
    }

    /// Figures so far.
    pub(crate) fn served(&self) -> Served {
        let inner = self.lock();
        let mut served = inner.served.clone();
        served.in_flight = inner.device.in_flight();
        served.position = inner.device.position();
        served
    }

    /// The model's own counters.
    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        self.lock().device.counters()
    }
}

impl<A: Answer> Inner<A> {
    fn enter(&mut self, pending: Pending<A>, offset: u64) -> u32 {
        if matches!(pending.op, Op::Read | Op::Write) {
            let sector = offset / iosched_types::SECTOR;
            if sector != self.next_sector {
                self.served.seeks += 1;
                self.served.travel += sector.abs_diff(self.next_sector);
            }
            self.next_sector = sector + pending.len.div_ceil(iosched_types::SECTOR);
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[id as usize] = Some(pending);
        let live = self.slots.len() - self.free.len();
        self.served.max_in_flight = self.served.max_in_flight.max(live);
        id
    }

    /// Handles every event of the device that is due (or due within the lead).
    fn pump(&mut self, now: Nanos, ready: &mut Vec<A>) {
        let horizon = now.saturating_add(self.lead);
        while let Some(t) = self.device.next_wakeup().filter(|t| *t <= horizon) {
            // A device may name a wake-up in its past; time given to it never goes backwards.
            self.last = self.last.max(t);
            self.device.advance(self.last, &mut self.done);
            for c in self.done.drain(..) {
                let Some(p) = self.slots.get_mut(c.id as usize).and_then(Option::take) else {
                    continue;
                };
                self.free.push(c.id);
                let kind = match p.op {
                    Op::Read => 0,
                    Op::Write => 1,
                    Op::Discard => 2,
                    Op::Flush => 3,
                };
                self.served.commands[kind] += 1;
                if kind < 3 {
                    self.served.bytes[kind] += p.len;
                }
                self.served.latency += c.t_done.saturating_sub(p.arrived);
                let late = now.saturating_sub(c.t_done);
                self.served.late += late;
                self.served.very_late += u64::from(late > VERY_LATE);
                ready.push(p.answer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_devices::DeviceSpec;
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};

    struct Note(Sender<u32>, u32);

    impl Answer for Note {
        fn send(self) {
            let _ = self.0.send(self.1);
        }
    }

    fn fixed(lat: u64, par: u64) -> Box<dyn Device> {
        let text = format!(
            "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"1GiB\"\nlat_ns={lat}\npar={par}\n"
        );
        DeviceSpec::from_toml("t", &text).unwrap().build().unwrap()
    }

    #[test]
    fn every_command_is_answered_once_in_the_models_order() {
        let work: Arc<Clockwork<Note>> = Arc::new(Clockwork::new(fixed(200_000, 1)));
        let timer = {
            let w = work.clone();
            std::thread::spawn(move || w.run_timer())
        };
        let (tx, rx) = channel();
        for i in 0..50 {
            work.submit(Op::Read, u64::from(i) * 4096, 4096, false, Note(tx.clone(), i));
        }
        drop(tx);
        let got: Vec<u32> = rx.iter().collect();
        assert_eq!(got, (0..50).collect::<Vec<_>>());
        let served = work.served();
        assert_eq!((served.commands, served.bytes[0]), ([50, 0, 0, 0], 50 * 4096));
        assert_eq!((served.in_flight, served.seeks), (0, 0));
        // 50 commands one after the other: the k-th waits for those before it.
        assert!(served.latency >= 50 * 200_000, "{}", served.latency);
        work.stop();
        timer.join().unwrap();
    }

    #[test]
    fn the_live_line_is_about_the_time_since_the_last() {
        let before = Served { commands: [100, 0, 0, 0], latency: 1, ..Served::default() };
        let now = Served {
            commands: [300, 0, 0, 0],
            bytes: [2_000_000, 0, 0],
            latency: 2_000_000_001,
            position: u64::MAX,
            ..Served::default()
        };
        let line = now.live_line(&before, 2.0);
        assert!(line.contains("100 IOPS") && line.contains("10.0 ms"), "{line}");
        assert!(line.contains("1.0 MB/s") && line.chars().count() <= 80, "{line}");
    }

    #[test]
    fn a_device_is_replaced_only_when_idle() {
        let work: Clockwork<Note> = Clockwork::new(fixed(1_000_000_000, 1));
        let (tx, _rx) = channel();
        work.submit(Op::Write, 0, 512, false, Note(tx, 0));
        assert!(work.replace(fixed(1, 1), 0).is_err());
        let idle: Clockwork<Note> = Clockwork::new(fixed(1, 1));
        assert!(idle.replace(fixed(2, 2), 5).is_ok());
    }
}
