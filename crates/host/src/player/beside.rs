//! A recording that is played beside the tasks of a machine.
//!
//! Its chains share queue and clock with the tasks and take no core time. At one instant tasks go ahead of them.

use iosched_block::{Stack, Timeline};
use iosched_types::{BioId, Nanos, TaskId};

use iosched_workloads::replay::TracedTask;

use super::{Chains, On, Played, Score};

/// A recording beside tasks, if there is one.
#[derive(Default)]
pub struct Beside(Option<Box<Chains>>);

impl std::fmt::Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Beside({} chains)", self.alive())
    }
}

impl Beside {
    /// A recording that begins with the run, and whose tasks come behind those that the queue knows.
    #[must_use]
    pub fn of(queue: &mut Stack, score: Score) -> Beside {
        Beside(Some(Box::new(Chains::beside(queue, score))))
    }

    /// What was measured.
    #[must_use]
    pub fn played(&self) -> Option<&Played> {
        self.0.as_ref().map(|chains| &chains.played)
    }

    /// The recorded task that the queue knows by this number.
    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<&TracedTask> {
        let chains = self.0.as_ref()?;
        let at = chains.ids.iter().position(|i| *i == id)?;
        chains.recording.tasks.get(at)
    }

    pub(crate) fn begin(&mut self, now: Nanos) {
        if let Some(chains) = &mut self.0 {
            chains.begin(now);
        }
    }

    /// Chains that have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.0.as_ref().map_or(0, |chains| chains.alive())
    }

    /// Lets a chain go on that is ready; whether there was one.
    #[inline]
    pub(crate) fn run_one(&mut self, queue: &mut Stack, tl: &mut Timeline) -> bool {
        self.0.as_mut().is_some_and(|chains| chains.run_one(&mut On { queue, tl }))
    }

    /// Whether a bio that is done was one of the recording's.
    #[inline]
    pub(crate) fn bio_done(&mut self, id: BioId, now: Nanos) -> bool {
        self.0.as_mut().is_some_and(|chains| chains.bio_done(id, now))
    }

    /// Whether a thread that may try again is one of the recording's.
    #[inline]
    pub(crate) fn has_room(&mut self, thread: TaskId) -> bool {
        self.0.as_mut().is_some_and(|chains| chains.has_room(thread))
    }

    /// The time of a chain has come.
    pub(crate) fn wake(&mut self, chain: u32) {
        if let Some(chains) = &mut self.0 {
            chains.wake(chain);
        }
    }
}
