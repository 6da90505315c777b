//! A warning about queues of bfq whose share of the tags was less than one.
//!
//! BFQ of 6.12 gives each busy queue its weight's share of the scheduler's tags. A queue that many processes share can have a
//! share of none, and then all of them have one request in flight, whatever the disk can take.

use iosched_experiment::{SchedulerStats, TrialId, Warning};
use iosched_schedulers::bfq::NO_SHARE;

/// So many percent of the requests are worth a word.
const WORTH_A_WORD: u64 = 10;

/// The warning, if many requests went one at a time.
pub(crate) fn warning(id: &TrialId, s: &SchedulerStats) -> Option<Warning> {
    let limited = s.counters.get(NO_SHARE).copied().unwrap_or(0);
    let percent = limited * 100 / s.dispatched.max(1);
    (percent >= WORTH_A_WORD).then(|| Warning {
        code: "one-tag".into(),
        message: format!(
            "{} on {}, {}: {percent} % of the requests went one at a time, because their processes' share of the \
             tags was less than one",
            id.workload, id.device, id.scheduler
        ),
        advice: "bfq does so with processes that start together; low_latency=0 avoids it, a larger nr_requests makes it rarer".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_such_requests_are_not_worth_a_word() {
        let of = |limited: u64| {
            let counters = [(NO_SHARE.to_string(), limited)].into();
            let stats = SchedulerStats { dispatched: 1000, counters, ..SchedulerStats::default() };
            warning(&TrialId::default(), &stats).map(|w| w.message)
        };
        assert_eq!((of(0), of(99)), (None, None));
        assert!(of(345).unwrap().contains(": 34 % of the requests"));
    }
}
