//! The simulated machine above the disk, for loads that make system calls: file system, memory, sysctls.

use iosched_schedulers::KernelVersion;
use iosched_types::nearest::did_you_mean;
use iosched_types::units::parse_bytes;
use iosched_types::{Bytes, Nanos};
use iosched_workloads::fio::on_files::Start;

use crate::mount_options::MountOptions;

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
    /// ext3 with jbd above the page cache.
    Ext3,
    /// XFS with its log above the page cache.
    Xfs,
    /// Neither journal, read-ahead nor write-back: names cost nothing, memory is without end.
    Simple,
}

/// The file systems by name.
pub const FS_TYPES: &[(&str, FsType)] = &[
    ("ext4", FsType::Ext4),
    ("ext3", FsType::Ext3),
    ("xfs", FsType::Xfs),
    ("simple", FsType::Simple),
];

impl FsType {
    /// Its name, as `mount` prints it.
    #[must_use]
    pub fn name(self) -> &'static str {
        FS_TYPES.iter().find(|(_, t)| *t == self).map_or("", |(name, _)| name)
    }

    /// The smallest one that its `mkfs` makes here.
    fn least(self) -> Bytes {
        match self {
            FsType::Ext4 | FsType::Ext3 => 512 << 20,
            FsType::Xfs => 300 << 20,
            FsType::Simple => 0,
        }
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

/// A sysctl: its name, its bounds besides 0, where it is kept, and the first kernel that has it. Limits in bytes of 0 leave the
/// percentage in force, as `sysctl -a` shows them; without an interval nothing is written for its age.
type Known = (&'static str, u64, u64, fn(&mut Sysctls) -> &mut Option<u64>, KernelVersion);

const EVER: KernelVersion = KernelVersion(2, 6, 0);
/// Limits in bytes came with this one.
const BYTES: KernelVersion = KernelVersion(2, 6, 29);
/// ext4 came with this one.
const EXT4_SINCE: KernelVersion = KernelVersion(2, 6, 28);

const SYSCTLS: &[Known] = &[
    ("vm.dirty_ratio", 0, 100, |s| &mut s.dirty_ratio, EVER),
    ("vm.dirty_background_ratio", 0, 100, |s| &mut s.dirty_background_ratio, EVER),
    ("vm.dirty_bytes", 8192, 1 << 50, |s| &mut s.dirty_bytes, BYTES),
    ("vm.dirty_background_bytes", 1, 1 << 50, |s| &mut s.dirty_background_bytes, BYTES),
    ("vm.dirty_writeback_centisecs", 0, 1_000_000, |s| &mut s.dirty_writeback_centisecs, EVER),
    ("vm.dirty_expire_centisecs", 0, 100_000_000, |s| &mut s.dirty_expire_centisecs, EVER),
];

/// Sysctls of the same kernels that change nothing here, and why.
const IDLE: &[(&str, &str)] = &[
    ("vm.swappiness", "there is no anonymous memory here that could go to swap"),
    ("vm.vfs_cache_pressure", "names and inodes are not given back for want of memory here"),
];
/// What the kernel has below `vm`, but is an act and no setting.
const DROP: &str = "vm.drop_caches";

/// What does not go together, and what would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// In words.
    pub message: String,
    /// What would do instead.
    pub help: &'static str,
    /// The sysctl that it is about, if it is about one.
    pub sysctl: Option<&'static str>,
}

impl Misfit {
    fn new(message: impl Into<String>, help: &'static str) -> Misfit {
        Misfit { message: message.into(), help, sysctl: None }
    }
}

/// Fullest that a file system can be before a load: it needs room for its own.
const MOST_FILL: u64 = 95;

/// How full a file system is before the load, and how scattered what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Percent of its blocks that are taken.
    pub percent: u64,
    /// Which of the many ways.
    pub seed: u64,
}

/// The machine.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpec {
    /// The file system of the disk.
    pub filesystem: FsType,
    /// It was named: it is not the one of the kernel's time.
    pub named: bool,
    /// How it was used before: files of other sizes were written and removed until so much was left.
    pub fill: Option<Fill>,
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
    /// Whether the load's files are made right after the first mount, before bitmaps of free blocks are in memory.
    pub made_at_once: bool,
    /// How long fio takes to start.
    pub fio_start: Start,
    /// For how long commits of the journal are counted after the end of a program.
    pub watched_after: Nanos,
}

impl Default for HostSpec {
    fn default() -> Self {
        HostSpec {
            filesystem: FsType::default(),
            named: false,
            fill: None,
            options: MountOptions::default(),
            given: Vec::new(),
            size: None,
            memory: MEMORY,
            sysctls: Sysctls::default(),
            files: Vec::new(),
            mounted_since: 0,
            remounted: false,
            made_at_once: false,
            fio_start: Start::default(),
            watched_after: 0,
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
        self.named = true;
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
            self.options.set(self.filesystem, option)?;
            self.given.push(option.into());
        }
        Ok(())
    }

