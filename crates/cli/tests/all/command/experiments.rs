//! Experiments: their files, repetitions, and what goes on after an interruption.

use serde_json::Value;

use super::{JOB, Place};

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let with = |jobs: &str| {
        place.out(&[
            "run",
            &job,
            "--device",
            "hdd-7200",
            "--scheduler",
            "none,bfq,kyber",
            "--runs",
            "3",
            "--no-store",
            "--format",
            "json",
            "--jobs",
            jobs,
        ])
    };
    let one = with("1");
    assert_eq!(one, with("2"));
    assert_eq!(one, with("7"));
}

#[test]
fn repetitions_differ_and_pair() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let text = place.out(&[
        "run",
        &job,
        "--device",
        "hdd-7200",
        "--scheduler",
        "none,mq-deadline",
        "--runs",
        "2",
        "--format",
        "json",
        "--full",
        "--no-store",
    ]);
    let all: Value = serde_json::from_str(&text).unwrap();
    let records = all["experiments"][0]["records"].as_array().unwrap();
    let first = |i: usize| records[i]["dispatches"][0]["sector"].as_u64().unwrap();
    assert_eq!(records.len(), 4);
    assert_eq!(first(0), first(1), "the same repetition has the same seeds");
    assert_ne!(first(0), first(2), "another repetition has others");
}

#[test]
fn experiment_files_have_tables_labels_and_inline_parts() {
    let place = Place::new();
    let file = place.file("e.toml", format!(
        "devices = [{{ name = \"mine\", title = \"x\", model = {{ kind = \"fixed\", cap = \"1GiB\", lat_ns = 1000 }} }}]\n\
         schedulers = [\"none\", {{ name = \"mq-deadline\", tunables = {{ fifo_batch = 1 }}, label = \"small\" }}]\n\
         kernel = [\"4.12\", \"6.12\"]\nworkloads = [{{ name = \"tiny\", job = '''\n{JOB}''' }}]\n\
         [queue]\nnr_requests = 64\n[set]\niodepth = 4\n"));
    let text = place.out(&["run", &file, "--no-store", "--tables"]);
    assert!(text.contains("tiny on mine") && text.contains("small on 4.12"), "{text}");
    assert!(text.contains("none on 6.12"), "{text}");
}

#[test]
fn every_example_experiment_is_planned() {
    let place = Place::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/desktop.toml");
    let text = place.out(&["run", root, "--no-store", "--backend", "mock", "--tables"]);
    assert!(text.contains("desktop on hdd-7200") && text.contains("\nanticipatory "), "{text}");
}

#[test]
fn live_rounds_store_each_run() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let out = place.out(&[
        "run",
        &job,
        "--backend",
        "mock",
        "--runs",
        "2",
        "--scheduler",
        "none,bfq",
        "--tables",
    ]);
    assert!(out.contains("made-up figures"), "{out}");
    let trials = place.out(&["results", "show", "job", "--trials"]);
    assert_eq!(trials.matches("complete").count(), 4, "{trials}");
}

#[test]
fn repetitions_go_on_until_the_figures_are_certain() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    for backend in ["mock", "sim"] {
        let args = ["run", &job, "--backend", backend, "--scheduler", "none,bfq", "--until-ci"];
        let complete = |more: &[&str]| {
            place.out(&[&args[..], more].concat());
            place.out(&["results", "show", "job", "--trials"]).matches("complete").count()
        };
        // The rates of the mock differ by a few percent; those of a disk under random reads, too.
        assert_eq!(complete(&["100%"]), 2 * 3, "{backend}: three at least");
        assert_eq!(complete(&["0.01%", "--max-runs", "7"]), 2 * 7, "{backend}: seven at most");
        let some = complete(&["2%", "--max-runs", "40"]);
        assert!(some > 2 * 3 && some < 2 * 40, "{backend}: {some}");
        assert_eq!(complete(&["0.01%", "--max-runs", "99", "--max-time", "1ns"]) % 2, 0);
    }
}

#[test]
fn an_experiment_file_may_ask_for_certainty_and_a_steady_state() {
    let place = Place::new();
    place.file("job.fio", JOB);
    let text = "backend = \"mock\"\ndevices = [\"hdd-7200\"]\nschedulers = [\"none\"]\n\
                workloads = [\"job.fio\"]\nuntil_ci = \"50%\"\nmax_runs = 4\nmax_time = \"1h\"\n\
                steady_state = { precondition = 1, max_rounds = 10 }\n";
    let file = place.file("e.toml", text);
    let out = place.out(&["run", &file, "--format", "json"]);
    assert_eq!(out.matches("steady: range").count(), 3, "{out}");
}

