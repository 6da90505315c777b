//! fio on files: what fio 3.33 was seen to do by its system calls.
#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_block::{CpuModel, KernelProfile};
use iosched_devices::DeviceSpec;
use iosched_experiment::{
    DURABLE_AFTER, DURABLE_BW, DataMode, FsType, Record, Status, Trial, choose_scheduler,
};
use iosched_schedulers::registry::Registry;
use iosched_sim::simulate;
use iosched_workloads::fio::layout::lay_out;
use iosched_workloads::fio::{JobSet, NoLookup, check_files, parse};

const DISK: &str = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"4GiB\"\nlat_ns=1000000\npar=8\n\
                    [queue]\nqueue_depth=32\n";

fn jobs(text: &str) -> JobSet {
    let jobs = format!("[global]\ndirectory=/data\nbs=4k\n[a]\n{text}\n");
    parse("job", &jobs, &NoLookup, &|_| Err(String::new()), &[]).unwrap()
}

fn trial(text: &str) -> Trial {
    let kernel = KernelProfile::find("6.12").unwrap();
    let device = DeviceSpec::from_toml("constant", DISK).unwrap();
    let scheduler = choose_scheduler("none", &[], &kernel, Registry::builtin()).unwrap();
    Trial::new(device, scheduler, kernel, jobs(text))
}

/// Why a run failed.
fn failed(r: &Record) -> String {
    match &r.status {
        Status::Failed(why) => why.clone(),
        other => panic!("{other:?}"),
    }
}

fn run(text: &str) -> Record {
    simulate(&trial(text)).unwrap()
}

/// What a job leaves in memory is written back after it, in nobody's time: a live run does not wait for it either.
#[test]
fn write_back_after_the_last_process_takes_no_time_of_the_run() {
    let r = run("rw=write\nsize=586m\nbs=64k");
    let job = &r.jobs[0];
    assert_eq!(job.write.bytes, 586 << 20);
    // fio's main thread waits for its process, and ends.
    assert!(r.elapsed - job.ended < 1_000_000, "{} ns, the job {} ns", r.elapsed, job.ended);
    let d = &r.device;
    assert!(d.busy <= r.elapsed, "busy for {} of {} ns", d.busy, r.elapsed);
    assert!(d.bytes[1] < job.write.bytes && d.commands[1] > 0, "{d:?}");
}

fn durable(r: &Record) -> Option<(f64, f64)> {
    let of = |n: &str| r.metrics.iter().find(|m| m.name == n).map(|m| m.value);
    of(DURABLE_BW).zip(of(DURABLE_AFTER))
}

/// Memory takes writes at its own speed. The disk here does eight commands in a millisecond: what counts is when it has all.
#[test]
fn writes_that_nothing_syncs_have_a_rate_until_all_is_durable() {
    let mib = |r: f64| r / 1_048_576.0;
    let text = "rw=write\nsize=64m\nbs=64k\n";
    let r = run(text);
    let (rate, after) = durable(&r).unwrap();
    assert_eq!(r.device.bytes[1], 0, "what the record says of the run itself stays");
    assert!((mib(rate) * after - 64.0).abs() < 1e-6, "{rate} B/s for {after} s");
    assert!(after > 2.0 * r.elapsed as f64 / 1e9, "{after} s, the run {} ns", r.elapsed);
    // Half the bytes in the end: one page written again and again reaches the disk once.
    let again = run("rw=write\nsize=1m\nbs=64k\nloops=64");
    let (less, _) = durable(&again).unwrap();
    assert!(less < rate, "{less} of {rate} B/s");
    for synced in ["fsync=1", "end_fsync=1", "sync=1", "direct=1", "fsync_on_close=1"] {
        assert_eq!(durable(&run(&format!("{text}{synced}"))), None, "{synced}");
    }
    assert_eq!(durable(&run("rw=read\nsize=64m")), None);
}

/// fio 3.33 on Linux 6.12: ten files of 100 KiB are ten data writes and ten commits of two writes each.
#[test]
fn a_file_is_synced_before_it_is_closed() {
    let text = "rw=write\nnrfiles=10\nfilesize=100k\nopenfiles=1\nfile_service_type=sequential\n";
    let writes = |extra: &str| {
        let mut t = trial(&format!("{text}{extra}"));
        t.host.filesystem = FsType::Ext4;
        simulate(&t).unwrap().device.commands[1]
    };
    assert_eq!(writes("fsync_on_close=1"), 30);
    assert!(writes("") < 10, "{}", writes(""));
}

