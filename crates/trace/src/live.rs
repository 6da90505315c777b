//! I/Os of a recording that is being made, from pages of the kernel's buffers.

use iosched_types::Nanos;

use crate::event::{Io, Item};
use crate::pages::Layout;
use crate::pair::Pairer;
use crate::sort::Sorter;
use crate::trace::Tables;

/// A recording so far.
pub struct Live {
    layout: Layout,
    /// Names, and what was noticed.
    pub tables: Tables,
    sorter: Sorter,
    pairer: Pairer,
    origin: Option<Nanos>,
    ended: bool,
}

impl Live {
    /// A recording of pages of this layout.
    #[must_use]
    pub fn new(layout: Layout) -> Live {
        Live {
            layout,
            tables: Tables::default(),
            sorter: Sorter::default(),
            pairer: Pairer::default(),
            origin: None,
            ended: false,
        }
    }

    /// Takes the next page of a CPU.
    pub fn page(&mut self, cpu: u16, page: &[u8]) {
        let (mut cursor, lost) = self.layout.open(page, &mut self.tables);
        if let Some(until) = lost {
            self.sorter.push(Item::Gap(until), &mut self.tables.tally);
        }
        while let Some(event) = self.layout.next(&mut cursor, cpu, &mut self.tables) {
            self.tables.tally.used += 1;
            self.sorter.push(Item::Event(event), &mut self.tables.tally);
        }
    }

    /// All pages with events from before this time were taken, of all CPUs: these events become I/Os, in their order.
    pub fn settle(&mut self, before: Nanos) {
        while let Some(item) = self.sorter.pop_before(before) {
            self.origin.get_or_insert(item.at());
            let tally = &mut self.tables.tally;
            match item {
                Item::Event(e) => self.pairer.event(e, tally),
                Item::Io(io) => self.pairer.io(io),
                Item::Gap(_) => self.pairer.forget(tally),
            }
        }
        // Pages of several CPUs come one after the other. What counts is an event too late to be put in order.
        (self.tables.tally.inversions, self.tables.tally.furthest_back) = (0, 0);
    }

    /// No pages follow: I/Os that are not complete come out, too.
    pub fn end(&mut self) {
        self.settle(Nanos::MAX);
        self.ended = true;
    }

    /// The next I/O in order of arrival, from the first event on, when it is complete.
    pub fn next_io(&mut self) -> Option<Io> {
        let io = self.pairer.pop(self.ended, &mut self.tables.tally)?;
        Some(io.counted_from(self.origin.unwrap_or(0), &mut self.tables.tally))
    }

    /// The time of the first event, by the recorder's clock.
    #[must_use]
    pub fn origin(&self) -> Option<Nanos> {
        self.origin
    }

    /// I/Os under way and those behind them.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pairer.waiting()
    }

    /// When the oldest I/O under way arrived, from the first event on.
    #[must_use]
    pub fn oldest(&self) -> Option<Nanos> {
        self.pairer.oldest().map(|at| at.saturating_sub(self.origin.unwrap_or(0)))
    }
}
