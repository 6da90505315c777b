//! Everything people get wrong: a clear word, exit 2, nothing half-written.

use super::{JOB, Place};

/// Runs the job with more arguments and wants exit 2 with these words.
fn refused(more: &[&str], words: &[&str]) {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let mut args = vec!["run", job.as_str()];
    args.extend(more);
    let why = place.fails(2, &args);
    assert!(why.starts_with("error: "), "{why}");
    for w in words {
        assert!(why.contains(w), "{more:?}: no \"{w}\" in: {why}");
    }
    assert!(!place.dir.path().join("results.db").exists(), "nothing was stored");
}

/// An experiment file must be refused with these words.
fn bad_experiment(text: &str, words: &[&str]) {
    let place = Place::new();
    place.file("job.fio", JOB);
    let file = place.file("e.toml", text);
    let why = place.fails(2, &["run", &file]);
    for w in words {
        assert!(why.contains(w), "{text}: no \"{w}\" in: {why}");
    }
}

#[test]
fn unknown_names_are_told_the_nearest() {
    refused(&["--device", "hdd-7200,sdd-sata"], &["--device:1:10", "did you mean \"ssd-sata\"?"]);
    refused(&["--scheduler", "mq-dedline"], &["did you mean \"mq-deadline\"?"]);
    refused(&["--kernel", "6.x2"], &["did you mean \"6.12\"?"]);
    refused(
        &["--scheduler", "mq-deadline", "--tunable", "mq-deadline.fifo_bacth=1"],
        &["did you mean \"fifo_batch\"?"],
    );
    refused(&["--queue", "nr_request=64"], &["did you mean \"nr_requests\"?"]);
    refused(&["--set", "iodpeth=2"], &["unknown option", "did you mean \"iodepth\"?"]);
    refused(&["--backend", "simm"], &["one of: sim, emulated, real, mock"]);
}

/// One setting with two values: both are named.
#[test]
fn a_setting_with_two_values_is_refused() {
    refused(&["--set", "bs=8k", "--set", "bs=16k"], &["bs is set twice: bs=8k and bs=16k"]);
    refused(&["--set", "direct", "--set", "direct=0"], &["direct is set twice"]);
    refused(&["--set", "bs=8k", "--set", "blocksize=16k"], &["bs=8k and blocksize=16k"]);
    let twins = ["--scheduler", "bfq", "--tunable", "bfq.slice_idle=0"];
    refused(
        &[&twins[..], &["--tunable", "bfq.slice_idle_us=8000"]].concat(),
        &["slice_idle=0 and slice_idle_us=8000"],
    );
    refused(&["--device", "sdd=hdd-7200,sde=usb-stick"], &["a trial has one disk"]);
}

/// Words that are no slip of the finger: other names of what there is, kinds of devices, disks, versions.
#[test]
fn what_people_mean_is_told_where_it_has_another_name() {
    refused(&["--kernel", "6.2"], &["known are 2.6.18", "6.1 is the nearest", "mq-deadline@6.2"]);
    refused(&["--device", "ssd"], &["\"ssd\" could be: ssd-sata, nvme, "]);
    refused(&["--device", "samsung"], &["could be: samsung-950-pro, samsung-980-pro"]);
    refused(&["--device", "/dev/absent"], &["cannot read device file", "--backend real"]);
    refused(
        &["--device", "/absent/file"],
        &["iosched list devices", "--backend real, with --size"],
    );
    let place = Place::new();
    let why = place.fails(2, &["run", "postgresql"]);
    assert!(why.contains("unknown workload") && why.contains("pgbench is a PostgreSQL"), "{why}");
    let real = ["run", "database", "--backend", "real", "--device", "/absent/file"];
    let why = place.fails(2, &real);
    assert!(why.contains("there is no file /absent/file"), "{why}");
    assert!(why.contains("--device /absent/iosched-1.img --size 8G"), "{why}");
    for (word, has) in [("job", "database"), ("device", "hdd-7200"), ("kernel", "6.12")] {
        assert!(place.out(&["list", word]).contains(has), "{word}");
    }
    // The version of a scheduler that the help names is one.
    let job = place.file("job.fio", JOB);
    place.out(&["run", &job, "--kernel", "6.12", "--scheduler", "mq-deadline@6.1"]);
    place.out(&["run", &job, "--kernel", "3.12", "--scheduler", "deadline@3.10"]);
}

