//! Kernel profiles: which era's block layer, as TOML data in `data/kernels/`.

use serde::{Deserialize, Serialize};

use iosched_schedulers::{BlockPath, KernelVersion};
use iosched_types::nearest::did_you_mean;
use iosched_types::{Diagnostic, DirectSync};

mod cpu;

pub use cpu::{CpuModel, CpuProfile, SchedulerCost};

include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

/// Everything that the simulator needs to know about a kernel, except its schedulers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelProfile {
    /// Version: `6.12`.
    pub version: String,
    /// One line for people.
    pub title: String,
    /// Where its figures come from.
    #[serde(default)]
    pub basis: Basis,
    /// Which block layers it has.
    pub path: Paths,
    /// Ticks per second.
    pub hz: u32,
    /// Default of `queue/nr_requests` on the legacy path.
    pub nr_requests: u32,
    /// Default cap of `queue/max_sectors_kb` (the device's own limit may be lower).
    pub max_sectors_kb: u32,
    /// Segments in a request.
    pub max_segments: u16,
    /// Default of `queue/read_ahead_kb`.
    pub read_ahead_kb: u32,
    /// Scheduler of a device with one hardware queue.
    pub default_scheduler: String,
    /// Scheduler of a device with several hardware queues.
    pub default_scheduler_multi_queue: String,
    /// NCQ slots libata uses: 31 in older kernels, 32 in newer ones.
    pub ncq_depth: u32,
    /// Plugging.
    pub plug: PlugProfile,
    /// The legacy path, where there is one.
    #[serde(default)]
    pub legacy: LegacyProfile,
    /// blk-mq, where there is one.
    #[serde(default)]
    pub mq: MqProfile,
    /// What an I/O costs the CPU.
    #[serde(default)]
    pub cpu: CpuProfile,
}

/// Where the figures of a profile come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A kernel of this version ran the reference jobs, and the simulator is laid beside it.
    Measured,
    /// Descriptions; what they leave open is as in the next measured kernel.
    #[default]
    Described,
}

/// Block layers of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paths {
    /// Only the single-queue path.
    Legacy,
    /// Only blk-mq.
    Mq,
    /// Both; the scheduler decides which.
    Both,
}

/// How submissions are held back for a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlugProfile {
    /// One plug per device (≤ 2.6.38) or per task.
    pub kind: PlugKind,
    /// Requests that end the plug.
    pub max_requests: u32,
    /// Device plug: longest time in ms (at least one jiffy).
    #[serde(default)]
    pub delay_ms: u32,
    /// Task plug: a request of at least this many KiB ends it, 0: of no size. Which one is looked at says `large`.
    #[serde(default = "default_plug_kb")]
    pub max_kb: u32,
    /// Task plug: which request's size may end it.
    #[serde(default)]
    pub large: LargeRequest,
    /// Task plug: the largest direct I/O, in KiB, with pieces that go one by one. A larger one that is split has a plug
    /// for its pieces.
    #[serde(default)]
    pub own_above_kb: u32,
    /// Task plug: hand over sorted by sector.
    #[serde(default)]
    pub sorted: bool,
    /// Task plug: which plugged requests a bio is compared with.
    #[serde(default)]
    pub merge_scan: MergeScan,
    /// Task plug: its requests have the time of the first one until the task sleeps, however often the plug is full.
    #[serde(default)]
    pub keeps_clock: bool,
}

fn default_plug_kb() -> u32 {
    128
}

/// Scope of a plug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlugKind {
    /// Per request queue.
    Device,
    /// Per task.
    Task,
}

/// Which plugged request ends the plug if it is large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LargeRequest {
    /// The one that came last.
    #[default]
    Newest,
    /// The one that came first (late 6.12).
    Oldest,
}

/// Which plugged requests are merge candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergeScan {
    /// All, newest first (≤ 5.15).
    #[default]
    All,
    /// Only the newest (≥ 5.16).
    Newest,
}

