//! Mount options: what each does, for which file system, since and until which kernel.

use iosched_schedulers::KernelVersion;
use iosched_types::nearest::did_you_mean;
use iosched_types::units::parse_bytes;
use iosched_types::{Bytes, Nanos};

use crate::host::FsType;

/// What becomes of data (`data=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataMode {
    /// On the disk before the metadata that points to it is.
    #[default]
    Ordered,
    /// Whenever.
    Writeback,
    /// Through the journal.
    Journal,
}

/// When a read changes the time of a file's last access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessTime {
    /// Never: what is mounted without a word, here.
    #[default]
    Never,
    /// After a change, or after a day.
    Relative,
    /// In each second.
    Strict,
}

/// What a file system is mounted with. `None`: as its kernel does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// `barrier`, `nobarrier`: flushes of the disk's cache.
    pub barrier: Option<bool>,
    /// `commit`: the age of a transaction at its commit, in nanoseconds.
    pub commit: Nanos,
    /// `data`.
    pub data: DataMode,
    /// `delalloc`, `nodelalloc`: when blocks are given.
    pub delalloc: bool,
    /// `delalloc` was asked for by name.
    pub delalloc_named: bool,
    /// `lazytime` was asked for.
    pub lazy: bool,
    /// `auto_da_alloc`: a file that replaces another one is written first.
    pub da_alloc: bool,
    /// `dioread_nolock`: new blocks are marked as not written until they are.
    pub unwritten: Option<bool>,
    /// `journal_async_commit`.
    pub async_commit: bool,
    /// `discard`: freed blocks are discarded.
    pub discard: bool,
    /// `noatime`, `relatime`, `strictatime`.
    pub atime: AccessTime,
    /// `logbufs` of XFS.
    pub log_buffers: u32,
    /// `logbsize` of XFS.
    pub log_buffer: Bytes,
    /// What was accepted without any effect here, and why.
    pub without_effect: Vec<String>,
}

impl Default for MountOptions {
    fn default() -> Self {
        MountOptions {
            barrier: None,
            commit: 5_000_000_000,
            data: DataMode::default(),
            delalloc: true,
            delalloc_named: false,
            lazy: false,
            da_alloc: true,
            unwritten: None,
            async_commit: false,
            discard: false,
            atime: AccessTime::default(),
            log_buffers: 8,
            log_buffer: 32 << 10,
            without_effect: Vec::new(),
        }
    }
}