/// Terminals of scripts often have columns and no rows.
#[test]
fn help_is_as_wide_as_the_terminal() {
    let place = Place::new();
    let program = assert_cmd::cargo::cargo_bin("iosched");
    for (command, size) in [("run -h", "cols 40"), ("-h", "cols 50"), ("list -h", "rows 9 cols 40")]
    {
        let line = format!("stty {size}; {} {command}", program.display());
        let output = std::process::Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .current_dir(place.dir.path())
            .stdin(std::process::Stdio::null())
            .output();
        // Not every machine has it.
        let Ok(output) = output else { return };
        let text = String::from_utf8(output.stdout).unwrap();
        let wide = size.rsplit(' ').next().unwrap().parse::<usize>().unwrap();
        let plain: Vec<String> = text.lines().map(without_colours).collect();
        assert!(plain.len() > 10, "{text}");
        for line in plain.iter().filter(|l| !l.starts_with("Usage:")) {
            assert!(line.chars().count() <= wide, "{command}, {size}: {line}");
        }
    }
}

/// A line as it is seen: without the codes of colours.
fn without_colours(line: &str) -> String {
    let mut parts = line.trim_end().split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |out, part| out + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn a_short_run_is_of_programs() {
    refused(&["--quick"], &["--quick is for programs", "--set runtime=2s"]);
    let mock = ["--backend", "mock", "--iozone", "/nothing/there"];
    refused(&mock, &["/nothing/there is no program", "--program text"]);
}

#[test]
fn a_parameter_given_twice_and_a_place_that_is_not_there_are_told_before_anything_runs() {
    let place = Place::new();
    let twice = ["run", "fsops", "--param", "count=5", "--param", "count=6"];
    let why = place.fails(2, &twice);
    assert!(why.contains("count is set twice") && why.contains("--param:1:1"), "{why}");
    let bench =
        ["bench", "--no-memory", "--depth", "1", "--processes", "1,2", "--svg", "/nonexist/x.svg"];
    let why = place.fails(2, &bench);
    assert!(why.contains("there is no folder /nonexist"), "{why}");
    let folder = ["run", "fsops", "--device", "fixed", "--html", "."];
    let why = place.fails(2, &folder);
    assert!(
        why.contains("cannot write .: it is a folder") && why.contains("name a file in it"),
        "{why}"
    );
}

/// A program of the catalogue with bad words is refused before anything runs, on every backend alike.
#[test]
fn programs_are_refused_with_the_nearest_word_the_bounds_and_the_room() {
    let place = Place::new();
    let refused = |args: &[&str], words: &[&str]| {
        for backend in ["sim", "emulated"] {
            let more = ["--backend", backend, "--device", "ssd-sata", "--scheduler", "none"];
            let why = place.fails(2, &[&["run"], args, &more].concat());
            assert!(words.iter().all(|w| why.contains(w)), "{args:?} on {backend}: {why}");
        }
    };
    refused(&["sqlitte"], &["did you mean \"sqlite\"?"]);
    refused(&["dbench", "--param", "client=3"], &["did you mean \"clients\"?"]);
    refused(&["pgbench", "--param", "mode=tpcd"], &["did you mean \"tpcb\"?"]);
    refused(&["pgbench", "--param", "clients=0"], &["clients=0 is out of range: 1 to 1000"]);
    refused(&["fs-mark", "--param", "size=big"], &["size=big: a number is expected, "]);
    let long = "inserts=99999999999999999999";
    refused(&["sqlite", "--param", long], &[long, "is out of range: 1 to "]);
    refused(&["fs-mark", "--param", "size=99999999999G"], &["is out of range: "]);
    refused(&["video", "--param", "load=10r"], &["did you mean \"10r-seq\"?"]);
    refused(&["pg-test-fsync", "--param", "block=1025"], &["block=1025 is no multiple of 512"]);
    refused(&["sqlite", "--param", "page_size=1000"], &["no power of two", "--param:1:1"]);
    // What a film of that length takes, not only the readers' files.
    let film = ["video", "--param", "rate=1G", "--param", "seconds=10000"];
    refused(&film, &["video needs at least 9.9"]);
    // Of a program that there is not, it is the name that is wrong.
    refused(
        &["sqlit", "--param", "inserts=5"],
        &["unknown workload \"sqlit\"", "did you mean \"sqlite\"?"],
    );
    refused(&["pgbech", "--quick"], &["unknown workload \"pgbech\"", "did you mean \"pgbench\"?"]);
    let large = ["fs-mark", "--param", "n=10000000"];
    refused(
        &large,
        &["device ssd-sata: fs-mark needs at least 9.54 TiB", "there are", "show workload"],
    );
    refused(&["pgbench", "--param", "scale=100000"], &["pgbench needs at least 1.4"]);
    assert!(!place.dir.path().join("results.db").exists(), "nothing was stored");
}

/// 600 KB are above the usual largest length, and not above the one that is set.
#[test]
fn parameters_that_bound_each_other_are_looked_at_together() {
    let place = Place::new();
    let all = ["smallest=600000", "largest=1M", "number=1", "transactions=1"];
    let set = all.iter().flat_map(|p| ["--param", p]);
    let run = ["run", "postmark", "--device", "fixed", "--scheduler", "none"];
    place.out(&run.into_iter().chain(set).collect::<Vec<_>>());
    let why = place.fails(2, &["run", "postmark", "--param", all[0]]);
    assert!(why.contains("smallest=600000 is above largest=524288"), "{why}");
}

#[test]
fn a_version_that_no_scheduler_has_is_not_shown() {
    let place = Place::new();
    let why = place.fails(2, &["show", "scheduler", "bfq@99"]);
    assert!(why.contains("bfq") && why.contains("99") && why.contains("6.12"), "{why}");
    assert!(place.out(&["show", "scheduler", "bfq@5.15"]).contains("Generations"));
}

#[test]
fn deleting_makes_no_results_file() {
    let place = Place::new();
    let why = place.fails(2, &["results", "delete", "999"]);
    assert!(why.contains("there is no results file"), "{why}");
    assert!(!place.dir.path().join("results.db").exists());
    let job = place.file("job.fio", JOB);
    place.out(&["run", &job, "--device", "fixed", "--scheduler", "none"]);
    let why = place.fails(2, &["results", "delete", "999"]);
    assert!(why.contains("\"999\""), "{why}");
}

#[test]
fn a_cache_that_no_device_has_cannot_be_full() {
    refused(&["--device", "fixed", "--device-state", "slc=full"], &["fixed has no such cache"]);
    refused(&["--device", "hdd-7200,fixed", "--device-state", "slc=full"], &["hdd-7200, fixed"]);
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let two = ["run", &job, "--device", "hdd-7200,fixed", "--scheduler", "none"];
    let text = place
        .out(&[&two[..], &["--device-state", "write_cache=full", "--format", "json"]].concat());
    assert!(text.contains("state-ignored") && text.contains("fixed has no write_cache"), "{text}");
}

#[test]
fn values_out_of_bounds() {
    let tunable = ["--scheduler", "mq-deadline", "--tunable", "mq-deadline.fifo_batch=-1"];
    refused(&tunable, &["fifo_batch=-1 is out of range: mq-deadline takes 0 to "]);
    refused(&["--queue", "nr_requests=0"], &["nr_requests=0 is out of range: 1 to "]);
    refused(&["--queue", "nr_requests=nan"], &["takes a whole number"]);
    let model = ["--scheduler", "adios", "--tunable", "adios.lat_model_read=9000000"];
    refused(&model, &["takes BASE:SLOPE", "adios.lat_model_read=9000000:7000"]);
    let tunable = ["--scheduler", "bfq", "--tunable", "bfq.slice_idle=2s"];
    refused(&tunable, &["takes a whole number", "slice_idle is in ms: bfq.slice_idle=2000"]);
    refused(&["--runs", "0"], &["--runs is out of range"]);
    for (option, word) in [
        ("iodepth=0", "out of range"),
        ("bs=0", "out of range"),
        ("bs=-4k", "bs"),
        ("rate=nan", "rate"),
        ("size=99999999999999999999", "size"),
        ("runtime=-1", "runtime"),
    ] {
        refused(&["--set", option], &[word]);
    }
}

/// What schedulers are told about processes: priorities, groups, weights.
#[test]
fn priorities_and_weights() {
    refused(&["--set", "prio=8"], &["prio: 8 is out of range", "0 to 7"]);
    refused(&["--set", "prioclass=4"], &["prioclass: 4 is out of range", "0 to 3"]);
    refused(&["--set", "nice=20"], &["nice: 20 is out of range", "-20 to 19"]);
    refused(&["--set", "cgroup=a", "--set", "cgroup_weight=0"], &["cgroup_weight: 0 is out"]);
    refused(&["--set", "cgroup=a", "--set", "cgroup_weight=1001"], &["1001 is out of range"]);
    refused(&["--set", "cgroup=a/../a"], &["would lead back to itself"]);
    let with = |line: &str| {
        format!(
            "devices = [\"fixed\"]\nschedulers = [\"bfq\"]\nworkloads = [\"job.fio\"]\n[cgroups]\n{line}\n"
        )
    };
    for (line, words) in [
        ("\"a\" = 0", &["e.toml:5:7", "a = 0 is out of range: 1 to 1000"]),
        ("\"a\" = 1001", &["e.toml:5:7", "a = 1001 is out of range"]),
        ("\"a/../a\" = 5", &["e.toml:5:1", "would lead back to itself"]),
        ("\"/\" = 5", &["e.toml:5:1", "the root of all control groups"]),
        ("\"a\" = 5\n\"/a/\" = 6", &["e.toml:6:1", "control group \"a\" has two weights"]),
    ] {
        bad_experiment(&with(line), words);
    }
}

#[test]
fn tunables_and_generations_of_another_scheduler() {
    refused(
        &["--scheduler", "bfq", "--tunable", "bfq.fifo_batch=3"],
        &["bfq has no tunable \"fifo_batch\"", "it has", "slice_idle"],
    );
    refused(
        &["--scheduler", "bfq", "--tunable", "mq-deadline.fifo_batch=3"],
        &["no scheduler \"mq-deadline\" is chosen", "chosen are bfq"],
    );
    refused(
        &["--scheduler", "bfq", "--tunable", "bfq.slice_idle=-1"],
        &["out of range", "takes 0 to "],
    );
    for (name, known) in [
        ("bfq@3.99", "v7r3 (3.14), 4.12 (4.12-4.20), 6.12 (5.0-7.0), 7.1 (7.1+)"),
        ("cfq@5.9", "2.6.18 (2.6.13-2.6.21), 3.12 (2.6.33-4.7), 4.12 (4.8-4.20)"),
        ("anticipatory@3.0", "2.6.18"),
        ("kyber@4.11", "4.12"),
    ] {
        refused(&["--scheduler", name], &["has no generation", "it has", known]);
    }
    refused(&["--scheduler", "bfq@9.9"], &["Linux 9.9 is newer than 7.1", "write bfq@7.1"]);
    // Without --scheduler all that the kernel has are chosen.
    let place = Place::new();
    let run = ["run", "random-read-qd32", "--device", "fixed", "--quiet", "--tunable"];
    let args = [&run[..], &["bfq.low_latency=0"]].concat();
    let out = place.iosched(&args).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(
        out.status.success() && said.contains("low_latency=0") && said.contains("kyber"),
        "{said}"
    );
}

#[test]
fn requests_beyond_the_end_of_the_device() {
    refused(&["--set", "size=900t"], &["beyond the end"]);
    refused(&["--set", "offset=900t"], &["beyond the end"]);
    refused(
        &["--set", "offset=8191p", "--set", "offset_increment=8191p", "--set", "numjobs=5"],
        &["beyond"],
    );
}

#[test]
fn a_scheduler_the_kernel_never_had_says_where_it_lived() {
    refused(
        &["--scheduler", "cfq"],
        &["cfq does not exist in Linux 7.1", "4.12", "write cfq@4.12"],
    );
    refused(&["--scheduler", "kyber", "--kernel", "3.12"], &["kyber does not exist in Linux 3.12"]);
    refused(&["--scheduler", "bfq@1.0"], &["bfq has no generation \"1.0\""]);
}

#[test]
fn files_that_are_none_of_ours() {
    let place = Place::new();
    let binary = place.file("binary.fio", [0x7f, b'E', b'L', b'F', 0, 1, 2]);
    let not_utf8 = place.file("latin.toml", [b'\n', b'n', 0xe9, b'=', 0xff]);
    let empty = place.file("empty.fio", "");
    let no_experiment = place.file("empty.toml", "");
    let long = place.file("long.fio", format!("[a]\nrw={}\n", "r".repeat(1 << 20)));
    place.file("a.inc", "include b.inc\n");
    place.file("b.inc", "include a.inc\n");
    let circle = place.file("circle.fio", "[a]\ninclude a.inc\n");
    let huge = place.dir.path().join("huge.fio");
    // A file of a gigabyte without a byte on the disk.
    std::fs::File::create(&huge).unwrap().set_len(1 << 30).unwrap();
    let huge = huge.display().to_string();
    for (file, word) in [
        ("absent.fio", "no such file"),
        ("absent.toml", "no such file"),
        (binary.as_str(), "binary file"),
        (&not_utf8, "line 2, byte 2 is not UTF-8"),
        (&empty, "there is no job in the file"),
        (&no_experiment, "names no devices"),
        (&long, "64 KiB are the limit"),
        (&circle, "circular include"),
        (&huge, "larger than"),
        ("/dev/zero", "binary file"),
        ("desktopp", "desktop"),
    ] {
        let why = place.fails(2, &["run", file]);
        assert!(why.contains(word), "{file}: {why}");
    }
}

/// A log of strace that lost its `.gz` on the way.
#[test]
fn packed_files_are_known_by_their_first_bytes() {
    use std::io::Write;
    let place = Place::new();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"1 openat(AT_FDCWD, \"f\", O_RDONLY) = 3\n1 read(3, \"\", 5) = 0\n").unwrap();
    let log = place.file("x.strace", packed.finish().unwrap());
    place.out(&["run", &log, "--device", "fixed", "--scheduler", "none", "--quiet"]);
}