/// Jobs that a time ends leave the flusher in the middle of its work, with commands under way: under every scheduler and
/// on every file system all of that ends.
#[test]
fn what_time_cuts_short_is_durable_later() {
    let both = "rw=randwrite\nsize=256m\nbs=64k\ntime_based\nruntime=1\n[r]\nrw=randread\nsize=64m\n\
                time_based\nruntime=1";
    for scheduler in ["none", "bfq", "mq-deadline", "kyber"] {
        for fs in [FsType::Simple, FsType::Ext4, FsType::Xfs] {
            let mut t = trial(both);
            t.scheduler = choose_scheduler(scheduler, &[], &t.kernel, Registry::builtin()).unwrap();
            t.host.filesystem = fs;
            let r = simulate(&t).unwrap();
            assert_eq!(r.status, Status::Complete, "{scheduler}");
            let (rate, after) = durable(&r).unwrap();
            assert!(rate > 0.0 && after >= 1.0, "{scheduler}: {rate} B/s, {after} s");
        }
    }
}

/// The only file of a job that its time ends is dropped from memory whenever a pass begins anew.
#[test]
fn a_pass_that_begins_anew_reads_from_the_disk() {
    let text = "rw=read\nsize=1m\nbs=64k\ntime_based\nruntime=1\n";
    let dropped = run(text).jobs[0].read.ios;
    let kept = run(&format!("{text}invalidate=0")).jobs[0].read.ios;
    assert!(dropped > 100 && dropped * 5 < kept, "{dropped} I/Os, {kept} from memory");
}

/// What a pass leaves dirty is written before the next one begins, by fio itself, and counts for no I/O's latency.
#[test]
fn the_end_of_a_pass_is_in_no_latency() {
    let r = run("rw=write\nsize=64m\nbs=1m\ntime_based\nruntime=1");
    let write = &r.jobs[0].write;
    // The disk takes eight commands at a time, 512 KiB and a millisecond each: 4 GB/s, less than memory does.
    assert!(r.device.bytes[1] > 1 << 30 && write.ios > 1000, "{} I/Os, {:?}", write.ios, r.device);
    let longest = write.lat.max;
    assert!(longest < 5e6, "{longest} ns");
}

/// Pages of a map in memory cost what fio's copying costs: a job that only its time ends does end.
#[test]
fn maps_in_memory_take_time() {
    for rw in ["read", "randread"] {
        let r = run(&format!("ioengine=mmap\nrw={rw}\nsize=1m\ntime_based\nruntime=400ms"));
        let read = &r.jobs[0].read;
        assert!((390_000_000..410_000_000).contains(&read.runtime), "{} ns", read.runtime);
        assert!(read.ios > 10_000 && read.clat.percentile(50.0) > 100, "{} I/Os", read.ios);
    }
}

/// fio says of a map what its pattern is, unless `fadvise_hint=0`: then random faults read around their pages. Stores fault as
/// loads do.
#[test]
fn faults_of_maps_heed_fadvise_hint() {
    let reads = |rw: &str, hint| {
        let job = format!("ioengine=mmap\nrw={rw}\nsize=4m\nfadvise_hint={hint}");
        run(&job).device.commands[0]
    };
    for rw in ["randread", "randwrite"] {
        assert!((1024..1030).contains(&reads(rw, 1)), "{rw}: {}", reads(rw, 1));
        assert!(reads(rw, 0) < 60, "{rw}: {}", reads(rw, 0));
    }
    // Windows of 128 KiB around pages; twice as much once the file is said to be read in order.
    for rw in ["read", "write"] {
        let (without, with) = (reads(rw, 0), reads(rw, 1));
        assert!((32..40).contains(&without) && (16..24).contains(&with), "{rw}: {without} {with}");
    }
}

/// The file of a mapped job has data before it runs, however its space is got: there is something to map.
#[test]
fn maps_are_written_whatever_fallocate_says() {
    for allocate in ["none", "keep", "native", "truncate"] {
        let r = run(&format!("ioengine=mmap\nrw=write\nsize=1m\nfallocate={allocate}"));
        assert_eq!(r.jobs[0].write.bytes, 1 << 20, "{allocate}");
    }
}

