//! What a page draws and how it judges: charts of sweeps and courses, starved and censored cells, sums.

#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_report::{Input, Options, html};

use crate::page::page_of;
use crate::synthetic;

#[test]
fn depths_become_lines_and_heat_charts() {
    let mut records = synthetic::records(3, 3, 2);
    for r in &mut records {
        let depth = 1 << r.trial.workload.bytes().last().map_or(0, |b| b - b'0');
        for j in &mut r.jobs {
            j.options = [("rw", "randread".to_string()), ("iodepth", format!("{depth}"))]
                .map(|(k, v)| (k.to_string(), v))
                .into();
        }
    }
    let page = page_of(&records);
    assert!(page.contains("Sweep over depth"), "three depths of one load");
    assert!(page.contains("class=\"dt heat\"") && page.contains("IOPS by depth"));
    records.retain(|r| r.trial.workload != "workload 02");
    assert!(!page_of(&records).contains("Sweep over"), "two points are no line");
}

#[test]
fn a_sweep_over_three_options_has_a_chart_for_each_value_of_the_third() {
    let mut records = synthetic::records(12, 2, 2);
    for r in &mut records {
        let n: u32 = r.trial.workload[9..].parse().unwrap();
        let (depth, jobs, bs) = (1 << (n % 3), 1 + n / 3 % 2, 4096 << (n / 6));
        r.jobs.truncate(1);
        for j in &mut r.jobs {
            let options = [("iodepth", depth), ("numjobs", jobs), ("bs", bs)];
            j.options = options.map(|(k, v)| (k.to_string(), v.to_string())).into();
        }
    }
    let page = page_of(&records);
    assert!(page.contains("Sweep over depth, jobs and block size"));
    for (of, size) in [("IOPS", "4 KiB"), ("IOPS", "8 KiB"), ("latency, mean", "8 KiB")] {
        let head = format!(": {of} by depth, block size {size}</th>");
        assert_eq!(page.matches(&head).count(), 1, "{head}");
    }
}

#[test]
fn a_stored_run_says_how_to_run_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = iosched_results::store::Store::open(&dir.path().join("r.db")).unwrap();
    let id = store.begin("night", "name = \"night\"\ndevices = [\"a<b\"]", "run").unwrap();
    let records = synthetic::records(2, 2, 3);
    store.put_all(id, records.iter().map(|r| (r, ""))).unwrap();
    let page = html(&Input::from_store(Options::default(), &store, id).unwrap());
    assert!(page.contains("iosched run again.toml --runs 3"));
    assert!(page.contains("devices = [&quot;a&lt;b&quot;]"));
}

#[test]
fn files_that_the_page_lacks_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = iosched_results::store::Store::open(&dir.path().join("r.db")).unwrap();
    let mut again = |definition: &str| {
        let id = store.begin("night", definition, "run").unwrap();
        store.put_all(id, synthetic::records(1, 2, 3).iter().map(|r| (r, ""))).unwrap();
        let page = html(&Input::from_store(Options::default(), &store, id).unwrap());
        let at = page.find("id=\"again\">").unwrap();
        page[at + 11..at + page[at..].find("</pre>").unwrap()].replace("&#x2f;", "/")
    };
    let text = "devices = [\"my.toml\"]\nschedulers = [\"none\"]\nworkloads = [\"jobs/a.fio\", \"database\"]";
    let said = again(text);
    assert!(said.contains("not in this page: my.toml, jobs/a.fio\n"), "{said}");
    assert!(
        !again("devices = [\"hdd-7200\"]\nschedulers = [\"none\"]\nworkloads = [\"database\"]")
            .contains("not in this page")
    );
    let said = again("run jobs/a.fio --device hdd-7200 --runs 3");
    assert!(said.starts_with("iosched run jobs/a.fio --device hdd-7200 --runs 3\n"), "{said}");
    assert!(
        said.contains("not in this page: jobs/a.fio") && !said.contains("again.toml"),
        "{said}"
    );
}

#[test]
fn a_queue_is_what_waits_and_what_the_device_has() {
    use iosched_experiment::Series;
    let mut records = synthetic::records(1, 2, 1);
    for r in &mut records {
        r.series.retain(|s| s.name != "queue_depth");
        for (name, value) in [("queue_depth", 0.25), ("in_flight", 7.75)] {
            let (name, unit) = (name.to_string(), "requests".to_string());
            r.series.push(Series { name, unit, step: 50_000_000, values: vec![value; 200] });
        }
    }
    let average = |page: &str, title: &str| {
        let figure = &page[page.find(title).unwrap_or_else(|| panic!("no {title}"))..];
        let cell = &figure[figure.find(" data-v=\"").unwrap() + 9..];
        cell[..cell.find('"').unwrap()].to_string()
    };
    assert_eq!(average(&page_of(&records), ": requests waiting or at the device</h4>"), "8.00");
    for r in &mut records {
        r.series.retain(|s| s.name != "in_flight");
    }
    assert_eq!(average(&page_of(&records), ": requests waiting</h4>"), "0.250");
}