#[test]
fn malformed_jobs_point_at_the_place() {
    let place = Place::new();
    let file = place.file("job.fio", "[r]\nfilename=/dev/disk\ndirect=1\niodpeth=32\n");
    let why = place.fails(2, &["run", &file]);
    assert!(why.contains("job.fio:4:1") && why.contains("^^^^^^^"), "{why}");
    let mixed = place.file("mixed.fio", "[r]\nsize=1m\n[d]\nfilename=/dev/disk\n");
    let why = place.fails(2, &["run", &mixed]);
    assert!(why.contains("mixed.fio:1") && why.contains("on the device"), "{why}");
}

#[test]
fn malformed_experiments_point_at_the_place() {
    let good = "devices = [\"fixed\"]\nschedulers = [\"none\"]\nworkloads = [\"job.fio\"]\n";
    bad_experiment("devices = [", &["e.toml:1:"]);
    bad_experiment(&format!("{good}runz = 3\n"), &["e.toml:4:1", "did you mean \"runs\"?"]);
    bad_experiment(&format!("{good}runs = nan\n"), &["runs must be a whole number, not float"]);
    bad_experiment(&format!("{good}runs = 0\n"), &["runs = 0 is out of range"]);
    bad_experiment(&format!("{good}seed = -1\n"), &["seed = -1 is out of range"]);
    bad_experiment(
        &format!("{good}seed = 99999999999999999999\n"),
        &["out of the range of numbers"],
    );
    bad_experiment(&format!("{good}[set]\nruntime = inf\n"), &["finite"]);
    bad_experiment(&format!("{good}[set]\nruntme = 1\n"), &["e.toml:5:1", "runtime"]);
    bad_experiment(&format!("{good}[queue]\nnr_requests = 0\n"), &["e.toml:5:1", "out of range"]);
    bad_experiment("devices = []\n", &["names no devices"]);
    bad_experiment(&good.replace("[\"none\"]", "[\"none\", \"none\"]"), &["is there twice"]);
    bad_experiment(&good.replace("\"fixed\"", "\"absent.toml\""), &["cannot read device file"]);
    bad_experiment(
        &good.replace("\"none\"", "{ name = \"bfq\", tunables = { low_latencyy = 1 } }"),
        &["did you mean \"low_latency\"?"],
    );
}

