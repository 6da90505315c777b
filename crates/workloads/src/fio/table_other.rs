//! Options without effect on timing, and options that are refused.

use super::option::{Kind, OptionDef};

const MAX: i64 = u32::MAX as i64;
const US: u64 = 1_000;
const SEC: u64 = 1_000_000_000;

const DATA: &str = "the simulator moves no data, and no modelled device looks at it";
const REPORT: &str = "it only changes what fio reports or logs";
const HOST: &str = "host memory and threads cost no time in the model";
const FILES: &str = "files are laid out before the simulation begins";
const NO_ERRORS: &str = "an error ends the simulated job";
const CLOCK: &str = "time is virtual and costs nothing to read";
const UNVERIFIED: &str = "it matters only together with `verify`, which is refused";
const UNZONED: &str = "it matters only together with `zonemode`, which is refused";
const NO_TARGET: &str = "it matters only together with `latency_target`, which is refused";
const NO_STEADY: &str = "it matters only together with `steadystate`, which is refused";
const NO_MERGE: &str = "it matters only together with `merge_blktrace_file`, which is refused";

const fn row(name: &'static str, kind: Kind, why: &'static str, help: &'static str) -> OptionDef {
    OptionDef::noop(name, &[], kind, why, help)
}

const fn no(
    name: &'static str,
    kind: Kind,
    harmless: &'static [&'static str],
    reason: &'static str,
    help: &'static str,
) -> OptionDef {
    OptionDef::refuse(name, kind, harmless, reason, help)
}