/// The single-queue path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegacyProfile {
    /// Whether the request pool is split by direction or by sync/async.
    pub request_classes: RequestClasses,
    /// Whether the elevator core keeps the back-merge hash (else inside each scheduler).
    pub merge_hash: bool,
    /// How barriers and flushes work.
    pub flush: LegacyFlush,
    /// The driver takes a request before it looks whether the device has room, as SCSI and SATA disks do. So one that finds
    /// no room has left the scheduler: it can no longer be merged or overtaken.
    #[serde(default = "yes")]
    pub look_ahead: bool,
    /// At the end of a plug the scheduler is asked before a whole request is appended to another (since about 4.8).
    #[serde(default = "yes")]
    pub asks_about_requests: bool,
}

impl Default for LegacyProfile {
    fn default() -> Self {
        LegacyProfile {
            request_classes: RequestClasses::SyncAsync,
            merge_hash: true,
            flush: LegacyFlush::FlushFua,
            look_ahead: true,
            asks_about_requests: true,
        }
    }
}

/// Classes of the legacy request pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestClasses {
    /// READ and WRITE (2.6.18).
    ReadWrite,
    /// Sync and async (from about 2.6.30).
    SyncAsync,
}

/// Flushes on the legacy path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LegacyFlush {
    /// Barriers drain the queue before and after (2.6.18).
    Barrier,
    /// The flush/FUA sequence (≥ 2.6.37).
    FlushFua,
}

/// The multi-queue path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MqProfile {
    /// Scheduler tags per hardware context: `256` or `2*min(depth,128)`.
    pub scheduler_tags: SchedulerTags,
    /// Pull many requests from the scheduler before offering them (≥ 5.10).
    pub batch_dispatch: bool,
    /// SCSI and SATA: the device's budget is asked for before a request is pulled (≥ 4.15). Until then the driver says
    /// no to a request that has already left the scheduler.
    #[serde(default = "yes")]
    pub budget_first: bool,
    /// A run whose parked requests all found no tag goes on to the scheduler and parks one more; a run that issued a
    /// parked one does not (4.12, 4.13). So requests leave the scheduler as fast as they come, and nothing can merge
    /// with them.
    #[serde(default)]
    pub pulls_past_parked: bool,
    /// The scheduler limits the tags of a sync as those of a write.
    pub limit_flushes: bool,
    /// Without a scheduler, too, a flush waits for data whose own flush has been done (≥ 6.6).
    #[serde(default)]
    pub flush_apart: bool,
    /// A tag wake-up wakes as many waiters as it has tags for (newer sbitmap), or all of one wait queue.
    pub wake_all_in_batch: bool,
    /// How a shallow depth limits tags.
    pub shallow_depth: ShallowDepth,
    /// A scheduler that limits some operations to few tags has tasks woken when an eighth of those is free again. Without
    /// it the eighth is of all tags (4.12).
    #[serde(default = "yes")]
    pub limits_shrink_batches: bool,
    /// Requests get the time at which they begin from the disk's statistics, so without those (`iostats` 0) they have none.
    #[serde(default)]
    pub iostats_stamps: bool,
    /// Merging requires equal ioprio (≥ 5.15).
    pub same_prio_merge: bool,
    /// Writeback throttling is built in and on where its rule says so.
    pub wbt: bool,
}

fn yes() -> bool {
    true
}

impl Default for MqProfile {
    fn default() -> Self {
        MqProfile {
            scheduler_tags: SchedulerTags::TwiceDepth,
            batch_dispatch: true,
            budget_first: true,
            pulls_past_parked: false,
            limit_flushes: true,
            flush_apart: true,
            wake_all_in_batch: true,
            shallow_depth: ShallowDepth::Word,
            limits_shrink_batches: true,
            iostats_stamps: false,
            same_prio_merge: true,
            wbt: true,
        }
    }
}

/// Rule for the number of scheduler tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchedulerTags {
    /// Constant 256 (4.11 to 4.13).
    #[serde(rename = "256")]
    Fixed256,
    /// Twice the device depth. The depth counts as at most 128.
    #[serde(rename = "2*min(depth,128)")]
    TwiceDepth,
    /// This many, whatever the depth. For scenarios in which tags must not run out.
    #[serde(skip)]
    Exactly(u32),
}