#[test]
fn a_device_that_cannot_make_progress_is_refused() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let device = place.file("d.toml", "title = \"d\"\n[model]\nkind = \"ssd\"\ncap = \"1GiB\"\n");
    let why = place.fails(2, &["run", &job, "--device", &device]);
    assert!(why.contains("d.toml"), "{why}");
}

#[test]
fn other_commands_refuse_too() {
    let place = Place::new();
    for args in [
        &["show", "device", "hd-7200"][..],
        &["show", "scheduler", "bqf"],
        &["show", "option", "iodept"],
        &["show", "kernel", "7.9"],
        &["explain", "absent.toml"],
        &["validate", "absent"],
        &["results", "list"],
        &["compare", "a", "b"],
        &["bench", "--scheduler", "nonee"],
        &["bench", "--depth", "0"],
        &["bench", "--svg", "never-written.svg", "--depth", "1"],
        &["run"],
        &["frobnicate"],
    ] {
        place.fails(2, args);
    }
}

#[test]
fn an_output_that_cannot_be_written_leaves_nothing() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let why =
        place.fails(2, &["run", &job, "--no-store", "--device", "fixed", "-o", "absent/x.json"]);
    assert!(why.contains("absent/x.json"), "{why}");
    let left: Vec<_> = std::fs::read_dir(place.dir.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn an_option_without_effect_is_named() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let run = ["run", &job, "--no-store", "--device", "fixed", "--trace", "--size", "1G"];
    let said = place.iosched(&run).output().unwrap().stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(
        said.contains("--trace has no effect") && said.contains("--size has no effect"),
        "{said}"
    );
    let live = [
        "run",
        &job,
        "--no-store",
        "--backend",
        "emulated",
        "--scheduler",
        "none",
        "--kernel",
        "3.12",
        "--dry-run",
    ];
    let said = place.iosched(&live).output().unwrap().stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("--kernel has no effect"), "{said}");
    // Keys of a file, too.
    let keys =
        "kernel = [\"4.12\", \"6.12\"]\nmemory = \"1G\"\nsysctl = { \"vm.dirty_ratio\" = 5 }\n";
    let text = format!("name = \"e\"\ndevices = [\"fixed\"]\nschedulers = [\"none\"]\n{keys}");
    let file = place.file("e.toml", format!("{text}workloads = [\"sqlite\"]\n"));
    let run = ["run", &file, "--no-store", "--backend", "emulated", "--dry-run"];
    let said = String::from_utf8(place.iosched(&run).output().unwrap().stderr).unwrap();
    for key in ["kernel", "memory", "sysctl"] {
        assert!(said.contains(&format!("e.toml: {key} has no effect")), "{key}: {said}");
    }
}

