//! Before 3.2 nobody decides for the device: whoever writes back takes the inode that has been dirty longest, writes some
//! of its pages and puts it back behind all others. So writers take turns over all files, and nobody waits for an
//! inode that another one writes.

use super::{Flusher, Inode, Left, Place};

impl Flusher {
    /// Takes the inode that has been dirty longest of those dirty since `until` or longer, which nobody writes.
    pub fn take(&mut self, until: u64) -> Option<Inode> {
        let entry = self.dirty.first_entry().filter(|e| e.key().0 <= until)?;
        let inode = entry.remove();
        self.places.insert(inode, Place::Taken);
        Some(inode)
    }

    /// Puts it back, unless it is clean or gone.
    pub fn put_back(&mut self, inode: Inode, left: Left, now: u64) {
        if self.places.remove(&inode).is_some() && left != Left::Clean {
            self.queue_dirty(inode, now);
        }
    }

    /// How often old pages are looked for, and when they are old.
    #[must_use]
    pub fn intervals(&self) -> super::Intervals {
        self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_take_turns_over_all_files() {
        let mut f = Flusher::default();
        for (inode, at) in [(7, 1), (8, 2), (9, 3)] {
            f.dirtied(inode, at);
        }
        assert_eq!(f.take(2), Some(7));
        assert_eq!(f.take(2), Some(8));
        assert_eq!(f.take(2), None, "9 is younger, 7 and 8 are being written");
        f.put_back(7, Left::More, 4);
        f.put_back(8, Left::Clean, 5);
        assert_eq!((f.take(9), f.take(9), f.take(9)), (Some(9), Some(7), None));
        f.forget(9);
        f.put_back(9, Left::Some, 6);
        assert_eq!((f.take(9), f.inodes()), (None, 1), "what is gone does not come back");
    }
}
