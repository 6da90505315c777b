//! Write-back before 3.2: writers that are over the limit write back themselves, and `pdflush` does the rest.
//!
//! Rules only; [`kernel::pdflush`](crate::kernel) acts on them. Amounts are pages.

use super::throttle::{DirtyLimits, Thresholds};

/// Pages of a round of `pdflush`, and of one file's turn in it.
pub const ROUND: u64 = 1024;
/// `vm.dirty_ratio` below this counts as this.
const LEAST_PERCENT: u64 = 5;
/// Of memory that no process has mapped, half may be dirty.
const UNMAPPED_PERCENT: u64 = 100;

/// The limits: parts of all memory, whatever it is used for. Programs' own memory is not simulated, so none of it counts
/// as mapped.
#[must_use]
pub fn thresholds(limits: &DirtyLimits, pages: u64) -> Thresholds {
    let percent = limits.dirty_percent.clamp(LEAST_PERCENT, UNMAPPED_PERCENT / 2);
    let background = match limits.background_percent {
        b if b >= percent => percent / 2,
        b => b,
    };
    Thresholds { background: background * pages / 100, dirty: percent * pages / 100 }
}

/// A core's tasks look at the limits after this many written pages.
#[must_use]
pub fn looks_after(pages: u64, cpus: u64) -> u64 {
    (pages / (32 * cpus)).clamp(16, 1024)
}

/// Pages after which they look while there is too much.
const LOOKS_WHILE_EXCEEDED: u64 = 8;

/// Who has written how much since the last look, by core.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    written: Vec<u64>,
    /// There is too much dirty memory: look often.
    pub exceeded: bool,
}

impl Counters {
    fn every(&self, pages: u64, cpus: u64) -> u64 {
        if self.exceeded { LOOKS_WHILE_EXCEEDED } else { looks_after(pages, cpus) }
    }

    fn of(&mut self, core: usize) -> &mut u64 {
        if self.written.len() <= core {
            self.written.resize(core + 1, 0);
        }
        &mut self.written[core]
    }

    /// Pages that a task on the core can write before the next look, at least one.
    pub fn room(&mut self, core: usize, pages: u64, cpus: u64) -> u64 {
        let every = self.every(pages, cpus);
        every.saturating_sub(*self.of(core)).max(1)
    }

    /// Pages were written on the core. Whether the task has to look now.
    pub fn wrote(&mut self, core: usize, written: u64, pages: u64, cpus: u64) -> bool {
        let every = self.every(pages, cpus);
        let count = self.of(core);
        *count += written;
        let due = *count >= every;
        if due {
            *count = 0;
        }
        due
    }
}

/// What a writer over the limit writes in a look.
#[must_use]
pub fn quota(pages: u64, cpus: u64) -> u64 {
    let every = looks_after(pages, cpus);
    every + every / 2
}

/// What `pdflush` was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Down to the background threshold.
    pub background: bool,
    /// It works on that.
    pub busy: bool,
    /// When it last looked for what is old.
    pub last_old: u64,
}

impl Asked {
    /// When it looks for what is old next: whole intervals after the last look, those left out that went by while it
    /// had nothing to do or something else.
    #[must_use]
    pub fn next_old(&self, now: u64, interval: u64) -> u64 {
        let since = now.saturating_sub(self.last_old);
        self.last_old + interval * since.div_ceil(interval).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: DirtyLimits = DirtyLimits {
        background_percent: 10,
        dirty_percent: 40,
        background_bytes: 0,
        dirty_bytes: 0,
    };

    #[test]
    fn limits_are_parts_of_all_memory() {
        let pages = 12 << 18;
        let t = thresholds(&LIMITS, pages);
        assert_eq!((t.background, t.dirty), (pages / 10, pages * 4 / 10));
        let of = |background_percent, dirty_percent| {
            let t = thresholds(&DirtyLimits { background_percent, dirty_percent, ..LIMITS }, 1000);
            (t.background, t.dirty)
        };
        // Half of what is not mapped at most, a twentieth at least; a background limit above it is half of it.
        assert_eq!(of(10, 90), (100, 500));
        assert_eq!(of(1, 1), (10, 50));
        assert_eq!(of(50, 40), (200, 400));
    }

    #[test]
    fn writers_look_by_core_and_often_while_there_is_too_much() {
        assert_eq!(looks_after(12 << 18, 4), 1024);
        assert_eq!(looks_after(1 << 16, 1), 1024);
        assert_eq!(looks_after(1 << 10, 4), 16);
        assert_eq!(quota(12 << 18, 4), 1536);
        let mut c = Counters::default();
        assert_eq!(c.room(0, 12 << 18, 4), 1024);
        assert!(!c.wrote(0, 1000, 12 << 18, 4));
        assert!(!c.wrote(1, 100, 12 << 18, 4), "another core counts for itself");
        assert_eq!(c.room(0, 12 << 18, 4), 24);
        assert!(c.wrote(0, 24, 12 << 18, 4));
        c.exceeded = true;
        assert_eq!(c.room(0, 12 << 18, 4), 8);
        assert!(c.wrote(1, 0, 12 << 18, 4));
    }

    #[test]
    fn old_pages_are_looked_for_at_full_intervals() {
        let asked = Asked { last_old: 5, ..Asked::default() };
        assert_eq!(asked.next_old(6, 5), 10);
        assert_eq!(asked.next_old(23, 5), 25, "it had nothing to do");
    }
}