#[test]
fn results_are_not_written_over_what_is_run() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let why = place.fails(2, &["run", &job, "--no-store", "--device", "fixed", "-o", &job]);
    assert!(why.contains("written over"), "{why}");
    assert_eq!(std::fs::read_to_string(&job).unwrap(), JOB);
}

#[test]
fn what_a_backend_cannot_do_is_said_at_once() {
    let place = Place::new();
    let startup = "devices = [\"hdd-7200\"]\nschedulers = [\"none\"]\n\
                   workloads = [{ startup = { command = \"bash\", load = \"10r-seq\" } }]\n";
    let file = place.file("e.toml", startup);
    let why = place.fails(2, &["run", &file]);
    assert!(why.contains("e.toml:3:14") && why.contains("\"bash 10r-seq\""), "{why}");
    assert!(why.contains("--backend emulated"), "{why}");
    let job = place.file("job.fio", JOB);
    let why = place.fails(2, &["run", &job, "--steady-state"]);
    assert!(why.contains("as after power-on"), "{why}");
    for (backend, name, words) in [
        (
            "emulated",
            "cfq",
            ["cfq is not in this kernel: it lived from Linux 2.6", "--backend sim"],
        ),
        (
            "real",
            "none,anticipatory@2.6.32",
            ["anticipatory is not in", "show scheduler anticipatory"],
        ),
    ] {
        let why = place.fails(3, &["run", &job, "--backend", backend, "--scheduler", name]);
        assert!(words.iter().all(|w| why.contains(w)), "{why}");
    }
    let why = place.fails(2, &["run", &job, "--backend", "emulated", "--scheduler", "bqf"]);
    assert!(
        why.contains("unknown scheduler \"bqf\"") && why.contains("running kernel offers"),
        "{why}"
    );
    assert!(!place.dir.path().join("results.db").exists(), "nothing was stored");
}

