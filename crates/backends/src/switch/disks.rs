//! The disks below one target, switched together: every one of them carries part of its I/O.

use std::collections::BTreeMap;

use super::lock::Shared;
use super::session::{Options, Session};
use crate::discover::QueueState;
use crate::error::{Error, Result};
use crate::root::SysRoot;

/// The right to change the queues of some disks at once. Everything goes back when it is finished or dropped.
#[derive(Debug)]
pub struct Disks {
    /// At least one.
    sessions: Vec<Session>,
    /// Disks below them, which are not switched, and no other experiment may switch.
    below: Vec<(String, Option<Shared>)>,
}

impl Disks {
    /// Begins with all `devices` (kernel names). If one of them is not available, none is changed.
    ///
    /// # Errors
    /// As [`Session::begin`].
    pub fn begin<'a>(
        devices: impl IntoIterator<Item = &'a str>,
        options: &Options,
    ) -> Result<Disks> {
        let sessions = devices.into_iter().map(|d| Session::begin(d, options));
        let sessions = sessions.collect::<Result<Vec<_>>>()?;
        if sessions.is_empty() {
            return Err(Error::Trial { message: "there is no disk to switch".into() });
        }
        Ok(Disks { sessions, below: Vec::new() })
    }

    /// Keeps other experiments from switching these disks, which lie below.
    ///
    /// # Errors
    /// [`Error::Locked`] when one does already, [`Error::Unavailable`] where locks cannot be taken.
    pub fn over<'a>(mut self, below: impl IntoIterator<Item = &'a str>) -> Result<Disks> {
        let root = SysRoot::default();
        let shared = |disk: &str| Ok((disk.to_string(), Shared::take(&root, disk)?));
        self.below = below.into_iter().map(shared).collect::<Result<_>>()?;
        Ok(self)
    }

    /// The queues of the disks below, by name.
    #[must_use]
    pub fn below(&self) -> BTreeMap<String, QueueState> {
        let root = SysRoot::default();
        self.below.iter().map(|(d, _)| (d.clone(), QueueState::read(&root, d))).collect()
    }

    /// The depth of the driver's tags, in the order of the names.
    #[must_use]
    pub fn tag_depths(&self) -> Vec<Option<u32>> {
        self.sessions.iter().map(Session::tag_depth).collect()
    }

    /// Makes sure that the driver's tags are as deep as this scheduler and these settings make them.
    ///
    /// # Errors
    /// As [`Session::check_tags`].
    pub fn check_tags(&self, scheduler: &str, settings: &[(String, i64)]) -> Result<()> {
        self.sessions.iter().try_for_each(|s| s.check_tags(scheduler, settings))
    }

    /// Kernel names, in the order in which they were given.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.sessions.iter().map(Session::device).collect()
    }

    /// How the first was set before the experiment.
    #[must_use]
    pub fn before(&self) -> Option<&QueueState> {
        self.sessions.first().map(Session::before)
    }

    /// Switches all; the kernel's own name for the scheduler.
    ///
    /// # Errors
    /// As [`Session::set_scheduler`].
    pub fn set_scheduler(&self, name: &str) -> Result<String> {
        let mut own = String::new();
        for s in &self.sessions {
            own = s.set_scheduler(name)?;
        }
        Ok(own)
    }

    /// Sets a tunable of the scheduler in force on all.
    ///
    /// # Errors
    /// As [`Session::set_tunable`].
    pub fn set_tunable(&self, name: &str, value: i64) -> Result<()> {
        self.sessions.iter().try_for_each(|s| s.set_tunable(name, value))
    }

    /// Sets a queue attribute on all.
    ///
    /// # Errors
    /// As [`Session::set_attribute`].
    pub fn set_attribute(&self, name: &str, value: &str) -> Result<()> {
        self.sessions.iter().try_for_each(|s| s.set_attribute(name, value))
    }

    /// Writes down how all are set now.
    ///
    /// # Errors
    /// As [`Session::note`].
    pub fn note(&self) -> Result<()> {
        self.sessions.iter().try_for_each(Session::note)
    }

    /// Every queue now, in the order of the names.
    #[must_use]
    pub fn states(&self) -> Vec<QueueState> {
        self.sessions.iter().map(Session::state).collect()
    }

    /// The first disk that is not there any more.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        self.sessions.iter().find(|s| !s.is_present()).map(Session::device)
    }

    /// Puts everything back; what was changed, in words.
    ///
    /// # Errors
    /// The first that could not be put back, after the others were.
    pub fn finish(self) -> Result<Vec<String>> {
        let done: Vec<Result<Vec<String>>> =
            self.sessions.into_iter().map(Session::finish).collect();
        done.into_iter().collect::<Result<Vec<_>>>().map(|all| all.concat())
    }
}
