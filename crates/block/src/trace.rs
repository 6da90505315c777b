//! The data of `iosched explain`: decisions, idle periods and their reasons.

use iosched_schedulers::Idling;
use iosched_types::{BioId, Nanos, ReqId, TaskId};

use crate::queue::Queue;
use crate::stats::Issue;

/// Notes in one reason of `explain`.
const MOST_NOTES: usize = 16;

/// One line of `iosched explain`.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceEvent {
    /// A request left the scheduler.
    Dispatch {
        /// When and what.
        issue: Issue,
        /// Bios it carries.
        bios: Vec<BioId>,
        /// Why, in the scheduler's words.
        reason: String,
    },
    /// The scheduler holds the device idle.
    Idle {
        /// From.
        from: Nanos,
        /// Until something else happened.
        to: Nanos,
        /// The task that the device idled for.
        task: Option<TaskId>,
        /// Why.
        reason: String,
    },
    /// Another scheduler took over.
    Switch {
        /// When it was asked for.
        since: Nanos,
        /// When it was in force.
        at: Nanos,
        /// The old one, with its generation.
        from: String,
        /// The new one.
        to: String,
    },
}

/// What `explain` collects.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Events in order.
    pub events: Vec<TraceEvent>,
    pub(crate) idle: Option<(Nanos, Option<TaskId>, String)>,
}

impl Queue {
    /// Books an idle decision of the scheduler.
    pub(crate) fn note_idle(&mut self, now: Nanos, idle: Idling) {
        if self.in_flight == 0 && self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
        let reason = self.take_reason();
        if let Some(trace) = &mut self.trace
            && trace.idle.is_none()
        {
            trace.idle = Some((now, idle.for_task, reason));
        }
    }

    /// The idle period, if any, ends now.
    pub(crate) fn end_idle(&mut self, now: Nanos) {
        if let Some(from) = self.idle_since.take() {
            self.stats.idled += now - from;
            self.stats.idles += 1;
        }
        if let Some(trace) = &mut self.trace
            && let Some((from, task, reason)) = trace.idle.take()
        {
            trace.events.push(TraceEvent::Idle { from, to: now, task, reason });
        }
    }

    /// The reasons noted since the last decision, as one sentence.
    pub(crate) fn take_reason(&mut self) -> String {
        let Some(why) = &mut self.out.why else { return String::new() };
        let mut notes: Vec<String> = Vec::new();
        for (_, note) in why.notes.drain(..) {
            // A scheduler gives the same answer when it is asked again and again.
            if notes.len() < MOST_NOTES && !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes.join("; ")
    }

    pub(crate) fn trace_merge(&mut self, id: ReqId, _bio: BioId) {
        if self.out.why.is_some() {
            let name = format!("{}{}", self.reqs[id].op.letter(), self.reqs[id].sector);
            if let Some(why) = &mut self.out.why {
                why.notes.push((0, format!("merged into {name}")));
            }
        }
    }
}