/// Accepted with a warning.
#[rustfmt::skip] // one option, one line
pub(crate) const NO_EFFECT: &[OptionDef] = &[
    row("description", Kind::Text, "it is a note", "Description of the job."),
    row("unique_filename", Kind::Bool, FILES, "Prefixes file names by the client's address."),
    row("write_hint", Kind::Word(&["none", "short", "medium", "long", "extreme"]), "no modelled device uses lifetime hints", "Expected lifetime of the data."),
    row("create_serialize", Kind::Bool, FILES, "Lays files out one job at a time."),
    row("create_fsync", Kind::Bool, FILES, "Syncs files after laying them out."),
    row("allow_file_create", Kind::Bool, FILES, "Whether fio may create files."),
    row("allow_mounted_write", Kind::Bool, "no real device is written", "Whether a mounted device may be written."),
    row("unlink_each_loop", Kind::Bool, "files are removed at the end of the job, with unlink=1", "Removes the files after each loop."),
    row("softrandommap", Kind::Bool, "the map of random blocks never fails to be allocated", "Goes on without a map of random blocks when memory is short."),
    row("allrandrepeat", Kind::Bool, "every random stream is seeded and repeats anyway", "Makes all random streams repeatable."),
    row("ignore_error", Kind::Text, NO_ERRORS, "Errors to ignore."),
    row("continue_on_error", Kind::Word(&["none", "read", "write", "io", "verify", "all", "0", "1"]), NO_ERRORS, "Errors after which the job goes on."),
    row("error_dump", Kind::Bool, NO_ERRORS, "Prints each error."),
    row("exitall_on_error", Kind::Flag, NO_ERRORS, "Ends all jobs when one fails."),
    OptionDef::unmodelled("random_generator", Kind::Word(&["tausworthe", "lfsr", "tausworthe64"]), "offsets are drawn by the default generator, each block once a pass as with a shift register", "Generator of random offsets."),
    row("thread", Kind::Flag, HOST, "Threads instead of processes."),
    row("mem", Kind::WordAnd(&["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge", "cudamalloc"]), HOST, "Where the I/O buffers are.").also(&["iomem"]),
    row("iomem_align", Kind::Size(0), HOST, "Alignment of the I/O buffers.").also(&["mem_align"]),
    row("hugepage-size", Kind::Size(0), HOST, "Size of a huge page."),
    row("lockmem", Kind::Size(0), HOST, "Pins memory."),
    row("uid", Kind::Int(0, MAX), "no real file is opened", "User the job runs as."),
    row("gid", Kind::Int(0, MAX), "no real file is opened", "Group the job runs as."),
    row("numa_cpu_nodes", Kind::Text, "memory nodes are not modelled", "NUMA nodes of the job."),
    row("numa_mem_policy", Kind::WordAnd(&["default", "prefer", "bind", "interleave", "local"]), "memory nodes are not modelled", "NUMA memory policy."),
    row("ioscheduler", Kind::Text, "the experiment names the scheduler", "Scheduler to switch the device to."),
    row("clocksource", Kind::Word(&["gettimeofday", "clock_gettime", "cpu"]), CLOCK, "Where fio gets the time from."),
    row("gtod_reduce", Kind::Bool, CLOCK, "Reads the clock less often."),
    row("gtod_cpu", Kind::Int(0, MAX), CLOCK, "CPU that reads the clock for all."),
    row("rate_cycle", Kind::Int(0, MAX), "it only sets how often `rate_min` is checked, and a missed minimum does not end a simulated job", "Window of the rate check in milliseconds.").also(&["ratecycle"]),
    row("zero_buffers", Kind::Flag, DATA, "Writes zeroes."),
    row("refill_buffers", Kind::Flag, DATA, "Refills the buffers for every I/O."),
    row("scramble_buffers", Kind::Bool, DATA, "Changes the buffers a little for every I/O."),
    row("buffer_pattern", Kind::Text, DATA, "Contents of the buffers."),
    row("buffer_compress_percentage", Kind::Int(0, 100), DATA, "How compressible the data is."),
    row("buffer_compress_chunk", Kind::Size(0), DATA, "Granularity of compressible data."),
    row("dedupe_percentage", Kind::Int(0, 100), DATA, "Share of identical buffers."),
    row("dedupe_mode", Kind::Word(&["repeat", "working_set"]), DATA, "How identical buffers are made."),
    row("dedupe_working_set_percentage", Kind::Int(0, 100), DATA, "Size of the set of identical buffers."),
    row("dedupe_global", Kind::Bool, DATA, "Shares identical buffers across jobs."),
    row("do_verify", Kind::Bool, UNVERIFIED, "Verifies after writing."),
    row("verify_interval", Kind::Size(80), UNVERIFIED, "Distance of verification headers."),
    row("verify_offset", Kind::Size(40), UNVERIFIED, "Place of the verification header."),
    row("verify_pattern", Kind::Text, UNVERIFIED, "Pattern to verify."),
    row("verify_fatal", Kind::Bool, UNVERIFIED, "Ends the job at the first mismatch."),
    row("verify_dump", Kind::Bool, UNVERIFIED, "Dumps mismatching blocks."),
    row("verify_async", Kind::Int(0, MAX), UNVERIFIED, "Threads that verify."),
    row("verify_async_cpus", Kind::Text, UNVERIFIED, "CPUs of the threads that verify."),
    row("verify_backlog", Kind::Size(0), UNVERIFIED, "Writes between verifications."),
    row("verify_backlog_batch", Kind::Int(0, MAX), UNVERIFIED, "Blocks verified at a time."),
    row("verify_state_save", Kind::Bool, UNVERIFIED, "Saves the verification state."),
    row("trim_verify_zero", Kind::Bool, UNVERIFIED, "Verifies that trimmed blocks are zero."),
    row("zonesize", Kind::Size(0), UNZONED, "Size of a zone."),
    row("zonerange", Kind::Size(0), UNZONED, "Distance of zones."),
    row("zonecapacity", Kind::Size(0), UNZONED, "Usable size of a zone."),
    row("zoneskip", Kind::SizeOrPercent, UNZONED, "Bytes skipped between zones."),
    row("read_beyond_wp", Kind::Bool, UNZONED, "Reads behind the write pointer."),
    row("max_open_zones", Kind::Int(0, 4096), UNZONED, "Zones open at a time."),
    row("job_max_open_zones", Kind::Int(0, 4096), UNZONED, "Zones open at a time in one job."),
    row("ignore_zone_limits", Kind::Bool, UNZONED, "Ignores the device's limit of open zones."),
    row("zone_reset_threshold", Kind::Floats(1.0), UNZONED, "When zones are reset."),
    row("zone_reset_frequency", Kind::Floats(1.0), UNZONED, "How often zones are reset."),
    row("latency_window", Kind::Time(US), NO_TARGET, "Window of `latency_target`."),
    row("latency_percentile", Kind::Floats(100.0), NO_TARGET, "Percentile of `latency_target`."),
    row("latency_run", Kind::Bool, NO_TARGET, "Goes on when `latency_target` is missed."),
    row("steadystate_duration", Kind::Time(SEC), NO_STEADY, "How long the state must be steady.").also(&["ss_dur"]),
    row("steadystate_ramp_time", Kind::Time(SEC), NO_STEADY, "Time before the state is watched.").also(&["ss_ramp"]),
    row("merge_blktrace_scalars", Kind::Own("numbers separated by `:`"), NO_MERGE, "Scales the merged traces."),
    row("merge_blktrace_iters", Kind::Own("numbers separated by `:`"), NO_MERGE, "Repeats the merged traces."),
    row("read_iolog_chunked", Kind::Bool, "a log is read before the simulation begins", "Reads the log piece by piece."),
    row("cgroup_nodelete", Kind::Bool, "it matters only after the job", "Keeps the control groups afterwards."),
    row("flow_watermark", Kind::Size(0), "fio 3.33 ignores it as well", "Formerly the tolerance of `flow`."),
    row("write_bw_log", Kind::Own("optional text"), REPORT, "Log of bandwidth."),
    row("write_lat_log", Kind::Own("optional text"), REPORT, "Log of latency."),
    row("write_iops_log", Kind::Own("optional text"), REPORT, "Log of IOPS."),
    row("write_hist_log", Kind::Own("optional text"), REPORT, "Log of latency histograms."),
    row("bwavgtime", Kind::Int(0, MAX), REPORT, "Window of bandwidth samples in milliseconds."),
    row("iopsavgtime", Kind::Int(0, MAX), REPORT, "Window of IOPS samples in milliseconds."),
    row("per_job_logs", Kind::Bool, REPORT, "One log per job."),
    row("log_entries", Kind::Int(1024, 1_048_576), REPORT, "First size of a log."),
    row("log_avg_msec", Kind::Int(0, MAX), REPORT, "Window of a log."),
    row("log_hist_msec", Kind::Int(0, MAX), REPORT, "Interval of histogram logs."),
    row("log_hist_coarseness", Kind::Int(0, MAX), REPORT, "Resolution of histogram logs."),
    row("log_max_value", Kind::Bool, REPORT, "Logs the largest instead of the mean value."),
    row("log_offset", Kind::Bool, REPORT, "Logs offsets."),
    row("log_prio", Kind::Bool, REPORT, "Logs priorities."),
    row("log_compression", Kind::Int(1024, 536_870_912), REPORT, "Compresses logs."),
    row("log_compression_cpus", Kind::Text, REPORT, "CPUs that compress logs."),
    row("log_store_compressed", Kind::Bool, REPORT, "Stores logs compressed."),
    row("log_unix_epoch", Kind::Bool, REPORT, "Logs Unix time."),
    row("log_alternate_epoch", Kind::Bool, REPORT, "Logs time of another clock."),
    row("log_alternate_epoch_clock_id", Kind::Int(0, MAX), REPORT, "The other clock."),
    row("block_error_percentiles", Kind::Bool, REPORT, "Histogram of trim errors."),
    row("stats", Kind::Bool, REPORT, "Whether statistics are kept."),
    row("clat_percentiles", Kind::Bool, REPORT, "Percentiles of completion latency."),
    row("lat_percentiles", Kind::Bool, REPORT, "Percentiles of total latency."),
    row("slat_percentiles", Kind::Bool, REPORT, "Percentiles of submission latency."),
    row("significant_figures", Kind::Int(1, 10), REPORT, "Digits in the report."),
    row("disk_util", Kind::Bool, REPORT, "Reports the disk's utilisation."),
    row("disable_lat", Kind::Bool, REPORT, "Keeps no total latency."),
    row("disable_clat", Kind::Bool, REPORT, "Keeps no completion latency."),
    row("disable_slat", Kind::Bool, REPORT, "Keeps no submission latency."),
    row("disable_bw_measurement", Kind::Bool, REPORT, "Keeps no bandwidth samples.").also(&["disable_bw"]),
    row("unified_rw_reporting", Kind::Word(&["none", "mixed", "both", "0", "1", "2"]), REPORT, "Reports reads and writes together."),
    row("unit_base", Kind::Word(&["0", "8", "1"]), REPORT, "Bits or bytes in the report."),
];