/// `fallocate=none` and `keep` leave a file empty that is only written, so another job's reads are laid out, and come from the
/// disk; `truncate` makes one of holes, and those are read from nowhere.
#[test]
fn files_are_as_long_as_fallocate_makes_them() {
    for (allocate, read) in [("none", true), ("keep", true), ("truncate", false)] {
        let writer = format!("rw=write\nfilename=x\nsize=1m\nnumber_ios=1\nfallocate={allocate}");
        let r = run(&format!("{writer}\n[b]\nrw=read\nfilename=x\nsize=1m\nstonewall"));
        assert_eq!(r.jobs[1].read.bytes, 1 << 20, "{allocate}");
        assert_eq!(r.device.bytes[0] > 0, read, "{allocate}: {:?}", r.device);
    }
}

/// Space that a file was given and nobody has written is read from nowhere: fio's default files, written by less than a page.
#[test]
fn blocks_that_nobody_has_written_are_not_read() {
    for allocate in ["native", "none"] {
        let r = run(&format!("rw=randwrite\nbs=1k\nsize=1m\nfallocate={allocate}"));
        assert_eq!((r.jobs[0].write.ios, r.device.bytes[0]), (1024, 0), "{allocate}");
    }
    // What was written before is.
    let r = run("rw=randwrite\nbs=1k\nsize=1m\noverwrite=1");
    assert_eq!(r.device.bytes[0], 1 << 20);
}

/// A full file system is told by whatever engine: what comes back of a ring was not looked at.
#[test]
fn a_full_disk_is_an_error_of_asynchronous_jobs() {
    for engine in ["io_uring", "libaio", "psync"] {
        let text =
            format!("rw=write\nbs=1m\nsize=600m\nfallocate=none\niodepth=4\nioengine={engine}");
        let mut t = trial(&text);
        t.host.size = Some(512 << 20);
        let error = failed(&simulate(&t).unwrap());
        assert!(error.contains("job a: ENOSPC"), "{engine}: {error}");
    }
}

/// A job that fails ends, and who waits for its end goes on: the run tells its error. It went on for ever.
#[test]
fn a_failed_job_is_no_wall() {
    for wall in ["stonewall", "wait_for_previous"] {
        let text = format!("rw=read\nsize=64k\ncreate_on_open=1\n[b]\n{wall}\nrw=write\nsize=1m");
        let r = run(&text);
        let error = failed(&r);
        assert!(error.contains("job a: EIO") && error.contains("in pread"), "{error}");
        // As in fio, the other goes on, and its figures stay.
        assert!(r.jobs[0].error.as_ref().is_some_and(|e| e.starts_with("EIO")), "{:?}", r.jobs[0]);
        assert_eq!((r.jobs[1].write.bytes, &r.jobs[1].error), (1 << 20, &None));
    }
}

/// What a job did before it failed counts, and whoever failed is named.
#[test]
fn failed_jobs_keep_what_they_measured() {
    let r = run(
        "rw=read\nsize=64k\ncreate_on_open=1\n[b]\nrw=write\nsize=1m\n[c]\nrw=read\nsize=4k\ncreate_on_open=1",
    );
    assert!(
        failed(&r).contains("job a: EIO") && failed(&r).contains("job c: EIO"),
        "{:?}",
        r.status
    );
    assert_eq!(r.jobs.iter().map(|j| j.error.is_some()).collect::<Vec<_>>(), [true, false, true]);
    let mut t = trial("rw=write\nbs=1m\nsize=600m\nfallocate=none");
    t.host.size = Some(512 << 20);
    let r = simulate(&t).unwrap();
    assert!(
        r.jobs[0].write.bytes > 300 << 20 && r.jobs[0].runtime > 0,
        "{:?}",
        r.jobs[0].write.bytes
    );
}

