//! The simulated machine above the disk, for loads that make system calls: file system, memory, sysctls.

use iosched_types::nearest::did_you_mean;
use iosched_types::units::parse_bytes;
use iosched_types::{Bytes, Nanos};

use crate::source::{At, Read, Source};

/// Memory of the machine unless it is said, in bytes.
const MEMORY: Bytes = 4 << 30;
/// Least and most memory.
const LEAST: Bytes = 16 << 20;
const MOST: Bytes = 16 << 40;

/// Which file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FsType {
    /// ext4 with jbd2 above the page cache.
    #[default]
    Ext4,
    /// XFS with its log above the page cache.
    Xfs,
    /// Neither journal, read-ahead nor write-back: names cost nothing, memory is without end.
    Simple,
}

/// The file systems by name.
pub const FS_TYPES: &[(&str, FsType)] =
    &[("ext4", FsType::Ext4), ("xfs", FsType::Xfs), ("simple", FsType::Simple)];

impl FsType {
    /// Its name, as `mount` prints it.
    #[must_use]
    pub fn name(self) -> &'static str {
        FS_TYPES.iter().find(|(_, t)| *t == self).map_or("", |(name, _)| name)
    }

    /// Its mount options here.
    fn options(self) -> &'static [&'static str] {
        match self {
            FsType::Ext4 => &["barrier", "nobarrier", "commit", "noatime", "data=ordered"],
            FsType::Xfs => &["barrier", "nobarrier", "noatime", "inode64"],
            FsType::Simple => &[],
        }
    }

    /// The smallest one that its `mkfs` makes here.
    fn least(self) -> Bytes {
        match self {
            FsType::Ext4 => 512 << 20,
            FsType::Xfs => 300 << 20,
            FsType::Simple => 0,
        }
    }
}

/// What a file system is mounted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// `barrier`, `nobarrier`: flushes of the disk's cache.
    pub barrier: bool,
    /// `commit`: the age of a transaction at its commit, in nanoseconds.
    pub commit: Nanos,
}

impl Default for MountOptions {
    fn default() -> Self {
        MountOptions { barrier: true, commit: 5_000_000_000 }
    }
}

/// `vm.*` sysctls. What is not set has the kernel's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sysctls {
    /// Percent of memory that may be dirty.
    pub dirty_ratio: Option<u64>,
    /// Percent of memory above which the kernel writes in the background.
    pub dirty_background_ratio: Option<u64>,
    /// The same in bytes; wins over the percentage.
    pub dirty_bytes: Option<Bytes>,
    /// The same for the background.
    pub dirty_background_bytes: Option<Bytes>,
    /// Hundredths of a second between two looks of the flusher.
    pub dirty_writeback_centisecs: Option<u64>,
    /// Hundredths of a second after which dirty pages are old.
    pub dirty_expire_centisecs: Option<u64>,
}

/// A sysctl: its name, its bounds, and where it is kept.
type Known = (&'static str, u64, u64, fn(&mut Sysctls) -> &mut Option<u64>);

const SYSCTLS: &[Known] = &[
    ("vm.dirty_ratio", 0, 100, |s| &mut s.dirty_ratio),
    ("vm.dirty_background_ratio", 0, 100, |s| &mut s.dirty_background_ratio),
    ("vm.dirty_bytes", 8192, 1 << 50, |s| &mut s.dirty_bytes),
    ("vm.dirty_background_bytes", 1, 1 << 50, |s| &mut s.dirty_background_bytes),
    ("vm.dirty_writeback_centisecs", 1, 1_000_000, |s| &mut s.dirty_writeback_centisecs),
    ("vm.dirty_expire_centisecs", 1, 100_000_000, |s| &mut s.dirty_expire_centisecs),
];

/// The machine.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpec {
    /// The file system of the disk.
    pub filesystem: FsType,
    /// Its mount options.
    pub options: MountOptions,
    /// The same as they were given, for a mount by the running kernel.
    pub given: Vec<String>,
    /// Its size; the device's unless it is said.
    pub size: Option<Bytes>,
    /// Memory for the page cache, in bytes.
    pub memory: Bytes,
    /// Sysctls.
    pub sysctls: Sysctls,
    /// Files that are there before the load, with their lengths.
    pub files: Vec<(String, Bytes)>,
    /// How long before the simulated time begins the file system was mounted, in nanoseconds.
    pub mounted_since: Nanos,
    /// Whether it was mounted anew after the load's files were made, so that none of its metadata is in memory.
    pub remounted: bool,
    /// How long fio takes to start before its first job runs, in nanoseconds.
    pub starts_after: Nanos,
    /// The flex group at which the search for a directory of the root begins, by name, where it is known. A file system
    /// takes it from the name and a random number of its own; other names begin anywhere, but always at the same place.
    pub spread: Vec<(String, u64)>,
}

