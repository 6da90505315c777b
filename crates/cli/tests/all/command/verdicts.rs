//! What is said about results: guards, answers, names, files.

use super::{JOB, Place};

const DEVICE: &str = "[model]\nkind = \"fixed\"\ncap = \"16GiB\"\nlat_ns = 500_000\npar = 8\n";

fn run(place: &Place, job: &str, more: &[&str]) -> String {
    let runs: &[&str] = if more.contains(&"--runs") { &[] } else { &["--runs", "1"] };
    place.out(&[&["run", job, "--scheduler", "none,bfq"][..], runs, more].concat())
}

#[test]
fn a_guard_ends_with_its_answer() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    for (name, depth) in [("base", "iodepth=8"), ("slow", "iodepth=1")] {
        run(&place, &job, &["--device", "fixed", "--name", name, "--runs", "3", "--set", depth]);
    }
    let same = place.out(&["compare", "base", "base"]);
    assert!(same.ends_with("Answer: no regression.\n"), "{same}");
    let args = ["compare", "base", "slow", "--force", "--measure", "read.bw"];
    let output = place.iosched(&args).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.ends_with("Answer: regression.\n"), "{text}");
    // A single run of either cannot tell, and says so.
    for (name, seed) in [("one", "1"), ("two", "2")] {
        run(&place, &job, &["--device", "hdd-7200", "--name", name, "--seed", seed]);
    }
    let output = place.iosched(&["compare", "one", "two", "--force"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(5), "{text}");
    assert!(text.contains("Answer: cannot tell"), "{text}");
    place.out(&["compare", "one", "two", "--force", "--allow-inconclusive"]);
    for (option, name, near) in [("--measure", "raed.bw", "read.bw"), ("--vary", "kernl", "kernel")]
    {
        let why = place.fails(2, &["compare", "base", "base", option, name]);
        assert!(why.contains(&format!("did you mean \"{near}\"")), "{why}");
    }
}

#[test]
fn another_device_of_the_same_name_is_noticed() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let device = place.file("disk.toml", DEVICE);
    run(&place, &job, &["--device", &device, "--name", "before"]);
    place.file("disk.toml", DEVICE.replace("500_000", "900_000"));
    run(&place, &job, &["--device", &device, "--name", "after"]);
    let why = place.fails(2, &["compare", "before", "after"]);
    assert!(why.contains("device.content"), "{why}");
}

#[test]
fn values_of_one_tunable_are_compared() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let text = place.out(&[
        "run",
        &job,
        "--device",
        "fixed",
        "--scheduler",
        "mq-deadline,none",
        "--tunable",
        "mq-deadline.fifo_batch=1",
        "--tunable",
        "mq-deadline.fifo_batch=16",
        "--format",
        "csv",
    ]);
    let schedulers: std::collections::BTreeSet<&str> =
        text.lines().skip(1).filter_map(|l| l.split(',').nth(2)).collect();
    assert_eq!(schedulers.len(), 3, "{schedulers:?}");
}

#[test]
fn tables_end_with_an_answer_for_each_goal() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let text = run(&place, &job, &["--device", "hdd-7200", "--runs", "3", "--tables"]);
    let answer = &text[text.find("Answer for hdd-7200\n").unwrap_or_else(|| panic!("{text}"))..];
    assert!(answer.contains("\n  throughput  ") && answer.contains("\n  latency "), "{answer}");
    assert!(answer.lines().all(|l| l.chars().count() <= 80), "{answer}");
    let once = run(&place, &job, &["--device", "hdd-7200", "--tables"]);
    let once = once.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        once.contains("One value of each proves nothing") && once.contains("[not testable]"),
        "{once}"
    );
}

#[test]
fn what_cannot_work_is_said_before_the_run() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let why = place.fails(2, &["run", &job, "-o", "absent/x.json"]);
    assert!(why.contains("there is no folder absent"), "{why}");
    assert!(!place.dir.path().join("results.db").exists(), "nothing ran");
    let why = place.fails(2, &["results", "list", "--db", "."]);
    assert!(why.contains("is a folder, not a results file"), "{why}");
    run(&place, &job, &["--device", "fixed"]);
    let why = place.fails(2, &["report", "--html", "x.html", "--base", "bqf"]);
    assert!(why.contains("did you mean \"bfq\""), "{why}");
    assert!(!place.dir.path().join("x.html").exists());
    let newer = "{\"format\": \"iosched-results\", \"schema\": 99, \"experiments\": []}";
    let newer = place.file("newer.json", newer);
    let why = place.fails(2, &["results", "import", &newer]);
    assert!(why.contains("schema 99 is newer"), "{why}");
}