#[test]
fn clones_of_a_job_have_its_name_on_the_dispatch_picture() {
    let mut records = synthetic::records(1, 2, 1);
    for r in &mut records {
        // As a job with group_reporting is recorded: one entry for its four processes.
        r.jobs.truncate(1);
        r.jobs[0].options.insert("numjobs".into(), "4".into());
    }
    let page = page_of(&records);
    let fold = &page[page.find("<summary>Dispatch order").unwrap()..];
    let fold = &fold[..fold.find("</details>").unwrap()];
    assert!(fold.contains("reader, 4 processes</span>"), "{}", &fold[..600]);
    assert!(!fold.contains(">other</span>"));
}

#[test]
fn the_course_of_a_program_is_drawn() {
    use iosched_experiment::{EVENT, Mark, MarkKind, OPERATION, Series};
    let mark = |name: &str, kind, began: u64, ended: u64| {
        let (began, ended) = (began * 1_000_000_000, ended * 1_000_000_000);
        Mark { name: name.into(), kind, began, ended }
    };
    let curve = |name: &str, unit: &str, values: &[f64]| Series {
        name: name.into(),
        unit: unit.into(),
        step: 1_000_000_000,
        values: values.to_vec(),
    };
    let mut records = synthetic::records(1, 3, 1);
    let n = records.len() as u64;
    for (i, r) in (0..).zip(&mut records) {
        r.marks = vec![
            mark("write <b>", MarkKind::Phase, 0, 4 + i),
            mark("read", MarkKind::Phase, 4 + i, 9),
            mark("checkpoint", MarkKind::Beside, 2, 3),
            mark("start", MarkKind::Try, 0, 2),
            mark("start", MarkKind::GivenUp, 2, 62 + i),
        ];
        let name = |p: &str, n: &str| format!("{p}{n}");
        r.series.extend([
            curve(&name(OPERATION, "transaction"), "1/s", &[50.0, 70.0, 20.0 + i as f64]),
            curve(&name(OPERATION, "checkpoint"), "1/s", &[0.0, 0.0, 1.0]),
            curve(&name(EVENT, "frame dropped"), "1/s", &[0.0, 3.0, 1.0]),
        ]);
        r.jobs[0].cpu.user = 2_500_000_000;
    }
    let page = page_of(&records);
    let fold = |title: &str| {
        let at = page.find(&format!("<summary>{title}")).unwrap_or_else(|| panic!("no {title}"));
        page[at..at + page[at..].find("</details>").unwrap()].to_string()
    };
    let tries = fold("Tries one by one");
    assert!(tries.contains(&format!("{n} of {} given up", 2 * n)), "{tries}");
    assert_eq!(tries.matches("▷</b>").count() as u64, n, "one beyond its limit a run");
    assert_eq!(tries.matches("<i style").count() as u64, n, "one that ended a run");
    assert!(
        tries.contains("&gt;&#8239;62.0 s"),
        "a median of which only a bound is known: {tries}"
    );
    let phases = fold("Phases");
    assert!(phases.contains("write &lt;b&gt;") && !phases.contains("write <b>"), "{phases}");
    assert!(phases.contains("<td>5.00 s</td>") && phases.contains("from 0 to 9.00 s"), "{phases}");
    assert_eq!(phases.matches("class=\"lane\"").count() as u64, n);
    let course = fold("The program over time");
    assert!(course.contains("transaction; bars on top: checkpoint"), "{course}");
    assert_eq!(course.matches("class=\"band\"").count() as u64, n + 1, "a bar for each curve");
    assert!(course.contains("frame dropped") && !course.contains("checkpoint; bars"), "{course}");
    let cost = fold("Core time beside throughput");
    assert!(cost.contains("<td>25.0 %</td>"), "2.5 s of 10: {cost}");
    // Sensors are something else.
    assert!(!page.contains("<summary>Sensors"));
}

