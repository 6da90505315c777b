//! Reads of metadata. Whoever needs a buffer that another task is reading waits for that read.

use iosched_types::{Flags, Op, Sector};

use super::world::{BioOut, Done};
use super::{Event, Group, Kernel, Wait};

impl Kernel {
    /// Makes the bio of a read of metadata.
    pub fn metadata_bio(
        &self,
        (sector, sectors): (Sector, u32),
        flags: Flags,
        group: Option<Group>,
    ) {
        self.with(|w| {
            w.reading.insert(sector);
            let out = BioOut { id: 0, op: Op::Read, flags, sector, sectors };
            w.bio(self.task(), out, Done::Metadata { sector }, group);
        });
    }

    /// The same, where a worker of the file system ends the read.
    pub fn late_metadata_bio(
        &self,
        (sector, sectors): (Sector, u64),
        flags: Flags,
        group: Option<Group>,
    ) {
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
        self.with(|w| {
            w.reading.insert(sector);
            let out = BioOut { id: 0, op: Op::Read, flags, sector, sectors };
            w.late_bio(self.task(), out, Done::Metadata { sector }, group);
        });
    }

    /// Waits until nobody reads the buffer any longer.
    pub async fn metadata_read(&self, sector: Sector) {
        while self.with(|w| w.reading.contains(&sector)) {
            self.wait(Wait::Event(Event::Buffer(sector))).await;
        }
    }
}

impl Kernel {
    /// Waits while a copy of the buffer is on its way to the log.
    pub async fn metadata_copied(&self, sector: Sector) {
        while self.with(|w| w.is_copied(sector)) {
            self.wait(Wait::Event(Event::Buffer(sector))).await;
        }
    }

    /// Waits while the buffer is on its way to its own place.
    pub async fn buffer_home(&self, sector: Sector) {
        while self.with(|w| w.next_homeward(sector)) == Some(sector) {
            self.wait(Wait::Event(Event::Home(sector))).await;
        }
    }

    /// Waits for all buffers on their way to their own places, in the order of these, whoever writes them.
    pub async fn metadata_home(&self) {
        let mut from = 0;
        while let Some(sector) = self.with(|w| w.next_homeward(from)) {
            self.wait(Wait::Event(Event::Home(sector))).await;
            from = sector + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::kernel::World;
    use crate::kernel::testing::{Path, run};

    /// Who came last goes on first where a journal is waited for, and who came first elsewhere.
    #[test]
    fn waiters_of_a_journal_are_woken_from_the_last_on() {
        let mut w = World::default();
        for (task, event) in [(1, Event::Committed(7)), (2, Event::Committed(7)), (3, Event::Room)]
        {
            assert!(w.sleep(task, &Wait::Event(event)));
        }
        assert!(w.sleep(4, &Wait::Event(Event::Room)));
        w.signal_last_first(Event::Committed(7));
        w.signal(Event::Room);
        assert_eq!(w.woken, [2, 1, 3, 4]);
    }

    /// Who comes second goes on when the read of the first has ended, and after him.
    #[test]
    fn a_buffer_that_another_reads_is_waited_for() {
        let world = Rc::new(RefCell::new(World::default()));
        let order = Rc::new(RefCell::new(Vec::new()));
        let path = |task: u32| -> Path {
            let (k, order) = (Kernel::new(world.clone(), task), order.clone());
            Box::pin(async move {
                if task == 0 {
                    let group = k.with(|w| w.group());
                    k.metadata_bio((64, 8), Flags::META, Some(group));
                    k.wait(Wait::Submit).await;
                    k.wait(Wait::Io(group)).await;
                }
                k.metadata_read(64).await;
                order.borrow_mut().push((task, k.with(|w| w.now)));
            })
        };
        run(&world, vec![path(0), path(1), path(2)], 3, 5000);
        assert_eq!(*order.borrow(), [(0, 5000), (1, 5000), (2, 5000)]);
    }
}
