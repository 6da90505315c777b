//! The CPU cost of each piece of an I/O under one scheduler, looked up once from a kernel profile.

use iosched_block::{CpuModel, CpuProfile, SchedulerCost};
use iosched_types::{Bytes, Nanos};
use iosched_vfs::kernel::memory::Moved;

/// Costs of one simulation, in nanoseconds of a core.
#[derive(Clone, Debug)]
pub struct Costs {
    pub(super) profile: CpuProfile,
    pub(super) scheduler: SchedulerCost,
}

impl Costs {
    /// The costs under a profile and a scheduler family; `None` when CPU time does not count.
    #[must_use]
    pub fn new(profile: &CpuProfile, family: &str) -> Option<Costs> {
        if profile.model != CpuModel::Cost {
            return None;
        }
        let scheduler = profile.scheduler.get(family).cloned().unwrap_or_default();
        Some(Costs { profile: profile.clone(), scheduler })
    }

    /// Whether the scheduler has a lock for the whole queue.
    pub(super) fn locked(&self) -> bool {
        self.scheduler.hold_ns > 0
    }

    /// A system call that needs no disk, and copying between kernel and program.
    pub(crate) fn call(&self, copied: Bytes) -> Nanos {
        self.profile.call_ns + self.copying(copied)
    }

    /// Copying.
    pub(crate) fn copying(&self, bytes: Bytes) -> Nanos {
        self.profile.copy_ns * bytes / 4096
    }

    /// What a write through the page cache of a file system takes beyond a read.
    pub(crate) fn write(&self) -> Nanos {
        self.profile.write_ns
    }

    /// Pages taken into the page cache, pages given back, and pages written back.
    pub(crate) fn pages(&self, moved: &Moved) -> Nanos {
        let p = &self.profile;
        p.page_ns * moved.came + p.free_ns * moved.left + p.writeback_ns * moved.written
    }

    /// Finding so many names, and changing a directory.
    pub(crate) fn names(&self, found: u64, changes: bool) -> Nanos {
        self.profile.path_ns * found + if changes { self.profile.change_ns } else { 0 }
    }

    /// A look at the clock.
    pub(crate) fn clock(&self) -> Nanos {
        self.own(self.profile.clock_ns)
    }

    /// A program's own work, which takes as long as its text says on a machine of the profile's speed.
    pub(crate) fn own(&self, work: Nanos) -> Nanos {
        match self.profile.percent {
            0 | 100 => work,
            percent => (u128::from(work) * u128::from(percent) / 100) as Nanos,
        }
    }

    /// How long a task keeps its core while others want it.
    pub(crate) fn slice(&self) -> Nanos {
        self.profile.slice_ns
    }

    /// System call, bio, request, driver and doorbell of one request, and the scheduler's work outside its lock.
    pub(super) fn submission(&self, cold: bool) -> Nanos {
        self.profile.submit_ns + self.when_cold(self.scheduler.outside_ns, cold)
    }

    /// The same of a bio of a program: the system call was paid before, and there is no loop of fio's.
    pub(super) fn bio(&self, cold: bool) -> Nanos {
        self.submission(cold).saturating_sub(self.profile.user_ns + self.profile.call_ns)
    }

    /// How long the lock is held by one of `cores` different recent holders while `waiting` others queue for it.
    ///
    /// The lock's word and the scheduler's lists lie in another core's cache when that core held the lock last. They are
    /// fetched once: a core that was idle just now, and so has lost them, pays the dearer of the two.
    pub(super) fn hold(&self, cores: u64, waiting: u64, cold: bool) -> Nanos {
        let s = &self.scheduler;
        let others = cores.saturating_sub(1);
        let moved = match others * 1000 {
            0 => 0,
            n => s.transfer_ns * n / (n + s.half_permille),
        };
        let lost = self.when_cold(s.hold_ns, cold) - s.hold_ns;
        s.hold_ns + moved.max(lost) + s.waiter_ns * waiting
    }

