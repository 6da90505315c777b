//! What I/Os cost the CPUs, where the kernel profile says that they cost anything.
//!
//! An I/O keeps the CPU of its process busy for a fixed time; a scheduler with one lock for the whole queue
//! adds a part during which no other CPU may be in it. The cost is paid when the I/O is submitted, so it
//! bounds how many I/Os a second a core, and a lock, can handle.

use iosched_block::{CpuModel, CpuProfile};
use iosched_types::Nanos;

/// The CPUs of one simulation.
#[derive(Debug)]
pub(crate) struct Cpus {
    per_io: Nanos,
    scheduler: Nanos,
    locked: bool,
    busy_until: Vec<Nanos>,
    lock_until: Nanos,
}

impl Cpus {
    /// CPUs under a profile and a scheduler family; `None` when CPU time does not count.
    pub(crate) fn new(profile: &CpuProfile, family: &str, cpus: u16) -> Option<Cpus> {
        if profile.model == CpuModel::Zero {
            return None;
        }
        Some(Cpus {
            per_io: profile.per_io_ns,
            scheduler: profile.scheduler_ns.get(family).copied().unwrap_or(0),
            locked: profile.locked_schedulers.iter().any(|l| l == family),
            busy_until: vec![0; usize::from(cpus.max(1))],
            lock_until: 0,
        })
    }

    /// When the CPU has done its part of `ios` I/Os that a process hands over at `now`.
    pub(crate) fn spend(&mut self, now: Nanos, cpu: u16, ios: u64) -> Nanos {
        let n = self.busy_until.len();
        let busy = &mut self.busy_until[usize::from(cpu) % n];
        let mut t = now.max(*busy) + self.per_io * ios;
        if self.locked {
            t = t.max(self.lock_until) + self.scheduler * ios;
            self.lock_until = t;
        } else {
            t += self.scheduler * ios;
        }
        *busy = t;
        t
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_block::KernelProfile;

    #[test]
    fn a_lock_is_shared_and_a_cpu_is_not() {
        let cpu = KernelProfile::find("6.12").unwrap().cpu;
        let mut kyber = Cpus::new(&cpu, "kyber", 2).unwrap();
        assert_eq!([kyber.spend(0, 0, 1), kyber.spend(0, 1, 1)], [3600, 3600]);
        assert_eq!(kyber.spend(0, 0, 2), 3 * 3600);
        let mut deadline = Cpus::new(&cpu, "mq-deadline", 2).unwrap();
        assert_eq!([deadline.spend(0, 0, 1), deadline.spend(0, 1, 1)], [3400, 4000]);
    }

    #[test]
    fn a_profile_switches_it_off() {
        let mut cpu = KernelProfile::find("6.12").unwrap().cpu;
        cpu.model = CpuModel::Zero;
        assert!(Cpus::new(&cpu, "none", 4).is_none());
    }
}