#[test]
fn what_a_real_program_cannot_do_is_refused_before_anything_is_made() {
    let place = Place::new();
    for (program, param) in [
        ("pgbench", "think=10"),
        ("pgbench", "checkpoint_timeout=10"),
        ("dbench", "warmup=3"),
        ("pg-test-fsync", "block=16k"),
        ("sqlite", "row=20"),
    ] {
        let args =
            ["run", program, "--param", param, "--backend", "emulated", "--scheduler", "none"];
        let why = place.fails(2, &args);
        assert!(why.contains("--program text"), "{program} {param}: {why}");
        let dry = place.iosched(&[&args[..], &["--dry-run"]].concat()).output().unwrap();
        assert_eq!(dry.status.code(), Some(3), "{dry:?}");
        let said = String::from_utf8(dry.stdout).unwrap();
        assert!(said.contains("REFUSED") && said.contains("--program text"), "{said}");
    }
    for (program, server) in [("apache", "apache2"), ("pgbench", "postgres")] {
        let args = ["run", program, "--backend", "emulated", "--scheduler", "none", "--dry-run"];
        let said = String::from_utf8(place.iosched(&args).output().unwrap().stdout).unwrap();
        assert!(said.contains(&format!("a server is started, {server}")), "{said}");
    }
    // Nothing of the machine's is on this path.
    let args = ["run", "apache", "--backend", "emulated", "--scheduler", "none", "--dry-run"];
    let dry = place.iosched(&args).env("PATH", place.dir.path()).output().unwrap();
    assert_eq!(dry.status.code(), Some(3), "{dry:?}");
    let said = String::from_utf8(dry.stdout).unwrap();
    assert!(said.contains("REFUSED   ab is not installed (apt install apache2-utils)"), "{said}");
}

