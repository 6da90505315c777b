//! What a parsed job file means: plain data, no text left to interpret.

use serde::{Deserialize, Serialize};

use iosched_types::{Bytes, IoPrio, Nanos};

use super::commands::Caches;
use super::exits::ExitWhat;
use super::file_options::FileOptions;
use super::taus::{StreamId, Taus88};

/// All jobs of one run, after `[global]`, includes, overrides and `numjobs` were applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobSet {
    /// The processes in fio's order (thread numbers from 1).
    pub jobs: Vec<JobSpec>,
    /// Options that were accepted without effect on timing, each as a sentence with its place.
    pub warnings: Vec<String>,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Section name.
    pub name: String,
    /// fio's thread number, from 1 over all jobs of the run; seeds derive from it.
    pub thread: u32,
    /// fio's number among the clones of one section (`numjobs`): the first process has 0, the following
    /// ones n − 1 down to 1. `offset_increment` counts by it.
    pub subjob: u32,
    /// Reporting group (`new_group`, `stonewall` start a new one), from 0.
    pub group: u32,
    /// Whether the group is reported as one (`group_reporting`).
    pub group_reporting: bool,
    /// When it starts.
    pub wait: Wait,
    /// `rw` and its parts.
    pub pattern: Pattern,
    /// Block sizes of reads, writes and trims.
    pub bs: BlockSizes,
    /// `ioengine`.
    pub engine: IoEngine,
    /// `iodepth` (1 for synchronous engines).
    pub iodepth: u32,
    /// `iodepth_batch` / `iodepth_batch_submit`.
    pub batch_submit: u32,
    /// `iodepth_batch_complete_min`.
    pub batch_complete_min: u32,
    /// `iodepth_batch_complete_max`; 0 means as many as there are.
    pub batch_complete_max: u32,
    /// `iodepth_low`.
    pub iodepth_low: u32,
    /// What it works on.
    pub target: Target,
    /// `io_size`: bytes to transfer before the job (or one loop of it) ends; `None` is the size.
    pub io_size: Option<Bytes>,
    /// `number_ios`.
    pub number_ios: Option<u64>,
    /// `loops`.
    pub loops: u64,
    /// `runtime`.
    pub runtime: Option<Nanos>,
    /// `time_based`.
    pub time_based: bool,
    /// `ramp_time`.
    pub ramp_time: Nanos,
    /// How long it runs before it is measured, by no option of fio: unlike a ramp it ends at its moment for every job, and only
    /// the figures begin anew.
    pub warm_up: Nanos,
    /// `O_DIRECT`.
    pub direct: bool,
    /// `sync`: 0 none, 1 `O_SYNC`, 2 `O_DSYNC`.
    pub sync: u8,
    /// `fsync`: after this many writes; 0 never.
    pub fsync: u32,
    /// `fdatasync`.
    pub fdatasync: u32,
    /// `end_fsync`.
    pub end_fsync: bool,
    /// What it does with its files around its I/O.
    #[serde(default)]
    pub file_options: FileOptions,
    /// `rwmixread` in percent.
    pub rwmixread: u32,
    /// Offsets' distribution (`random_distribution`), by read, write, trim.
    pub distribution: [Distribution; 3],
    /// `percentage_random` by read, write, trim.
    pub percentage_random: [u32; 3],
    /// `norandommap`.
    pub norandommap: bool,
    /// `randrepeat`.
    pub randrepeat: bool,
    /// `randseed`, `None` when not given.
    pub randseed: Option<u64>,
    /// Think time.
    pub think: ThinkTime,
    /// Rate limits by read, write, trim.
    pub rate: [Rate; 3],
    /// Priority (`prioclass`, `prio`).
    pub prio: IoPrio,
    /// `nice`.
    pub nice: i8,
    /// `flow` weight, 0 when unused.
    pub flow: i64,
    /// `flow_id`.
    pub flow_id: u32,
    /// `flow_watermark`.
    pub flow_watermark: u64,
    /// `flow_sleep`.
    pub flow_sleep: Nanos,
    /// `cgroup` path and `cgroup_weight`.
    pub cgroup: Option<(String, Option<u32>)>,
    /// `read_iolog`: the entries to replay instead of a pattern (already parsed).
    pub replay: Option<super::iolog::IoLog>,
    /// `write_iolog`: name of the log to write.
    pub write_iolog: Option<String>,
    /// Options that only the real fio can follow, by fio's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live_only: Vec<(String, String)>,
    /// `cpus_allowed`: CPUs, empty for all.
    pub cpus: Vec<u16>,
    /// `exitall`, with `exit_what`: the jobs that end when this one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_all: Option<ExitWhat>,
    /// `exec_prerun`.
    #[serde(default, skip_serializing_if = "Caches::is_none")]
    pub caches_before: Caches,
    /// `exec_postrun`.
    #[serde(default, skip_serializing_if = "Caches::is_none")]
    pub caches_after: Caches,
    /// Percentiles to report (`percentile_list`), empty for fio's own list.
    pub percentiles: Vec<f64>,
    /// Where the section begins: file and line, for messages.
    pub place: String,
}

