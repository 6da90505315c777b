//! The main paths.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::{JOB, Place};

#[test]
fn the_quick_form_compares_and_stores() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let args = [
        "run",
        &job,
        "--device",
        "fixed,hdd-7200",
        "--scheduler",
        "mq-deadline,none,noop@3.12",
        "--runs",
        "3",
        "--seed",
        "7",
        "--tables",
    ];
    let text = place.out(&args);
    assert!(text.contains("job on fixed, Linux 7.1, mean of 3 runs"), "{text}");
    assert!(text.contains("\nnoop ") && text.contains("Answer for hdd-7200"), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours off a terminal");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    let list: Value = serde_json::from_str(&place.out(&["results", "list", "--json"])).unwrap();
    assert_eq!(list[0]["trials"], 18);
    assert!(place.out(&["results", "show", "job", "--tables"]).contains("job on fixed"));
    // A result equals itself: no regression, exit 0.
    assert!(place.out(&["compare", "job", "job", "--all"]).contains("read.iops"));
}

#[test]
fn a_run_writes_its_page_as_report_does() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let run = ["run", &job, "--device", "fixed", "--scheduler", "none,mq-deadline"];
    let with = |more: &[&'static str]| [&run[..], more].concat();
    let text = place.out(&with(&["--html", "a.html"]));
    assert!(text.contains("fixed: "), "the verdict is printed all the same");
    place.out(&["report", "job", "--html", "b.html"]);
    let page = |name: &str| std::fs::read_to_string(place.dir.path().join(name)).unwrap();
    assert!(page("a.html") == page("b.html"), "two pages of one result");
    // Without the results file there is a page, too.
    place.out(&with(&["--no-store", "--html", "c.html"]));
    assert!(page("c.html").contains("mq-deadline"));
    let nowhere = place.fails(2, &with(&["--html", "missing/a.html"]));
    assert!(nowhere.contains("there is no folder missing"), "{nowhere}");
    let same = place.fails(2, &with(&["--html", "./x", "--output", "x"]));
    assert!(same.contains("name the same file"), "{same}");
    std::fs::create_dir(place.dir.path().join("sub")).unwrap();
    let same = place.fails(2, &with(&["--html", "sub/../x", "--output", "x"]));
    assert!(same.contains("name the same file"), "{same}");
    let over = place.fails(2, &[&run[..], &["--html", &job]].concat());
    assert!(over.contains("would be written over"), "{over}");
}