/// Writes that begin amid a page write it once more. Under a plug it is one command with the page behind it; iomap has none,
/// so XFS sends two (seen in `sqlite_wal`). Nine syncs.
#[test]
fn xfs_syncs_without_a_plug_since_iomap() {
    let writes = |kernel| {
        let kernel = KernelProfile::find(kernel).unwrap();
        let device = DeviceSpec::from_toml("constant", DISK).unwrap();
        let scheduler = choose_scheduler("none", &[], &kernel, Registry::builtin()).unwrap();
        let text = "rw=write\nbs=4608\nsize=41472\nfdatasync=1\nfallocate=none";
        let mut t = Trial::new(device, scheduler, kernel, jobs(text));
        t.host.filesystem = FsType::Xfs;
        simulate(&t).unwrap().device.commands[1]
    };
    assert_eq!((writes("4.12"), writes("6.12")), (17, 23));
}

/// One call a file is measured, and all I/Os count.
#[test]
fn engines_of_names_measure_a_call_a_file() {
    for engine in ["filecreate", "filestat", "filedelete"] {
        let r = run(&format!("ioengine={engine}\nnrfiles=3\nfilesize=16k\nsize=48k\nrw=write"));
        let j = &r.jobs[0].write;
        assert_eq!((j.ios, j.bytes, j.clat.count()), (12, 48 << 10, 3), "{engine}");
    }
    let set = parse(
        "job",
        "[a]\nioengine=filestat\nfilename=/dev/x\nsize=4k\n",
        &NoLookup,
        &|_| Err(String::new()),
        &[],
    );
    let errors = check_files(&set.unwrap()).unwrap_err();
    assert!(errors[0].to_string().contains("names of files"), "{}", errors[0]);
}

#[test]
fn clones_append_behind_one_another() {
    let set = jobs("rw=write\nsize=16k\nfilename=x\nfile_append=1\nnumjobs=2");
    let files = lay_out(&set, 1 << 30).unwrap();
    let places: Vec<_> =
        files.iter().map(|f| (f[0].start - f[0].origin, f[0].len, f[0].size)).collect();
    assert_eq!(places, [(0, 16 << 10, 32 << 10), (16 << 10, 16 << 10, 32 << 10)]);
    let r = run("rw=write\nsize=16k\nfilename=x\nfile_append=1\nnumjobs=2\nend_fsync=1");
    assert!(r.jobs.iter().all(|j| j.write.ios == 4));
}

#[test]
fn a_job_that_only_creates_does_no_io() {
    let r = run("rw=read\nsize=1m\ncreate_only=1");
    assert_eq!(r.jobs[0].read.ios, 0);
    assert!(r.elapsed < 1_000_000, "{} ns: its processes are made, and end", r.elapsed);
}

/// Buffered reads of io_uring are under way together; those of libaio wait in the call.
#[test]
fn rings_do_not_wait_in_the_call() {
    let text =
        |engine| format!("ioengine={engine}\niodepth=8\nrw=randread\nsize=8m\nnumber_ios=400");
    let time = |engine| run(&text(engine)).elapsed;
    let (ring, aio) = (time("io_uring"), time("libaio"));
    assert!(ring * 3 < aio, "{ring} ns, libaio {aio} ns");
    let r = run("ioengine=io_uring\niodepth=8\nrw=randwrite\nsize=2m\nfsync=16");
    assert_eq!(r.jobs[0].write.ios, 512);
}

#[test]
fn a_device_is_trimmed_beside_buffered_jobs_and_a_file_is_not() {
    let device = "[a]\nfilename=/dev/x\nrw=trim\nbs=64k\nsize=1m\n[b]\nfilename=/dev/x\nrw=read\nsize=1m\noffset=2m\n";
    let set = parse("job", device, &NoLookup, &|_| Err(String::new()), &[]).unwrap();
    let kernel = KernelProfile::find("6.12").unwrap();
    let disk = DeviceSpec::from_toml("constant", DISK).unwrap();
    let scheduler = choose_scheduler("none", &[], &kernel, Registry::builtin()).unwrap();
    let r = simulate(&Trial::new(disk, scheduler, kernel, set)).unwrap();
    assert_eq!((r.jobs[0].trim.ios, r.jobs[1].read.ios), (16, 256));
    let errors = check_files(&jobs("rw=trim\nsize=1m")).unwrap_err();
    assert!(errors[0].to_string().contains("ENOTTY"), "{}", errors[0]);
}

