//! The state a device is in when a run begins.
//!
//! A device at rest with empty caches takes writes at the speed of its caches until these are full. So the first
//! seconds of a run differ from the rest of it.

use iosched_types::nearest::did_you_mean;
use serde::{Deserialize, Serialize};

/// How full a cache is at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    /// Nothing in it.
    #[default]
    Empty,
    /// No room in it.
    Full,
}

impl Fill {
    /// The words.
    pub const WORDS: &'static [&'static str] = &["empty", "full"];

    fn from_word(word: &str) -> Option<Fill> {
        match word {
            "empty" => Some(Fill::Empty),
            "full" => Some(Fill::Full),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// The state of a device at the start of a run; what it does not have stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceState {
    /// Write cache: full of blocks from all over the device.
    pub write_cache: Fill,
    /// SLC cache.
    pub slc: Fill,
}

impl DeviceState {
    /// What can be set.
    pub const KEYS: &'static [&'static str] = &["write_cache", "slc"];

    /// Sets one of [`KEYS`](Self::KEYS) to one of [`Fill::WORDS`].
    ///
    /// # Errors
    /// What is unknown, and the names there are.
    pub fn set(&mut self, key: &str, word: &str) -> Result<(), String> {
        let known =
            |word: &str, names: &[&'static str]| match did_you_mean(word, names.iter().copied()) {
                help if help.is_empty() => format!("known: {}", names.join(", ")),
                help => format!("{help} (known: {})", names.join(", ")),
            };
        let field = match key {
            "write_cache" => &mut self.write_cache,
            "slc" => &mut self.slc,
            _ => return Err(format!("unknown device state \"{key}\": {}", known(key, Self::KEYS))),
        };
        *field = Fill::from_word(word)
            .ok_or_else(|| format!("{key} cannot be \"{word}\": {}", known(word, Fill::WORDS)))?;
        Ok(())
    }

    /// Reads `write_cache=full,slc=full`.
    ///
    /// # Errors
    /// As [`set`](Self::set), or an entry without `=`.
    pub fn parse(text: &str) -> Result<DeviceState, String> {
        let mut state = DeviceState::default();
        for entry in text.split(',') {
            let Some((key, word)) = entry.split_once('=') else {
                return Err(format!("\"{entry}\" is not KEY=VALUE, such as write_cache=full"));
            };
            state.set(key.trim(), word.trim())?;
        }
        Ok(state)
    }

    /// The caches that are not empty, as `write_cache=full`; empty text for a device at rest.
    #[must_use]
    pub fn text(&self) -> String {
        let all = [("write_cache", self.write_cache), ("slc", self.slc)];
        let set = all.iter().filter(|(_, fill)| *fill != Fill::Empty);
        set.map(|(key, fill)| format!("{key}={}", fill.word())).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for text in ["write_cache=full", "slc=full", "write_cache=full,slc=full"] {
            assert_eq!(DeviceState::parse(text).unwrap().text(), text);
        }
        assert_eq!(DeviceState::parse("slc = empty").unwrap(), DeviceState::default());
        assert_eq!(DeviceState::default().text(), "");
    }

    #[test]
    fn errors_name_what_there_is() {
        let error = |text| DeviceState::parse(text).unwrap_err();
        assert!(error("wcache=full").contains("write_cache, slc"), "{}", error("wcache=full"));
        assert!(error("slc=half").contains("empty, full"), "{}", error("slc=half"));
        assert!(error("slc").contains("KEY=VALUE"));
    }
}
