//! Results without a cell in common: the same family in two kernels, or with two values of a tunable, is what is compared.

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::record::Record;

/// Records in which schedulers of one family are called alike.
pub(super) struct Matched {
    pub(super) base: Vec<Record>,
    pub(super) new: Vec<Record>,
    /// The schedulers' names in base and in new.
    pub(super) names: Vec<(String, String)>,
}

/// `bfq` of `bfq@6.12 low_latency=0 on 6.12`.
fn family(scheduler: &str) -> &str {
    scheduler.split(['@', ' ']).next().unwrap_or(scheduler)
}

/// Where a scheduler ran: device, workload, family.
type Where<'a> = (&'a str, &'a str, &'a str);

fn schedulers(records: &[Record]) -> BTreeMap<Where<'_>, BTreeSet<&str>> {
    let mut out: BTreeMap<Where<'_>, BTreeSet<&str>> = BTreeMap::new();
    for r in records {
        let t = &r.trial;
        let place = (t.device.as_str(), t.workload.as_str(), family(&t.scheduler));
        out.entry(place).or_default().insert(&t.scheduler);
    }
    out
}

/// Pairs the schedulers of which each side has one of the family on a device with a workload; `None` without any.
pub(super) fn by_family(base: &[Record], new: &[Record]) -> Option<Matched> {
    let (b, n) = (schedulers(base), schedulers(new));
    let mut pairs: BTreeMap<Where<'_>, (&str, &str)> = BTreeMap::new();
    for (place, of_base) in &b {
        let of_new = n.get(place).filter(|s| s.len() == 1 && of_base.len() == 1);
        if let (Some(before), Some(after)) = (of_base.first(), of_new.and_then(BTreeSet::first)) {
            pairs.insert(*place, (*before, *after));
        }
    }
    let names: BTreeSet<(&str, &str)> = pairs.values().copied().collect();
    let called = |r: &Record| {
        let mut r = r.clone();
        let t = &r.trial;
        let pair = pairs.get(&(t.device.as_str(), t.workload.as_str(), family(&t.scheduler)));
        let together = pair.map(|(before, after)| match before == after {
            true => (*before).to_string(),
            false => format!("{before} → {after}"),
        });
        r.trial.scheduler = together.unwrap_or(r.trial.scheduler);
        r
    };
    (!names.is_empty()).then(|| Matched {
        base: base.iter().map(called).collect(),
        new: new.iter().map(called).collect(),
        names: names.into_iter().map(|(b, n)| (b.to_string(), n.to_string())).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(schedulers: &[&str]) -> Vec<Record> {
        let of = |s: &&str| {
            let mut r = Record::default();
            (r.trial.device, r.trial.workload) = ("disk".into(), "w".into());
            r.trial.scheduler = (*s).into();
            r
        };
        schedulers.iter().map(of).collect()
    }

    #[test]
    fn one_of_a_family_on_each_side_is_the_same() {
        let names = |base: &[&str], new: &[&str]| {
            by_family(&records(base), &records(new)).map(|m| {
                assert_eq!(m.base[0].trial.scheduler, m.new[0].trial.scheduler);
                m.names
            })
        };
        let pair = |b: &str, n: &str| Some(vec![(b.to_string(), n.to_string())]);
        assert_eq!(names(&["bfq@v7r3"], &["bfq@6.12", "none"]), pair("bfq@v7r3", "bfq@6.12"));
        assert_eq!(
            names(&["mq-deadline fifo_batch=2"], &["mq-deadline fifo_batch=16"]),
            pair("mq-deadline fifo_batch=2", "mq-deadline fifo_batch=16")
        );
        assert_eq!(names(&["bfq@v7r3"], &["none"]), None);
        // Which of two is meant does not show.
        assert_eq!(names(&["bfq@v7r3", "bfq@4.12"], &["bfq@6.12"]), None);
    }
}