/// What an option does with its value.
enum Does {
    /// A word: sets something.
    Set(fn(&mut MountOptions)),
    /// A value: sets something, or says what is expected.
    Takes(fn(&mut MountOptions, &str) -> Result<(), &'static str>),
    /// What is done anyway.
    Nothing,
    /// It is taken, and changes nothing here; why.
    Warns(&'static str),
}
use Does::{Nothing, Set, Takes, Warns};

struct MountOption {
    name: &'static str,
    of: &'static [FsType],
    does: Does,
}

const EXT: &[FsType] = &[FsType::Ext3, FsType::Ext4];
const EXT3: &[FsType] = &[FsType::Ext3];
const EXT4: &[FsType] = &[FsType::Ext4];
const XFS: &[FsType] = &[FsType::Xfs];
const ALL: &[FsType] = &[FsType::Ext3, FsType::Ext4, FsType::Xfs];

const fn option(name: &'static str, of: &'static [FsType], does: Does) -> MountOption {
    MountOption { name, of, does }
}

const ALIGNS: &str = "places are not aligned to stripes here";
const ATTRIBUTES: &str = "attributes are not simulated";
const LAZY: &str = "inode tables that mkfs left to the kernel are not written here";

const OPTIONS: &[MountOption] = &[
    option("defaults", ALL, Nothing),
    option("rw", ALL, Nothing),
    option("noatime", ALL, Set(|o| o.atime = AccessTime::Never)),
    option("relatime", ALL, Set(|o| o.atime = AccessTime::Relative)),
    option("strictatime", ALL, Set(|o| o.atime = AccessTime::Strict)),
    option("atime", ALL, Set(|o| o.atime = AccessTime::Strict)),
    option("nodiratime", ALL, Nothing),
    option("lazytime", ALL, Warns("times are noted at once here")),
    option("barrier", ALL, Set(|o| o.barrier = Some(true))),
    option("nobarrier", ALL, Set(|o| o.barrier = Some(false))),
    option("barrier=", EXT, Takes(barrier)),
    option("commit=", EXT, Takes(commit)),
    option("data=", EXT, Takes(data)),
    option("errors=", EXT, Warns("there are no errors to handle here")),
    option("user_xattr", EXT, Warns(ATTRIBUTES)),
    option("nouser_xattr", EXT, Nothing),
    option("acl", EXT, Warns(ATTRIBUTES)),
    option("noacl", EXT, Nothing),
    option("reservation", EXT3, Nothing),
    option("noreservation", EXT3, Warns("files always have a window here")),
    option("delalloc", EXT4, Set(|o| (o.delalloc, o.delalloc_named) = (true, true))),
    option("nodelalloc", EXT4, Set(|o| (o.delalloc, o.delalloc_named) = (false, false))),
    option("auto_da_alloc", EXT4, Set(|o| o.da_alloc = true)),
    option("noauto_da_alloc", EXT4, Set(|o| o.da_alloc = false)),
    option("dioread_nolock", EXT4, Set(|o| o.unwritten = Some(true))),
    option("nodioread_nolock", EXT4, Set(|o| o.unwritten = Some(false))),
    option("dioread_lock", EXT4, Set(|o| o.unwritten = Some(false))),
    option("journal_checksum", EXT4, Nothing),
    option("journal_async_commit", EXT4, Set(|o| o.async_commit = true)),
    option("discard", EXT4, Set(|o| o.discard = true)),
    option("discard", XFS, Warns("XFS discards nothing here")),
    option("nodiscard", &[FsType::Ext4, FsType::Xfs], Set(|o| o.discard = false)),
    option("max_batch_time=", EXT4, Warns("it is for mounts with sync")),
    option("min_batch_time=", EXT4, Warns("it is for mounts with sync")),
    option("init_itable", EXT4, Warns(LAZY)),
    option("init_itable=", EXT4, Warns(LAZY)),
    option("noinit_itable", EXT4, Nothing),
    option("inode_readahead_blks=", EXT4, Warns("32 blocks of the inode table are read together")),
    option("no_prefetch_block_bitmaps", EXT4, Warns("bitmaps are in memory when they are needed")),
    option("journal_ioprio=", EXT4, Warns("the journal's thread has the priority of its kernel")),
    option("stripe=", EXT4, Warns(ALIGNS)),
    option("logbufs=", XFS, Takes(log_buffers)),
    option("logbsize=", XFS, Takes(log_buffer)),
    option("inode64", XFS, Nothing),
    option("inode32", XFS, Warns("inodes lie in the group of their directory")),
    option("noquota", XFS, Nothing),
    option("attr2", XFS, Nothing),
    option(
        "allocsize=",
        XFS,
        Warns("what is taken along with an append follows the kernel's own rule"),
    ),
    option("sunit=", XFS, Warns(ALIGNS)),
    option("swidth=", XFS, Warns(ALIGNS)),
    option("noalign", XFS, Nothing),
    option("largeio", XFS, Warns("programs are not told of a best size")),
    option("nolargeio", XFS, Nothing),
    option("ikeep", XFS, Nothing),
    option("noikeep", XFS, Warns("chunks of inodes stay")),
    option("wsync", XFS, Warns("names are changed in memory first")),
];

fn barrier(o: &mut MountOptions, value: &str) -> Result<(), &'static str> {
    o.barrier = Some(match value {
        "0" => false,
        "1" => true,
        _ => return Err("0 or 1 is expected"),
    });
    Ok(())
}

fn commit(o: &mut MountOptions, value: &str) -> Result<(), &'static str> {
    let seconds: Option<u64> = value.parse().ok().filter(|n| *n <= 300);
    let n = seconds.ok_or("whole seconds from 0 (5 s) to 300 are expected")?;
    o.commit = if n == 0 { 5 } else { n } * 1_000_000_000;
    Ok(())
}

fn data(o: &mut MountOptions, value: &str) -> Result<(), &'static str> {
    o.data = match value {
        "ordered" => DataMode::Ordered,
        "writeback" => DataMode::Writeback,
        "journal" => DataMode::Journal,
        _ => return Err("ordered, writeback or journal is expected"),
    };
    Ok(())
}

fn log_buffers(o: &mut MountOptions, value: &str) -> Result<(), &'static str> {
    let n = value.parse().ok().filter(|n| (2..=8).contains(n));
    o.log_buffers = n.ok_or("2 to 8 are expected")?;
    Ok(())
}

