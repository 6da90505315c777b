//! The devices that come with the program: `data/devices/*.toml`, one file each.

use std::sync::LazyLock;

use iosched_types::nearest::did_you_mean;
use thiserror::Error;

use crate::spec::DeviceSpec;

include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// A name that no device of the catalogue has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown device \"{name}\"{}", hint(help))]
pub struct UnknownDevice {
    /// The name.
    pub name: String,
    /// Advice: the nearest name, or all names.
    pub help: String,
}

fn hint(help: &str) -> String {
    format!(" ({help})")
}

static ALL: LazyLock<Vec<(&'static str, DeviceSpec)>> = LazyLock::new(|| {
    FILES
        .iter()
        .filter_map(|(name, text)| Some((*name, DeviceSpec::from_toml(name, text).ok()?)))
        .collect()
});

/// The text of every file of the catalogue, by name.
#[must_use]
pub fn files() -> &'static [(&'static str, &'static str)] {
    FILES
}

/// Every device, by name, in the order of the names.
#[must_use]
pub fn all() -> &'static [(&'static str, DeviceSpec)] {
    &ALL
}

/// The file of a name.
pub(crate) fn text(name: &str) -> Result<&'static str, UnknownDevice> {
    match FILES.iter().find(|(n, _)| *n == name) {
        Some((_, text)) => Ok(text),
        None => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> UnknownDevice {
    let names = || FILES.iter().map(|(name, _)| *name);
    let (near, kind) = (did_you_mean(name, names()), of_that_kind(name));
    let help = match kind[..] {
        // The begin of several names is no slip of the finger.
        [] | [_] if !near.is_empty() => near,
        [] => format!("the catalogue has: {}", names().collect::<Vec<_>>().join(", ")),
        _ => format!("\"{name}\" could be: {}", kind.join(", ")),
    };
    UnknownDevice { name: name.to_string(), help }
}

/// What somebody may mean by `ssd` or `samsung`: the names that begin with it, then those whose title has the word.
fn of_that_kind(word: &str) -> Vec<&'static str> {
    let word = word.to_lowercase();
    if word.chars().count() < 2 {
        return Vec::new();
    }
    let mut out: Vec<&str> =
        FILES.iter().map(|(name, _)| *name).filter(|n| n.starts_with(&word)).collect();
    let titled = |text: &str| {
        let title = text.lines().find_map(|l| l.strip_prefix("title = ")).unwrap_or_default();
        title.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|w| w == word)
    };
    for (name, _) in FILES.iter().filter(|(_, text)| titled(text)) {
        if !out.contains(name) {
            out.push(name);
        }
    }
    out
}

/// The device of a name.
///
/// # Errors
/// [`UnknownDevice`] with the nearest name.
pub fn find(name: &str) -> Result<DeviceSpec, UnknownDevice> {
    let found = all().iter().find(|(n, _)| *n == name);
    found.map(|(_, spec)| spec.clone()).ok_or_else(|| unknown(name))
}
