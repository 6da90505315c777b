//! The disks below one target, switched together: every one of them carries part of its I/O.

use super::session::{Options, Session};
use crate::discover::QueueState;
use crate::error::{Error, Result};

/// The right to change the queues of some disks at once. Everything goes back when it is finished or dropped.
#[derive(Debug)]
pub struct Disks {
    /// At least one.
    sessions: Vec<Session>,
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
        Ok(Disks { sessions })
    }

    /// Kernel names, in the order in which they were given.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.sessions.iter().map(Session::device).collect()
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