/// What writers leave to the kernel's threads takes core time, and that is booked.
#[test]
fn the_flusher_has_core_time() {
    let text = "rw=randwrite\nsize=64m\nbs=4k\nnumjobs=2\ntime_based\nruntime=300ms";
    let run = |background| {
        let mut kernel = KernelProfile::find("6.12").unwrap();
        kernel.cpu.model = CpuModel::Cost;
        let disk = DISK.replace("lat_ns=1000000\npar=8", "lat_ns=10000\npar=64");
        let device = DeviceSpec::from_toml("constant", &disk).unwrap();
        let scheduler = choose_scheduler("bfq", &[], &kernel, Registry::builtin()).unwrap();
        let mut t = Trial { cpus: 1, ..Trial::new(device, scheduler, kernel, jobs(text)) };
        t.host.sysctls.dirty_background_bytes = Some(background);
        simulate(&t).unwrap()
    };
    let (much, none) = (run(1 << 20), run(1 << 30));
    let (written, kept) = (much.threads_cpu.total(), none.threads_cpu.total());
    assert!(written > 10_000_000 && kept * 100 < written, "{written} ns, {kept} ns");
    for r in [much, none] {
        let busy = r.cpu().total() as f64 / r.elapsed as f64;
        assert!((0.97..1.01).contains(&busy), "{busy} of a core that is never idle");
    }
}

/// fio 3.33: with `loops` each file is asked for once a pass; what is removed is not there to be removed again (`ENOENT`).
#[test]
fn engines_of_names_do_each_pass_again() {
    let text = |engine, loops| format!("ioengine={engine}\nfilesize=4k\nnrfiles=10\nloops={loops}");
    let asked = |loops| run(&text("filestat", loops)).jobs[0].read.clat.count();
    assert_eq!((asked(1), asked(2)), (10, 20));
    let e = failed(&run(&text("filedelete", 2)));
    assert!(e.contains("ENOENT"), "{e}");
}

/// fio 3.33 measures the syncs of `fsync`, and not that of `end_fsync`.
#[test]
fn the_last_sync_is_not_measured() {
    let syncs = |text: &str| run(&format!("rw=write\nsize=256k\n{text}")).jobs[0].sync.ios;
    assert_eq!((syncs("fsync=7"), syncs("fsync=7\nend_fsync=1"), syncs("end_fsync=1")), (9, 9, 0));
}

/// fio 3.33 on ext3: `native` goes on without the space, glibc writes a byte in each block for `posix`, and `keep` fails.
#[test]
fn space_on_ext3_is_what_fio_makes_of_it() {
    let reads = |allocate: &str| {
        let mut t = trial(&format!(
            "filename=x\nrw=write\nsize=1m\nnumber_ios=1\nfallocate={allocate}\n[b]\nfilename=x\nrw=read\nsize=1m\nstonewall"
        ));
        t.host.filesystem = FsType::Ext3;
        simulate(&t).map(|r| (r.jobs[1].read.bytes, r.device.bytes[0]))
    };
    for allocate in ["native", "posix"] {
        // All but the page that the first job has just written.
        assert_eq!(reads(allocate).unwrap(), (1 << 20, (1 << 20) - 4096), "{allocate}");
    }
    let why = reads("keep").unwrap_err().to_string();
    assert!(why.contains("EOPNOTSUPP") && why.contains("fallocate"), "{why}");
}

/// As fio 3.33 counts: an asynchronous engine reads nothing at the end of a file, which is no error, and asks again for the rest of
/// what came short; of that the last call's bytes count. A synchronous engine fails.
#[test]
fn a_read_at_the_end_is_an_error_of_synchronous_engines() {
    let read = |engine: &str, direct: u8, there: u64| {
        let mut t = trial(&format!(
            "ioengine={engine}\ndirect={direct}\nrw=read\nsize=32k\niodepth=4\ncreate_on_open=1"
        ));
        t.host.files.push(("/data/a.0.0".into(), there));
        simulate(&t).map(|r| {
            let read = &r.jobs[0].read;
            (read.ios, read.bytes, read.clat.count())
        })
    };
    for (engine, direct) in
        [("libaio", 0), ("libaio", 1), ("posixaio", 0), ("posixaio", 1), ("io_uring", 0)]
    {
        assert_eq!(read(engine, direct, 0).unwrap(), (8, 0, 8), "{engine} {direct}");
        assert_eq!(read(engine, direct, 10_240).unwrap(), (9, 8192, 8), "{engine} {direct}");
    }
    assert_eq!(read("psync", 0, 10_240).unwrap(), (4, 8192, 2));
}

