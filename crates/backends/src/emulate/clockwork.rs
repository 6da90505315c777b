//! Drives a device model by the wall clock: commands go in as they arrive, answers go out when the
//! model's time comes, or so much before as the way takes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use iosched_devices::{Command, Completion, Device};
use iosched_types::{Nanos, Op, Sector};

use super::served::Served;

/// What is to be sent when a command completes.
pub(crate) trait Answer: Send + 'static {
    /// Sends it.
    fn send(self);
}

/// How much before the model's time an answer leaves, to make up for the way to the disk and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lead {
    /// For any command.
    pub(crate) fixed: Nanos,
    /// For each MiB of its data, which is copied on the way.
    pub(crate) per_mib: Nanos,
}

impl Lead {
    /// Every answer leaves at once.
    const ALL: Lead = Lead { fixed: Nanos::MAX, per_mib: 0 };

    fn of(self, op: Op, len: u64) -> Nanos {
        let data = if matches!(op, Op::Read | Op::Write) { len } else { 0 };
        let copied = (u128::from(self.per_mib) * u128::from(data)) >> 20;
        self.fixed.saturating_add(u64::try_from(copied).unwrap_or(Nanos::MAX))
    }
}

struct Pending<A> {
    answer: A,
    op: Op,
    len: u64,
    arrived: Nanos,
}

/// A command that the model has completed, or will have before its answer could arrive.
struct Early<A> {
    /// When the answer leaves.
    at: Nanos,
    t_done: Nanos,
    answer: A,
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
    lead: Lead,
    /// Completed, but too early to answer yet; the next to leave is last.
    early: Vec<Early<A>>,
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
                lead: Lead::default(),
                early: Vec::new(),
                stop: false,
                served: Served::default(),
                next_sector: 0,
            }),
            changed: Condvar::new(),
            epoch: Instant::now(),
        }
    }

    /// The time on the disk's clock.
    pub(crate) fn now(&self) -> Nanos {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(Nanos::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<A>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command that arrived at `arrived`; its data was fetched or put away since.
    pub(crate) fn submit(&self, arrived: Nanos, command: Command, answer: A) {
        let mut ready = Vec::new();
        let mut inner = self.lock();
        inner.pump(self.now(), &mut ready);
        let Command { op, offset, len, .. } = command;
        let id = inner.enter(Pending { answer, op, len, arrived }, offset);
        // The device may have been advanced beyond that: by what others did, or since answers leave early.
        let at = arrived.max(inner.last);
        inner.device.submit(at, Command { id, ..command });
        inner.last = at;
        inner.pump(self.now(), &mut ready);
        let next = inner.wake_up();
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
            let next = inner.wake_up();
            inner.sleeping_until = next;
            inner = match next {
                None => self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(t) => {
                    let wait = Duration::from_nanos(t.saturating_sub(self.now()));
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
        let mut inner = self.lock();
        inner.lead = Lead::ALL;
        inner.early.iter_mut().for_each(|e| e.at = 0);
        drop(inner);
        self.changed.notify_all();
    }

    /// Puts another device in place; gives it back while commands are in flight.
    pub(crate) fn replace(
        &self,
        device: Box<dyn Device>,
        lead: Lead,
    ) -> Result<(), Box<dyn Device>> {
        let mut inner = self.lock();
        if inner.slots.iter().any(Option::is_some) || !inner.early.is_empty() {
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
        served.in_flight = inner.device.in_flight() + inner.early.len();
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

    /// How far the model must run ahead of the clock: the longest lead of the commands in flight.
    fn ahead(&self) -> Nanos {
        self.slots.iter().flatten().map(|p| self.lead.of(p.op, p.len)).max().unwrap_or(0)
    }

    /// When there is something to do next: an answer that leaves, or an event of the device so soon that
    /// one might have to.
    fn wake_up(&self) -> Option<Nanos> {
        let device = self.device.next_wakeup().map(|t| t.saturating_sub(self.ahead()));
        let answer = self.early.last().map(|e| e.at);
        [device, answer].into_iter().flatten().min()
    }

    /// Handles every event of the device that is due within the longest lead, and lets go of the answers
    /// whose own lead has come.
    fn pump(&mut self, now: Nanos, ready: &mut Vec<A>) {
        while let Some(t) = self.device.next_wakeup()
            && t <= now.saturating_add(self.ahead())
        {
            // A device may name a wake-up in its past; time given to it never goes backwards.
            self.last = self.last.max(t);
            self.device.advance(self.last, &mut self.done);
            let mut done = std::mem::take(&mut self.done);
            done.drain(..).for_each(|c| self.completed(c));
            self.done = done;
        }
        while self.early.last().is_some_and(|e| e.at <= now) {
            let Some(e) = self.early.pop() else { return };
            let late = now.saturating_sub(e.t_done);
            self.served.late += late;
            self.served.very_late += u64::from(late > VERY_LATE);
            ready.push(e.answer);
        }
    }

    fn completed(&mut self, c: Completion) {
        let Some(p) = self.slots.get_mut(c.id as usize).and_then(Option::take) else { return };
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
        let at = c.t_done.saturating_sub(self.lead.of(p.op, p.len));
        // Behind those that leave at the same time already: the model's order stays.
        let place = self.early.partition_point(|e| e.at > at);
        self.early.insert(place, Early { at, t_done: c.t_done, answer: p.answer });
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

    fn read(offset: u64, len: u64) -> Command {
        Command { id: 0, op: Op::Read, offset, len, fua: false }
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
            work.submit(work.now(), read(u64::from(i) * 4096, 4096), Note(tx.clone(), i));
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
    fn answers_leave_before_the_models_time_by_what_their_size_needs() {
        let second = 1_000_000_000;
        let work: Clockwork<Note> = Clockwork::new(fixed(3600 * second, 4));
        let lead = Lead { fixed: 1600 * second, per_mib: 3000 * second };
        work.replace(fixed(3600 * second, 4), lead).map_err(|_| ()).unwrap();
        let (tx, rx) = channel();
        // An hour from now, less 1600 s for any and 3000 s for each MiB: only the last is due at once.
        for (i, len) in [(0, 4096), (1, 512 << 10), (2, 1 << 20)] {
            work.submit(work.now(), read(0, len), Note(tx.clone(), i));
        }
        assert_eq!(rx.try_iter().collect::<Vec<_>>(), [2]);
        assert_eq!(work.served().in_flight, 2);
        work.hurry();
        work.submit(work.now(), read(0, 512), Note(tx, 3));
        assert_eq!(rx.try_iter().collect::<Vec<_>>(), [1, 0, 3], "the others were done, but early");
        assert_eq!(work.served().late, 0);
    }

    #[test]
    fn a_device_is_replaced_only_when_idle() {
        let work: Clockwork<Note> = Clockwork::new(fixed(1_000_000_000, 1));
        let (tx, _rx) = channel();
        work.submit(work.now(), read(0, 512), Note(tx, 0));
        assert!(work.replace(fixed(1, 1), Lead::default()).is_err());
        let idle: Clockwork<Note> = Clockwork::new(fixed(1, 1));
        assert!(idle.replace(fixed(2, 2), Lead { fixed: 5, per_mib: 5 }).is_ok());
    }
}
