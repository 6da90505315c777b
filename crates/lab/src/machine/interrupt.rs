//! Signals that end an experiment in good order.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::error::{Error, Result};

/// The signals that end a run, noted by a handler and looked at between and during runs.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    seen: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Interrupt {
    /// Takes note of SIGINT, SIGTERM and SIGHUP from now on instead of dying of them.
    ///
    /// # Errors
    /// The system's.
    pub fn ending() -> io::Result<Self> {
        let interrupt = Interrupt::default();
        for (signal, _) in SIGNALS {
            signal_hook::flag::register_usize(*signal, interrupt.seen.clone(), *signal as usize)?;
        }
        Ok(interrupt)
    }

    /// The same, and ignores Ctrl-Z. For programs that serve a disk or have one switched.
    ///
    /// # Errors
    /// The system's.
    pub fn install() -> io::Result<Self> {
        let interrupt = Interrupt::ending()?;
        // A stopped program answers nothing. Users of its disk would sleep until it goes on, and its load, in a process
        // group of its own, would run on. Children get the usual action back when they start.
        signal_hook::flag::register(signal_hook::consts::SIGTSTP, interrupt.stop.clone())?;
        Ok(interrupt)
    }

    /// Whether Ctrl-Z was pressed since the last call. It has no other effect.
    #[must_use]
    pub fn stop_asked(&self) -> bool {
        self.stop.swap(false, Ordering::Relaxed)
    }

    /// As if this signal had come.
    pub fn raise(&self, signal: i32) {
        self.seen.store(usize::try_from(signal).unwrap_or_default(), Ordering::Relaxed);
    }

    /// The error of a signal that came, if one did.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn check(&self) -> Result<()> {
        let seen = self.seen.load(Ordering::Relaxed);
        match SIGNALS.iter().find(|(s, _)| *s as usize == seen) {
            Some((_, name)) => Err(Error::Interrupted { signal: (*name).into() }),
            None => Ok(()),
        }
    }
}

const SIGNALS: &[(i32, &str)] = &[
    (signal_hook::consts::SIGINT, "SIGINT"),
    (signal_hook::consts::SIGTERM, "SIGTERM"),
    (signal_hook::consts::SIGHUP, "SIGHUP"),
];
