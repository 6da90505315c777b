//! Drives a device model by the wall clock. Commands go in as they arrive. Answers go out at the model's time, less the
//! time that the way takes. One thread serves; others look and give orders.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use iosched_devices::{Command, Completion, Device};
use iosched_types::{Nanos, Op, Sector};

use super::served::Served;

/// How much before the model's time an answer leaves, to make up for the way to the disk and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lead {
    /// For any command.
    pub(crate) fixed: Nanos,
    /// The same for each MiB of data, which is copied on the way.
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
    lead: Nanos,
}

/// A command that the model has completed, or will have completed before its answer could arrive.
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
    /// Leads of the commands in flight, and how many have each: usually one or two.
    leads: BTreeMap<Nanos, u32>,
    done: Vec<Completion>,
    /// When the device's own time began. Without it, a device that begins with a full cache would have emptied the
    /// cache since the epoch.
    began: Nanos,
    /// The latest time the device was given, by our clock.
    last: Nanos,
    lead: Lead,
    /// Completed, but too early to answer yet; the next to leave is last.
    early: Vec<Early<A>>,
    served: Served,
    next_sector: Sector,
}

/// The driver. `A` is what answers a command.
pub(crate) struct Clockwork<A> {
    inner: Mutex<Inner<A>>,
    stop: AtomicBool,
    epoch: Instant,
}

/// Answers later than this are counted as very late.
const VERY_LATE: Nanos = 1_000_000;