impl Default for HostSpec {
    fn default() -> Self {
        HostSpec {
            filesystem: FsType::default(),
            options: MountOptions::default(),
            given: Vec::new(),
            size: None,
            memory: MEMORY,
            sysctls: Sysctls::default(),
            files: Vec::new(),
            mounted_since: 0,
            remounted: false,
            starts_after: 0,
            spread: Vec::new(),
        }
    }
}

impl HostSpec {
    /// Sets the file system from `TYPE[:OPTION,…]`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn set_filesystem(&mut self, text: &str) -> Result<(), String> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        self.set_type(name)?;
        self.set_options(options)
    }

    fn set_type(&mut self, name: &str) -> Result<(), String> {
        let found = FS_TYPES.iter().find(|(n, _)| *n == name);
        self.filesystem = found.map(|(_, t)| *t).ok_or_else(|| {
            let names: Vec<&str> = FS_TYPES.iter().map(|(n, _)| *n).collect();
            let near = nearest(name, &names);
            format!("there is no file system \"{name}\" here; known: {}{near}", names.join(", "))
        })?;
        Ok(())
    }

    /// Sets mount options from a list as `mount -o` takes it.
    ///
    /// # Errors
    /// An option that is not known, or that the file system has not.
    pub fn set_options(&mut self, list: &str) -> Result<(), String> {
        for option in list.split(',').map(str::trim).filter(|o| !o.is_empty()) {
            self.set_option(option)?;
            self.given.push(option.into());
        }
        Ok(())
    }

    fn set_option(&mut self, option: &str) -> Result<(), String> {
        let fs = self.filesystem;
        if fs == FsType::Simple {
            return Err(format!("the simple file system has no mount option {option}"));
        }
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match (fs, name, value) {
            (_, "barrier", "") | (FsType::Ext4, "barrier", "1") => self.options.barrier = true,
            (_, "nobarrier", "") | (FsType::Ext4, "barrier", "0") => self.options.barrier = false,
            (FsType::Ext4, "commit", seconds) => {
                let n: u64 =
                    seconds.parse().ok().filter(|n| (1..=300).contains(n)).ok_or(format!(
                        "commit={seconds}: whole seconds from 1 to 300 are expected"
                    ))?;
                self.options.commit = n * 1_000_000_000;
            }
            // What the models do anyway.
            (_, "noatime" | "defaults" | "rw" | "nodiscard", "")
            | (FsType::Ext4, "delalloc", "")
            | (FsType::Ext4, "data", "ordered")
            | (FsType::Xfs, "inode64" | "noquota", "") => {}
            _ => {
                let known = fs.options();
                let (near, name) = (nearest(name, known), fs.name());
                return Err(format!(
                    "{name} has no mount option \"{option}\" here; known: {}{near}",
                    known.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Sets a sysctl by name.
    ///
    /// # Errors
    /// An unknown name, or a value out of range.
    pub fn set_sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        let dotted = name.replace('/', ".");
        let Some((name, least, most, place)) = SYSCTLS.iter().find(|k| k.0 == dotted) else {
            let names: Vec<&str> = SYSCTLS.iter().map(|k| k.0).collect();
            let near = nearest(&dotted, &names);
            return Err(format!("unknown sysctl {name}; known: {}{near}", names.join(", ")));
        };
        let number: Option<u64> = value.trim().parse().ok();
        match number.filter(|n| (*least..=*most).contains(n)) {
            Some(n) => *place(&mut self.sysctls) = Some(n),
            None => return Err(format!("{name} = {value} is out of range: {least} to {most}")),
        }
        Ok(())
    }

    /// Sets the memory from a size such as `512M`.
    ///
    /// # Errors
    /// No size, or one out of range.
    pub fn set_memory(&mut self, text: &str) -> Result<(), String> {
        let bytes = size(text)?;
        if !(LEAST..=MOST).contains(&bytes) {
            return Err(format!("memory = {text} is out of range: 16M to 16T"));
        }
        self.memory = bytes;
        Ok(())
    }

    /// `[filesystem]` of a file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn read_filesystem(&mut self, src: &Source<'_>, at: &At<'_>) -> Read<()> {
        let table = src.table(at, "filesystem")?;
        src.known(table, "[filesystem]", &["type", "options", "size"])?;
        if let Some(at) = table.get("type") {
            let name = src.string(at, "type")?;
            self.set_type(&name).map_err(|m| src.error(at, m))?;
        }
        if let Some(at) = table.get("options") {
            let list = src.string(at, "options")?;
            self.set_options(&list).map_err(|m| src.error(at, m))?;
        }
        if let Some(at) = table.get("size") {
            let text = src.string(at, "size")?;
            let size = size(&text).map_err(|m| src.error(at, m))?;
            self.size = Some(size);
        }
        Ok(())
    }

    /// `memory` of a file.
    ///
    /// # Errors
    /// No size, or one out of range.
    pub fn read_memory(&mut self, src: &Source<'_>, at: &At<'_>) -> Read<()> {
        let text = src.string(at, "memory")?;
        self.set_memory(&text).map_err(|m| src.error(at, m))
    }

    /// What is wrong with it on a device of so many bytes.
    #[must_use]
    pub fn misfit(&self, capacity: Bytes) -> Option<String> {
        let size = self.size.unwrap_or(capacity);
        if self.filesystem == FsType::Simple {
            return None;
        }
        if size > capacity {
            return Some(format!("a file system of {size} bytes is larger than the device"));
        }
        let (name, least) = (self.filesystem.name(), self.filesystem.least());
        (size < least)
            .then(|| format!("{name} needs {} MiB here; the device has {size} bytes", least >> 20))
    }
}

fn size(text: &str) -> Result<Bytes, String> {
    let bytes = parse_bytes(text);
    bytes.ok_or_else(|| format!("\"{text}\" is no size; such as 512M or 8G"))
}

fn nearest(word: &str, names: &[&str]) -> String {
    let near = did_you_mean(word, names.iter().copied());
    if near.is_empty() { near } else { format!(" ({near})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_is_named_with_its_options() {
        let mut h = HostSpec::default();
        h.set_filesystem("ext4:nobarrier,commit=30,noatime").unwrap();
        assert_eq!(h.options, MountOptions { barrier: false, commit: 30_000_000_000 });
        h.set_filesystem("xfs:noatime").unwrap();
        assert_eq!(h.filesystem, FsType::Xfs);
        for (text, says) in [
            ("ext5", "ext4"),
            ("ext4:commit=0", "1 to 300"),
            ("ext4:nobarier", "nobarrier"),
            ("simple:barrier", "no mount option"),
            ("xfs:commit=5", "xfs has no mount option"),
            ("xfs:nobarier", "nobarrier"),
        ] {
            let m = h.set_filesystem(text).unwrap_err();
            assert!(m.contains(says), "{text}: {m}");
        }
    }

    #[test]
    fn sysctls_have_bounds_and_nearest_names() {
        let mut h = HostSpec::default();
        h.set_sysctl("vm/dirty_ratio", "5").unwrap();
        assert_eq!(h.sysctls.dirty_ratio, Some(5));
        assert!(h.set_sysctl("vm.dirty_ratio", "101").unwrap_err().contains("0 to 100"));
        assert!(h.set_sysctl("vm.dirty_rato", "5").unwrap_err().contains("vm.dirty_ratio"));
        assert!(h.set_memory("0").unwrap_err().contains("16M"));
        assert!(h.set_memory("much").is_err());
        h.set_memory("512M").unwrap();
        assert_eq!(h.memory, 512 << 20);
    }

    #[test]
    fn a_file_system_fits_its_device() {
        let mut h = HostSpec { size: Some(2 << 30), ..HostSpec::default() };
        assert!(h.misfit(1 << 30).unwrap().contains("larger"));
        h.size = None;
        assert!(h.misfit(1 << 20).unwrap().contains("512 MiB"));
        assert_eq!(h.misfit(1 << 30), None);
    }
}
