//! Who waits for the device's cache to be emptied, and who is being served.

use iosched_types::{Nanos, ReqId, units::SEC};

/// After this long the oldest waiter may start a flush beside data.
const PENDING_TIMEOUT: Nanos = 5 * SEC;

/// State of one hardware context's flushes.
#[derive(Debug, Default)]
struct FlushQueue {
    /// Waiting for the next flush command, oldest first; (request, step it waits in).
    pending: Vec<(ReqId, u16)>,
    /// Served by the flush command in flight.
    running: Vec<(ReqId, u16)>,
    pending_since: Nanos,
    data_in_flight: u32,
    busy: bool,
}

/// The flushes of a queue, by hardware context, and what the device's cache is like.
#[derive(Debug)]
pub(crate) struct Flushes {
    queues: Vec<FlushQueue>,
    /// The barrier in progress (2.6.18). It is alone.
    barrier: Option<ReqId>,
    volatile: bool,
    fua: bool,
}

impl Flushes {
    pub(crate) fn new(hw_queues: u16, volatile: bool, fua: bool) -> Self {
        let queues = (0..hw_queues.max(1)).map(|_| FlushQueue::default()).collect();
        Flushes { queues, barrier: None, volatile, fua }
    }

    /// Whether the device has a cache to empty.
    pub(crate) fn volatile(&self) -> bool {
        self.volatile
    }

    /// Whether the device takes FUA writes itself.
    pub(crate) fn native_fua(&self) -> bool {
        self.fua
    }

    fn at(&mut self, hctx: u16) -> &mut FlushQueue {
        let f = usize::from(hctx).min(self.queues.len() - 1);
        &mut self.queues[f]
    }

    /// A request waits for the next flush command.
    pub(crate) fn join(&mut self, hctx: u16, now: Nanos, id: ReqId, step: u16) {
        let q = self.at(hctx);
        if q.pending.is_empty() {
            q.pending_since = now;
        }
        q.pending.push((id, step));
    }

    /// Begins a flush if the rules allow it, and names the first request that it serves. With `apart` no data step may
    /// be in flight.
    pub(crate) fn begin(&mut self, hctx: u16, now: Nanos, apart: bool) -> Option<ReqId> {
        let q = self.at(hctx);
        if q.busy || q.pending.is_empty() {
            return None;
        }
        if apart && q.data_in_flight > 0 && now < q.pending_since + PENDING_TIMEOUT {
            return None;
        }
        q.busy = true;
        q.running = std::mem::take(&mut q.pending);
        q.running.first().map(|(id, _)| *id)
    }

    /// The flush command came back: the requests it served, with the step that each of them is done with.
    pub(crate) fn end(&mut self, hctx: u16) -> Vec<(ReqId, u16)> {
        let q = self.at(hctx);
        q.busy = false;
        std::mem::take(&mut q.running)
    }

    pub(crate) fn data_begins(&mut self, hctx: u16) {
        self.at(hctx).data_in_flight += 1;
    }

    pub(crate) fn data_ends(&mut self, hctx: u16) {
        self.at(hctx).data_in_flight -= 1;
    }

    /// A barrier begins, or the one in progress ends.
    pub(crate) fn set_barrier(&mut self, id: Option<ReqId>) {
        self.barrier = id;
    }

    /// The requests that the flush command in flight serves: a barrier, or those who waited for it.
    pub(crate) fn served(&self, hctx: u16) -> impl Iterator<Item = ReqId> + '_ {
        let f = usize::from(hctx).min(self.queues.len() - 1);
        let waited = self.barrier.is_none().then(|| &self.queues[f].running);
        waited.into_iter().flatten().map(|(id, _)| *id).chain(self.barrier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those who come while a command is under way share the next. Beside data it waits five seconds.
    #[test]
    fn one_command_serves_all_who_waited() {
        let mut f = Flushes::new(1, true, false);
        (0..2).for_each(|id| f.join(0, 10, id, 1));
        assert_eq!(f.begin(0, 10, true), Some(0));
        f.join(0, 20, 2, 4);
        assert_eq!(f.begin(0, 20, true), None, "one at a time");
        assert!(f.served(0).eq([0, 1]));
        assert_eq!(f.end(0), [(0, 1), (1, 1)]);
        f.data_begins(0);
        assert_eq!(f.begin(0, 19 + PENDING_TIMEOUT, true), None, "data is in flight");
        assert_eq!(f.begin(0, 20 + PENDING_TIMEOUT, true), Some(2));
    }

    #[test]
    fn a_barrier_is_alone() {
        let mut f = Flushes::new(1, true, false);
        f.set_barrier(Some(7));
        assert!(f.served(0).eq([7]));
        f.set_barrier(None);
        assert_eq!(f.served(0).count(), 0);
    }
}