/// Refused unless harmless.
#[rustfmt::skip] // one option, one line
pub(crate) const REFUSED: &[OptionDef] = &[
    no("wait_for", Kind::Text, &[], "waiting for one job by name is not simulated; `stonewall` waits for all earlier ones", "Waits for one job."),
    no("lockfile", Kind::Word(&["none", "exclusive", "readwrite"]), &["none"], "file locks are not simulated", "Locks files during I/O."),
    no("opendir", Kind::Text, &[], "there is no directory to read in a simulation", "Opens all files of a directory."),
    no("serialize_overlap", Kind::Bool, &["0"], "waiting for overlapping I/Os is not simulated", "Keeps overlapping I/Os apart."),
    no("io_submit_mode", Kind::Word(&["inline", "offload"]), &["inline"], "a pool of submitting threads is not simulated", "Who submits I/Os."),
    no("fill_device", Kind::Bool, &["0"], "a full file system ends the simulated job", "Writes until the space is gone.").also(&["fill_fs"]),
    no("write_barrier", Kind::Int(0, MAX), &["0"], "Linux has had no barrier writes since 2.6.37", "Makes some writes barriers."),
    no("atomic", Kind::Bool, &["0"], "no kernel of the catalogue has O_ATOMIC", "Atomic writes."),
    no("verify_only", Kind::Flag, &["0"], "verification is not simulated", "Only verifies."),
    no("verify", Kind::Text, &["0"], "the reads of a verification are not simulated", "Reads back and verifies what was written."),
    no("experimental_verify", Kind::Bool, &["0"], "verification is not simulated", "Another way of verification."),
    no("verify_state_load", Kind::Bool, &["0"], "verification is not simulated", "Loads a verification state."),
    no("trim_percentage", Kind::Int(0, 100), &["0"], "trimming verified blocks is not simulated; `rw=trim` and `rw=trimwrite` are", "Share of verified blocks to trim."),
    no("trim_backlog", Kind::Size(0), &["0"], "trimming verified blocks is not simulated", "Writes between trims."),
    no("trim_backlog_batch", Kind::Int(0, MAX), &["0"], "trimming verified blocks is not simulated", "Blocks trimmed at a time."),
    no("merge_blktrace_file", Kind::Text, &[], "blktrace files are not read here", "Merges traces into a file."),
    no("zonemode", Kind::Word(&["none", "strided", "zbd"]), &["none"], "zones are not simulated", "Zones of the device."),
    no("rate_ignore_thinktime", Kind::Bool, &["0"], "a rate without catching up is not simulated", "Whether a rated job catches up after thinking."),
    no("max_latency", Kind::Three(&Kind::Time(US)), &["0"], "it ends the job at a slow I/O, which is not simulated", "Ends the job at a slow I/O."),
    no("latency_target", Kind::Time(US), &["0"], "searching the depth for a latency is not simulated", "Latency to search the depth for."),
    no("steadystate", Kind::Text, &[], "ending at a steady state is not simulated; use `runtime`", "Ends the job when its figures are steady.").also(&["ss"]),
    no("profile", Kind::Text, &[], "built-in profiles replace the job file", "A built-in test."),
];
