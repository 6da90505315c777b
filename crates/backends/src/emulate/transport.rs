//! Ways from the kernel to the thread that serves a disk, and which of them this machine has.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use super::Options;
use super::ublk::CONTROL_NODE;
use crate::error::{Error, Result};
use crate::guardian::Guardian;
use crate::state::{Change, StateFile};

/// A way from the kernel to the thread that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// ublk: Linux 6.0 and newer, where the distribution has built it.
    Ublk,
    /// FUSE and a loop device, over io_uring: Linux 6.14 and newer. Only used where the user asks for it: when its
    /// server is killed while commands are under way, Linux 6.18 may wait for them for ever, and so do the users of the
    /// disk (`docs/live.md`).
    FuseRing,
    /// FUSE and a loop device.
    Fuse,
}

impl Transport {
    /// All, the fastest first.
    pub const ALL: [Transport; 3] = [Transport::Ublk, Transport::FuseRing, Transport::Fuse];

    /// Reads what [`Display`](fmt::Display) writes.
    #[must_use]
    pub fn parse(word: &str) -> Option<Transport> {
        Transport::ALL.into_iter().find(|t| t.to_string() == word)
    }

    /// Why this machine does not have this way, as far as can be known without trying.
    #[must_use]
    pub fn missing(self) -> Option<String> {
        match self {
            Transport::Fuse => None,
            Transport::Ublk if !fs::exists(CONTROL_NODE).unwrap_or(false) => Some(
                "this kernel has no ublk, or not loaded (Linux 6.0 and newer: modprobe ublk_drv)"
                    .into(),
            ),
            Transport::FuseRing if !fs::exists(ENABLE_URING).unwrap_or(false) => {
                Some("this kernel has no FUSE over io_uring (Linux 6.14 and newer have it)".into())
            }
            Transport::Ublk | Transport::FuseRing => io_uring_is_off(),
        }
    }

    /// Whether a kernel cleans up after a server that was killed at any moment.
    #[must_use]
    pub fn survives_kills(self) -> bool {
        self != Transport::FuseRing
    }

    /// The ways that this machine has and that may be chosen by default, the fastest first.
    pub(crate) fn choice() -> impl Iterator<Item = Transport> {
        let usable = |t: &Transport| t.survives_kills() && t.missing().is_none();
        Transport::ALL.into_iter().filter(usable)
    }

    /// The first choice.
    #[must_use]
    pub fn best() -> Transport {
        Transport::choice().next().unwrap_or(Transport::Fuse)
    }

    /// Every way, whether it would be taken, and why not; for messages.
    #[must_use]
    pub fn reasons() -> Vec<(Transport, std::result::Result<(), String>)> {
        let best = Transport::best();
        let reason = |t: Transport| match t.missing() {
            Some(why) => Err(why),
            None if t == best => Ok(()),
            None if !t.survives_kills() => Err(
                "a server that is killed may leave users that never end; for those who ask for it"
                    .into(),
            ),
            None => Err(format!("{best} is faster")),
        };
        Transport::ALL.into_iter().map(|t| (t, reason(t))).collect()
    }

    /// What it is, for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Transport::Ublk => "ublk",
            Transport::FuseRing => "FUSE over io_uring, and loop",
            Transport::Fuse => "FUSE and loop",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Ublk => "ublk",
            Transport::FuseRing => "fuse-uring",
            Transport::Fuse => "fuse",
        })
    }
}

fn io_uring_is_off() -> Option<String> {
    // 1 is for those without privilege only; a kernel before 6.6 has no such switch.
    let word = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    (word.trim() == "2").then(|| "io_uring is switched off (kernel.io_uring_disabled=2)".into())
}

/// The parameter that lets new FUSE file systems use io_uring.
pub(crate) const ENABLE_URING: &str = "/sys/module/fuse/parameters/enable_uring";

/// Holds the parameter at `Y`; dropping puts it back. A connection that was made meanwhile keeps io_uring, so
/// that it is held for some milliseconds only.
#[derive(Debug)]
pub(crate) struct Switched {
    undo: Option<(StateFile, Option<Guardian>, String)>,
}

/// How long to wait for another start that holds the parameter.
const PATIENCE: Duration = Duration::from_secs(5);

impl Switched {
    /// Switches it on, written down first.
    ///
    /// # Errors
    /// [`Error::Locked`] when another start holds it for long, [`Error::Unrestored`], [`Error::Io`].
    pub(crate) fn on(options: &Options) -> Result<Switched> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let before = read()?;
            let change = Change::FuseUring { before: before.clone() };
            let state = match StateFile::create(&options.state_dir, "fuse-enable_uring", change) {
                Err(Error::Locked { .. }) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                other => other?,
            };
            // Another start may have put it back between the two.
            if read()? != before {
                state.finish()?;
                continue;
            }
            if is_on(&before) {
                state.finish()?;
                return Ok(Switched { undo: None });
            }
            let guardian = match &options.guardian {
                Some(command) => match Guardian::start(command, &state) {
                    Ok(guardian) => Some(guardian),
                    Err(e) => {
                        state.finish()?;
                        return Err(e);
                    }
                },
                None => None,
            };
            let switched = Switched { undo: Some((state, guardian, before)) };
            write("Y")?;
            return Ok(switched);
        }
    }

    /// Puts it back.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn back(mut self) -> Result<()> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<()> {
        let Some((state, guardian, before)) = self.undo.take() else { return Ok(()) };
        write(&before)?;
        state.finish()?;
        if let Some(guardian) = guardian {
            guardian.join();
        }
        Ok(())
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        // The state file stays if this fails. An error cannot be reported here.
        let _ = self.put_back();
    }
}

fn is_on(word: &str) -> bool {
    matches!(word, "Y" | "1")
}

fn read() -> Result<String> {
    fs::read_to_string(ENABLE_URING)
        .map(|w| w.trim().to_string())
        .map_err(|e| Error::io("reading", ENABLE_URING, e))
}

fn write(word: &str) -> Result<()> {
    fs::write(ENABLE_URING, word).map_err(|e| Error::io("writing", ENABLE_URING, e))
}

/// Puts the parameter back to what a state file says; what was done, in words.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn put_back(before: &str) -> Result<Vec<String>> {
    if !fs::exists(ENABLE_URING).unwrap_or(false) || read()? == before {
        return Ok(Vec::new());
    }
    write(if is_on(before) { "Y" } else { "N" })?;
    Ok(vec![format!("set {ENABLE_URING} to {before}")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_words() {
        for t in Transport::ALL {
            assert_eq!(Transport::parse(&t.to_string()), Some(t));
        }
        assert_eq!(Transport::parse("nbd"), None);
        assert_eq!(Transport::Fuse.missing(), None);
        assert!(Transport::best().missing().is_none());
        let reasons = Transport::reasons();
        let taken: Vec<_> = reasons.iter().filter(|(_, r)| r.is_ok()).map(|(t, _)| *t).collect();
        assert_eq!(taken, [Transport::best()]);
        assert_ne!(Transport::best(), Transport::FuseRing, "it is for those who ask for it");
    }
}