fn log_buffer(o: &mut MountOptions, value: &str) -> Result<(), &'static str> {
    let n =
        parse_bytes(value).filter(|n| n.is_power_of_two() && (16 << 10..=256 << 10).contains(n));
    o.log_buffer = n.ok_or("16k, 32k, 64k, 128k or 256k is expected")?;
    Ok(())
}

/// The names of file systems as a sentence has them.
fn listed(of: &[FsType]) -> String {
    let names: Vec<&str> = of.iter().map(|f| f.name()).collect();
    names.join(" and ")
}

impl MountOptions {
    /// Sets one option of a file system, such as `commit=30`.
    ///
    /// # Errors
    /// An option that is not known, one of another file system, or a value that it does not take.
    pub fn set(&mut self, fs: FsType, option: &str) -> Result<(), String> {
        if fs == FsType::Simple {
            return Err(format!("the simple file system has no mount option {option}"));
        }
        let (key, value) = match option.split_once('=') {
            Some((name, value)) => (format!("{name}="), Some(value)),
            None => (option.to_string(), None),
        };
        let named: Vec<&MountOption> = OPTIONS.iter().filter(|o| o.name == key).collect();
        let Some(found) = named.iter().find(|o| o.of.contains(&fs)) else {
            return Err(unknown(fs, option, &key, &named));
        };
        match (&found.does, value) {
            (Set(set), _) => set(self),
            (Takes(set), Some(value)) => {
                set(self, value).map_err(|expected| format!("{option}: {expected}"))?;
            }
            (Warns(why), _) => {
                let fs = fs.name();
                self.lazy |= found.name == "lazytime";
                self.without_effect
                    .push(format!("{fs}: the mount option {option} has no effect: {why}"));
            }
            (Takes(_) | Nothing, _) => {}
        }
        Ok(())
    }

    /// What the kernel would not mount so.
    #[must_use]
    pub fn misfit(&self, fs: FsType, kernel: KernelVersion) -> Option<String> {
        if fs == FsType::Xfs && self.barrier == Some(false) && kernel >= KernelVersion(4, 19, 0) {
            return Some("XFS has no nobarrier since Linux 4.19".into());
        }
        if self.lazy && kernel < KernelVersion(4, 0, 0) {
            return Some(format!("{} has lazytime since Linux 4.0", fs.name()));
        }
        let journal = self.data == DataMode::Journal;
        if journal && self.delalloc_named {
            return Some(
                "the kernel mounts nothing with both data=journal and delalloc: blocks are given at once there".into(),
            );
        }
        // Later ones mount it and leave dioread_nolock out.
        if journal && self.unwritten == Some(true) && kernel < KernelVersion(5, 6, 0) {
            return Some(
                "the kernel mounts nothing with both data=journal and dioread_nolock before Linux 5.6".into(),
            );
        }
        if self.async_commit && self.data == DataMode::Ordered {
            return Some(
                "journal_async_commit goes with data=writeback or data=journal only".into(),
            );
        }
        let since = |what: &str, v: KernelVersion| {
            (kernel < v).then(|| format!("ext4 has {what} since Linux {}.{}", v.0, v.1))
        };
        let late = |given: bool, what, v| if given { since(what, v) } else { None };
        late(self.discard, "discard", KernelVersion(2, 6, 33)).or_else(|| {
            late(self.unwritten == Some(true), "dioread_nolock", KernelVersion(2, 6, 34))
        })
    }
}

