//! Options that shape the simulated job.

use super::option::{Kind, OptionDef};

const MAX: i64 = u32::MAX as i64;
const US: u64 = 1_000;
const SEC: u64 = 1_000_000_000;

const fn row(
    name: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    help: &'static str,
) -> OptionDef {
    OptionDef::sim(name, aliases, kind, help)
}

/// Accepted values of `rw`.
pub(crate) const RW: &[&str] = &[
    "read",
    "write",
    "trim",
    "randread",
    "randwrite",
    "randtrim",
    "rw",
    "readwrite",
    "randrw",
    "trimwrite",
    "randtrimwrite",
];
/// Accepted values of `sync`, by position: none, none, O_SYNC, O_SYNC, O_DSYNC.
pub(crate) const SYNC: &[&str] = &["none", "0", "sync", "1", "dsync"];
/// Accepted values of `file_service_type`.
pub(crate) const SERVICE: &[&str] =
    &["roundrobin", "random", "sequential", "zipf", "pareto", "normal", "gauss"];
/// Accepted values of `random_distribution`.
pub(crate) const DISTRIBUTION: &[&str] =
    &["random", "zipf", "pareto", "normal", "zoned", "zoned_abs"];
/// Accepted values of `replay_skip`.
pub(crate) const SKIP: &[&str] = &["read", "write", "trim", "sync"];

