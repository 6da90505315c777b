//! Block traces as work.

use std::fmt;
use std::sync::Arc;

use iosched_types::Diagnostic;
use iosched_workloads::replay::{Mode, Recording};

use crate::place::Place;

/// Provenance: how a trace was replayed.
pub const REPLAY: &str = "replay";
/// Provenance: how a trace beside other work was replayed.
pub const REPLAY_BESIDE: &str = "replay_beside";
/// Before the name of a figure of a replay that waits for nothing, beside one that waits.
pub const BESIDE: &str = "as-recorded ";
/// Code of the warning that the model does not reproduce the recording.
pub const DIFFERS: &str = "replay-differs";

/// A block trace, replayed.
#[derive(Clone)]
pub struct TraceWork {
    /// The trace.
    pub recording: Arc<Recording>,
    /// How it is replayed.
    pub mode: Mode,
    /// The scheduler under which it was recorded, by its family's name.
    pub recorded_under: Option<String>,
    /// The mode was not said: beside it, a replay that waits for nothing is looked at.
    pub usual: bool,
}

impl fmt::Debug for TraceWork {
    /// What results depend on: stored runs are told apart by it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (digest, ios) = (self.recording.digest, self.recording.steps.len());
        let usual = if self.usual { " as is usual" } else { "" };
        write!(f, "trace {digest:016x} of {ios} I/Os, {}{usual}", self.mode)?;
        match &self.recorded_under {
            Some(name) => write!(f, ", recorded under {name}"),
            None => Ok(()),
        }
    }
}

/// A block trace as an experiment names it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayRef {
    /// The file.
    pub file: String,
    /// The format, where it is said.
    pub read_as: Option<String>,
    /// The disk of a trace of several.
    pub disk: Option<String>,
    /// How it is replayed; `None`: by what fits the trace.
    pub mode: Option<Mode>,
    /// The scheduler under which it was recorded.
    pub recorded_under: Option<String>,
}

impl ReplayRef {
    /// A trace of which nothing but the file is said.
    #[must_use]
    pub fn of(file: &str) -> ReplayRef {
        ReplayRef { file: file.into(), ..ReplayRef::default() }
    }

    /// Looks it up.
    pub(crate) fn resolve(
        &self,
        place: &Place,
        load: &dyn Fn(&ReplayRef) -> Result<Arc<Recording>, Diagnostic>,
    ) -> Result<TraceWork, Diagnostic> {
        let recording = load(self)?;
        let mode = self.mode.unwrap_or_else(|| recording.usual_mode());
        if mode == Mode::Dependent && !recording.knows_completions() {
            let message = format!(
                "{}: the trace has no completions, so nothing shows what waited for what",
                self.file
            );
            let help = "record completions, too, or use --replay as-recorded";
            return Err(place.error(message).with_help(help));
        }
        if mode == Mode::Dependent && !recording.knows_tasks() {
            let message = format!("{}: the trace does not say which task issued an I/O", self.file);
            let help = "use --replay as-recorded, or --replay closed=N with N I/Os under way";
            return Err(place.error(message).with_help(help));
        }
        Ok(TraceWork {
            recording,
            mode,
            recorded_under: self.recorded_under.clone(),
            usual: self.mode.is_none(),
        })
    }
}
