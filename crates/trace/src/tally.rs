//! What was noticed while a trace was read.

use std::collections::BTreeMap;

use iosched_types::Nanos;

/// Why a record was not used.
pub type Reason = &'static str;

/// Records that were not used for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// How many.
    pub count: u64,
    /// Where the first is: line, or byte of a binary file.
    pub first: u64,
    /// The text of the first; empty in a binary file.
    pub text: String,
}

/// Counts of everything that is odd about a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records read: lines of text or binary records.
    pub records: u64,
    /// Of these, used: events and I/Os.
    pub used: u64,
    /// Records that were not used, by reason.
    pub skipped: BTreeMap<Reason, Skipped>,
    /// Records that belong to the format and are of no use here: plugs, merges, messages, headers.
    pub other: u64,
    /// Events that the recorder says it lost.
    pub lost: u64,
    /// Records earlier than one before them.
    pub inversions: u64,
    /// Of these, too early to be sorted in: their I/Os are out of order.
    pub unsorted: u64,
    /// The most that one was too early.
    pub furthest_back: Nanos,
    /// Completions of I/Os that did not begin in the trace.
    pub completions_without_start: u64,
    /// Requests that went to the driver and were not queued in the trace, in a trace of queued bios.
    pub issues_without_queue: u64,
    /// I/Os that do not complete in the trace.
    pub unfinished: u64,
    /// I/Os whose issue or completion comes before what precedes it; they have no latency.
    pub backwards: u64,
    /// Requests that went back to the scheduler.
    pub requeued: u64,
    /// Bios that moved from a partition to its disk.
    pub remapped: u64,
    /// Steps of a flush that the block layer made itself.
    pub flush_steps: u64,
    /// How the reader understood the file, where it had a choice.
    pub notes: Vec<String>,
    /// The time of the first record as a Unix time in nanoseconds, where the source's clock is one.
    pub wall_clock: Option<i128>,
}

impl Tally {
    /// Counts a record that cannot be used; the first of each reason is kept.
    pub fn skip(&mut self, reason: Reason, place: u64, text: &str) {
        let of = self.skipped.entry(reason).or_insert_with(|| Skipped {
            count: 0,
            first: place,
            text: text.chars().take(120).collect(),
        });
        of.count += 1;
    }

    /// A remark about how the file was understood, once.
    pub fn note(&mut self, text: &str) {
        if !self.notes.iter().any(|n| n == text) {
            self.notes.push(text.to_string());
        }
    }

    /// Takes a remark back.
    pub fn unsay(&mut self, text: &str) {
        self.notes.retain(|n| n != text);
    }

    /// How many records were not used.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.skipped.values().map(|s| s.count).sum()
    }
}