/// The rows.
#[rustfmt::skip] // one option, one line
pub(crate) const SIMULATED: &[OptionDef] = &[
    row("name", &[], Kind::Text, "Name of the section's first job, instead of the section's."),
    row("rw", &["readwrite"], Kind::WordAnd(RW), "Direction and order of the I/Os; `:n` is the offset modifier."),
    row("rw_sequencer", &[], Kind::Word(&["sequential", "identical"]), "What the offset modifier of random I/O repeats: following blocks or the same one."),
    row("bs", &["blocksize"], Kind::Three(&Kind::Size(1)), "Block size."),
    row("bsrange", &["blocksize_range"], Kind::Three(&Kind::SizeRange(false)), "Smallest and largest block size."),
    row("bssplit", &[], Kind::Own("size/percent:size/percent…, up to three lists separated by `,`"), "Mix of block sizes."),
    row("bs_unaligned", &["blocksize_unaligned"], Kind::Flag, "Block sizes of a range need not be multiples of the smallest."),
    row("bs_is_seq_rand", &[], Kind::Bool, "The read size is for sequential, the write size for random I/Os."),
    row("ba", &["blockalign"], Kind::Three(&Kind::Size(1)), "Alignment of random offsets."),
    row("randrepeat", &[], Kind::Bool, "The random offsets are the same in every run."),
    row("randseed", &[], Kind::Size(0), "Seed of the random streams."),
    row("norandommap", &[], Kind::Flag, "Random offsets may repeat before every block was touched."),
    row("random_distribution", &[], Kind::Own("random, zipf:theta[:center], pareto:power[:center], normal:deviation[:center], zoned:access/size:…, zoned_abs:access/size:…"), "Distribution of random offsets."),
    row("percentage_random", &[], Kind::Three(&Kind::Int(0, 100)), "Percentage of a random job's I/Os that are random."),
    row("rwmixread", &[], Kind::Int(0, 100), "Percentage of reads in a mixed job."),
    row("rwmixwrite", &[], Kind::Int(0, 100), "Percentage of writes in a mixed job."),
    row("ioengine", &[], Kind::WordAnd(super::engines::ALL), "How I/O is submitted and reaped."),
    row("iodepth", &[], Kind::Int(1, MAX), "I/Os in flight."),
    row("iodepth_batch", &["iodepth_batch_submit"], Kind::Int(0, MAX), "I/Os submitted at once; 0 is `iodepth`."),
    row("iodepth_batch_complete_min", &["iodepth_batch_complete"], Kind::Int(0, MAX), "Fewest completions to wait for."),
    row("iodepth_batch_complete_max", &[], Kind::Int(0, MAX), "Most completions to take at once; the default is the minimum."),
    row("iodepth_low", &[], Kind::Int(0, MAX), "Depth to drain to before submitting again; the default is `iodepth`."),
    row("direct", &[], Kind::Bool, "O_DIRECT."),
    row("buffered", &[], Kind::Bool, "The opposite of `direct`."),
    row("sync", &[], Kind::Word(SYNC), "O_SYNC or O_DSYNC."),
    row("fsync", &[], Kind::Int(0, MAX), "fsync after this many writes."),
    row("fdatasync", &[], Kind::Int(0, MAX), "fdatasync after this many writes."),
    row("end_fsync", &[], Kind::Bool, "fsync when the writes are done."),
    row("filename_format", &[], Kind::Text, "How names of files are made up: $jobname, $jobnum, $filenum."),
    row("invalidate", &[], Kind::Bool, "Drops cached pages of the files before the job."),
    row("fadvise_hint", &[], Kind::WordAnd(&["0", "1", "none", "random", "sequential"]), "What the kernel is told of the order of the I/Os."),
    row("fallocate", &[], Kind::Word(&["none", "native", "posix", "keep", "truncate", "0", "1"]), "How files to be written get their space."),
    row("overwrite", &[], Kind::Bool, "Writes the files before the job."),
    row("create_on_open", &[], Kind::Bool, "Makes files when they are opened; they are empty then."),
    row("pre_read", &[], Kind::Bool, "Reads the files into memory before the job."),
    row("unlink", &[], Kind::Bool, "Removes the files after the job."),
    row("file_append", &[], Kind::Bool, "Works behind the end that a file has before the job."),
    row("create_only", &[], Kind::Bool, "Lays files out, and does no I/O."),
    row("openfiles", &[], Kind::Int(1, MAX), "Files open at a time: others have their turn when one of them is done."),
    row("stat_type", &[], Kind::Word(&["stat", "lstat", "statx"]), "filestat: system call."),
    row("fsync_on_close", &[], Kind::Bool, "fsync before a file is closed."),
    row("sync_file_range", &[], Kind::Own("wait_before, write, wait_after, separated by `,`; then `:` and a number of writes"), "sync_file_range after this many writes."),
    row("filename", &[], Kind::Text, "Files or devices, separated by `:`."),
    row("directory", &[], Kind::Text, "Where the files are."),
    row("nrfiles", &["nr_files"], Kind::Int(1, 65536), "Number of files."),
    row("file_service_type", &[], Kind::WordAnd(SERVICE), "Which file is next."),
    row("size", &[], Kind::SizeOrPercent, "Size of the region a job works in."),
    row("io_size", &["io_limit"], Kind::SizeOrPercent, "Bytes to transfer."),
    row("filesize", &[], Kind::SizeRange(true), "Size of each file."),
    row("offset", &["fileoffset"], Kind::SizeOrPercent, "Where the region begins."),
    row("offset_increment", &[], Kind::SizeOrPercent, "Added to the offset for each clone."),
    row("offset_align", &[], Kind::Size(0), "Alignment of an offset given in percent."),
    row("number_ios", &[], Kind::Size(0), "I/Os after which the job ends."),
    row("numjobs", &[], Kind::Int(1, MAX), "Clones of the job."),
    row("loops", &[], Kind::Int(1, MAX), "How often the job runs."),
    row("runtime", &["timeout"], Kind::Time(SEC), "Time after which the job ends."),
    row("time_based", &[], Kind::Flag, "The job goes on until `runtime`, however often it must start again."),
    row("ramp_time", &[], Kind::Time(SEC), "Time that runs before anything is counted."),
    row("startdelay", &[], Kind::TimeRange(SEC), "Time before the job starts."),
    row("stonewall", &["wait_for_previous"], Kind::Flag, "Waits until every earlier job is done."),
    row("exitall", &[], Kind::Flag, "When the job ends, those that `exit_what` says end, too, and those of them that have not begun never do."),
    row("exit_what", &[], Kind::Word(super::exits::WORDS), "Which jobs `exitall` ends: those of its group, all up to the next `stonewall`, or all."),
    row("exec_prerun", &[], Kind::Own(super::commands::ACCEPTED), "Drops caches before the job."),
    row("exec_postrun", &[], Kind::Own(super::commands::ACCEPTED), "Drops caches after the job."),
    row("new_group", &[], Kind::Flag, "Starts a new reporting group."),
    row("group_reporting", &[], Kind::Flag, "Reports a group as one."),
    row("thinktime", &[], Kind::Time(US), "Time between I/Os."),
    row("thinktime_spin", &[], Kind::Time(US), "Part of the think time spent computing."),
    row("thinktime_blocks", &[], Kind::Int(1, MAX), "I/Os between two think times."),
    row("thinktime_blocks_type", &[], Kind::Word(&["complete", "issue"]), "Whether completed or issued I/Os are counted for thinking."),
    row("thinktime_iotime", &[], Kind::Time(SEC), "Time of I/O between two think times."),
    row("rate", &[], Kind::Three(&Kind::Size(0)), "Bytes per second at most."),
    row("rate_min", &["ratemin"], Kind::Three(&Kind::Size(0)), "Bytes per second at least (reported)."),
    row("rate_iops", &[], Kind::Three(&Kind::Int(0, MAX)), "I/Os per second at most."),
    row("rate_iops_min", &[], Kind::Three(&Kind::Int(0, MAX)), "I/Os per second at least (reported)."),
    row("rate_process", &[], Kind::Word(&["linear", "poisson"]), "Whether rated I/Os come evenly or as a Poisson process."),
    row("prio", &[], Kind::Int(0, 7), "I/O priority level."),
    row("prioclass", &[], Kind::Int(0, 3), "I/O priority class."),
    row("nice", &[], Kind::Int(-20, 19), "Nice value, from which the kernel derives a priority when none is set."),
    row("flow", &[], Kind::Int(-1000, 1000), "Weight among the jobs of the same `flow_id`. Below zero, the job is held by none and lessens the sum."),
    row("flow_id", &[], Kind::Int(0, MAX), "Group for `flow`."),
    row("flow_sleep", &[], Kind::Size(0), "Microseconds to sleep when the flow holds a job back."),
    row("cgroup", &[], Kind::Text, "Control group of the job."),
    row("cgroup_weight", &[], Kind::Int(100, 1000), "Weight of the control group."),
    row("cpus_allowed", &[], Kind::Cpus, "CPUs the job may run on."),
    row("cpumask", &[], Kind::Size(1), "CPUs the job may run on, as a bit mask."),
    row("cpus_allowed_policy", &[], Kind::Word(&["shared", "split"]), "Whether clones share the CPUs or get one each."),
    row("read_iolog", &[], Kind::Text, "I/O log to replay; several, separated by `:`, go to the clones in turn."),
    row("write_iolog", &[], Kind::Text, "I/O log (version 3) to write; with several trials each adds its name to it."),
    row("replay_no_stall", &[], Kind::Bool, "Replays without the pauses of the log."),
    row("replay_time_scale", &[], Kind::Int(1, MAX), "Rate of a replay in percent of the original."),
    row("replay_scale", &[], Kind::Int(1, MAX), "Divides the offsets of a replay."),
    row("replay_align", &[], Kind::Own("size, a power of 2"), "Aligns the offsets of a replay."),
    row("replay_skip", &[], Kind::Own("read, write, trim, sync; several separated by `,`"), "Operations left out of a replay."),
    row("replay_redirect", &[], Kind::Text, "Device that gets all I/Os of a replay."),
    row("percentile_list", &[], Kind::Floats(100.0), "Percentiles to report."),
    row("kb_base", &[], Kind::Word(&["1024", "1000"]), "What `k` means in sizes."),
];
