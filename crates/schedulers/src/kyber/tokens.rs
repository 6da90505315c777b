//! Tokens of one domain: a device-wide count, and the hardware queues that wait for one.
//!
//! The kernel keeps tokens in a scalable bitmap. Only the count and the wake rule of that bitmap are visible: eight
//! wait queues used in turn, each woken once per "wake batch" of tokens given back.

use std::collections::VecDeque;

/// Wait queues of a bitmap.
const WAIT_QUEUES: usize = 8;

/// How many waiters one wake-up releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeUp {
    /// One (kernels around 4.15).
    One,
    /// As many as the wake batch (kernels around 5.17).
    Batch,
}

#[derive(Debug)]
struct WaitQueue {
    /// Tokens that must still come back before it is woken.
    missing: u32,
    hctxs: VecDeque<u16>,
}

/// The tokens of one domain.
#[derive(Debug)]
pub(super) struct Tokens {
    /// Tokens there are now.
    pub(super) depth: u32,
    /// Tokens there were at the start, and may be at most.
    pub(super) max: u32,
    /// Tokens held by requests; above `depth` after a shrink.
    pub(super) in_use: u32,
    /// Most tokens ever held at once.
    pub(super) peak: u32,
    wake_batch: u32,
    wake_at: usize,
    queues: [WaitQueue; WAIT_QUEUES],
    waiting: u32,
}

fn batch_of(depth: u32) -> u32 {
    (depth / WAIT_QUEUES as u32).clamp(1, 8)
}

impl Tokens {
    /// `depth` tokens for the hardware queues `0..hctxs`.
    pub(super) fn new(depth: u32, hctxs: usize) -> Tokens {
        let wake_batch = batch_of(depth);
        let queues = std::array::from_fn(|_| WaitQueue {
            missing: wake_batch,
            hctxs: VecDeque::with_capacity(hctxs),
        });
        Tokens { depth, max: depth, in_use: 0, peak: 0, wake_batch, wake_at: 0, queues, waiting: 0 }
    }

    /// Takes a token if there is one.
    pub(super) fn take(&mut self) -> bool {
        if self.in_use >= self.depth {
            return false;
        }
        self.in_use += 1;
        self.peak = self.peak.max(self.in_use);
        true
    }

    /// Puts a hardware queue on wait queue `at` (taken modulo eight) and returns that queue's number.
    pub(super) fn wait(&mut self, hctx: u16, at: u8) -> u8 {
        let at = usize::from(at) % WAIT_QUEUES;
        self.queues[at].hctxs.push_back(hctx);
        self.waiting += 1;
        at as u8
    }

    /// A hardware queue no longer waits on wait queue `at`.
    pub(super) fn unwait(&mut self, hctx: u16, at: u8) {
        let queue = &mut self.queues[usize::from(at)].hctxs;
        if let Some(i) = queue.iter().position(|&h| h == hctx) {
            queue.remove(i);
            self.waiting -= 1;
        }
    }

    /// Gives a token back. Calls `woken` for each hardware queue that this wakes.
    ///
    /// When the last token in use comes back, all waiters are woken, because no later release could wake them.
    pub(super) fn release(&mut self, wake_up: WakeUp, mut woken: impl FnMut(u16)) {
        self.in_use -= 1;
        if self.waiting == 0 {
            return;
        }
        if self.in_use == 0 {
            let all = self.queues.iter_mut().flat_map(|q| q.hctxs.drain(..));
            all.for_each(woken);
            self.waiting = 0;
            return;
        }
        let order = (0..WAIT_QUEUES).map(|i| (self.wake_at + i) % WAIT_QUEUES);
        let Some(at) = order.into_iter().find(|&at| !self.queues[at].hctxs.is_empty()) else {
            return;
        };
        let queue = &mut self.queues[at];
        queue.missing -= 1;
        if queue.missing > 0 {
            return;
        }
        queue.missing = self.wake_batch;
        self.wake_at = (at + 1) % WAIT_QUEUES;
        let n = match wake_up {
            WakeUp::One => 1,
            WakeUp::Batch => self.wake_batch as usize,
        };
        for hctx in queue.hctxs.drain(..n.min(queue.hctxs.len())) {
            self.waiting -= 1;
            woken(hctx);
        }
    }

    /// Changes the number of tokens from the next [`take`](Tokens::take) on. Tokens in use stay in use.
    pub(super) fn resize(&mut self, depth: u32) {
        self.depth = depth;
        let wake_batch = batch_of(depth);
        if wake_batch != self.wake_batch {
            // A queue counting down from a larger batch could wait for more tokens than there are.
            self.wake_batch = wake_batch;
            self.queues.iter_mut().for_each(|q| q.missing = 1);
        }
    }

    /// No hardware queue waits any more.
    pub(super) fn forget_waiters(&mut self) {
        self.queues.iter_mut().for_each(|q| q.hctxs.clear());
        self.waiting = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(t: &mut Tokens, wake_up: WakeUp) -> Vec<u16> {
        let mut woken = Vec::new();
        t.release(wake_up, |h| woken.push(h));
        woken
    }

    #[test]
    fn a_wait_queue_is_woken_once_per_wake_batch() {
        let mut t = Tokens::new(32, 3);
        for _ in 0..32 {
            assert!(t.take());
        }
        assert!(!t.take());
        assert_eq!((t.wait(0, 0), t.wait(1, 1), t.wait(2, 9)), (0, 1, 1));
        // 32 / 8 = 4 tokens per wake-up; the second queue holds two, of which one is woken.
        let woken: Vec<Vec<u16>> = (0..12).map(|_| release(&mut t, WakeUp::One)).collect();
        assert!(woken.iter().enumerate().all(|(i, w)| w.is_empty() == (i % 4 != 3)), "{woken:?}");
        assert_eq!(woken.concat(), [0, 1, 2]);
    }

    #[test]
    fn newer_kernels_wake_a_batch_of_waiters_at_once() {
        let mut t = Tokens::new(16, 3);
        (0..16).for_each(|_| assert!(t.take()));
        (0..3).for_each(|h| assert_eq!(t.wait(h, 0), 0));
        assert!(release(&mut t, WakeUp::Batch).is_empty());
        assert_eq!(release(&mut t, WakeUp::Batch), [0, 1]);
    }

    #[test]
    fn a_shrink_keeps_tokens_out_and_wakes_with_the_next_release() {
        let mut t = Tokens::new(256, 1);
        (0..256).for_each(|_| assert!(t.take()));
        t.wait(0, 0);
        t.resize(2);
        assert_eq!((t.in_use, t.depth), (256, 2));
        assert_eq!(release(&mut t, WakeUp::One), [0]);
        assert!(!t.take(), "255 are out and 2 are allowed");
    }

    #[test]
    fn the_last_token_back_wakes_everybody() {
        let mut t = Tokens::new(1, 4);
        assert!(t.take());
        (0..4).for_each(|h| {
            t.wait(h, 0);
        });
        assert_eq!(release(&mut t, WakeUp::One), [0, 1, 2, 3]);
    }

    #[test]
    fn who_stops_waiting_is_not_woken() {
        let mut t = Tokens::new(2, 2);
        assert!(t.take() && t.take());
        let at = t.wait(0, 3);
        t.wait(1, 4);
        t.unwait(0, at);
        assert_eq!(release(&mut t, WakeUp::One), [1]);
    }
}