#[test]
fn an_import_says_which_experiment_it_is() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    run(&place, &job, &["--device", "fixed", "--name", "orig"]);
    place.out(&["results", "export", "orig", "-o", "rt.json"]);
    let text = place.out(&["results", "import", "rt.json", "--name", "rt-json"]);
    assert!(
        text.contains("1: orig is this experiment: 2 trials known already, 0 trials"),
        "{text}"
    );
    assert!(text.contains("not called rt-json") && text.contains("--rename rt-json"), "{text}");
    let fresh = place.out(&["results", "import", "rt.json", "--name", "rt", "--db", "other.db"]);
    assert_eq!(fresh, "1: rt (2 trials)\n");
}

#[test]
fn a_csv_copy_is_equal_to_its_original() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    run(&place, &job, &["--device", "hdd-7200", "--name", "orig", "--runs", "3"]);
    place.out(&["results", "export", "orig", "--format", "csv", "-o", "copy.csv"]);
    place.out(&["results", "import", "copy.csv", "--name", "copy"]);
    // Not forced: seeds and backend came along.
    let text = place.out(&["compare", "orig", "copy", "--all"]);
    assert!(text.ends_with("Answer: no regression.\n"), "{text}");
    assert!(!text.contains("not enough data"), "{text}");
    // One run of each tells nothing, though it is the same.
    run(&place, &job, &["--device", "fixed", "--name", "one"]);
    place.out(&["results", "export", "one", "--format", "csv", "-o", "one.csv"]);
    let text = place.out(&["compare", "one", "one.csv", "--allow-inconclusive"]);
    assert!(text.contains("Answer: cannot tell"), "{text}");
}

/// The sentences of the terminal, for programs.
#[test]
fn answers_are_in_json() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let options = ["--device", "hdd-7200", "--runs", "3", "--name", "orig"];
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = joined(&run(&place, &job, &[&options[..], &["--tables"]].concat()));
    let check = |text: &str| {
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        let answers = json["experiments"][0]["answers"].as_array().unwrap().clone();
        let goals: Vec<&str> = answers.iter().filter_map(|a| a["goal"].as_str()).collect();
        assert_eq!(goals, ["throughput", "latency"]);
        for a in &answers {
            assert_eq!(a["device"], "hdd-7200");
            // Programs get full names, people those of the kernel.
            let words = joined(a["words"].as_str().unwrap()).replace("@7.1", "");
            assert!(shown.contains(&words), "{a} {shown}");
            assert!(a["lead"]["ratio"].as_f64().unwrap() >= 1.0, "{a}");
            assert!(a["lead"]["approximate"].is_boolean() && a["certainty"].is_string(), "{a}");
        }
    };
    check(&run(&place, &job, &[&options[..], &["--no-store", "--format", "json"]].concat()));
    let exported = place.out(&["results", "export", "orig"]);
    check(&exported);
    let copy = place.file("copy.json", exported);
    place.out(&["results", "import", &copy, "--db", "other.db"]);
    let text = place.out(&["compare", "orig", "orig", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["answer"], "no-regression");
    assert_eq!(json["words"], "Answer: no regression.");
    assert!(!json["changes"].as_array().unwrap().is_empty());
}

