//! The data of `iosched explain`: decisions, idle periods and their reasons.

use iosched_schedulers::Idling;
use iosched_types::{BioId, Nanos, TaskId};

use crate::stats::{Issue, QueueStats};

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
    idle: Option<(Nanos, Option<TaskId>, String)>,
}

/// Idle periods of a queue and, under `explain`, its decisions.
#[derive(Debug, Default)]
pub(crate) struct Explain {
    trace: Option<Trace>,
    /// So many events are kept.
    most: usize,
    idle_since: Option<Nanos>,
}

impl Explain {
    /// From now on decisions are collected.
    pub(crate) fn start(&mut self, most: usize) {
        self.trace = Some(Trace::default());
        self.most = most;
    }

    /// Whether they are.
    #[inline(always)]
    pub(crate) fn on(&self) -> bool {
        self.trace.is_some()
    }

    /// Whether a command that goes to the device concerns anything here.
    #[inline(always)]
    pub(crate) fn watches(&self) -> bool {
        self.idle_since.is_some() || self.trace.is_some()
    }

    pub(crate) fn push(&mut self, event: TraceEvent) {
        let most = self.most;
        if let Some(trace) = self.trace.as_mut().filter(|t| t.events.len() < most) {
            trace.events.push(event);
        }
    }

    /// The scheduler keeps its requests back; `alone`: while nothing is at the device.
    pub(crate) fn idles(&mut self, now: Nanos, alone: bool, idle: Idling, reason: String) {
        if alone && self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
        if let Some(trace) = &mut self.trace
            && trace.idle.is_none()
        {
            trace.idle = Some((now, idle.for_task, reason));
        }
    }

    /// The idle period, if any, ends now.
    pub(crate) fn end_idle(&mut self, now: Nanos, stats: &mut QueueStats) {
        if let Some(from) = self.idle_since.take() {
            stats.idled += now - from;
            stats.idles += 1;
        }
        let idle = self.trace.as_mut().and_then(|t| t.idle.take());
        if let Some((from, task, reason)) = idle {
            self.push(TraceEvent::Idle { from, to: now, task, reason });
        }
    }

    /// What was collected.
    pub(crate) fn take(&mut self) -> Trace {
        self.trace.take().unwrap_or_default()
    }
}