/// Two of five runs of bfq starve the reader; its other runs are quick.
#[test]
fn a_starved_cell_is_marked_and_never_praised() {
    use iosched_experiment::record::{BackendKind, DirStats, JobRecord, Record, TrialId};
    let trial = |scheduler: &str, repetition: u32, reads: u64, ms: u64| {
        let mut read = DirStats { ios: reads, bytes: reads * 4096, ..DirStats::default() };
        read.runtime = 1_000_000_000;
        (1..=reads).for_each(|i| read.lat_hist.record(ms * 1_000_000 - i));
        read.clat = read.lat_hist.clone();
        let trial = TrialId {
            device: "disk".into(),
            workload: "writers".into(),
            scheduler: scheduler.into(),
            kernel: "6.12".into(),
            repetition,
            ..TrialId::default()
        };
        let jobs = vec![JobRecord { name: "a".into(), read, ..JobRecord::default() }];
        Record { trial, jobs, backend: BackendKind::Real, ..Record::default() }
    };
    let mut records = Vec::new();
    for i in 1..=5 {
        records.push(trial("none", i, 200, 70 + u64::from(i)));
        records.push(trial("bfq", i, if i < 4 { 200 } else { 20 }, if i < 4 { 48 } else { 8_000 }));
    }
    let page = page_of(&records);
    let row = page.split("<tr class=\"").find(|r| r.contains(">2 of 5 starved</abbr>")).unwrap();
    let row = row.split("</tr>").next().unwrap();
    assert!(row.starts_with("few\""), "neither better nor worse: {row}");
    assert!(row.contains("&gt;&#8239;3.2") && row.contains("<td class=\"n\">5</td>"), "{row}");
    // Names are in elements of their own, so that they follow renaming.
    let words: String =
        page.split('<').map(|p| p.split_once('>').map_or(p, |(_, text)| text)).collect();
    assert!(words.contains("bfq starved reads of writers"));
    assert!(page.contains("&gt; at least, ~ about"), "the legend");
    assert!(!page_of(&records[..1]).contains("&gt; at least, ~"), "a legend of what is not there");
}

/// A page of single values has no column for intervals: what stood there lay over the number beside it.
#[test]
fn one_value_beyond_its_limit_has_its_sign_and_nothing_over_it() {
    let mut records = synthetic::records(1, 2, 1);
    for r in &mut records {
        r.metrics.push(iosched_experiment::Metric {
            name: "startup_time".into(),
            value: 60.0,
            unit: "s".into(),
            higher_is_better: Some(false),
            censored: true,
        });
    }
    let page = page_of(&records);
    let cell = page.split("<td class=\"v\"").find(|c| c.contains("&gt;&#8239;60.0<span> s"));
    let row = cell.unwrap().split("</tr>").next().unwrap();
    assert!(row.starts_with(" title=\"at least: a round that stopped at its limit"), "{row}");
    assert!(row.contains("<td class=\"ci\" title=\"\"></td>"), "{row}");
    assert!(!page.contains("1 of 1 at limit</abbr>"));
}

/// Of the kernel's own schedulers none delivers anything: the plot says infinity, in its label, too.
#[test]
fn infinitely_many_times_better_is_no_long_number() {
    let mut records = synthetic::records(1, 5, 3);
    for r in &mut records {
        let cfq = r.trial.scheduler.starts_with("cfq");
        r.trial.scheduler = r.trial.scheduler.replace("@6.12", "");
        r.jobs.clear();
        r.metrics = vec![iosched_experiment::record::Metric {
            name: "tps".into(),
            value: if cfq { 100.0 + f64::from(r.trial.repetition) } else { 0.0 },
            unit: "1/s".into(),
            higher_is_better: Some(true),
            censored: false,
        }];
    }
    let page = page_of(&records);
    assert!(page.contains("cfq ∞\""), "the label of the plot");
    assert!(page.contains("<title>cfq ∞</title>"), "the mark of a scheduler of another kernel");
    let digits = page.split(|c: char| !c.is_ascii_digit() && c != ',').map(str::len).max();
    assert!(digits.is_some_and(|n| n < 100), "{digits:?} digits in a row");
}

/// Samples of another program: rates of reads and writes, and nobody added them up.
#[test]
fn a_page_adds_up_two_rates() {
    let head = "scheduler,workload,repetition,metric,unit,better,value\n";
    let row = |s: &str, m: &str, v: u32| format!("{s},w,1,{m},B/s,higher,{v}\n");
    let rows = ["none", "bfq"].map(|s| row(s, "read.bw", 1_024) + &row(s, "write.bw", 2_048));
    let trial = iosched_experiment::TrialId::default();
    let csv = format!("{head}{}", rows.concat());
    let records = iosched_results::import::import("x.csv", &csv, None, &trial).unwrap();
    let page = page_of(&records);
    for rate in ["1.00", "2.00", "3.00"] {
        assert!(page.contains(&format!("<td class=\"v\">{rate}<span> KiB/s</span>")), "{rate}");
    }
}

/// The total of reads and writes is shown, and its parts count: a third figure would make bfq the better one.
#[test]
fn means_count_no_total_beside_its_parts() {
    let mut records = synthetic::records(1, 2, 1);
    for r in &mut records {
        let none = r.trial.scheduler.starts_with("none");
        r.jobs.clear();
        let metric = |name: &str, value: f64| iosched_experiment::record::Metric {
            name: name.into(),
            value,
            unit: "B/s".into(),
            higher_is_better: Some(true),
            censored: false,
        };
        let (read, write) = if none { (1e8, 1e8) } else { (2e8, 0.5e8) };
        r.metrics = vec![metric("read.bw", read), metric("write.bw", write)];
    }
    let page = page_of(&records);
    assert!(page.contains("total.bw"));
    assert_eq!(page.matches("<td>100,000,000</td>").count(), 2, "both geometric means");
    assert!(page.contains("of the best throughput (2 tests)"));
}
