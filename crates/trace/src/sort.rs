//! Items that are nearly in order, put in order: a window of fixed size over the stream.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosched_types::Nanos;

use crate::event::Item;
use crate::tally::Tally;

/// Items in the window. Recorders of several CPUs are late by a buffer; traces written at completion by a latency.
const WINDOW: usize = 1 << 15;

/// The window. Equal times keep the order of the file.
#[derive(Default)]
pub(crate) struct Sorter {
    heap: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    items: Vec<Item>,
    free: Vec<u32>,
    seen: u64,
    newest: Nanos,
    given: Nanos,
}

impl Sorter {
    /// Puts an item in.
    pub(crate) fn push(&mut self, item: Item, tally: &mut Tally) {
        let at = item.at();
        if at < self.newest {
            tally.inversions += 1;
            tally.furthest_back = tally.furthest_back.max(self.newest - at);
            tally.unsorted += u64::from(at < self.given);
        }
        self.newest = self.newest.max(at);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.items[slot as usize] = item;
                slot
            }
            None => {
                self.items.push(item);
                (self.items.len() - 1) as u32
            }
        };
        self.heap.push(Reverse((at, self.seen, slot)));
        self.seen += 1;
    }

    /// Whether items have to leave.
    pub(crate) fn is_full(&self) -> bool {
        self.heap.len() >= WINDOW
    }

    /// The earliest item, if it is from before a time.
    pub(crate) fn pop_before(&mut self, time: Nanos) -> Option<Item> {
        self.heap.peek().filter(|first| first.0.0 < time)?;
        self.pop()
    }

    /// The earliest item.
    pub(crate) fn pop(&mut self) -> Option<Item> {
        let Reverse((at, _, slot)) = self.heap.pop()?;
        self.given = self.given.max(at);
        self.free.push(slot);
        Some(self.items[slot as usize])
    }
}
