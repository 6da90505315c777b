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
    let mut help = did_you_mean(name, names());
    if help.is_empty() {
        help = format!("the catalogue has: {}", names().collect::<Vec<_>>().join(", "));
    }
    UnknownDevice { name: name.to_string(), help }
}

/// The device of a name.
///
/// # Errors
/// [`UnknownDevice`] with the nearest name.
pub fn find(name: &str) -> Result<DeviceSpec, UnknownDevice> {
    let found = all().iter().find(|(n, _)| *n == name);
    found.map(|(_, spec)| spec.clone()).ok_or_else(|| unknown(name))
}