impl SchedulerTags {
    /// Tags for a device depth.
    #[must_use]
    pub fn of(self, depth: u32) -> u32 {
        match self {
            SchedulerTags::Fixed256 => 256,
            SchedulerTags::TwiceDepth => 2 * depth.min(128),
            SchedulerTags::Exactly(n) => n,
        }
    }
}

/// Scope of a shallow depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShallowDepth {
    /// Per word of the tag map (until about 6.16).
    Word,
    /// Over the whole map (from about 6.17).
    Map,
}

/// A kernel name that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kernel \"{name}\"; {help}")]
pub struct UnknownKernel {
    /// What was asked for.
    pub name: String,
    /// Nearest name and the list.
    pub help: String,
}

/// The number of a release, counted from 2.6.0: 2.6.39 was followed by 3.0, 3.19 by 4.0, 4.20 by 5.0, and since then
/// each series has had 20.
fn release(v: KernelVersion) -> u32 {
    let minor = u32::from(v.1);
    match v.0 {
        0..=2 => u32::from(v.2),
        3 => 40 + minor,
        4 => 60 + minor,
        major => 81 + 20 * u32::from(major - 5) + minor,
    }
}

impl KernelProfile {
    /// Names of the built-in profiles, oldest first.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        let mut names: Vec<&str> = PROFILES.iter().map(|(n, _)| *n).collect();
        names.sort_by_key(|n| KernelVersion::parse(n));
        names
    }

    /// The built-in profiles in the order in which one is taken where nothing was named: the measured ones first, newest
    /// first.
    pub fn preferred() -> impl Iterator<Item = KernelProfile> {
        let of = |basis| {
            let all = Self::names().into_iter().rev().filter_map(|n| Self::find(n).ok());
            all.filter(move |p| p.basis == basis)
        };
        of(Basis::Measured).chain(of(Basis::Described))
    }

    /// A built-in profile.
    ///
    /// # Errors
    /// The nearest name when there is none of that name.
    pub fn find(name: &str) -> Result<KernelProfile, UnknownKernel> {
        let name = name.strip_prefix('v').unwrap_or(name);
        let Some((_, text)) = PROFILES.iter().find(|(n, _)| *n == name) else {
            let list = format!("known are {}", Self::names().join(", "));
            let help = match Self::nearest(name) {
                // A kernel that there was: nobody mistyped it.
                Some(near) => format!(
                    "Linux {name} has no profile of its own; {list}, and {near} is the nearest. Schedulers can be of \
                     another version than the kernel: --kernel {near} --scheduler {}@{name}",
                    if KernelVersion::parse(name) < Some(KernelVersion(5, 0, 0)) {
                        "deadline"
                    } else {
                        "mq-deadline"
                    }
                ),
                None => {
                    let near = did_you_mean(name, PROFILES.iter().map(|(n, _)| *n));
                    if near.is_empty() { list } else { format!("{near} {list}") }
                }
            };
            return Err(UnknownKernel { name: name.into(), help });
        };
        Ok(Self::from_toml(name, text).expect("built-in profiles parse (tested)"))
    }

    /// The built-in profile that a kernel version is nearest to: by the number of releases between them, among those
    /// with the same block layers. `None` where the text is no version of a kernel.
    #[must_use]
    pub fn nearest(name: &str) -> Option<&'static str> {
        let version = KernelVersion::parse(name).filter(|v| v.0 >= 2)?;
        // Linux 5.0 took the single-queue path out.
        let legacy = version < KernelVersion(5, 0, 0);
        let same = |n: &&&str| Self::find(n).is_ok_and(|p| p.has_path(BlockPath::Legacy) == legacy);
        let apart =
            |n: &&&str| KernelVersion::parse(n).map(|v| release(v).abs_diff(release(version)));
        let names = Self::names();
        names.iter().filter(same).min_by_key(apart).copied()
    }

    /// Parses a profile.
    ///
    /// # Errors
    /// File, line and column of what is wrong.
    pub fn from_toml(file: &str, text: &str) -> Result<KernelProfile, Diagnostic> {
        let profile: KernelProfile = toml::from_str(text).map_err(|e| {
            Diagnostic::at_span(file, text, e.span().unwrap_or(0..0), e.message().to_string())
        })?;
        if KernelVersion::parse(&profile.version).is_none() {
            return Err(Diagnostic::file(
                file,
                format!("\"{}\" is no kernel version", profile.version),
            )
            .with_help("write it like \"6.12\""));
        }
        if profile.hz == 0 || profile.hz > 10_000 {
            return Err(Diagnostic::file(file, "hz must be 1..=10000"));
        }
        Ok(profile)
    }

    /// The version as a number.
    #[must_use]
    pub fn kernel_version(&self) -> KernelVersion {
        KernelVersion::parse(&self.version).unwrap_or(KernelVersion(6, 12, 0))
    }

    /// How a direct write with `O_SYNC` or `O_DSYNC` to a device reaches the medium. Measured under 6.12
    /// (`sim/tests/all/synced_writes.rs`). Not measured, but known: before 4.10 direct I/O had no FUA, and before 2.6.33 the sync of a
    /// device did not flush its cache.
    #[must_use]
    pub fn direct_sync(&self) -> DirectSync {
        match self.kernel_version() {
            v if v < KernelVersion(2, 6, 33) => DirectSync::Cached,
            v if v < KernelVersion(4, 10, 0) => DirectSync::Flush,
            _ => DirectSync::Fua,
        }
    }

    /// Whether the call that discards holds a lock of the device meanwhile, so that several processes discard one after the
    /// other. Measured under 6.12 and 7.1; known of 5.16 on.
    #[must_use]
    pub fn trims_alone(&self) -> bool {
        self.kernel_version() >= KernelVersion(5, 16, 0)
    }

    /// Whether a scheduler of this path can run here by itself (naming a generation overrides it).
    #[must_use]
    pub fn has_path(&self, path: BlockPath) -> bool {
        match self.path {
            Paths::Both => true,
            Paths::Legacy => path == BlockPath::Legacy,
            Paths::Mq => path == BlockPath::Mq,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_parses() {
        let all =
            ["2.6.18", "3.12", "3.14", "4.12", "5.10", "5.15", "6.1", "6.6", "6.12", "6.18", "7.1"];
        assert_eq!(KernelProfile::names(), all);
        let preferred: Vec<String> = KernelProfile::preferred().map(|p| p.version).collect();
        assert_eq!(preferred[..5], ["7.1", "6.12", "4.12", "3.14", "2.6.18"]);
        assert_eq!(preferred.len(), all.len());
        for n in KernelProfile::names() {
            assert_eq!(KernelProfile::find(n).unwrap().version, n);
        }
    }

    #[test]
    fn an_unknown_kernel_is_told_the_nearest() {
        let e = KernelProfile::find("6.13").unwrap_err();
        assert!(e.help.contains("6.12"), "{e}");
        let e = KernelProfile::find("6.x2").unwrap_err();
        assert!(e.help.contains("did you mean"), "{e}");
    }

    /// A real version is no slip of the finger. The next profile has the same block layers and the fewest releases between.
    #[test]
    fn a_kernel_without_a_profile_is_told_which_is_like_it() {
        for (version, near) in [
            ("6.2", "6.1"),
            ("5.16", "5.15"),
            ("5.4", "5.10"),
            ("4.19", "4.12"),
            ("4.4", "4.12"),
            ("3.10", "3.12"),
            ("3.16", "3.14"),
            ("2.6.32", "2.6.18"),
            ("2.6.39", "3.12"),
            ("v6.14", "6.12"),
        ] {
            assert_eq!(KernelProfile::nearest(version), Some(near), "{version}");
            let e = KernelProfile::find(version).unwrap_err();
            assert!(e.help.contains(&format!("{near} is the nearest")), "{e:?}");
            assert!(!e.help.contains("did you mean"), "{e:?}");
        }
        assert_eq!(KernelProfile::nearest("1"), None);
    }
}