    /// A scheduler's code and data were pushed out of the caches while the core was idle.
    fn when_cold(&self, ns: Nanos, cold: bool) -> Nanos {
        if cold { ns * self.profile.cold_percent / 100 } else { ns }
    }

    /// A switch to a process on a core that `tied` processes share. The more processes, the colder the caches.
    pub(super) fn switch(&self, tied: u32) -> Nanos {
        let p = &self.profile;
        let from = u64::from(p.pollution_from.max(1));
        let more = log2_permille(u64::from(tied) * 1000 / from);
        p.switch_ns + p.pollution_ns * more / 1000
    }
}

/// `1000 × log2(x ÷ 1000)` for `x ≥ 1000`, 0 below; integers only, so that every machine gets the same.
fn log2_permille(x: u64) -> u64 {
    if x <= 1000 {
        return 0;
    }
    let mut value = (u128::from(x) << 32) / 1000;
    let mut log = 0u64;
    while value >= 2 << 32 {
        value >>= 1;
        log += 1 << 16;
    }
    for bit in (0..16).rev() {
        value = (value * value) >> 32;
        if value >= 2 << 32 {
            value >>= 1;
            log += 1 << bit;
        }
    }
    (log * 1000) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_block::KernelProfile;

    fn costs(family: &str) -> Costs {
        Costs::new(&KernelProfile::find("6.12").unwrap().cpu, family).unwrap()
    }

    #[test]
    fn a_profile_switches_it_off() {
        let mut cpu = KernelProfile::find("6.12").unwrap().cpu;
        cpu.model = CpuModel::Zero;
        assert!(Costs::new(&cpu, "none").is_none());
    }

    #[test]
    fn a_page_written_back_takes_time_in_old_kernels() {
        let moved = Moved { came: 2, left: 3, written: 4 };
        let of = |kernel: &str| {
            Costs::new(&KernelProfile::find(kernel).unwrap().cpu, "noop").unwrap().pages(&moved)
        };
        assert_eq!((of("2.6.18"), of("6.12")), (2 * 400 + 3 * 200 + 4 * 300, 2 * 400 + 3 * 200));
    }

    #[test]
    fn a_contended_lock_is_held_longer() {
        let deadline = costs("mq-deadline");
        let held: Vec<Nanos> = [1, 2, 4, 10].map(|m| deadline.hold(m, 0, false)).into();
        assert_eq!(held, [620, 620 + 810, 620 + 1215, 620 + 1458]);
        let bfq = costs("bfq");
        assert_eq!(bfq.hold(2, 0, false), 1430 + 1454);
        assert_eq!(bfq.hold(4, 2, false), 1430 + 1548 + 140);
        assert!(!costs("none").locked() && !costs("kyber").locked());
    }

    #[test]
    fn the_lists_of_a_scheduler_are_fetched_once() {
        let deadline = costs("mq-deadline");
        let held: Vec<Nanos> = [1, 2, 10].map(|m| deadline.hold(m, 0, true)).into();
        assert_eq!(held, [620 * 240 / 100, 620 * 240 / 100, 620 + 1458]);
    }

    #[test]
    fn the_first_request_after_a_rest_is_dearer() {
        assert_eq!(costs("kyber").submission(false), 1560 + 770);
        assert_eq!(costs("kyber").submission(true), 1560 + 770 * 240 / 100);
        assert_eq!(costs("none").submission(true), 1560);
    }

    #[test]
    fn many_processes_on_a_core_pollute_its_caches() {
        let none = costs("none");
        let more: Vec<Nanos> = [1, 14, 16, 32, 64, 128, 256].map(|m| none.switch(m) - 1850).into();
        let table = [0, 0, 107, 667, 1227, 1787, 2347];
        for (ours, table) in more.iter().zip(table) {
            assert!(ours.abs_diff(table) <= 1, "{more:?}");
        }
    }
}
