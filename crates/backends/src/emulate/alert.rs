//! Keeps idle CPUs from falling asleep while a quick disk is in use.
//!
//! A CPU that sleeps takes tens of microseconds to wake up, more in a virtual machine: as long as a solid-state drive
//! takes to answer. The kernel lets a process say how long waking up may take (`/dev/cpu_dma_latency`), for as long as it
//! keeps the file open.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use iosched_types::Nanos;

/// Where the kernel is told.
const NODE: &str = "/dev/cpu_dma_latency";
/// How long after the last request the CPUs may sleep again.
const REST: Nanos = 50_000_000;

/// The wish, while there is one.
#[derive(Debug)]
pub(crate) struct Alert {
    wanted: bool,
    held: Option<File>,
    last: Nanos,
}

impl Alert {
    /// CPUs are kept awake only if `wanted`.
    pub(crate) fn new(wanted: bool) -> Alert {
        Alert { wanted, held: None, last: 0 }
    }

    /// A request came.
    pub(crate) fn used(&mut self, now: Nanos) {
        self.last = now;
        if self.wanted && self.held.is_none() {
            self.held = hold();
            // The file is missing in a container, or on a kernel without it.
            self.wanted = self.held.is_some();
        }
    }

    /// How long to wait for the next request before CPUs may sleep. Lets them sleep if that time is over.
    pub(crate) fn rest(&mut self, now: Nanos) -> Option<Duration> {
        self.held.as_ref()?;
        let left = (self.last + REST).saturating_sub(now);
        if left == 0 {
            self.held = None;
            return None;
        }
        Some(Duration::from_nanos(left))
    }
}

fn hold() -> Option<File> {
    let mut file = File::options().write(true).open(NODE).ok()?;
    file.write_all(&0i32.to_ne_bytes()).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_at_rest_keeps_nobody_awake() {
        let mut a = Alert { held: File::open("/dev/null").ok(), ..Alert::new(true) };
        a.used(1_000);
        assert_eq!(a.rest(1_000), Some(Duration::from_nanos(REST)));
        assert_eq!(a.rest(REST), Some(Duration::from_nanos(1_000)));
        assert_eq!(a.rest(REST + 1_000), None);
        assert!(a.held.is_none());
        assert_eq!(a.rest(REST + 2_000), None, "it waits for ever");
        let mut slow = Alert::new(false);
        slow.used(5);
        assert!(slow.held.is_none() && slow.rest(6).is_none());
    }
}