/// A file that was there keeps what is not its text: the link to it, who may read it.
#[test]
fn a_page_goes_into_the_file_that_a_link_names() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let at = |name: &str| place.dir.path().join(name);
    std::fs::write(at("private"), "old").unwrap();
    std::fs::set_permissions(at("private"), PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("private", at("link")).unwrap();
    place.out(&["report", "--published", "linux-4.12", "--html", "link"]);
    assert!(at("link").symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(at("private")).unwrap().contains("<html"));
    assert_eq!(at("private").metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn stored_results_are_not_written_over() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let run = ["run", &job, "--device", "fixed", "--scheduler", "none", "--db", "mine.db"];
    let with = |more: &[&'static str]| [&run[..], more].concat();
    let refused = |args: &[&str]| {
        let said = place.fails(2, args);
        assert!(said.contains("mine.db is a database; it is not written over"), "{said}");
    };
    // There is none when the run begins.
    refused(&with(&["--html", "mine.db"]));
    let db = place.dir.path().join("mine.db");
    let stored = std::fs::read(&db).unwrap();
    refused(&with(&["--html", "mine.db"]));
    refused(&with(&["--output", "./mine.db"]));
    refused(&["report", "--db", "mine.db", "--html", "mine.db"]);
    refused(&["results", "export", "job", "--db", "mine.db", "--output", "mine.db"]);
    assert!(stored == std::fs::read(&db).unwrap(), "nothing has been stored or replaced");
}

#[test]
fn a_quick_look_says_how_short_it_is() {
    let place = Place::new();
    let run = |more: &[&str]| {
        let args = ["run", "sqlite", "--quick", "--device", "ssd-sata", "--format", "json"];
        let all: Value = serde_json::from_str(&place.out(&[&args, more].concat())).unwrap();
        let record = &all["experiments"][0]["records"][0];
        let seconds = record["metrics"].as_array().unwrap().iter().find(|m| m["name"] == "seconds");
        (record["warnings"][0]["message"].to_string(), seconds.unwrap()["value"].as_f64().unwrap())
    };
    let (said, long) = run(&["--scheduler", "none"]);
    assert!(said.contains("inserts=100 instead of 2500, passes=1 instead of 3"), "{said}");
    // What the user sets stays.
    let (said, short) = run(&["--scheduler", "none", "--param", "inserts=20"]);
    assert!(said.contains("inserts=20 instead of 2500"), "{said}");
    assert!(short < long / 3.0, "{short} s beside {long} s");
}

/// A short run of a database has no checkpoint: its figures are without that load.
#[test]
fn periodic_work_that_never_came_is_told() {
    let place = Place::new();
    let said = |timeout: &str| {
        let mut args = vec!["run", "pgbench", "--device", "ssd-sata", "--scheduler", "none"];
        args.extend(["--format", "json", "--param", "scale=1", "--param", "time=3", "--param"]);
        args.push(timeout);
        let all: Value = serde_json::from_str(&place.out(&args)).unwrap();
        all["experiments"][0]["records"][0]["warnings"].to_string()
    };
    assert!(said("checkpoint_timeout=300").contains("no checkpoint fell into this run"));
    assert!(!said("checkpoint_timeout=1").contains("checkpoint fell"));
}

#[test]
fn a_program_is_judged_by_its_own_figures() {
    let place = Place::new();
    let names = |program: &str| -> Vec<String> {
        let args =
            ["run", program, "--device", "ssd-sata", "--scheduler", "none", "--format", "json"];
        let all: Value = serde_json::from_str(&place.out(&args)).unwrap();
        let metrics = all["experiments"][0]["records"][0]["metrics"].as_array().unwrap().clone();
        metrics.iter().map(|m| m["name"].as_str().unwrap().to_string()).collect()
    };
    let sqlite = names("sqlite 5 1");
    assert!(
        sqlite.contains(&"seconds".into()) && !sqlite.contains(&"elapsed".into()),
        "{sqlite:?}"
    );
    // One that has none is judged by its time.
    assert_eq!(names("relay 2 10")[0], "elapsed");
}

#[test]
fn edits_change_tables_and_pages_but_no_figures() {
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    place.out(&[
        "run",
        &job,
        "--device",
        "fixed",
        "--scheduler",
        "none,bfq,cfq@4.12",
        "--runs",
        "2",
    ]);
    let edit = |more: &[&str]| place.out(&[&["results", "edit", "job"], more].concat());
    assert!(edit(&[]).contains("nothing is changed"));
    let said = edit(&[
        "--label",
        "bfq@7.1=B <F> Q",
        "--hide",
        "cfq@4.12",
        "--annotate",
        "none=as it came",
    ]);
    assert!(said.contains("called \"B <F> Q\"") && said.contains("cfq@4.12: hidden"), "{said}");
    let table = place.out(&["results", "show", "job", "--tables"]);
    assert!(table.contains("\nB <F> Q") && !table.contains("bfq@7.1"), "{table}");
    assert!(table.contains("note on none: as it came") && table.contains("hidden: cfq@4.12"));
    place.out(&["report", "job", "--html", "page.html"]);
    let page = std::fs::read_to_string(place.dir.path().join("page.html")).unwrap();
    assert!(page.contains("B &lt;F&gt; Q") && !page.contains("B <F> Q"));
    assert!(page.contains("as it came") && page.contains("left out"));
    // What was measured keeps its name, and goes over with the edits.
    let document = place.out(&["results", "export", "job", "--format", "json"]);
    let v: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(v["experiments"][0]["records"].as_array().unwrap().len(), 6);
    assert_eq!(v["experiments"][0]["edits"]["schedulers"]["bfq@7.1"]["label"], "B <F> Q");
    let again = place.file("again.json", document.as_str());
    let other = ["--db", "other.db"];
    place.out(&[&["results", "import", &again][..], &other].concat());
    assert!(
        place
            .out(&[&["results", "show", "job", "--tables"][..], &other].concat())
            .contains("B <F> Q")
    );
    // The mistakes people make.
    let fails = |more: &[&str]| place.fails(2, &[&["results", "edit", "job"], more].concat());
    assert!(fails(&["--hide", "none@1"]).contains("did you mean \"none\""));
    assert!(fails(&["--label", "none=B <F> Q"]).contains("two schedulers would be called"));
    assert!(fails(&["--hide", "none", "--hide", "bfq@7.1"]).contains("show at least one"));
    assert!(fails(&["--rename", " "]).contains("needs a name"));
    assert!(place.fails(2, &["results", "log", "job"]).contains("live runs keep"));
    edit(&[
        "--rename",
        "night",
        "--label",
        "bfq@7.1=",
        "--show",
        "cfq@4.12",
        "--annotate",
        "none=",
    ]);
    assert!(place.out(&["results", "edit", "night"]).contains("nothing is changed"));
}

#[test]
fn io_logs_are_written_and_replay_to_the_same_ios() {
    let place = Place::new();
    let job = "[w]\nioengine=libaio\niodepth=4\nrw=randrw\nsize=1m\nnrfiles=2\nfsync=8\ndirect=1\n\
               write_iolog=out.log\n";
    let run = |job: &str| {
        place.out(&["run", job, "--device", "fixed", "--scheduler", "none", "--format", "json"])
    };
    let ios = |text: &str| {
        let v: Value = serde_json::from_str(text).unwrap();
        v["experiments"][0]["records"][0]["device"]["commands"].to_string()
    };
    let first = run(&place.file("w.fio", job));
    let log = std::fs::read_to_string(place.dir.path().join("out.log")).unwrap();
    assert!(log.starts_with("fio version 3 iolog\n0 w.0.0 add\n"), "{log}");
    assert!(log.contains(" w.0.1 write ") && log.contains(" sync 0 0\n"), "{log}");
    let replay = "[r]\nread_iolog=out.log\nioengine=libaio\niodepth=4\ndirect=1\n";
    assert_eq!(ios(&run(&place.file("r.fio", replay))), ios(&first));
    // With several trials each has a log of its own; what is no log is left alone.
    place.out(&["run", "w.fio", "--device", "fixed", "--scheduler", "none,bfq"]);
    assert!(place.dir.path().join("out.log-w-fixed-bfq@7.1-7.1-r1").exists());
    let diary = place.file("diary", "dear diary");
    let careless = place.file("c.fio", job.replace("out.log", "diary"));
    let why = place.fails(2, &["run", &careless, "--device", "fixed", "--scheduler", "none"]);
    assert!(why.contains("diary is there and is no I/O log"), "{why}");
    let nowhere = place.file("n.fio", job.replace("out.log", "no/where"));
    assert!(place.fails(2, &["run", &nowhere]).contains("there is no folder for no/where"));
    assert_eq!(std::fs::read_to_string(diary).unwrap(), "dear diary");
    // A log that would not be written is refused.
    let buffered = place.file("b.fio", job.replace("direct=1", "direct=0"));
    let why = place.fails(2, &["run", &buffered, "--device", "fixed", "--scheduler", "none"]);
    assert!(why.contains("logs of buffered jobs") && why.contains("direct=1"), "{why}");
}

#[test]
fn a_device_through_the_page_cache_needs_no_file_system() {
    let place = Place::new();
    let job = place.file("d.fio", "[r]\nfilename=/dev/x\nrw=randread\nbs=4k\nsize=1m\ndirect=0\n");
    let run = |fs: &str| {
        let device = ["--device", "fixed", "--scheduler", "none", "--format", "csv"];
        let out = place.out(&[&["run", &job, "--filesystem", fs], &device[..]].concat());
        out.lines().find(|l| l.contains(",read.iops,")).unwrap().to_string()
    };
    assert_eq!(run("simple"), run("ext4"));
}

#[test]
fn jobs_of_a_flow_share_by_weight_and_missed_rates_are_told() {
    let place = Place::new();
    let job = "[global]\nioengine=libaio\niodepth=4\nrw=randread\nfilename=/dev/x\ndirect=1\n\
               runtime=1\ntime_based\nflow_id=1\n[a]\nflow=3\n[b]\nflow=1\nrate_min=1g\n";
    let job = place.file("flow.fio", job);
    let output =
        place.iosched(&["run", &job, "--device", "fixed", "--format", "fio-json"]).output();
    let output = output.unwrap();
    // One document for each of the schedulers.
    let mut all = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let v = all.next().unwrap().unwrap();
    assert!(all.next().unwrap().unwrap()["iosched"]["trial"]["scheduler"].is_string());
    let ios = |i: usize| v["jobs"][i]["read"]["total_ios"].as_f64().unwrap();
    assert!((ios(0) / ios(1) - 3.0).abs() < 0.01, "{} to {}", ios(0), ios(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("reads of job \"b\"") && said.contains("below rate_min"), "{said}");
}

#[test]
fn a_regression_is_told_and_ends_with_1() {
    let place = Place::new();
    let experiment = |name: &str, batch: u32| {
        let text = format!(
            "name = \"{name}\"\ndevices = [\"st1000dm003\"]\nruns = 7\nworkloads = [{{ name = \"w\", job = \"\"\"\n\
             [a]\nfilename=/dev/x\ndirect=1\nrw=randread\nbs=4k\nioengine=libaio\niodepth=32\nnumjobs=4\n\
             runtime=1\ntime_based\n\"\"\" }}]\nschedulers = [{{ name = \"mq-deadline\", label = \"tested\", \
             tunables = {{ fifo_batch = {batch}, read_expire = 1 }} }}]\n"
        );
        place.out(&["run", &place.file(&format!("{name}.toml"), &text)]);
    };
    experiment("before", 64);
    experiment("after", 1);
    let output = place.iosched(&["compare", "before", "after", "--force"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("read.bw") && text.contains("REGRESSION"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    // The other way round it is better; a tail may leave room for anything.
    let better = place.out(&["compare", "after", "before", "--force", "--allow-inconclusive"]);
    assert!(better.contains("better") && !better.contains("REGRESSION"), "{better}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new();
    let program = place.iosched(&[]).get_program().to_owned();
    let mut child = Command::new(program)
        .args(["list", "schedulers", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
}

#[test]
fn lists_and_pages_name_everything() {
    let place = Place::new();
    let text = place.out(&["list", "schedulers"]);
    for name in ["noop", "anticipatory", "deadline", "cfq", "none", "mq-deadline", "kyber", "bfq"] {
        assert!(text.contains(name), "{name}");
        assert!(place.out(&["show", "scheduler", name]).contains("Generations"));
    }
    for what in ["schedulers", "devices", "kernels", "workloads"] {
        let json: Value = serde_json::from_str(&place.out(&["list", what, "--json"])).unwrap();
        assert!(json.as_array().unwrap().len() > 4, "{what}");
    }
    assert!(place.out(&["show", "kernel", "6.12"]).contains("hz = 250"));
    assert!(place.out(&["show", "option", "iodepth"]).contains("simulated"));
    assert!(place.out(&["show", "option", "fifo_batch"]).contains("tunable of mq-deadline"));
    assert!(place.out(&["show", "workload", "desktop"]).contains("[program-start]"));
    assert!(place.out(&["completions", "bash"]).contains("_iosched"));
    assert!(place.out(&["man"]).contains(".TH iosched"));
    place.out(&["man", "--dir", "pages"]);
    assert!(place.dir.path().join("pages/iosched-run.1").exists());
}

#[test]
fn every_subcommand_shows_an_example() {
    let place = Place::new();
    let help = place.out(&["help"]);
    let listed = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands: Vec<&str> = listed
        .lines()
        .filter_map(|l| l.strip_prefix("  ").filter(|l| !l.starts_with(' ')))
        .filter_map(|l| l.split(' ').next())
        .filter(|c| *c != "help")
        .collect();
    assert!(commands.len() > 12 && commands.contains(&"run"), "{help}");
    for command in commands {
        let help = place.out(&[command, "--help"]);
        assert!(help.contains("Example"), "{command}: {help}");
        assert!(help.contains(&format!("iosched {command}")), "{command}: {help}");
    }
}

#[test]
fn validation_and_benchmark_speak_json() {
    let place = Place::new();
    let truth = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/truth");
    let text = place.out(&[
        "validate",
        truth,
        "--device",
        "hdd7k_q1",
        "--scheduler",
        "none",
        "--job",
        "rr16",
        "--format",
        "json",
    ]);
    let rows: Value = serde_json::from_str(&text).unwrap();
    let total =
        rows.as_array().unwrap().iter().find(|r| r["section"] == "*" && r["metric"] == "iops");
    let error = total.unwrap()["error"].as_f64().unwrap();
    assert!(error.abs() < 0.05, "{error}");
    let text = place.out(&[
        "bench",
        "--scheduler",
        "none",
        "--device",
        "fixed",
        "--depth",
        "32",
        "--requests",
        "5000",
        "--format",
        "json",
    ]);
    let rows: Value = serde_json::from_str(&text).unwrap();
    for key in
        ["scheduler", "device", "processes", "depth", "requests_per_second", "ns_per_request"]
    {
        assert!(!rows[0][key].is_null(), "{key}: {text}");
    }
    assert_eq!(
        (&rows[0]["checks"], &rows[0]["requests"]),
        (&Value::from("ok"), &Value::from(5000))
    );
}

/// The host's cases, each with its figures and a check that held.
#[test]
fn the_host_is_measured_case_by_case() {
    let place = Place::new();
    let text = place.out(&["bench", "--host", "--requests", "20000", "--format", "json"]);
    let rows: Value = serde_json::from_str(&text).unwrap();
    let cases: Vec<_> = rows.as_array().unwrap().iter().map(|r| r["case"].as_str()).collect();
    let wanted = [
        "cached-read",
        "cached-write",
        "stream-read-pages",
        "stream-write-pages",
        "append-fsync",
        "create-unlink",
    ];
    assert_eq!(cases, wanted.map(Some));
    for row in rows.as_array().unwrap() {
        assert_eq!(row["checks"], "ok", "{row}");
        let (rate, ns) = (row["per_second"].as_f64().unwrap(), row["ns"].as_f64().unwrap());
        assert!((rate * ns / 1e9 - 1.0).abs() < 1e-9, "{row}");
    }
    assert!(place.out(&["bench", "--host", "--requests", "1000"]).contains("appends of 4 KiB"));
}

#[test]
fn explanations_come_as_text_and_json() {
    let place = Place::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios/bfq-idle-6.12.toml");
    assert!(place.out(&["explain", file]).contains("idle"));
    let beside = place.out(&["explain", file, "mq-deadline", "bfq", "--html", "steps.html"]);
    assert!(beside.contains("mq-deadline and bfq part here:"), "{beside}");
    assert!(beside.lines().all(|l| l.chars().count() <= 80), "{beside}");
    let page = std::fs::read_to_string(place.dir.path().join("steps.html")).unwrap();
    assert_eq!(page.matches("class=\"scene\"").count(), 2);
    let several: serde_json::Value = serde_json::from_str(&place.out(&[
        "explain",
        file,
        "mq-deadline",
        "bfq",
        "--format",
        "json",
    ]))
    .unwrap();
    assert_eq!(several[1]["scheduler"], "bfq");
    assert!(several[0]["requests"][0]["done_ns"].as_u64() > Some(0));
    let json: Value =
        serde_json::from_str(&place.out(&["explain", file, "--format", "json"])).unwrap();
    assert!(json["dispatched"][0]["t_ns"].is_u64() && json["idle"].is_array(), "{json}");
}

/// fio-plot (PyPI) is written for fio's own JSON. Skipped aloud where it is not installed.
#[test]
fn fio_plot_reads_the_output() {
    if Command::new("fio-plot").arg("-h").output().is_err() {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"SKIPPED: fio-plot is not installed (pipx install fio-plot)\n",
        );
        return;
    }
    let place = Place::new();
    let job = place.file("job.fio", JOB);
    let dir = place.dir.path().join("data");
    std::fs::create_dir(&dir).unwrap();
    for depth in [1, 8] {
        let out = dir.join(format!("randread-{depth}-1.json")).display().to_string();
        place.out(&[
            "run",
            &job,
            "--device",
            "fixed",
            "--scheduler",
            "none",
            "--no-store",
            "--set",
            &format!("iodepth={depth}"),
            "--format",
            "fio-json",
            "-o",
            &out,
        ]);
    }
    let plot = Command::new("fio-plot")
        .args(["-i", "data", "-T", "t", "-l", "-r", "randread", "-o", "plot.png"])
        .args(["-d", "1", "8", "-n", "1"])
        .current_dir(place.dir.path())
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&plot.stderr).into_owned() + &String::from_utf8_lossy(&plot.stdout);
    assert!(plot.status.success() && place.dir.path().join("plot.png").exists(), "{said}");
}

#[test]
fn a_benchmark_draws_its_times() {
    let place = Place::new();
    let load = ["--device", "fixed", "--depth", "2", "--processes", "1,4", "--requests", "2000"];
    let what = ["bench", "--scheduler", "none,kyber", "--no-memory", "--svg", "times.svg"];
    let table = place.out(&[&what[..], &load].concat());
    assert_eq!(table.matches(" ok").count(), 4, "{table}");
    let picture = std::fs::read_to_string(place.dir.path().join("times.svg")).unwrap();
    for text in ["processes at depth 2", ">none<", ">kyber<", ">4<"] {
        assert!(picture.contains(text), "{text}: {picture}");
    }
}

/// Ctrl-C in the middle of a simulation keeps what is done, and the same command goes on.
#[test]
fn attributes_that_change_nothing_are_told() {
    let place = Place::new();
    let set =
        ["--queue", "io_timeout=30000", "--queue", "read_ahead_kb=64", "--runs", "1", "--no-store"];
    let job = place.file("d.fio", "[r]\nfilename=/dev/disk\ndirect=1\nnumber_ios=10\n");
    let direct = [&["run", &job, "--device", "fixed", "--scheduler", "none"][..], &set].concat();
    let told = place.fails(0, &direct);
    assert!(
        told.contains("io_timeout=30000 changes nothing")
            && told.contains("read_ahead_kb=64 changes nothing"),
        "{told}"
    );
    let job = place.file("b.fio", "[r]\nfilename=/dev/disk\nnumber_ios=10\n");
    let cached = [&["run", &job, "--device", "fixed", "--scheduler", "none"][..], &set].concat();
    let told = place.fails(0, &cached);
    assert!(told.contains("io_timeout") && !told.contains("read_ahead_kb"), "{told}");
}
