//! Block traces as loads of `iosched run`.

use super::{JOB, Place};

/// Two tasks of one disk: a reader that waits for its reads, and a kernel worker that writes back.
fn csv(ios: u64) -> String {
    let mut text = String::from(
        "queued_ns,issued_ns,completed_ns,disk,operation,flags,offset_bytes,length_bytes,pid,task,priority,cpu\n",
    );
    for i in 0..ios {
        let (at, done) = (i * 12_000_000, i * 12_000_000 + 9_000_000);
        let offset = i * 7_919 % 4096 * 1_048_576;
        text += &format!("{at},{at},{done},sda,read,,{offset},4096,303,db,be/4,0\n");
        let (at, done) = (at + 1_000_000, at + 40_000_000);
        text +=
            &format!("{at},{at},{done},sda,write,,{},65536,7,kworker/u8:1,none,1\n", i * 65_536);
    }
    text
}

fn json(place: &Place, args: &[&str]) -> serde_json::Value {
    let mut all = vec!["run"];
    all.extend(args);
    all.extend(["--no-store", "--runs", "1", "--format", "json"]);
    let all: serde_json::Value = serde_json::from_str(&place.out(&all)).unwrap();
    all["experiments"][0].clone()
}

fn metric(record: &serde_json::Value, name: &str) -> Option<f64> {
    let all = record["metrics"].as_array().unwrap();
    all.iter().find(|m| m["name"] == name).and_then(|m| m["value"].as_f64())
}

/// The head of a recording names the scheduler: it runs first, without being asked for.
#[test]
fn the_scheduler_of_a_recording_is_in_its_head() {
    let place = Place::new();
    let text = format!("# recorded: sda\n# scheduler: bfq\n{}", csv(50));
    let file = place.file("recorded.csv", text);
    let named = |args: &[&str]| -> Vec<String> {
        let all = [&[&*file, "--device", "hdd-7200", "--scheduler", "none"], args].concat();
        let e = json(&place, &all);
        let all = e["records"].as_array().unwrap();
        all.iter().map(|r| r["trial"]["scheduler"].as_str().unwrap().to_string()).collect()
    };
    let own = named(&[]);
    assert!(own.len() == 2 && own[0].starts_with("bfq") && own[1] == "none", "{own:?}");
    let said = named(&["--recorded-scheduler", "kyber"]);
    assert!(said.len() == 2 && said[0].starts_with("kyber"), "{said:?}");
}

