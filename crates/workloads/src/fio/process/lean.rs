//! The main loop of a job without rates, logs, syncs, batches and thinking.

use std::hint::black_box;

use iosched_types::Nanos;

use super::{Io, Job, Ring, State};
use crate::fio::stats::depth_bin;

/// A step of the short main loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeanStep {
    /// [`Step::Submit`](super::Step::Submit).
    Submit(Io),
    /// [`Step::Wait`](super::Step::Wait), where fewer are done.
    Wait(u32),
}

impl Job {
    /// Reads a word of every cache line that the next steps will need. With ten thousand processes all these lines come
    /// from memory. This way they come together instead of one after another.
    #[inline(always)]
    pub fn fetch(&self) {
        let handed = match self.state {
            State::Handed(unit) => self.units[unit].issue,
            _ => 0,
        };
        let read = &self.stats.dirs[0];
        black_box([
            handed,
            self.reaped_total,
            self.generator.fetch(),
            self.stats.started,
            read.fetch(),
            read.clat.fetch(),
        ]);
    }

    /// The main loop of most jobs: the states `Loop`, `Handed`, `Submitted` and `Reap`, without the parts that do not
    /// apply. `None` leaves the next step to [`step`](Self::step).
    #[inline(always)]
    pub fn step_lean(&mut self, now: Nanos, ring: &mut Ring) -> Option<LeanStep> {
        if !self.lean {
            return None;
        }
        match self.state {
            State::Loop | State::Reap => {}
            State::Handed(unit) => self.units[unit].issue = now,
            // The long loop handed over the first.
            State::Submitted => self.mark_issued(now),
            _ => return None,
        }
        if let Some(wait) = self.reap_lean(now, ring) {
            return Some(wait);
        }
        self.state = State::Loop;
        if self.finished(now) {
            self.end(now);
            return None;
        }
        let Some(io) = self.generator.next_io() else {
            self.end_pass();
            return None;
        };
        let unit = self.units.take(&io, now)?;
        let (op, stable) = (self.units[unit].op(), self.stable && io.dir == 1);
        self.depth += 1;
        self.ios_issued += 1;
        self.bytes_issued += io.len;
        self.stats.depths[depth_bin(self.depth)] += 1;
        self.state = State::Handed(unit);
        Some(LeanStep::Submit(Io { unit, op, offset: io.offset, len: io.len, stable }))
    }

    /// All units are in use: reaps, or says what to wait for.
    #[inline(always)]
    fn reap_lean(&mut self, now: Nanos, ring: &mut Ring) -> Option<LeanStep> {
        if self.units.all_used() {
            let min = self.reap_min.clamp(1, self.depth.max(1));
            if (ring.len() as u32) < min {
                self.state = State::Reap;
                return Some(LeanStep::Wait(min));
            }
            self.reap(now, ring);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fio::layout::lay_out;
    use crate::fio::process::Step;
    use crate::fio::{NoLookup, parse};

    /// A job that the short loop applies to, twice: once as it is, once by the long loop alone.
    fn twins(depth: u32, rw: &str, rest: &str) -> [Job; 2] {
        let text = format!(
            "[a]\nfilename=/dev/disk\nsize=64k\nbs=4k\nioengine=libaio\niodepth={depth}\nrw={rw}\n{rest}\n"
        );
        let set = parse("a.fio", &text, &NoLookup, &|_| Err("none".into()), &[]).unwrap();
        let files = lay_out(&set, 1 << 30).unwrap();
        let short = Job::new(&set.jobs[0], &files[0]);
        let mut long = Job::new(&set.jobs[0], &files[0]);
        assert!(short.lean, "{text}");
        long.lean = false;
        [short, long]
    }

    /// The next step of either loop.
    fn step(process: &mut Job, now: Nanos, ring: &mut Ring) -> Step {
        match process.step_lean(now, ring) {
            Some(LeanStep::Submit(io)) => Step::Submit(io),
            Some(LeanStep::Wait(min)) => Step::Wait(min),
            None => process.step(now, ring),
        }
    }

    proptest! {
        /// Both loops ask the kernel for the same I/Os and measure the same, whatever the order of completions.
        #[test]
        fn the_short_loop_does_what_the_long_one_does(
            depth in 1u32..9,
            rw in prop::sample::select(vec!["read", "randread", "randrw", "write"]),
            rest in prop::sample::select(vec![
                "", "number_ios=7", "time_based\nruntime=1ms", "runtime=100us", "norandommap",
                "iodepth_batch_complete_min=2", "iodepth_batch_complete_max=3", "sync=1",
            ]),
            picks in prop::collection::vec((any::<prop::sample::Index>(), 0u64..30_000, 1usize..4), 600),
        ) {
            let mut both = twins(depth, rw, rest);
            let mut rings = [Ring::with_capacity(depth as usize), Ring::with_capacity(depth as usize)];
            let (mut now, mut under_way) = (0, Vec::new());
            for (pick, pause, n) in picks {
                let [a, b] = [0, 1].map(|i| step(&mut both[i], now, &mut rings[i]));
                prop_assert_eq!(a, b);
                match a {
                    Step::Submit(io) => under_way.push(io.unit),
                    Step::Wait(min) => {
                        prop_assert!(min as usize <= under_way.len() + rings[0].len());
                        now += pause;
                        for _ in 0..n.max(min as usize).min(under_way.len()) {
                            let unit = under_way.swap_remove(pick.index(under_way.len()));
                            rings.iter_mut().for_each(|r| r.push(unit));
                        }
                    }
                    Step::Exit => break,
                    other => prop_assert!(false, "{:?}", other),
                }
                prop_assert_eq!(rings[0].len(), rings[1].len());
            }
            prop_assert_eq!(format!("{:?}", both[0].stats()), format!("{:?}", both[1].stats()));
        }
    }
}
