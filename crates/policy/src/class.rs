//! Classes of devices, with the facts that rules can see.

use std::collections::BTreeMap;

use iosched_types::Diagnostic;
use serde::Deserialize;

/// A class of devices. All names are those of sysfs and udev. A value `?` is there, but differs from drive to drive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Short name: `sata-hdd`.
    pub name: String,
    /// A few words for people.
    pub title: String,
    /// Name of the kernel: `sdb`, `nvme0n1`.
    pub kernel: String,
    /// `queue/rotational`.
    pub rotational: bool,
    /// Whether something turns in it; by default `queue/rotational`, which bridges and hosts get wrong.
    #[serde(default)]
    pub spins: Option<bool>,
    /// A class that differs in nothing but the name.
    #[serde(default)]
    pub sibling: Option<String>,
    /// For hidden ones: the class of the same drive without multipath.
    #[serde(default)]
    pub beside: Option<String>,
    /// `removable`.
    #[serde(default)]
    pub removable: bool,
    /// Hardware queues.
    #[serde(default = "one")]
    pub hw_queues: u16,
    /// Whether all hardware queues share one set of tags.
    #[serde(default)]
    pub shared_tags: bool,
    /// Requests that the driver takes at a time, in each hardware queue.
    #[serde(default = "one")]
    pub depth: u32,
    /// It passes bios on and has no scheduler (md, most of dm, zram).
    #[serde(default)]
    pub bio_based: bool,
    /// `queue/zoned`.
    #[serde(default = "none")]
    pub zoned: String,
    /// Its table comes after the event `add` (dm).
    #[serde(default)]
    pub late: bool,
    /// Its disks send no events (the paths of an NVMe multipath head).
    #[serde(default)]
    pub hidden: bool,
    /// `systemd-detect-virt` where it is found.
    #[serde(default = "none")]
    pub virt: String,
    /// Properties that udev's own rules set: `ID_BUS`, `ID_TYPE` …
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// More attributes: `size`, `device/model` …
    #[serde(default)]
    pub attrs: BTreeMap<String, String>,
    /// The devices above it, the nearest first.
    #[serde(default)]
    pub parents: Vec<Parent>,
    /// The device of the catalogue that stands for it; none: it has no scheduler, or no model.
    #[serde(default)]
    pub device: Option<String>,
}

/// A device above a disk.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parent {
    /// Its name.
    #[serde(default)]
    pub kernel: String,
    /// Its subsystem: `scsi`, `usb`, `nvme`, `virtio`, `mmc`, `pci` …
    #[serde(default)]
    pub subsystem: String,
    /// Its driver.
    #[serde(default)]
    pub driver: String,
    /// Its attributes.
    #[serde(default)]
    pub attrs: BTreeMap<String, String>,
}

fn one<T: From<u8>>() -> T {
    1.into()
}

fn none() -> String {
    "none".into()
}

impl Class {
    /// Whether something turns in it.
    #[must_use]
    pub fn spins(&self) -> bool {
        self.spins.unwrap_or(self.rotational)
    }

    /// The name of its first partition.
    #[must_use]
    pub fn partition(&self) -> String {
        let digit = self.kernel.ends_with(|c: char| c.is_ascii_digit());
        format!("{}{}1", self.kernel, if digit { "p" } else { "" })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    class: Vec<Class>,
}

/// Classes of a text: `[[class]]` tables.
///
/// # Errors
/// What is wrong with it, and where.
pub fn classes_from_toml(file: &str, text: &str) -> Result<Vec<Class>, Diagnostic> {
    let parsed: Result<File, toml::de::Error> = toml::from_str(text);
    let classes = parsed.map_err(|e| {
        let span = e.span().unwrap_or(0..0);
        Diagnostic::at_span(file, text, span, e.message().trim())
            .with_help("a class is a table [[class]] with name, title, kernel, rotational …; data/policy/classes.toml has examples")
    })?;
    match classes.class.is_empty() {
        true => Err(Diagnostic::file(file, "there is no class of devices in it")),
        false => Ok(classes.class),
    }
}

/// The classes that come with the program.
#[must_use]
pub fn builtin_classes() -> Vec<Class> {
    let text = include_str!("../../../data/policy/classes.toml");
    classes_from_toml("data/policy/classes.toml", text)
        .expect("the file that comes with the program is valid")
}