impl Default for JobSpec {
    /// fio's defaults: a sequential reader of 4 KiB blocks, one at a time.
    fn default() -> Self {
        JobSpec {
            name: String::new(),
            thread: 1,
            subjob: 0,
            group: 0,
            group_reporting: false,
            wait: Wait::default(),
            pattern: Pattern::default(),
            bs: BlockSizes::default(),
            engine: IoEngine::Psync,
            iodepth: 1,
            batch_submit: 1,
            batch_complete_min: 1,
            batch_complete_max: 1,
            iodepth_low: 1,
            target: Target { nrfiles: 1, ..Target::default() },
            io_size: None,
            number_ios: None,
            loops: 1,
            runtime: None,
            time_based: false,
            ramp_time: 0,
            warm_up: 0,
            direct: false,
            sync: 0,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            file_options: FileOptions::default(),
            rwmixread: 50,
            distribution: Default::default(),
            percentage_random: [100; 3],
            norandommap: false,
            randrepeat: true,
            randseed: None,
            think: ThinkTime { blocks: 1, ..ThinkTime::default() },
            rate: Default::default(),
            prio: IoPrio::default(),
            nice: 0,
            flow: 0,
            flow_id: 0,
            flow_watermark: 0,
            flow_sleep: 0,
            cgroup: None,
            replay: None,
            write_iolog: None,
            live_only: Vec::new(),
            exit_all: None,
            caches_before: Caches::default(),
            caches_after: Caches::default(),
            cpus: Vec::new(),
            percentiles: Vec::new(),
            place: String::new(),
        }
    }
}

impl Default for Pattern {
    fn default() -> Self {
        Pattern {
            read: true,
            write: false,
            trim: false,
            random: false,
            trim_then_write: false,
            ddir_seq_nr: 1,
            stride: 0,
            identical: false,
        }
    }
}

impl Default for BlockSizes {
    fn default() -> Self {
        BlockSizes {
            range: [(4096, 4096); 3],
            split: Default::default(),
            unaligned: false,
            align: [4096; 3],
            seq_rand: false,
        }
    }
}

/// When a job starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// Waits for every job before it (`stonewall`/`wait_for_previous`). Only the first clone of a section
    /// has it; jobs start in their order, so everything after a waiting job waits with it.
    pub stonewall: bool,
    /// `startdelay`; the smallest when a range is given.
    pub delay: Nanos,
    /// Largest delay of a range, from which each job draws its own; equal to `delay` for one value.
    pub delay_max: Nanos,
}

impl JobSpec {
    /// [`JobSpec::sync`] as the job opens its files: fio opens those that it trims without.
    #[must_use]
    pub fn opens_synced(&self) -> u8 {
        if self.pattern.trim { 0 } else { self.sync }
    }

    /// How many I/Os the job may have under way. io_uring's rings have powers of two, and fio fills them.
    #[must_use]
    pub fn units(&self) -> u32 {
        match self.engine {
            engine if engine.is_sync() => 1,
            IoEngine::IoUring => {
                self.iodepth.max(1).checked_next_power_of_two().unwrap_or(self.iodepth)
            }
            _ => self.iodepth.max(1),
        }
    }

    /// How long the job waits before it starts. A range gives a drawn value.
    #[must_use]
    pub fn start_delay(&self) -> Nanos {
        let w = &self.wait;
        if w.delay_max <= w.delay {
            return w.delay;
        }
        Taus88::of_job(StreamId::StartDelay, self).between(w.delay, w.delay_max)
    }
}

/// `rw=` taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// It reads.
    pub read: bool,
    /// It writes.
    pub write: bool,
    /// It trims.
    pub trim: bool,
    /// Offsets are random.
    pub random: bool,
    /// `trimwrite`/`randtrimwrite`: each block is trimmed, then written.
    pub trim_then_write: bool,
    /// The number behind a colon: random: I/Os before a new offset; sequential: see `stride`.
    pub ddir_seq_nr: u64,
    /// Sequential with `rw=read:8k`: bytes added after each I/O (may be negative).
    pub stride: i64,
    /// `rw_sequencer=identical`.
    pub identical: bool,
}

/// Block sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockSizes {
    /// (min, max) by read, write, trim; equal for a fixed size.
    pub range: [(Bytes, Bytes); 3],
    /// `bssplit` by read, write, trim; empty for none. Percentages sum to 100.
    pub split: [Vec<SplitEntry>; 3],
    /// `bs_unaligned`.
    pub unaligned: bool,
    /// `blockalign` by read, write, trim.
    pub align: [Bytes; 3],
    /// `bs_is_seq_rand`: read size is for sequential, write size for random I/O.
    pub seq_rand: bool,
}

