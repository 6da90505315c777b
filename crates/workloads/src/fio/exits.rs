//! `exitall`: jobs that end when another does.
//!
//! Asked of fio 3.33, with jobs that end at various times: the jobs that are meant end as at the end of their run time,
//! once the pause that they are in is over; those of them that have not begun never do.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};

use super::spec::JobSpec;

/// `exit_what`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitWhat {
    /// The jobs of the same reporting group.
    #[default]
    Group,
    /// All jobs up to the next `stonewall`; fio goes on behind it.
    Stonewall,
    /// All jobs.
    All,
}

/// Words of `exit_what`, and by position their meanings.
pub(crate) const WORDS: &[&str] = &["group", "stonewall", "all"];
pub(crate) const WHAT: [ExitWhat; 3] = [ExitWhat::Group, ExitWhat::Stonewall, ExitWhat::All];

impl ExitWhat {
    /// fio's word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ExitWhat::Group => "group",
            ExitWhat::Stonewall => "stonewall",
            ExitWhat::All => "all",
        }
    }
}

/// The jobs that end because job `ended` has, by their numbers; they may have ended already.
#[must_use]
pub fn ended_by<J: Borrow<JobSpec>>(jobs: &[J], ended: usize) -> Vec<usize> {
    let job = |i: usize| -> &JobSpec { jobs[i].borrow() };
    let Some(what) = job(ended).exit_all else { return Vec::new() };
    let next = jobs.iter().enumerate().skip(ended + 1).find(|(_, j)| (*j).borrow().wait.stonewall);
    let end = next.map_or(jobs.len(), |(i, _)| i);
    let meant = |i: usize| match what {
        ExitWhat::Group => job(i).group == job(ended).group,
        ExitWhat::Stonewall => i < end,
        ExitWhat::All => true,
    };
    (0..jobs.len()).filter(|i| *i != ended && meant(*i)).collect()
}