/// A trace is a load wherever its name comes from, compressed, too; tasks and priorities are those of the trace.
#[test]
fn a_trace_is_a_load() {
    let place = Place::new();
    let file = place.file("app.blk", csv(150));
    let args = [&file, "--device", "hdd-7200", "--scheduler", "none,bfq"];
    let output = place.iosched(&[&["run", "--no-store"], &args[..]].concat()).output().unwrap();
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{why}");
    let said = why.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains(
            "app: 300 I/Os of 2 tasks, replay dependent (tasks and completions are known): each I/O"
        ),
        "{why}"
    );
    let records = json(&place, &args);
    let records = records["records"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    for r in records {
        let names: Vec<&str> =
            r["jobs"].as_array().unwrap().iter().map(|j| j["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["db 303", "kworker/u8:1 7"]);
        assert_eq!(
            (&r["jobs"][0]["read"]["ios"], &r["jobs"][1]["write"]["ios"]),
            (&150.into(), &150.into())
        );
        let ratio = metric(r, "makespan_ratio").unwrap();
        assert!((0.9..1.2).contains(&ratio), "{ratio}");
        assert!(
            metric(r, "read p99 latency").is_some()
                && metric(r, "as-recorded read p99 latency").is_some()
        );
    }
    place.file("e.toml", "devices = [\"fixed\"]\nschedulers = [\"none\"]\nworkloads = [{ trace = \"app.blk\", replay = \"closed\" }]\n");
    let records = json(&place, &["e.toml"]);
    assert!(
        metric(&records["records"][0], "makespan_ratio").unwrap() < 0.1,
        "its pauses are left out"
    );
}

#[test]
fn modes_are_said_and_unknown_ones_refused() {
    let place = Place::new();
    let file = place.file("app.csv", csv(60));
    let of = |mode: &str| {
        let records =
            json(&place, &[&file, "--device", "fixed", "--scheduler", "none", "--replay", mode]);
        metric(&records["records"][0], "makespan_ratio").unwrap()
    };
    let (as_recorded, half, closed) = (of("as-recorded"), of("scaled=0.5"), of("closed=4"));
    assert!((0.9..=1.0).contains(&as_recorded) && (0.4..0.55).contains(&half) && closed < 0.1);
    for (mode, words) in [
        ("dependant", "did you mean \"dependent\"?"),
        ("scaled=0", "scaled=0: times are stretched by a factor of 0.001 to 1000"),
        ("closed=0", "closed=0: I/Os under way"),
    ] {
        let why = place.fails(2, &["run", &file, "--replay", mode]);
        assert!(why.contains(words), "{why}");
    }
    let job = place.file("job.fio", JOB);
    let why = place.fails(2, &["run", &job, "--replay", "closed"]);
    assert!(why.contains("are for block traces"), "{why}");
    let why = place.fails(2, &["run", &file, "--recorded-scheduler", "mq-dedline"]);
    assert!(why.contains("did you mean \"mq-deadline\"?"), "{why}");
}

/// Open loop where no task is known, and a mode that needs tasks is refused.
#[test]
fn a_trace_without_tasks_is_open_loop() {
    let place = Place::new();
    let msr = "128166372003061629,hm,1,Read,2113486848,4096,270\n128166372013061629,hm,1,Write,4096,8192,1270\n";
    let file = place.file("hm.csv", msr);
    let output = place
        .iosched(&["run", &file, "--device", "fixed", "--no-store", "--scheduler", "none"])
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = why.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        output.status.success() && said.contains("replay as-recorded (no tasks are known)"),
        "{why}"
    );
    let why = place.fails(2, &["run", &file, "--replay", "dependent"]);
    assert!(why.contains("does not say which task") && why.contains("closed=N"), "{why}");
}

#[test]
fn bad_traces_are_refused() {
    let place = Place::new();
    let both = "419,R,0,4096,1577808000000000\n725,W,8192,4096,1577808000000100\n";
    let file = place.file("two.csv", both);
    let why = place.fails(2, &["run", &file]);
    assert!(why.contains("2 disks are in the trace") && why.contains("--disk"), "{why}");
    let out = place.out(&[
        "run",
        &file,
        "--disk",
        "725",
        "--device",
        "fixed",
        "--scheduler",
        "none",
        "--no-store",
    ]);
    assert!(!out.is_empty());
    let completions = "     ksoftirqd/0-17     [000] ..s..    35.038091: block_rq_complete: 7,1 WS () 63488 + 8 be,0,4 [0]\n";
    let file = place.file("only.txt", completions);
    let why = place.fails(2, &["run", &file]);
    assert!(why.contains("1 completions and no I/O"), "{why}");
    let file = place.file("empty.csv", csv(0));
    let why = place.fails(2, &["run", &file]);
    assert!(why.contains("without a single I/O"), "{why}");
    let file = place.file("app.csv", csv(3));
    let why = place.fails(2, &["run", &file, "--backend", "emulated"]);
    assert!(why.contains("replayed in the simulator"), "{why}");
}

/// Places beyond the disk are laid on it, and that is said.
#[test]
fn places_beyond_the_disk_are_laid_on_it() {
    let place = Place::new();
    let text = csv(60)
        .replace(",65536,7,", ",4096,7,")
        .replace("sda,read,,0,", "sda,read,,900000000000000,");
    let file = place.file("far.csv", text);
    let records = json(&place, &[&file, "--device", "ssd-sata", "--scheduler", "none"]);
    let warnings = records["records"][0]["warnings"].to_string();
    assert!(
        warnings.contains("replay-places") && warnings.contains("lie side by side"),
        "{warnings}"
    );
}

/// The scheduler of the recording runs first, and a model that is far from it is told.
#[test]
fn a_model_that_is_far_from_the_recording_is_told() {
    let place = Place::new();
    let file = place.file("app.csv", csv(150));
    let args =
        [&file, "--device", "nvme", "--scheduler", "none", "--recorded-scheduler", "mq-deadline"];
    let records = json(&place, &args);
    let records = records["records"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    assert!(
        records[0]["trial"]["scheduler"].as_str().unwrap().starts_with("mq-deadline"),
        "{records:?}"
    );
    assert!(
        metric(&records[0], "demerit").unwrap() > 25.0 && metric(&records[1], "demerit").is_none()
    );
    let text = place.out(&[&["run", "--no-store"], &args[..]].concat());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the model does not reproduce the recording"), "{text}");
}

/// A simulated run becomes a trace, and the trace a load with the same figures.
#[test]
fn a_run_is_recorded_and_replayed() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let args = ["--device", "hdd-7200", "--scheduler", "mq-deadline"];
    let first = json(&place, &[&[job.as_str(), "--record-trace", "run.csv"], &args[..]].concat());
    let info = place.out(&["trace", "info", "run.csv", "--format", "json"]);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!((info["ios"].as_u64(), info["format"].as_str()), (Some(200), Some("csv")));
    let again =
        json(&place, &[&["run.csv", "--recorded-scheduler", "mq-deadline"], &args[..]].concat());
    let (first, again) = (&first["records"][0], &again["records"][0]);
    assert_eq!(again["jobs"][0]["read"]["ios"], 200);
    assert!(metric(again, "demerit").unwrap() < 10.0, "{}", again["metrics"]);
    let took = |r: &serde_json::Value| r["elapsed"].as_f64().unwrap();
    assert!((took(first) / took(again) - 1.0).abs() < 0.05);
    place.file(
        "e.toml",
        "devices = [\"fixed\"]\nschedulers = [\"none\", \"bfq\"]\nworkloads = [\"job.fio\"]\n",
    );
    place.out(&["run", "e.toml", "--no-store", "--runs", "1", "--record-trace", "all.csv"]);
    let made = std::fs::read_dir(place.dir.path()).unwrap().filter(|f| {
        let name = f.as_ref().unwrap().file_name().into_string().unwrap();
        name.starts_with("all-") && name.ends_with(".csv")
    });
    assert_eq!(made.count(), 2);
    let why = place.fails(2, &["run", &job, "--record-trace", "run.xyz"]);
    assert!(why.contains("the ending names no form"), "{why}");
}

/// A trace is replayed beside jobs on the disk, beside jobs on files and beside programs, each with its own figures.
#[test]
fn a_trace_goes_beside_other_work() {
    let place = Place::new();
    let file = place.file("app.blk", csv(60));
    let direct = place.file("direct.fio", "[w]\nrw=write\nbs=64k\ndirect=1\nsize=32m\n");
    let files = place.file("files.fio", "[f]\nrw=write\nbs=64k\nsize=16m\ndirectory=/d\n");
    for work in [&[&*direct][..], &[&*files], &["fs-mark", "--param", "n=50"]] {
        let args = ["--beside", &file, "--device", "hdd-7200", "--scheduler", "none"];
        let e = json(&place, &[work, &args[..], &["--warm-up", "0s"]].concat());
        let record = &e["records"][0];
        let jobs = record["jobs"].as_array().unwrap();
        let reads = |name: &str| {
            let job = jobs.iter().find(|j| j["name"].as_str().unwrap().starts_with(name));
            job.and_then(|j| j["read"]["ios"].as_u64())
        };
        assert_eq!(reads("beside db"), Some(60), "{work:?}");
        assert!(jobs.len() >= 3, "{work:?}");
        assert!(metric(record, "beside makespan").unwrap() > 0.7, "{work:?}");
    }
    let text = format!(
        "devices = [\"hdd-7200\"]\nschedulers = [\"none\"]\nworkloads = [{{ file = \"{direct}\", beside = {{ trace = \"{file}\", replay = \"as-recorded\" }} }}]\n"
    );
    let experiment = place.file("e.toml", text);
    let e = json(&place, &[&experiment]);
    let words = e["records"][0]["provenance"]["replay_beside"].as_str().unwrap();
    assert!(words.starts_with("as-recorded"), "{words}");
}

/// Beside another trace there is no trace, and no job beside a job.
#[test]
fn what_cannot_be_beside_is_refused() {
    let place = Place::new();
    let file = place.file("app.blk", csv(20));
    let job = place.file("a.fio", JOB);
    for (work, beside, words) in [
        (&file, &*file, "goes beside fio jobs, a program or a log"),
        (&job, &*job, "no block trace"),
        (&job, "nothing.csv", "no block trace"),
    ] {
        let said = place
            .fails(2, &["run", work, "--beside", beside, "--device", "ssd-sata", "--no-store"]);
        assert!(said.contains(words), "{said}");
    }
}
