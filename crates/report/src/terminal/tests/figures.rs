//! Latencies without bins, few I/Os, rates beside times.

use super::*;

#[test]
fn latencies_of_a_file_without_bins_are_its_percentiles() {
    let mut r = record("disk", "w", "none", 100, 5_000);
    r.jobs.truncate(1);
    let ios = r.jobs[0].read.ios;
    r.jobs[0].read = DirStats {
        ios,
        bytes: r.jobs[0].read.bytes,
        runtime: r.jobs[0].read.runtime,
        ..DirStats::default()
    };
    let put = |r: &mut Record, name: &str, us: f64| {
        let (name, unit) = (name.to_string(), "ns".to_string());
        let higher_is_better = Some(false);
        r.metrics.push(Metric { name, value: us * 1e3, unit, higher_is_better, censored: false });
    };
    let row = |r: &Record| {
        let text = report(std::slice::from_ref(r), NARROW);
        let line = text.lines().find(|l| l.starts_with("none")).unwrap().to_string();
        line.split_whitespace().skip(4).map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(row(&r), ["–", "–", "–", "–"], "unknown is not 0");
    for (end, us) in [("mean", 244.0), ("p50", 107.0), ("p99", 4112.0), ("p99.9", 9000.0)] {
        put(&mut r, &format!("read.clat.{end}"), us);
    }
    assert_eq!(row(&r), ["244", "107", "4112", "9000"]);
    // Of both directions only the mean can be told.
    r.jobs[0].write = DirStats { ios: 3 * ios, bytes: 1, ..r.jobs[0].read.clone() };
    put(&mut r, "write.clat.mean", 44.0);
    assert_eq!(row(&r), ["94.0", "–", "–", "–"]);
}

/// Over all workloads a scheduler is starred where the answer names it, and nowhere else.
#[test]
fn the_summary_names_whom_the_answer_names() {
    let of = |ahead: u64| {
        let mut records = Vec::new();
        for workload in ["w1", "w2"] {
            for i in 1..=5 {
                for (scheduler, ios) in [("none", 1_000), ("bfq", 1_000 + ahead)] {
                    let mut r = record("disk", workload, scheduler, ios + 7 * u64::from(i), 1_000);
                    r.trial.repetition = i;
                    records.push(r);
                }
            }
        }
        report(&records, NARROW)
    };
    let starred = |text: &str| {
        let table = &text[text.find("All workloads on disk").unwrap()..];
        let row = table.lines().find(|l| l.starts_with("bfq")).unwrap();
        (row.contains('*'), row.trim_end().to_string())
    };
    let clear = of(500);
    let (star, row) = starred(&clear);
    assert!(star && row.ends_with("2        0"), "{clear}");
    assert!(clear.contains("throughput  bfq: +"), "{clear}");
    let level = of(2);
    let (star, row) = starred(&level);
    assert!(!star && row.ends_with("0        0"), "{level}");
    assert!(level.contains("throughput  No measurable difference"), "{level}");
}

/// Eight I/Os have no 99th percentile: the longest wait is shown, marked, and never as the best.
#[test]
fn few_ios_show_their_longest_wait() {
    let few = |scheduler: &str, ios: u64| {
        let mut r = record("disk", "w", scheduler, 300, 2_000_000);
        r.jobs[1].read = DirStats { ios, runtime: 1_000_000_000, ..DirStats::default() };
        (0..ios).for_each(|i| r.jobs[1].read.clat.record(1_000_000 + i));
        r
    };
    let text = report(&[few("none", 8), few("bfq", 300)], NARROW);
    let by_job = &text[text.find("by job").unwrap()..];
    let row = |name: &str| by_job.lines().find(|l| l.starts_with(name)).unwrap().to_string();
    assert!(row("none").contains("^1.00") && !row("bfq").contains('^'), "{text}");
    assert!(text.contains("^ the longest wait: fewer than 100"), "{text}");
    let enough = report(&[few("none", 500), few("bfq", 300)], NARROW);
    let by_job = enough.split("by job").nth(1).and_then(|t| t.split("\n\n").next()).unwrap();
    assert!(!by_job.contains('^'), "{enough}");
}

/// The schedulers of this kernel deliver nothing, so one of another kernel is infinitely better.
#[test]
fn infinitely_many_times_better_is_no_long_number() {
    let of = |workload: &str, scheduler: &str, value: f64| {
        let mut r = record("disk", workload, scheduler, 0, 0);
        r.trial.kernel = "6.12".into();
        r.jobs.clear();
        let (name, unit) = ("tps".into(), "1/s".into());
        r.metrics =
            vec![Metric { name, value, unit, higher_is_better: Some(true), censored: false }];
        r
    };
    let mut records = Vec::new();
    for w in ["w1", "w2"] {
        records.extend([of(w, "none", 0.0), of(w, "bfq", 0.0), of(w, "cfq", 9.0)]);
    }
    let text = report(&records, NARROW);
    let table = &text[text.find("All workloads on disk").unwrap()..];
    let row = table.lines().find(|l| l.starts_with("cfq")).unwrap();
    assert!(row.contains(&"█".repeat(16)) && row.trim_end().ends_with("∞×"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
}

/// A rate's inverse has no chart of its own, and what the original prints as n/a stands where it stands there.
#[test]
fn the_time_of_one_stands_beside_its_rate() {
    let of = |scheduler: &str, rate: f64| {
        let mut r = record("disk", "w", scheduler, 0, 0);
        r.jobs.clear();
        r.provenance.insert("program".into(), "pg-test-fsync".into());
        let metric = |name: &str, value, unit: &str, higher_is_better| Metric {
            name: name.into(),
            value,
            unit: unit.into(),
            higher_is_better,
            censored: false,
        };
        r.metrics = vec![
            metric("fsync", rate, "ops/s", Some(true)),
            metric("open_sync", rate, "ops/s", Some(true)),
            metric("fsync, time of one", 1e6 / rate, "us", None),
        ];
        r
    };
    let text = report(&[of("none", 100.0), of("bfq", 200.0)], NARROW);
    assert!(!text.contains("time of one") && text.matches("µs each").count() == 1, "{text}");
    let row = text.lines().find(|l| l.starts_with("none")).unwrap();
    assert!(row.contains("10,000") || row.contains("10000"), "{text}");
    let at = |what: &str| text.find(what).unwrap();
    let [rate, not, next] =
        [at("fsync (more"), at("fsync_writethrough\n  n/a\n"), at("open_sync (more")];
    assert!(rate < not && not < next, "{text}");
}

/// fio's JSON has the disk's commands and no seeks, a table of a page not even these: 0 would be a figure.
#[test]
fn unknown_sides_of_the_disk_have_no_columns() {
    let mut r = record("disk", "w", "bfq", 100, 5_000_000);
    r.backend = BackendKind::Imported;
    let text = report(&[r.clone()], NARROW);
    let head = |w: &str| text.split_whitespace().any(|x| x == w);
    assert!(!["busy", "merges", "seeks", "seeks:", "idle"].into_iter().any(head), "{text}");
    r.device.commands[0] = 100;
    let text = report(&[r.clone()], NARROW);
    assert!(text.contains("busy % merges") && !text.contains("seeks"), "{text}");
    r.backend = BackendKind::Sim;
    assert!(report(&[r], NARROW).contains("busy % merges seeks idle %"));
}