impl BlockSizes {
    /// Mean size of the I/Os of a direction.
    #[must_use]
    pub fn mean(&self, dir: usize) -> Bytes {
        match &self.split[dir][..] {
            [] => self.range[dir].0.midpoint(self.range[dir].1),
            split => split.iter().map(|e| e.bs * Bytes::from(e.percent)).sum::<Bytes>() / 100,
        }
    }
}

/// One entry of `bssplit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitEntry {
    /// Block size.
    pub bs: Bytes,
    /// Percent of the I/Os.
    pub percent: u32,
}

/// Submission and completion model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IoEngine {
    /// `lseek` + `read`/`write`.
    Sync,
    /// `pread`/`pwrite`.
    Psync,
    /// `readv`/`writev`.
    Vsync,
    /// `preadv`/`pwritev`.
    Pvsync,
    /// `preadv2`/`pwritev2`.
    Pvsync2,
    /// Linux native asynchronous I/O.
    Libaio,
    /// io_uring.
    #[serde(rename = "io_uring")]
    IoUring,
    /// glibc's POSIX AIO (threads), modelled as an asynchronous queue.
    Posixaio,
    /// Memory that is mapped to a file.
    Mmap,
    /// Makes its files, and does nothing in them.
    FileCreate,
    /// Asks for the state of its files.
    FileStat,
    /// Removes its files.
    FileDelete,
}

impl IoEngine {
    /// Whether a call returns only when the I/O is done.
    #[must_use]
    pub fn is_sync(self) -> bool {
        !matches!(self, IoEngine::Libaio | IoEngine::IoUring | IoEngine::Posixaio)
    }

    /// Whether it works on names alone: what it does with each file is all that is measured.
    #[must_use]
    pub fn is_of_names(self) -> bool {
        matches!(self, IoEngine::FileCreate | IoEngine::FileStat | IoEngine::FileDelete)
    }
}

/// What a job works on. Positions are bytes on the device. When a job names files instead of the device, the experiment
/// lays them out one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// `filename` entries (several, split at `:`), empty when fio would make up names.
    pub files: Vec<String>,
    /// `directory`.
    pub directory: Option<String>,
    /// `nrfiles`.
    pub nrfiles: u32,
    /// `size` of the whole job in bytes, `None` is the whole device; see `size_percent`.
    pub size: Option<Bytes>,
    /// `size=50%`.
    pub size_percent: Option<u32>,
    /// `io_size=50%`, of the size.
    pub io_size_percent: Option<u32>,
    /// `filesize` range, if given.
    pub filesize: Option<(Bytes, Bytes)>,
    /// `offset` in bytes.
    pub offset: Bytes,
    /// `offset=50%`.
    pub offset_percent: Option<u32>,
    /// `offset_align`.
    pub offset_align: Bytes,
    /// `offset_increment` in bytes, not multiplied yet: real offset = offset + subjob · this.
    pub offset_increment: Bytes,
    /// `offset_increment=10%`.
    pub offset_increment_percent: Option<u32>,
    /// `file_service_type`.
    pub service: FileService,
}

/// `file_service_type`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum FileService {
    /// Next file after `n` I/Os.
    RoundRobin(u32),
    /// Random file after `n` I/Os.
    Random(u32),
    /// One after the other until done.
    #[default]
    Unset,
    /// Finish a file, then the next.
    Sequential,
    /// Zipf over files, `theta`.
    Zipf(f64),
    /// Pareto over files.
    Pareto(f64),
    /// Normal over files.
    Normal(f64),
}

/// Distribution of random offsets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Distribution {
    /// Uniform.
    #[default]
    Random,
    /// `zipf:theta[/center]`.
    Zipf(f64, Option<f64>),
    /// `pareto:power[/center]`.
    Pareto(f64, Option<f64>),
    /// `normal:deviation[/center]` in percent.
    Normal(f64, Option<f64>),
    /// `zoned:access%/size%:…`.
    Zoned(Vec<(u32, f64)>),
    /// `zoned_abs:access%/size:…`.
    ZonedAbs(Vec<(u32, Bytes)>),
}

/// `thinktime` and its companions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThinkTime {
    /// Time between blocks.
    pub time: Nanos,
    /// Part of it spent spinning.
    pub spin: Nanos,
    /// I/Os between thinks (`thinktime_blocks`), at least 1; `u64::MAX` when only the time counts.
    pub blocks: u64,
    /// Count issued rather than completed blocks (`thinktime_blocks_type=issue`).
    pub issue: bool,
    /// `thinktime_iotime`: think after this much I/O time instead of blocks; 0 unused.
    pub iotime: Nanos,
}

/// `rate`, `rate_iops`, `rate_min`, `rate_iops_min`; 0 is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Bytes per second.
    pub bytes: u64,
    /// I/Os per second.
    pub iops: u32,
    /// Smallest acceptable bytes per second (reported).
    pub min_bytes: u64,
    /// Smallest acceptable I/Os per second (reported).
    pub min_iops: u32,
    /// `rate_process=poisson`.
    pub poisson: bool,
}