impl<A> Clockwork<A> {
    pub(crate) fn new(device: Box<dyn Device>) -> Self {
        Clockwork {
            inner: Mutex::new(Inner {
                device,
                slots: Vec::new(),
                free: Vec::new(),
                leads: BTreeMap::new(),
                done: Vec::new(),
                began: 0,
                last: 0,
                lead: Lead::default(),
                early: Vec::new(),
                served: Served::default(),
                next_sector: 0,
            }),
            stop: AtomicBool::new(false),
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
        let mut inner = self.lock();
        inner.pump(self.now());
        let Command { op, offset, len, .. } = command;
        let lead = inner.lead.of(op, len);
        let id = inner.enter(Pending { answer, op, len, arrived, lead }, offset);
        // The device may have been advanced beyond that, by other commands or because answers leave early.
        let at = arrived.max(inner.last);
        let since = at.saturating_sub(inner.began);
        inner.device.submit(since, Command { id, ..command });
        inner.last = at;
    }

    /// Moves due answers to `ready`. Returns when to come again.
    pub(crate) fn due(&self, ready: &mut Vec<A>) -> Option<Nanos> {
        let mut inner = self.lock();
        let now = self.now();
        inner.pump(now);
        inner.leave(now, ready);
        inner.wake_up()
    }

    /// Ends the service; commands still in flight are dropped unanswered.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether [`stop`](Self::stop) was called.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// From now on every command is answered at once.
    pub(crate) fn hurry(&self) {
        let mut inner = self.lock();
        inner.lead = Lead::ALL;
        let held = inner.leads.values().sum::<u32>();
        inner.leads = BTreeMap::from([(Nanos::MAX, held)]);
        inner.slots.iter_mut().flatten().for_each(|p| p.lead = Nanos::MAX);
        inner.early.iter_mut().for_each(|e| e.at = 0);
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
        inner.began = self.now();
        inner.last = inner.began;
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

impl<A> Inner<A> {
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
        *self.leads.entry(pending.lead).or_default() += 1;
        self.slots[id as usize] = Some(pending);
        let live = self.slots.len() - self.free.len();
        self.served.max_in_flight = self.served.max_in_flight.max(live);
        id
    }

    /// How far the model must run ahead of the clock: the longest lead of the commands in flight.
    fn ahead(&self) -> Nanos {
        self.leads.last_key_value().map_or(0, |(lead, _)| *lead)
    }

    /// When there is something to do next: an answer leaves, or the device has an event so soon that an answer might
    /// have to leave.
    fn wake_up(&self) -> Option<Nanos> {
        let device = self.device_wakes().map(|t| t.saturating_sub(self.ahead()));
        let answer = self.early.last().map(|e| e.at);
        [device, answer].into_iter().flatten().min()
    }

    /// When the device has something to do next, by our clock.
    fn device_wakes(&self) -> Option<Nanos> {
        self.device.next_wakeup().map(|t| t.saturating_add(self.began))
    }

    /// Handles every event of the device that is due within the longest lead.
    fn pump(&mut self, now: Nanos) {
        while let Some(t) = self.device_wakes()
            && t <= now.saturating_add(self.ahead())
        {
            // A device may name a wake-up in its past; time given to it never goes backwards.
            self.last = self.last.max(t);
            self.device.advance(self.last - self.began, &mut self.done);
            let mut done = std::mem::take(&mut self.done);
            done.drain(..).for_each(|c| self.completed(c));
            self.done = done;
        }
    }

    /// Sends the answers that are within their own lead.
    fn leave(&mut self, now: Nanos, ready: &mut Vec<A>) {
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
        if let Some(n) = self.leads.get_mut(&p.lead) {
            *n -= 1;
            if *n == 0 {
                self.leads.remove(&p.lead);
            }
        }
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
        let t_done = c.t_done.saturating_add(self.began);
        let took = t_done.saturating_sub(p.arrived);
        self.served.latency += took;
        self.served.flushing += if p.op == Op::Flush { took } else { 0 };
        let at = t_done.saturating_sub(p.lead);
        // Behind those that already leave at the same time, so that the model's order stays.
        let place = self.early.partition_point(|e| e.at > at);
        self.early.insert(place, Early { at, t_done, answer: p.answer });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_devices::DeviceSpec;

    fn read(offset: u64, len: u64) -> Command {
        Command { id: 0, op: Op::Read, offset, len, fua: false }
    }

    fn fixed(lat: u64, par: u64) -> Box<dyn Device> {
        let text = format!(
            "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"1GiB\"\nlat_ns={lat}\npar={par}\n"
        );
        DeviceSpec::from_toml("t", &text).unwrap().build().unwrap()
    }

    fn due(work: &Clockwork<u32>) -> (Vec<u32>, Option<Nanos>) {
        let mut ready = Vec::new();
        let next = work.due(&mut ready);
        (ready, next)
    }

    #[test]
    fn every_command_is_answered_once_in_the_models_order() {
        let work: Clockwork<u32> = Clockwork::new(fixed(200_000, 1));
        for i in 0..50 {
            work.submit(work.now(), read(u64::from(i) * 4096, 4096), i);
        }
        let mut got = Vec::new();
        while let Some(next) = work.due(&mut got) {
            while work.now() < next {
                std::hint::spin_loop();
            }
        }
        assert_eq!(got, (0..50).collect::<Vec<_>>());
        let served = work.served();
        assert_eq!((served.commands, served.bytes[0]), ([50, 0, 0, 0], 50 * 4096));
        assert_eq!((served.in_flight, served.seeks), (0, 0));
        // 50 commands one after the other: the k-th waits for those before it.
        assert!(served.latency >= 50 * 200_000, "{}", served.latency);
    }

    #[test]
    fn answers_leave_before_the_models_time_by_what_their_size_needs() {
        let second = 1_000_000_000;
        let work: Clockwork<u32> = Clockwork::new(fixed(3600 * second, 4));
        let lead = Lead { fixed: 1600 * second, per_mib: 3000 * second };
        work.replace(fixed(3600 * second, 4), lead).map_err(|_| ()).unwrap();
        // An hour from now, less 1600 s for any and 3000 s for each MiB: only the last is due at once.
        for (i, len) in [(0, 4096), (1, 512 << 10), (2, 1 << 20)] {
            work.submit(work.now(), read(0, len), i);
        }
        assert_eq!(due(&work).0, [2]);
        assert_eq!(work.served().in_flight, 2);
        work.hurry();
        work.submit(work.now(), read(0, 512), 3);
        assert_eq!(due(&work), (vec![1, 0, 3], None), "the others were done, but early");
        assert_eq!(work.served().late, 0);
    }

    #[test]
    fn a_device_is_replaced_only_when_idle() {
        let work: Clockwork<u32> = Clockwork::new(fixed(1_000_000_000, 1));
        work.submit(work.now(), read(0, 512), 0);
        assert!(work.replace(fixed(1, 1), Lead::default()).is_err());
        let idle: Clockwork<u32> = Clockwork::new(fixed(1, 1));
        assert!(idle.replace(fixed(2, 2), Lead { fixed: 5, per_mib: 5 }).is_ok());
        assert!(!idle.is_stopped());
        idle.stop();
        assert!(idle.is_stopped());
    }

    /// However long the disk has been there.
    #[test]
    fn a_device_that_begins_with_a_full_cache_has_it_full() {
        let mut spec = iosched_devices::catalogue::find("hdd-7200").unwrap();
        spec.state = iosched_devices::DeviceState::parse("write_cache=full").unwrap();
        let mut clock = Clockwork::<u32>::new(spec.build().unwrap());
        clock.epoch -= std::time::Duration::from_secs(1000);
        assert!(clock.replace(spec.build().unwrap(), Lead::default()).is_ok());
        clock.due(&mut Vec::new());
        let counters = clock.counters();
        let dirty = counters.iter().find(|c| c.0 == "dirty_sectors").unwrap().1;
        // 32 MiB, less what is written while this runs.
        assert!(dirty > 32_768, "{counters:?}");
    }
}
