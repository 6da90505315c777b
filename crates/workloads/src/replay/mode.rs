//! How a recording is played.

use std::fmt;

use iosched_types::nearest::did_you_mean;

/// When the I/Os of a recording are issued.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Mode {
    /// At their recorded times.
    #[default]
    AsRecorded,
    /// At their recorded times, so many times as late.
    Scaled(f64),
    /// As fast as the disk takes them. Each task has so many under way, or as many as it had at most.
    Closed(Option<u32>),
    /// When what they depend on is done.
    Dependent,
}

/// A mode as it is said; `None`: what fits the trace.
pub type Said = Option<Mode>;

/// A word that is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModeError {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// The modes by name.
const NAMES: [&str; 4] = ["as-recorded", "scaled", "closed", "dependent"];
/// Factors of time.
const SCALES: std::ops::RangeInclusive<f64> = 0.001..=1000.0;
/// I/Os under way for each task.
const DEPTHS: std::ops::RangeInclusive<u32> = 1..=65_536;

impl Mode {
    /// Reads `as-recorded`, `scaled=X`, `closed`, `closed=N`, `dependent`.
    ///
    /// # Errors
    /// Any other word, with the nearest one, or a number that is out of range.
    pub fn parse(text: &str) -> Result<Mode, ModeError> {
        let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
        let error = |message: String, help: String| Err(ModeError { message, help });
        match (name, value) {
            ("as-recorded", None) => Ok(Mode::AsRecorded),
            ("dependent", None) => Ok(Mode::Dependent),
            ("closed", None) => Ok(Mode::Closed(None)),
            ("closed", Some(n)) => match n.parse().ok().filter(|n| DEPTHS.contains(n)) {
                Some(n) => Ok(Mode::Closed(Some(n))),
                None => error(
                    format!("closed={n}: I/Os under way for each task are 1 to 65536"),
                    "closed alone has as many as the recording had at most".into(),
                ),
            },
            ("scaled", Some(x)) => match x.parse().ok().filter(|x| SCALES.contains(x)) {
                Some(x) => Ok(Mode::Scaled(x)),
                None => error(
                    format!("scaled={x}: times are stretched by a factor of 0.001 to 1000"),
                    "scaled=0.5 issues the I/Os in half the time; closed issues them as fast as the disk takes them".into(),
                ),
            },
            ("scaled", None) => error(
                "scaled needs a factor of time".into(),
                "scaled=0.5 issues the I/Os in half the time, scaled=2 in twice the time".into(),
            ),
            ("as-recorded" | "dependent", Some(_)) => {
                error(format!("{name} takes no value"), String::new())
            }
            _ => {
                let near = did_you_mean(name, NAMES);
                let known = "modes are as-recorded, scaled=X, closed, dependent".to_string();
                error(
                    format!("unknown mode of replay \"{text}\""),
                    if near.is_empty() { known } else { near },
                )
            }
        }
    }

    /// Whether an I/O waits for others.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Mode::AsRecorded | Mode::Scaled(_))
    }

    /// What it means, in one line.
    #[must_use]
    pub fn meaning(self) -> String {
        match self {
            Mode::AsRecorded => "each I/O is issued at its recorded time, whether or not the disk keeps up (open loop); \
                                 latencies count from that time"
                .into(),
            Mode::Scaled(x) => format!(
                "each I/O is issued at {x} times its recorded time, whether or not the disk keeps up (open loop); \
                 latencies count from that time"
            ),
            Mode::Closed(_) => {
                "each task issues its next I/O as soon as one of those under way is done; its pauses are left out".into()
            }
            Mode::Dependent => "each I/O is issued when the I/Os that its task waited for are done and the recorded pause is \
                                over"
                .into(),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mode::AsRecorded => f.write_str("as-recorded"),
            Mode::Scaled(x) => write!(f, "scaled={x}"),
            Mode::Closed(None) => f.write_str("closed"),
            Mode::Closed(Some(n)) => write!(f, "closed={n}"),
            Mode::Dependent => f.write_str("dependent"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_read_as_they_are_written() {
        for text in ["as-recorded", "scaled=0.5", "scaled=2", "closed", "closed=32", "dependent"] {
            assert_eq!(Mode::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_words_are_refused_with_help() {
        for (text, message, help) in [
            ("dependant", "unknown mode of replay \"dependant\"", "did you mean \"dependent\"?"),
            ("xyzzy", "unknown mode", "modes are as-recorded, scaled=X, closed, dependent"),
            ("scaled", "scaled needs a factor", "scaled=0.5"),
            ("scaled=0", "scaled=0: times", "closed issues them as fast"),
            ("scaled=-1", "scaled=-1", ""),
            ("scaled=nan", "scaled=nan", ""),
            ("closed=0", "closed=0: I/Os under way", ""),
            ("dependent=1", "dependent takes no value", ""),
        ] {
            let e = Mode::parse(text).unwrap_err();
            assert!(e.message.contains(message) && e.help.contains(help), "{text}: {e:?}");
        }
    }
}