#[test]
fn startup_workloads_are_checked() {
    let with = |startup: &str| {
        format!(
            "backend = \"emulated\"\ndevices = [\"hdd-7200\"]\nschedulers = [\"none\"]\n\
             workloads = [{{ startup = {startup} }}]\n"
        )
    };
    for (startup, words) in [
        ("{ load = \"10r-seq\" }", "startup needs a command"),
        ("{ command = \"bash\", load = \"10r-fast\" }", "e.toml:4:53"),
        ("{ command = \"bash\", lod = \"10r-seq\" }", "did you mean \"load\"?"),
        ("{ command = \"bash\", limit = 0 }", "0.001 to 3600 seconds"),
        ("{ command = \"bash\", load = \"200r-seq\", file_size = \"64GiB\" }", "the load needs"),
        ("{ command = \"bash\", files = [\"lib\"] }", "by their full path"),
    ] {
        bad_experiment(&with(startup), &[words]);
    }
}

#[test]
fn until_needs_sense() {
    refused(&["--until-ci", "0"], &["a percentage from 0.01 to 100"]);
    refused(&["--until-ci", "3%", "--max-time", "soon"], &["90s, 20m or 2h"]);
    refused(&["--max-runs", "9"], &["go with --until-ci"]);
    refused(&["--until-ci", "3%", "--max-runs", "2"], &["--max-runs is out of range: 3 to"]);
    let e = "devices = [\"hdd-7200\"]\nschedulers = [\"none\"]\nworkloads = [\"job.fio\"]\n";
    bad_experiment(&format!("{e}max_time = \"2h\"\n"), &["max_time goes with until_ci"]);
    bad_experiment(&format!("{e}until_ci = \"wide\"\n"), &["such as 3%"]);
    bad_experiment(
        &format!("{e}steady_state = {{ max_round = 9 }}\n"),
        &["did you mean \"max_rounds\"?"],
    );
}