    /// Sets a sysctl by name.
    ///
    /// # Errors
    /// An unknown name, or a value out of range.
    pub fn set_sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        let dotted = name.replace('/', ".");
        let Some((name, least, most, place, _)) = SYSCTLS.iter().find(|k| k.0 == dotted) else {
            if dotted == DROP {
                return Err(format!(
                    "{DROP} is an act and no setting: every run begins without cached data, and scenarios have the call drop_caches"
                ));
            }
            if let Some((name, why)) = IDLE.iter().find(|(name, _)| *name == dotted) {
                let no_effect = format!("the sysctl {name} has no effect: {why}");
                self.options.without_effect.push(no_effect);
                return value
                    .trim()
                    .parse::<u64>()
                    .map(drop)
                    .map_err(|_| format!("{name} = {value} is no number"));
            }
            let names: Vec<&str> = SYSCTLS.iter().map(|k| k.0).collect();
            let near = nearest(&dotted, &names);
            return Err(format!("unknown sysctl {name}; known: {}{near}", names.join(", ")));
        };
        let number: Option<u64> = value.trim().parse().ok();
        match number.filter(|n| *n == 0 || (*least..=*most).contains(n)) {
            Some(n) => *place(&mut self.sysctls) = Some(n),
            None => {
                let or_zero = if *least > 0 { "0 or " } else { "" };
                return Err(format!(
                    "{name} = {value} is out of range: {or_zero}{least} to {most}"
                ));
            }
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
        src.known(table, "[filesystem]", &["type", "options", "size", "fill"])?;
        if let Some(at) = table.get("type") {
            let name = src.string(at, "type")?;
            self.set_type(&name).map_err(|m| src.error(at, m))?;
        }
        if let Some(at) = table.get("options") {
            let list = src.string(at, "options")?;
            self.set_options(&list).map_err(|m| src.error(at, m))?;
        }
        if let Some(at) = table.get("fill") {
            let text = src.string(at, "fill")?;
            self.set_fill(&text).map_err(|m| src.error(at, m))?;
        }
        if let Some(at) = table.get("size") {
            let text = src.string(at, "size")?;
            let size = size(&text).map_err(|m| src.error(at, m))?;
            self.size = Some(size);
        }
        Ok(())
    }

    /// Sets how full and scattered the file system is, from `PERCENT[:SEED]`, such as `70%:3`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn set_fill(&mut self, text: &str) -> Result<(), String> {
        let (percent, seed) = text.split_once(':').unwrap_or((text, "1"));
        let number = percent.strip_suffix('%').unwrap_or(percent).trim().parse().ok();
        let percent = number.filter(|n| *n <= MOST_FILL);
        let parsed = percent.zip(seed.trim().parse().ok());
        let (percent, seed) = parsed.ok_or_else(|| {
            format!(
                "fill = \"{text}\": PERCENT[:SEED] is expected, 0 to {MOST_FILL}, such as 70%:3"
            )
        })?;
        self.fill = (percent > 0).then_some(Fill { percent, seed });
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

    /// The file system that a kernel has, if none was named.
    #[must_use]
    pub fn filesystem_of(&self, kernel: KernelVersion) -> FsType {
        match self.filesystem {
            FsType::Ext4 if !self.named && kernel < EXT4_SINCE => FsType::Ext3,
            named => named,
        }
    }