fn unknown(fs: FsType, option: &str, key: &str, named: &[&MountOption]) -> String {
    let name = fs.name();
    if let Some(other) = named.first() {
        let belongs = listed(other.of);
        return format!("{option} is a mount option of {belongs}, not of {name}");
    }
    // A word that wants a value, or none.
    let bare = key.trim_end_matches('=');
    let other_form = |o: &&MountOption| o.name.trim_end_matches('=') == bare && o.of.contains(&fs);
    if let Some(form) = OPTIONS.iter().find(other_form) {
        let wants = if form.name.ends_with('=') { "a value" } else { "no value" };
        return format!("the mount option {bare} takes {wants}");
    }
    let mut known: Vec<&str> = Vec::new();
    for name in OPTIONS.iter().filter(|o| o.of.contains(&fs)).map(|o| o.name) {
        let name = name.trim_end_matches('=');
        if !known.contains(&name) {
            known.push(name);
        }
    }
    let near = did_you_mean(bare, known.iter().copied());
    let near = if near.is_empty() { near } else { format!(" ({near})") };
    format!("{name} has no mount option \"{option}\" here{near}; known: {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(fs: FsType, list: &str) -> Result<MountOptions, String> {
        let mut o = MountOptions::default();
        list.split(',').try_for_each(|one| o.set(fs, one))?;
        Ok(o)
    }

    #[test]
    fn every_option_does_something_or_says_that_it_does_not() {
        let other = MountOptions {
            discard: true,
            delalloc: false,
            da_alloc: false,
            atime: AccessTime::Strict,
            ..MountOptions::default()
        };
        let values = ["1", "ordered", "journal", "5", "4", "64k"];
        for o in OPTIONS {
            for fs in o.of {
                let words: Vec<String> = match o.name.strip_suffix('=') {
                    Some(name) => values.iter().map(|v| format!("{name}={v}")).collect(),
                    None => vec![o.name.to_string()],
                };
                let changes = [MountOptions::default(), other.clone()].iter().any(|before| {
                    words.iter().any(|word| {
                        let mut after = before.clone();
                        after.set(*fs, word).is_ok() && after != *before
                    })
                });
                assert_eq!(changes, !matches!(o.does, Nothing), "{} of {}", o.name, fs.name());
            }
        }
    }

    #[test]
    fn each_known_option_is_told_once() {
        let said = set(FsType::Ext4, "foo").unwrap_err();
        let known = said.split_once("known: ").unwrap().1.split(", ");
        let mut known: Vec<&str> = known.collect();
        known.sort_unstable();
        assert!(known.windows(2).all(|w| w[0] != w[1]), "{known:?}");
    }

    #[test]
    fn an_option_of_another_file_system_is_told() {
        for (fs, option, says) in [
            (FsType::Xfs, "commit=5", "commit=5 is a mount option of ext3 and ext4, not of xfs"),
            (FsType::Ext4, "logbufs=8", "logbufs=8 is a mount option of xfs, not of ext4"),
            (FsType::Ext3, "nodelalloc", "a mount option of ext4, not of ext3"),
            (FsType::Ext4, "nobarier", "nobarrier"),
            (FsType::Ext4, "comit=5", "commit"),
            (FsType::Ext4, "commit", "takes a value"),
            (FsType::Ext4, "noatime=1", "takes no value"),
            (FsType::Ext4, "commit=301", "0 (5 s) to 300"),
            (FsType::Ext4, "data=order", "ordered, writeback or journal"),
            (FsType::Xfs, "logbsize=48k", "16k, 32k"),
            (FsType::Xfs, "logbufs=9", "2 to 8"),
            (FsType::Simple, "noatime", "no mount option"),
        ] {
            let m = set(fs, option).unwrap_err();
            assert!(m.contains(says), "{option}: {m}");
        }
    }

    #[test]
    fn kernels_take_what_they_know() {
        let of = |fs, list: &str, v| set(fs, list).unwrap().misfit(fs, v);
        let (old, new) = (KernelVersion(2, 6, 18), KernelVersion(6, 12, 0));
        let both = |list, v| of(FsType::Ext4, list, v).unwrap_or_default();
        assert!(both("data=journal,delalloc", new).contains("data=journal and delalloc"));
        assert_eq!(both("data=journal,delalloc,nodelalloc", new), "");
        assert_eq!(both("data=journal", new) + &both("delalloc", new), "");
        // Linux 6.18 mounts it with nodioread_nolock.
        assert_eq!(both("data=journal,dioread_nolock", new), "");
        assert!(both("data=journal,dioread_nolock", KernelVersion(4, 12, 0)).contains("5.6"));
        assert!(both("lazytime", KernelVersion(3, 19, 0)).contains("Linux 4.0"));
        assert_eq!(both("lazytime", KernelVersion(4, 0, 0)), "");
        assert!(of(FsType::Xfs, "nobarrier", new).unwrap().contains("4.19"));
        assert_eq!(of(FsType::Xfs, "nobarrier", KernelVersion(4, 12, 0)), None);
        assert!(of(FsType::Ext4, "discard", old).unwrap().contains("2.6"));
        assert!(of(FsType::Ext4, "journal_async_commit", new).unwrap().contains("data="));
        assert_eq!(of(FsType::Ext4, "journal_async_commit,data=writeback", new), None);
    }
}