/// The start of a program beside a reader: its time is what counts, and not who reads fastest.
#[test]
fn an_experiment_says_what_decides() {
    let place = Place::new();
    let with = |goal: &str| {
        let text = format!(
            "name = \"e\"\ngoal = \"{goal}\"\ndevices = [\"hdd-7200\"]\nschedulers = [\"none\", \"bfq\"]\n\
             [[workloads]]\nname = \"w\"\njob = \"\"\"\n[global]\nfilename=/dev/disk\ndirect=1\n\
             [start]\nrw=randread\nbs=4k\nnumber_ios=20\nstartdelay=1\n\
             [reader]\nioengine=libaio\niodepth=8\nrw=read\nbs=128k\nruntime=3\ntime_based\n\"\"\"\n"
        );
        place.file("e.toml", text)
    };
    let file = with("job/start/read.lat.mean");
    let json = place.out(&["run", &file, "--runs", "1", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let answers = json["experiments"][0]["answers"].as_array().unwrap();
    assert_eq!(answers[0]["goal"], "mean of reads of job start");
    assert_eq!((&answers[0]["decides"], &answers[1]["decides"]), (&true.into(), &false.into()));
    let text = place.out(&["results", "show", "e", "--tables"]);
    let answer = &text[text.find("Answer for").unwrap()..];
    assert!(answer.lines().nth(1).unwrap().contains("mean of reads of job start"), "{answer}");
    place.out(&["report", "e", "--html", "e.html"]);
    let page = std::fs::read_to_string(place.dir.path().join("e.html")).unwrap();
    let first = page.find("Mean of reads of job start").unwrap();
    assert!(first < page.find("<b>Throughput</b>").unwrap());
    // Measured, but these results are compared by the other latency: that is said everywhere.
    let said = "asks for \"read.clat.mean\", but these results are compared by \"read.lat.mean\"";
    let file = with("read.clat.mean");
    let text = place.out(&["run", &file, "--name", "clat", "--tables"]);
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(said), "{text}");
    let json = place.out(&["results", "export", "clat"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["experiments"][0]["notes"][0].as_str().unwrap().contains(said), "{json}");
    place.out(&["report", "clat", "--html", "e.html"]);
    let page = std::fs::read_to_string(place.dir.path().join("e.html")).unwrap();
    assert!(page.contains(&said.replace('"', "&quot;")));
    let file = with("job/start/read.lat.mena");
    let why = place.fails(2, &["run", &file]);
    assert!(why.contains("e.toml:2") && why.contains("job/start/read.lat.mean"), "{why}");
}

/// Reading leaves the folder as it was.
#[test]
fn an_export_leaves_no_files_behind() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    run(&place, &job, &["--device", "fixed", "--name", "orig"]);
    let all = || {
        let dir = std::fs::read_dir(place.dir.path()).unwrap();
        let mut names: Vec<_> = dir.map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = all();
    place.out(&["results", "export", "orig"]);
    place.out(&["results", "list"]);
    assert_eq!(all(), before);
}

#[test]
fn two_experiments_in_one_file_are_not_pooled() {
    let place = Place::new();
    let head = "experiment,scheduler,workload,repetition,metric,unit,value\n";
    let rows = |name: &str, v: u32| {
        format!("{name},none,w,1,iops,1/s,{v}\n{name},none,w,2,iops,1/s,{v}\n")
    };
    place.file("both.csv", format!("{head}{}{}", rows("a", 100), rows("b", 50)));
    place.file("one.csv", format!("{head}{}", rows("a", 100)));
    let why = place.fails(2, &["compare", "both.csv", "one.csv"]);
    assert!(why.contains("both.csv holds 2 experiments: a, b"), "{why}");
}

#[test]
fn what_cannot_be_written_is_said_in_words() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    run(&place, &job, &["--device", "fixed", "--name", "orig"]);
    let why = place.fails(2, &["results", "export", "orig", "-o", "absent/x.json"]);
    assert!(why.contains("there is no folder absent") && !why.contains("os error"), "{why}");
    let why = place.fails(2, &["report", "orig", "--html", "/dev/full"]);
    assert!(why.contains("cannot write /dev/full: the disk is full\n"), "{why}");
}

/// The processes of a program are called by what they are.
#[test]
fn tasks_have_roles() {
    let place = Place::new();
    let program = ["file-copy", "--param", "copies=2", "--param", "size=1m"];
    let how = ["--device", "ssd-sata", "--scheduler", "none", "--runs", "1", "--format", "json"];
    let text = place.out(&[&["run"][..], &program, &how].concat());
    let names = ["main", "copy 1", "copy 2"].map(|n| format!("\"name\": \"{n}\""));
    let plain = text.replace("\":\"", "\": \"");
    assert!(names.iter().all(|n| plain.contains(n)), "{text}");
}

/// A film that falls behind a copy without a scheduler that waits for it.
const FILM: &str = "[global]\ndirect=1\nfilename=/dev/disk\nruntime=4\ntime_based\n[film]\nrw=read\nbs=256k\nrate=8m\nsize=10%\n\
    [copy]\nrw=write\nbs=1m\nioengine=libaio\niodepth=16\noffset=50%\nsize=10%\n";

#[test]
fn a_stored_result_is_explained_where_two_schedulers_differ() {
    let place = Place::new();
    let job = place.file("film.fio", FILM);
    let shown = place.out(&[
        "run",
        &job,
        "--scheduler",
        "mq-deadline,bfq",
        "--runs",
        "2",
        "--set",
        "bs=512k",
    ]);
    let hint = shown.lines().find_map(|l| l.strip_prefix("why      iosched ")).unwrap();
    assert_eq!(hint, "explain --from film bfq mq-deadline", "{shown}");
    let output = place.iosched(&hint.split(' ').collect::<Vec<_>>()).output().unwrap();
    let (text, why) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    // The run is the stored one, options of the command line included.
    assert!(output.status.success() && why.is_empty(), "{why}");
    assert!(text.starts_with("film on hdd-7200, Linux 7.1, run 1: "), "{text}");
    assert!(
        text.contains("where bfq and mq-deadline differ") && text.contains("  film "),
        "{text}"
    );
    assert!(text.contains("\nbfq sends ") && text.contains("\nmq-deadline sends "), "{text}");
    assert!(text.contains("+1024 (film)"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    let again = place.out(&["explain", "--from", "film", "bfq", "mq-deadline"]);
    assert_eq!(text, again);
    let page = place.dir.path().join("why.html");
    let page = page.to_str().unwrap();
    let at = [
        "explain",
        "--from",
        "film",
        "bfq",
        "mq-deadline",
        "--run",
        "2",
        "--at",
        "1s",
        "--window",
        "200ms",
    ];
    let text = place.out(&[&at[..], &["--html", page]].concat());
    assert!(text.contains("run 2: 1000.000 to 1200.000 ms"), "{text}");
    let html = std::fs::read_to_string(page).unwrap();
    assert_eq!(html.matches("class=\"scene\"").count(), 2);
    assert!(html.contains("</i>film</span>"), "processes have names");
    let json = place.out(&[&at[..], &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["from_ns"], &json["sides"][1]["scheduler"]),
        (&1_000_000_000u64.into(), &"mq-deadline".into())
    );
    for (args, told) in [
        (&["explain", "--from", "film", "bfq"][..], "two to four schedulers"),
        (&["explain", "--from", "film", "bfq", "cfq"], "it has bfq"),
        (
            &["explain", "--from", "film", "bfq", "mq-deadline", "--workload", "fim"],
            "did you mean \"film\"?",
        ),
        (&["explain", "--from", "film", "bfq", "mq-deadline", "--at", "soon"], "is no time"),
        (&["explain", "--from", "film", "bfq", "mq-deadline", "--at", "1h"], "there is no request"),
    ] {
        let why = place.fails(2, args);
        assert!(why.contains(told), "{why}");
    }
}

#[test]
fn live_results_and_programs_are_told_apart() {
    let place = Place::new();
    // Programs run again, too; their tasks go by their roles.
    place.out(&[
        "run",
        "sqlite",
        "--quick",
        "--device",
        "ssd-sata",
        "--scheduler",
        "none,bfq",
        "--runs",
        "1",
    ]);
    let text = place.out(&["explain", "--from", "sqlite", "none", "bfq"]);
    assert!(text.contains("none sends ") && !text.contains("pid "), "{text}");
    // A live result cannot be run again.
    let json = place.out(&["results", "export", "sqlite", "--format", "json"]);
    let other = Place::new();
    let live = json.replace("\"backend\": \"sim\"", "\"backend\": \"real\"");
    assert_ne!(live, json);
    let live = other.file("live.json", live);
    other.out(&["results", "import", &live]);
    let why = other.fails(2, &["explain", "--from", "sqlite", "none", "bfq"]);
    assert!(why.contains("only simulated trials run again"), "{why}");
    let shown = other.out(&["results", "show", "sqlite"]);
    assert!(!shown.contains("explain --from"), "{shown}");
}

/// The base of a live run is the scheduler that is set on the disk, whatever the kernel's default would be.
#[test]
fn the_base_of_a_live_run_is_what_the_disk_had() {
    use iosched_backends::SysRoot;
    use iosched_backends::discover::QueueState;
    use iosched_experiment::record::{BackendKind, DirStats, JobRecord};

    let dir = tempfile::tempdir().unwrap();
    let queue = dir.path().join("sys/block/sdz/queue");
    std::fs::create_dir_all(&queue).unwrap();
    std::fs::write(queue.join("scheduler"), "none mq-deadline [bfq]\n").unwrap();
    let before = QueueState::read(&SysRoot::at(dir.path()), "sdz");
    let record = |scheduler: &str, repetition: u32, mib: u64| {
        let mut r = iosched_experiment::Record { backend: BackendKind::Real, ..Default::default() };
        let read = DirStats {
            ios: 500,
            bytes: (mib << 20) + u64::from(repetition),
            runtime: 1_000_000_000,
            ..DirStats::default()
        };
        r.jobs = vec![JobRecord {
            name: "copy".into(),
            read,
            ended: 1_000_000_000,
            ..JobRecord::default()
        }];
        (r.trial.device, r.trial.workload) = ("sdz".into(), "copy".into());
        (r.trial.scheduler, r.trial.kernel) = (scheduler.into(), "6.12.8".into());
        r.trial.repetition = repetition;
        before.note_as_base(&mut r);
        r
    };
    let of = |n| [record("none", n, 120), record("mq-deadline", n, 100), record("bfq", n, 60)];
    let records: Vec<_> = (1..=4).flat_map(of).collect();
    let v = iosched_results::verdict::verdicts_of(&records).remove(0);
    assert_eq!((&*v.base, &*v.scheduler), ("bfq", "none"));
    assert!(v.default_not_run.is_empty());
}
