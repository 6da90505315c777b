//! Flushes of an array that go round by round: one for all that wait.

use iosched_types::Bio;

/// Bios of the array by their number in the books.
pub(super) type Held = Vec<(u32, Bio)>;

/// The round under way and the next one.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    next: Held,
    now: Held,
    /// Legs that are not flushed yet.
    left: u32,
    pub(super) count: u64,
}

impl Rounds {
    pub(super) fn wait(&mut self, master: u32, bio: Bio) {
        self.next.push((master, bio));
    }

    pub(super) fn held(&self) -> usize {
        self.next.len() + self.now.len()
    }

    /// Begins a round on so many legs, unless one is under way or nobody waits.
    pub(super) fn begin(&mut self, legs: u32) -> bool {
        if self.left > 0 || self.next.is_empty() {
            return false;
        }
        std::mem::swap(&mut self.now, &mut self.next);
        self.count += 1;
        self.left = legs;
        true
    }

    /// A leg has been flushed. After the last one: who waited for that; [`Rounds::give_back`] takes the memory.
    pub(super) fn leg_done(&mut self) -> Option<Held> {
        self.left -= 1;
        (self.left == 0).then(|| std::mem::take(&mut self.now))
    }

    pub(super) fn give_back(&mut self, empty: Held) {
        self.now = empty;
    }
}
