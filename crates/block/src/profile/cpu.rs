//! What an I/O costs the CPU under a kernel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The core time of each piece of an I/O, in ns. `docs/kernels.md` says where the figures come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuProfile {
    /// Whether CPU time counts.
    #[serde(default)]
    pub model: CpuModel,
    /// Handing over a request: system call, bio, request, driver, doorbell.
    #[serde(default)]
    pub submit_ns: u64,
    /// The program's own part of `submit_ns`.
    #[serde(default)]
    pub user_ns: u64,
    /// A call that looks for completions, whether it finds one or not.
    #[serde(default)]
    pub reap_ns: u64,
    /// An interrupt: entry, handler, exit.
    #[serde(default)]
    pub irq_ns: u64,
    /// Each completion handled in it.
    #[serde(default)]
    pub complete_ns: u64,
    /// Waking a sleeping process from it.
    #[serde(default)]
    pub wake_ns: u64,
    /// Leaving the idle state when the interrupt finds the core idle.
    #[serde(default)]
    pub idle_exit_ns: u64,
    /// Going to sleep and being switched in again.
    #[serde(default)]
    pub switch_ns: u64,
    /// A system call of a program that needs no disk: entry, its work, exit.
    #[serde(default)]
    pub call_ns: u64,
    /// Copying 4096 bytes between kernel and program.
    #[serde(default)]
    pub copy_ns: u64,
    /// What a write through the page cache of a file system takes beyond a read, once a call: locks, the time stamp.
    #[serde(default)]
    pub write_ns: u64,
    /// Taking a page of 4096 bytes into the page cache: memory for it, its place in file and lists, and of a write its block.
    #[serde(default)]
    pub page_ns: u64,
    /// Writing a page of the page cache back, beside its bio: finding it, its lock and marks, and its end. Old kernels do that
    /// page by page.
    #[serde(default)]
    pub writeback_ns: u64,
    /// Giving a page back: the file is cut or removed, or memory is short.
    #[serde(default)]
    pub free_ns: u64,
    /// Finding a name, in memory.
    #[serde(default)]
    pub path_ns: u64,
    /// Changing a directory: a name made, removed or moved, with its inode and its part of the journal.
    #[serde(default)]
    pub change_ns: u64,
    /// A look at the clock, where that is a system call; programs look before and after each operation that they time. 0 as
    /// long as the C library reads the clock without the kernel's help.
    #[serde(default)]
    pub clock_ns: u64,
    /// How long a process keeps its core while others are ready for it.
    #[serde(default)]
    pub slice_ns: u64,
    /// Which of those goes next: by lag and deadline (EEVDF, since 6.6), or by the least core time.
    #[serde(default)]
    pub eevdf: bool,
    /// The clock by which core time is measured goes on in such steps; 0: all the time. Where a machine has no fine clock that
    /// is a tick of its timer, and who ran between two ticks has had nothing.
    #[serde(default)]
    pub clock_tick_ns: u64,
    /// More for each doubling of the processes on a core above `pollution_from`, because their data push each other out
    /// of the caches.
    #[serde(default)]
    pub pollution_ns: u64,
    /// Processes that a core's caches hold.
    #[serde(default)]
    pub pollution_from: u32,
    /// The scheduler's cost for the first request after the core was idle, in percent of its usual cost.
    #[serde(default = "hundred")]
    pub cold_percent: u64,
    /// What a scheduler adds to a request, by family.
    #[serde(default)]
    pub scheduler: BTreeMap<String, SchedulerCost>,
    /// The percentage that the times above were multiplied with for another machine; 0 and 100: they are the profile's.
    #[serde(skip)]
    pub percent: u64,
}

impl CpuProfile {
    /// Makes every piece of work but the schedulers' take so much of its time, in percent: the machine is slower or faster
    /// than the measured one. Looks at the clock are a program's own work, which is stretched where it is done.
    pub fn take(&mut self, percent: u64) {
        if percent == 100 {
            return;
        }
        self.percent = percent;
        [
            &mut self.submit_ns,
            &mut self.user_ns,
            &mut self.reap_ns,
            &mut self.irq_ns,
            &mut self.complete_ns,
            &mut self.wake_ns,
            &mut self.idle_exit_ns,
            &mut self.switch_ns,
            &mut self.call_ns,
            &mut self.copy_ns,
            &mut self.write_ns,
            &mut self.page_ns,
            &mut self.writeback_ns,
            &mut self.free_ns,
            &mut self.path_ns,
            &mut self.change_ns,
            &mut self.pollution_ns,
        ]
        .into_iter()
        .for_each(|ns| *ns = *ns * percent / 100);
    }
}

fn hundred() -> u64 {
    100
}

/// What a scheduler adds to a request, in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerCost {
    /// Outside any lock.
    #[serde(default)]
    pub outside_ns: u64,
    /// Time under the lock of the whole queue when no other core wants it; 0 when there is no such lock.
    #[serde(default)]
    pub hold_ns: u64,
    /// More time when cores take turns with the lock. The full value is approached with many cores.
    #[serde(default)]
    pub transfer_ns: u64,
    /// Number of other cores at which half of `transfer_ns` is reached, in thousandths.
    #[serde(default)]
    pub half_permille: u64,
    /// More time for each core that waits behind the holder.
    #[serde(default)]
    pub waiter_ns: u64,
}

/// Whether CPU time counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuModel {
    /// The CPU is infinitely fast: only the device, timers and jiffies take time.
    #[default]
    Zero,
    /// Only a look at the clock takes time: a nanosecond. The reference measurements were made in such a time.
    Looks,
    /// Each I/O keeps its CPU, and the scheduler's lock, busy for a while.
    Cost,
}
