//! How late sleeps end on this machine, so that the end of a wait can be spent awake.

use iosched_types::Nanos;

/// Remembers the latest end of a sleep, and forgets it slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lateness {
    worst: Nanos,
    most: Nanos,
}

/// The value until the first sleeps have ended.
const FIRST: Nanos = 60_000;
/// Awake for at least this long. Reading the clock and entering the kernel take part of it.
const LEAST: Nanos = 5_000;
/// Sleeps after which half of a bad one is forgotten: about 90.
const FORGET: Nanos = 128;

impl Lateness {
    /// The thread never stays awake for longer than `most`, however late sleeps end. 0 is for machines where staying
    /// awake would take the only CPU from the disk's users.
    pub(crate) fn new(most: Nanos) -> Self {
        Lateness { worst: FIRST, most }
    }

    /// A sleep ended this much after the time it was to end.
    pub(crate) fn saw(&mut self, late: Nanos) {
        let kept = self.worst - self.worst / FORGET;
        // A delay because the machine was stopped, or busy with more urgent work, says nothing about the timer.
        self.worst = kept.max(late.min(self.most));
    }

    /// How long before its time a wait must stop sleeping.
    pub(crate) fn margin(&self) -> Nanos {
        (self.worst + self.worst / 8).clamp(LEAST, self.most.max(LEAST)).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock by which sleeps end late by these times, one after the other.
    fn after(lates: impl IntoIterator<Item = Nanos>) -> Nanos {
        let mut l = Lateness::new(150_000);
        lates.into_iter().for_each(|late| l.saw(late));
        l.margin()
    }

    #[test]
    fn the_margin_covers_the_latest_sleep_and_shrinks_again() {
        assert_eq!(after([]), FIRST + FIRST / 8);
        assert_eq!(after([80_000]), 90_000);
        // As late every time: covered every time, with an eighth to spare.
        let mut l = Lateness::new(150_000);
        for i in 0..1000 {
            let late = 42_000 + i * 7 % 10_000;
            assert!(l.margin() >= late, "{late}");
            l.saw(late);
        }
        // A single bad one is half forgotten after 90 good ones.
        let halfway = after(std::iter::once(120_000).chain(std::iter::repeat_n(1000, 90)));
        assert!((60_000..75_000).contains(&halfway), "{halfway}");
        assert!(after(std::iter::repeat_n(100, 5000)) <= 2 * LEAST);
    }

    #[test]
    fn it_is_bounded() {
        assert_eq!(after([10_000_000]), 150_000);
        let mut never = Lateness::new(0);
        never.saw(50_000);
        assert_eq!(never.margin(), 0);
    }
}
