//! What happens to a machine on its clock, apart from what happens to its disks.

use iosched_block::Event;
use iosched_types::TaskId;

/// An event of the host's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostEvent {
    /// A task's or thread's sleep ends; stale unless the number is that of its current sleep.
    Wake(TaskId, u32),
    /// A sample of the queue is due.
    Sample,
    /// fio's main thread looks for jobs that may start.
    Look,
    /// The jobs that it found have started.
    Started,
    /// Something on this core ends.
    Core(u16),
    /// A chain of a recording goes on.
    Chain(u32),
}

/// What of a sleep's number fits into an event.
const SLEEP: u32 = u32::MAX >> 1;
/// Everything but the end of a sleep has this bit.
const OTHER: u64 = 1 << 63;
const SAMPLE: u64 = OTHER;
const LOOK: u64 = OTHER | 1;
const STARTED: u64 = OTHER | 2;
const CORE: u64 = OTHER | 1 << 32;
const CHAIN: u64 = OTHER | 1 << 33;

impl HostEvent {
    /// The end of a task's `sleep`-th sleep.
    pub(crate) fn wake(task: TaskId, sleep: u32) -> Self {
        HostEvent::Wake(task, sleep & SLEEP)
    }

    /// Whether a number in an event is that of this sleep.
    pub(crate) fn is_sleep(number: u32, sleep: u32) -> bool {
        number == sleep & SLEEP
    }

    /// What its number means.
    #[inline]
    pub(crate) fn of(number: u64) -> HostEvent {
        match number {
            SAMPLE => HostEvent::Sample,
            LOOK => HostEvent::Look,
            STARTED => HostEvent::Started,
            n if n & OTHER == 0 => HostEvent::Wake(n as u32, (n >> 32) as u32),
            n if n & CHAIN == CHAIN => HostEvent::Chain(n as u32),
            n => HostEvent::Core((n & !CORE) as u16),
        }
    }
}

impl From<HostEvent> for Event {
    #[inline]
    fn from(e: HostEvent) -> Event {
        Event::Host(match e {
            HostEvent::Wake(task, sleep) => u64::from(sleep) << 32 | u64::from(task),
            HostEvent::Sample => SAMPLE,
            HostEvent::Look => LOOK,
            HostEvent::Started => STARTED,
            HostEvent::Core(core) => CORE | u64::from(core),
            HostEvent::Chain(chain) => CHAIN | u64::from(chain),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_what_it_was() {
        let ends = [0, 1, 9999, u32::MAX].map(|t| [0, 1, u32::MAX].map(|n| HostEvent::wake(t, n)));
        let cores = [0, 1, u16::MAX].map(HostEvent::Core);
        let chains = [0, 1, u32::MAX].map(HostEvent::Chain);
        let others = [HostEvent::Sample, HostEvent::Look, HostEvent::Started];
        for event in ends.into_iter().flatten().chain(cores).chain(chains).chain(others) {
            let Event::Host(n) = event.into() else { panic!("{event:?} is the host's") };
            assert_eq!(HostEvent::of(n), event);
        }
    }

    #[test]
    fn another_sleep_is_told_apart_however_many_there_were() {
        let HostEvent::Wake(_, n) = HostEvent::wake(7, u32::MAX) else { panic!() };
        assert!(HostEvent::is_sleep(n, u32::MAX));
        assert!(!HostEvent::is_sleep(n, u32::MAX - 1));
    }
}
