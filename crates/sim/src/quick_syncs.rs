//! Syncs that no disk can do, on a model that is kind to writes that follow each other on the disk.

use iosched_devices::Model;
use iosched_experiment::{Trial, Warning};
use iosched_types::units::{US, three_digits};

use crate::record::Ran;

/// A job that writes before each sync needs a turn of the platter for most of them.
pub(crate) fn warning(trial: &Trial, ran: &[Ran<'_>]) -> Option<Warning> {
    let Model::Hdd(p) = &trial.device.model else { return None };
    let kind = |r: &&Ran<'_>| {
        let [_, write, _, sync] = &r.stats.dirs;
        sync.ios > 0 && write.ios >= sync.ios && sync.clat.mean() < p.rev_ns as f64 / 4.0
    };
    let found = ran.iter().find(kind).filter(|_| trial.device.write_cache && !p.missed_rev)?;
    let id = &trial.id;
    let us = |ns: f64| three_digits(ns / US as f64);
    Some(Warning {
        code: "quick-syncs".into(),
        message: format!(
            "{} on {}, {}: a sync of \"{}\" takes {} µs in the mean, and a turn of the disk {} µs",
            id.workload,
            id.device,
            id.scheduler,
            found.job.name,
            us(found.stats.dirs[3].clat.mean()),
            us(p.rev_ns as f64)
        ),
        advice: "this model goes on with a write behind the last one at any time; a real disk loses a turn: \
                 give it missed_rev = true"
            .into(),
    })
}
