//! The main loop of a job without rates, logs, syncs, batches and thinking.

use iosched_types::Nanos;

use super::{Io, Process, Ring, State, Step, Unit};
use crate::fio::stats::depth_bin;

impl Process {
    /// The main loop of most jobs: the states `Loop`, `Submitted` and `Reap` without what does not apply. `None`
    /// leaves the rest to the other states.
    #[inline]
    pub(super) fn step_lean(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        match self.state {
            State::Loop => {}
            State::Submitted => {
                if let Some(unit) = self.queued.pop() {
                    self.units[unit as usize].issue = now;
                }
                if self.free.is_empty()
                    && let Some(wait) = self.reap_lean(now, ring)
                {
                    return Some(wait);
                }
            }
            State::Reap => {
                if let Some(wait) = self.reap_lean(now, ring) {
                    return Some(wait);
                }
            }
            _ => return None,
        }
        self.state = State::Loop;
        if self.finished(now) {
            self.state = State::Drain;
            return None;
        }
        let &unit = self.free.last()?;
        let Some(io) = self.generator.next_io() else {
            if self.next_loop() {
                self.state = State::Drain;
            }
            return None;
        };
        self.free.pop();
        self.queued.push(unit);
        let u = &mut self.units[unit as usize];
        *u = Unit { offset: io.offset, len: io.len, start: now, issue: now, dir: io.dir as u8 };
        let (op, stable) = (u.op(), self.job.sync > 0 && io.dir == 1);
        self.depth += 1;
        self.ios_issued += 1;
        self.bytes_this_loop += io.len;
        self.stats.depths[depth_bin(self.depth)] += 1;
        self.state = State::Submitted;
        Some(Step::Submit(Io { unit, op, offset: io.offset, len: io.len, stable }))
    }

    /// All units are in use: reaps, or says what to wait for.
    #[inline]
    fn reap_lean(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        if self.free.is_empty() {
            let min = self.job.batch_complete_min.clamp(1, self.depth.max(1));
            if (ring.len() as u32) < min {
                self.state = State::Reap;
                return Some(Step::Wait(min));
            }
            self.reap(now, ring);
        }
        None
    }
}