/// As fio 3.33 counts: behind the end of a file every block is taken to fit. One that does not ends the file, and no other pass
/// follows.
#[test]
fn appending_ends_with_the_first_block_that_does_not_fit() {
    let wrote = |options: &str| {
        let job = run(&format!("ioengine=psync\nsize=1m\nfile_append=1\n{options}"));
        (job.jobs[0].write.ios, job.jobs[0].write.bytes)
    };
    assert_eq!(wrote("rw=write\nbsrange=4k-64k"), (31, 1_011_712));
    assert_eq!(wrote("rw=randwrite\nbsrange=4k-64k"), (12, 331_776));
    assert_eq!(wrote("rw=randwrite\nbssplit=4k/10:64k/90"), (8, 380_928));
    assert_eq!(wrote("rw=write\nsize=1000k\nbssplit=4k/10:64k/90"), (16, 987_136));
    assert_eq!(wrote("rw=randwrite\nsize=4m\nnrfiles=4\nbsrange=4k-64k"), (29, 856_064));
    assert_eq!(wrote("rw=write\nsize=4m\nnrfiles=4\nbsrange=4k-64k"), (115, 4_141_056));
    for more in ["loops=3", "io_size=3m", "time_based\nruntime=2"] {
        assert_eq!(wrote(&format!("rw=write\n{more}")), (256, 1 << 20), "{more}");
    }
    // Without a map nothing but its bytes ends a pass of a synchronous engine.
    assert_eq!(wrote("rw=randwrite\nnorandommap=1\nio_size=3m"), (768, 3 << 20));
}

/// Linux 6.12, event log: a writer of journaled data that has too many dirty pages waits until a commit lets them go home, and the
/// commit comes when it is five seconds old. 40 MiB with a limit of 8 MiB take four commits and 20.1 s there, five here: near the limit
/// the writer is slower.
#[test]
fn journaled_data_holds_writers_back() {
    let mut t = trial("rw=write\nbs=64k\nsize=40m\nioengine=psync\nfallocate=none");
    t.host.options.data = DataMode::Journal;
    t.host.sysctls.dirty_bytes = Some(8 << 20);
    t.host.sysctls.dirty_background_bytes = Some(4 << 20);
    let r = simulate(&t).unwrap();
    let took = r.jobs[0].runtime / 1_000_000;
    assert!((20_000..30_000).contains(&took), "{took} ms");
}

/// A write that alone is more than may be dirty ends, too: its pages are journaled one after another.
#[test]
fn a_large_write_of_journaled_data_ends() {
    let mut t = trial("rw=write\nbs=4m\nsize=8m\nioengine=psync\nfallocate=none");
    t.host.options.data = DataMode::Journal;
    t.host.sysctls.dirty_bytes = Some(1 << 20);
    t.host.sysctls.dirty_background_bytes = Some(512 << 10);
    assert_eq!(simulate(&t).unwrap().jobs[0].write.bytes, 8 << 20);
}

/// Linux 6.18: 400 MB of journaled data, more than a transaction of a journal of 1 GiB can have, took 0.31 s on an emulated disk of
/// this kind on ext4 and 0.43 s on ext3, on a busy machine. Their commit takes two seconds: the writer does not wait for it.
#[test]
fn a_full_transaction_of_journaled_data_does_not_stop_its_writer() {
    for filesystem in [FsType::Ext4, FsType::Ext3] {
        for version in ["4.12", "6.12"] {
            let mut t = trial("rw=write\nbs=64k\nsize=400m\nioengine=psync\nfallocate=none");
            t.kernel = KernelProfile::find(version).unwrap();
            t.device = iosched_devices::catalogue::find("hdd-7200").unwrap();
            t.host.options.data = DataMode::Journal;
            t.host.filesystem = filesystem;
            let r = simulate(&t).unwrap();
            let took = r.jobs[0].runtime / 1_000_000;
            assert!((50..400).contains(&took), "{filesystem:?} {version}: {took} ms");
        }
    }
}
