//! The answer on top of the page: the sentences of [`iosched_results::answer`], device by device.

use iosched_results::answer::{Answer, Candidate, DEVICE_DEPTH, answers};

use super::input::Input;
use super::view::{View, join};

/// What is said about one device.
#[derive(Debug, serde::Serialize)]
pub(crate) struct DeviceVerdict {
    pub(crate) device: String,
    /// One sentence for each goal.
    pub(crate) sentences: Vec<Sentence>,
}

/// One sentence.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Sentence {
    /// `throughput`, `latency`, `fairness`, a metric's own name.
    what: String,
    /// The scheduler to use; empty when no difference is measurable.
    winner: String,
    /// Its colour.
    color: usize,
    words: String,
    /// How sure it is: `measured`, `not measurable`, …
    chip: String,
    notes: Vec<String>,
}

/// The schedulers of all devices, as the cells call them.
fn candidates(view: &View, input: &Input) -> Vec<Candidate> {
    let of = |run: &super::view::Run| {
        let facts = &input.runs[run.from];
        let device = &view.devices[run.device];
        // The mark of an experiment stands before the name.
        let name = facts.scheduler.rsplit(": ").next().unwrap_or_default();
        let mut c = Candidate::new(device, &view.schedulers[run.scheduler], name, &facts.kernel);
        let depth = facts.facts.get(DEVICE_DEPTH).and_then(|d| d.first()?.parse().ok());
        for (_, d) in input.details.iter().filter(|((r, _), _)| *r == run.from) {
            c.take(d.device.max_in_flight, depth, d.device.busy, d.elapsed);
        }
        c
    };
    view.runs.iter().map(of).collect()
}

/// The verdict for every device.
pub(crate) fn verdicts(view: &View, input: &Input) -> Vec<DeviceVerdict> {
    let all = answers(&join(input), &candidates(view, input));
    let sentence = |a: &Answer| {
        let at = a.winner.as_ref().and_then(|w| view.schedulers.iter().position(|s| s == w));
        // The name stands before the sentence already.
        let words = match &a.winner {
            Some(w) => a.words.strip_prefix(&format!("{w}: ")).unwrap_or(&a.words),
            None => &a.words,
        };
        Sentence {
            what: a.goal.clone(),
            winner: a.winner.clone().unwrap_or_default(),
            color: at.unwrap_or(0) % 12,
            words: format!("{words}."),
            chip: a.chip.to_string(),
            notes: a.notes.clone(),
        }
    };
    let of = |device: &String| DeviceVerdict {
        device: device.clone(),
        sentences: all.iter().filter(|a| a.device == *device).map(sentence).collect(),
    };
    view.devices.iter().map(of).collect()
}
