//! Who used the CPUs and the disk during a run.

use std::fs;

use crate::parse::diskstats::{self, DiskStats};
use crate::parse::proc_stat::{CpuTicks, parse_cpu, parse_process};
use crate::parse::psi;
use crate::root::SysRoot;

/// A reading of everything that is compared before and after a run.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// CPU ticks of the machine.
    pub cpu: CpuTicks,
    /// Ticks of kernel threads that do block work (kworker, ksoftirqd, loop).
    pub kernel_threads: u64,
    /// Ticks of this process and of the children it has waited for.
    pub own: u64,
    /// The counters of the disks, together.
    pub disk: DiskStats,
    /// `some` totals of CPU, I/O and memory pressure in µs; `None` without PSI.
    pub pressure: Option<[u64; 3]>,
}

/// What lies between two readings.
#[derive(Clone, Debug, Default)]
pub struct Use {
    /// Busy ticks of the machine.
    pub busy: u64,
    /// Ticks of the machine in any state.
    pub total: u64,
    /// Ticks stolen by the hypervisor.
    pub steal: u64,
    /// Ticks of block-layer kernel threads.
    pub kernel_threads: u64,
    /// Ticks of our own processes.
    pub own: u64,
    /// The disk's work.
    pub disk: DiskStats,
    /// Pressure in µs.
    pub pressure: Option<[u64; 3]>,
}

/// The counters of some disks (kernel names), together.
#[must_use]
pub fn disks(root: &SysRoot, names: &[impl AsRef<str>]) -> DiskStats {
    let text = format!("{}\n", root.get("/proc/diskstats").unwrap_or_default());
    let all = names.iter().filter_map(|n| diskstats::find(&text, n.as_ref()));
    all.fold(DiskStats::default(), |sum, d| sum.with(&d))
}

/// Reads the meters; of the disks, those of these kernel names.
#[must_use]
pub fn read(root: &SysRoot, names: &[impl AsRef<str>]) -> Reading {
    let text = |p: &str| root.get(p).unwrap_or_default();
    let mut reading = Reading {
        cpu: parse_cpu(&text("/proc/stat")).unwrap_or_default(),
        disk: disks(root, names),
        ..Reading::default()
    };
    if let Some(own) = parse_process(&text("/proc/self/stat")) {
        reading.own = own.ticks.saturating_add(own.child_ticks);
    }
    for name in root.list("/proc") {
        if !name.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let Some(p) = parse_process(&text(&format!("/proc/{name}/stat"))) else { continue };
        let kernel =
            p.ppid == 2 && ["kworker", "ksoftirqd", "loop"].iter().any(|k| p.comm.starts_with(k));
        if kernel {
            reading.kernel_threads += p.ticks;
        }
    }
    let some =
        |name: &str| psi::parse(&text(&format!("/proc/pressure/{name}"))).map(|p| p.some_total);
    reading.pressure = match (some("cpu"), some("io"), some("memory")) {
        (Some(c), Some(i), Some(m)) => Some([c, i, m]),
        _ => None,
    };
    reading
}

impl Reading {
    /// What happened since `before`.
    #[must_use]
    pub fn since(&self, before: &Reading) -> Use {
        let cpu = self.cpu.since(&before.cpu);
        Use {
            busy: cpu.busy(),
            total: cpu.total(),
            steal: cpu.steal(),
            // A kernel thread may have ended; its ticks are lost then.
            kernel_threads: self.kernel_threads.saturating_sub(before.kernel_threads),
            own: self.own.saturating_sub(before.own),
            disk: self.disk.since(&before.disk),
            pressure: self
                .pressure
                .zip(before.pressure)
                .map(|(a, b)| std::array::from_fn(|i| a[i].saturating_sub(b[i]))),
        }
    }
}

impl Use {
    /// Share of the CPUs that others used, 0 to 1.
    #[must_use]
    pub fn foreign_cpu(&self) -> f64 {
        let foreign = self.busy.saturating_sub(self.own).saturating_sub(self.kernel_threads);
        foreign as f64 / self.total.max(1) as f64
    }
}

/// Clock ticks a second, as `/proc` counts them.
#[must_use]
pub fn ticks_per_second() -> f64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .map_or(100.0, |t| t as f64)
}

/// Drops the page cache, dentries and inodes after writing back what is dirty.
///
/// # Errors
/// [`crate::Error::Io`].
pub fn drop_caches() -> crate::Result<()> {
    nix::unistd::sync();
    let path = "/proc/sys/vm/drop_caches";
    fs::write(path, "3\n").map_err(|e| crate::Error::io("writing", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_read() {
        let root = SysRoot::default();
        let before = read(&root, &["no-such-disk"]);
        let mut x = 0u64;
        for i in 0..5_000_000u64 {
            x = x.wrapping_add(i * i);
        }
        std::hint::black_box(x);
        let used = read(&root, &["no-such-disk"]).since(&before);
        assert!(before.cpu.total() > 0);
        assert!((0.0..=1.0).contains(&used.foreign_cpu()));
    }
}