    /// What is wrong with it on a device of so many bytes, under a kernel.
    #[must_use]
    pub fn misfit(&self, capacity: Bytes, kernel: KernelVersion) -> Option<Misfit> {
        let mut sysctls = self.sysctls;
        let late = SYSCTLS.iter().find(|k| (k.3)(&mut sysctls).is_some() && kernel < k.4);
        if let Some((name, _, _, _, KernelVersion(a, b, c))) = late {
            return Some(Misfit {
                message: format!("{name} came with Linux {a}.{b}.{c}"),
                help: "vm.dirty_ratio and vm.dirty_background_ratio are older",
                sysctl: Some(name),
            });
        }
        let fs = self.filesystem_of(kernel);
        if fs == FsType::Simple {
            let help = "ext4, ext3 and xfs can be filled";
            return self.fill.map(|_| Misfit::new("the simple file system is always fresh", help));
        }
        if fs == FsType::Ext4 && kernel < EXT4_SINCE {
            return Some(Misfit::new("ext4 came with Linux 2.6.28", "ext3 and xfs are older"));
        }
        let size = self.size.unwrap_or(capacity);
        let mib = |bytes: Bytes| bytes >> 20;
        if size > capacity {
            let (size, capacity) = (mib(size), mib(capacity));
            let message = format!(
                "a file system of {size} MiB is larger than the device, which has {capacity}"
            );
            return Some(Misfit::new(message, "leave out its size, or use a larger device"));
        }
        let (name, least) = (fs.name(), fs.least());
        if size < least {
            let (least, size) = (mib(least), mib(size));
            let message = format!("{name} needs {least} MiB here, and gets {size}");
            return Some(Misfit::new(
                message,
                "--filesystem simple has neither journal nor least size",
            ));
        }
        let message = self.options.misfit(fs, kernel)?;
        Some(Misfit::new(message, "leave the mount option out, or take another kernel"))
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

    const NEW: KernelVersion = KernelVersion(6, 12, 0);
    const OLD: KernelVersion = KernelVersion(2, 6, 18);

    #[test]
    fn a_file_system_is_named_with_its_options() {
        let mut h = HostSpec::default();
        h.set_filesystem("ext4:nobarrier,commit=30,noatime").unwrap();
        assert_eq!((h.options.barrier, h.options.commit), (Some(false), 30_000_000_000));
        h.set_filesystem("xfs:noatime").unwrap();
        assert_eq!(h.filesystem, FsType::Xfs);
        for (text, says) in [
            ("ext5", "ext"),
            ("ext4:nobarier", "nobarrier"),
            ("simple:barrier", "no mount option"),
            ("xfs:commit=5", "of ext3 and ext4, not of xfs"),
        ] {
            let m = h.set_filesystem(text).unwrap_err();
            assert!(m.contains(says), "{text}: {m}");
        }
    }

    #[test]
    fn sysctls_have_bounds_and_nearest_names_and_a_first_kernel() {
        let mut h = HostSpec::default();
        h.set_sysctl("vm/dirty_ratio", "5").unwrap();
        assert_eq!(h.sysctls.dirty_ratio, Some(5));
        assert!(h.set_sysctl("vm.dirty_ratio", "101").unwrap_err().contains("0 to 100"));
        assert!(h.set_sysctl("vm.dirty_bytes", "1").unwrap_err().contains("0 or 8192 to"));
        h.set_sysctl("vm.dirty_writeback_centisecs", "0").unwrap();
        assert_eq!(h.sysctls.dirty_writeback_centisecs, Some(0));
        assert!(h.set_sysctl("vm.dirty_rato", "5").unwrap_err().contains("vm.dirty_ratio"));
        for name in ["vm.swappiness", "vm/vfs_cache_pressure"] {
            h.set_sysctl(name, "10").unwrap();
            let said = h.options.without_effect.pop().unwrap();
            assert!(said.contains(&name.replace('/', ".")) && said.contains("no effect"), "{said}");
        }
        assert!(h.set_sysctl("vm.drop_caches", "3").unwrap_err().contains("the call drop_caches"));
        assert!(h.set_memory("0").unwrap_err().contains("16M"));
        assert!(h.set_memory("much").is_err());
        h.set_memory("512M").unwrap();
        assert_eq!(h.memory, 512 << 20);
        assert_eq!(h.misfit(1 << 30, OLD), None);
        h.set_sysctl("vm.dirty_bytes", "1000000").unwrap();
        assert!(h.misfit(1 << 30, OLD).unwrap().message.contains("2.6.29"));
        assert_eq!(h.misfit(1 << 30, NEW), None);
    }

    #[test]
    fn a_file_system_fits_its_device_and_its_kernel() {
        let mut h = HostSpec { size: Some(2 << 30), ..HostSpec::default() };
        assert!(h.misfit(1 << 30, NEW).unwrap().message.contains("larger"));
        h.size = None;
        assert!(h.misfit(1 << 20, NEW).unwrap().message.contains("512 MiB"));
        assert_eq!(h.misfit(1 << 30, NEW), None);
        // Where none is named, it is the kernel's.
        assert_eq!((h.filesystem_of(OLD), h.misfit(1 << 30, OLD)), (FsType::Ext3, None));
        h.set_filesystem("ext4").unwrap();
        assert!(h.misfit(1 << 30, OLD).unwrap().message.contains("2.6.28"));
    }

    #[test]
    fn a_fill_is_percent_and_seed() {
        let mut h = HostSpec::default();
        h.set_fill("70%:3").unwrap();
        assert_eq!(h.fill, Some(Fill { percent: 70, seed: 3 }));
        h.set_fill("50").unwrap();
        assert_eq!(h.fill, Some(Fill { percent: 50, seed: 1 }));
        h.set_fill("0%").unwrap();
        assert_eq!(h.fill, None);
        for wrong in ["", "96%", "-1", "half", "50%:x", "50%:"] {
            assert!(h.set_fill(wrong).unwrap_err().contains("70%:3"), "{wrong}");
        }
        h.set_fill("50%").unwrap();
        h.set_filesystem("simple").unwrap();
        assert!(h.misfit(1 << 30, NEW).unwrap().message.contains("fresh"));
    }
}