#[test]
fn a_finished_experiment_runs_anew_and_an_unfinished_one_goes_on() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let args = ["run", &job, "--backend", "mock", "--runs", "2", "--scheduler", "none,bfq"];
    place.out(&args);
    place.out(&args);
    let list = place.out(&["results", "list", "--json"]);
    assert_eq!(list.matches("\"name\": \"job\"").count(), 2, "{list}");
    // As if the second start had been killed before its last trial.
    let db = rusqlite::Connection::open(place.dir.path().join("results.db")).unwrap();
    db.execute("DELETE FROM trials WHERE id = (SELECT max(id) FROM trials)", []).unwrap();
    drop(db);
    let output = place.iosched(&args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("3 trials are kept"), "{said}");
    let list = place.out(&["results", "list", "--json"]);
    assert_eq!(list.matches("\"complete\": 4").count(), 2, "{list}");
}

#[test]
fn an_interrupted_simulation_is_gone_on_with() {
    use std::process::Stdio;
    let place = Place::new();
    // Many short trials, then one that is long enough to be hit.
    let job = "[r]\nfilename=/dev/disk\ndirect=1\nrw=randread\nbs=4k\nioengine=libaio\niodepth=32\n\
               time_based\nruntime=20\n";
    let file = place.file("long.fio", job);
    let args =
        ["run", &file, "--device", "fixed", "--scheduler", "none", "--runs", "40", "--jobs", "1"];
    let db = place.dir.path().join("results.db");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_iosched"))
        .args(args)
        .current_dir(place.dir.path())
        .env("IOSCHED_DB", &db)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // As soon as one trial is stored.
    let stored = || {
        rusqlite::Connection::open(&db)
            .and_then(|c| c.query_row("SELECT count(*) FROM records", [], |r| r.get::<_, i64>(0)))
            .unwrap_or(0)
    };
    while stored() == 0 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let pid = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        said.contains("interrupted by SIGINT") && said.contains("of 40 trials are stored"),
        "{said}"
    );
    let again = place.iosched(&["results", "list"]).output().unwrap();
    let list = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(list.contains(" of 40"), "it stands there as partial: {list}");
    let shown = place.iosched(&["results", "show", "1"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains(" of 40 trials: interrupted"), "{shown}");
}

/// The newest of experiments of one name is shown, and the others are named by number. Which one to delete is not guessed.
#[test]
fn experiments_of_one_name_are_told_apart() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let run = ["run", &job, "--backend", "mock", "--scheduler", "none,bfq"];
    place.out(&run);
    place.out(&run);
    for args in [["results", "show", "job"], ["results", "export", "job"]] {
        let output = place.iosched(&args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = "note: 2 experiments are called \"job\": this is 2, the newest; by number there is 1, too";
        assert!(output.status.success() && said.contains(expected), "{args:?}: {said}");
    }
    let said = place.fails(2, &["results", "delete", "job"]);
    assert!(said.contains("2 experiments are called \"job\"") && said.contains("number"), "{said}");
    place.out(&["results", "delete", "1"]);
    let output = place.iosched(&["results", "show", "job"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("are called"));
}

/// What memory takes is no headline: a copy that syncs at its end, and a job that never does.
#[test]
fn the_medium_comes_before_memory() {
    let place = Place::new();
    let head = |args: &[&str]| {
        let text = place.out(args);
        text.lines().find(|l| l.starts_with("scheduler")).unwrap().to_string()
    };
    let disk = ["--device", "hdd-7200", "--scheduler", "none", "--no-store"];
    let copy = head(&[&["run", "file-copy", "--quick"], &disk[..]].concat());
    assert!(copy.find("disk MiB/s") < copy.find("calls MiB/s"), "{copy}");
    assert!(copy.contains("disk MiB/s"), "{copy}");
    let job = place.file("buffered.fio", "[w]\nrw=write\nsize=64m\nbs=128k\n");
    let buffered = head(&[&["run", &job], &disk[..]].concat());
    assert!(buffered.contains("durable MiB/s after s calls MiB/s"), "{buffered}");
    let csv = place.out(&[&["run", &job, "--format", "csv"], &disk[..]].concat());
    assert!(
        csv.contains(",durable.bw,B/s,higher,") && csv.contains(",durable.after,s,lower,"),
        "{csv}"
    );
}
