use iosched_experiment::record::{BackendKind, CoreTime};
use iosched_experiment::{DirStats, JobRecord, Metric, Record, Status, Warning};
use proptest::prelude::*;

use super::*;

mod figures;

fn report(records: &[Record], look: Look) -> String {
    super::report(records, look).text
}

fn record(device: &str, workload: &str, scheduler: &str, ios: u64, latency: u64) -> Record {
    let mut r = Record { elapsed: 1_000_000_000, ..Record::default() };
    r.trial.device = device.into();
    r.trial.workload = workload.into();
    r.trial.scheduler = scheduler.into();
    r.trial.repetition = 1;
    for name in ["a", "b"] {
        let mut read =
            DirStats { ios, bytes: ios * 4096, runtime: 1_000_000_000, ..DirStats::default() };
        (0..ios).for_each(|_| read.clat.record(latency));
        r.jobs.push(JobRecord { name: name.into(), read, ..JobRecord::default() });
    }
    r.device.busy = 250_000_000;
    r
}

/// The line of a scheduler in the first table.
fn row(text: &str, name: &str) -> String {
    let table = text.lines().skip_while(|l| !l.starts_with("scheduler"));
    table.skip(1).find(|l| l.starts_with(name)).unwrap().to_string()
}

const NARROW: Look = Look { tables: true, wide: false, color: false, noise: false, columns: 0 };

#[test]
fn the_best_is_starred_and_ratios_are_multiplied() {
    let records = [
        record("disk", "w1", "none", 100, 5_000_000),
        record("disk", "w1", "bfq", 200, 4_000_000),
        record("disk", "w2", "none", 200, 5_000_000),
        record("disk", "w2", "bfq", 100, 5_000_000),
    ];
    let text = report(&records, NARROW);
    let line = |head: &str| {
        let after = &text[text.find(head).unwrap()..];
        after.lines().find(|l| l.starts_with("bfq")).unwrap().to_string()
    };
    assert!(line("w1 on disk").contains("400*"), "{text}");
    assert!(!line("w2 on disk").contains("200*"), "{text}");
    let words = line("All workloads");
    assert!(words.contains("1.00×"), "{words}");
    assert!(words.contains("1.12×"), "1 / sqrt(0.8 * 1) = 1.12: {words}");
    // The answer names nobody, and neither does the table.
    assert!(!words.contains('*') && text.contains("One value of each proves nothing"), "{text}");
}

/// A copy that ends with an fsync moves the same bytes as its disk, and its writes return at the speed of memory.
#[test]
fn the_disks_rate_comes_before_that_of_memory() {
    let with = |scheduler: &str, ended: u64| {
        let mut r = record("disk", "w", scheduler, 200, 1_000_000);
        r.jobs.truncate(1);
        let job = &mut r.jobs[0];
        (job.ended, job.read.runtime) = (ended, ended);
        r.device.bytes[1] = job.read.bytes;
        r
    };
    let of = |ended| report(&[with("none", ended), with("bfq", ended)], NARROW);
    let text = of(400_000_000);
    assert!(text.contains("disk MiB/s calls MiB/s"), "{text}");
    let none = text.lines().find(|l| l.starts_with("none")).unwrap();
    assert!(none.contains(" 0.78 ") && none.contains(" 1.95 "), "{none}");
    // What waits for the disk, and ends with it, is no cache's.
    assert!(!of(1_000_000_000).contains("calls MiB/s"));
    // Without the ends of processes nothing is known of the time after them, as of fio that ran live.
    assert!(!of(0).contains("calls MiB/s"));
}

/// Nor is the rate at which memory takes writes what counts: that is until all is on the medium.
#[test]
fn writes_that_stay_in_memory_are_judged_by_when_they_are_durable() {
    let with = |scheduler: &str, rate: f64, after: f64| {
        let mut r = record("disk", "w", scheduler, 25_600, 10_000);
        r.jobs.iter_mut().for_each(|j| std::mem::swap(&mut j.read, &mut j.write));
        let metric = |name: &str, value, unit: &str, more| Metric {
            name: name.into(),
            value,
            unit: unit.into(),
            higher_is_better: Some(more),
            censored: false,
        };
        r.metrics = vec![
            metric(iosched_experiment::DURABLE_BW, rate * 1_048_576.0, "B/s", true),
            metric(iosched_experiment::DURABLE_AFTER, after, "s", false),
        ];
        r
    };
    let text = report(&[with("none", 100.0, 2.0), with("bfq", 50.0, 4.0)], NARROW);
    let head = text.lines().find(|l| l.starts_with("scheduler")).unwrap();
    let words: Vec<&str> = head.split_whitespace().take(6).collect();
    assert_eq!(words.join(" "), "scheduler durable MiB/s after s calls", "{text}");
    let line = |name: &str| text.lines().find(|l| l.starts_with(name)).unwrap();
    assert!(line("none").contains("100*") && line("none").contains(" 200 "), "{text}");
    assert!(text.contains("Highest: none"), "{text}");
    assert!(text.contains("By throughput until all is"), "{text}");
    assert!(!text.contains("(more is better)"), "shown once: {text}");
}

#[test]
fn no_samples_are_no_figure_and_never_the_best() {
    let with = |scheduler: &str, ios, syncs: u64| {
        let mut r = record("disk", "w", scheduler, ios, 1_000_000);
        (0..syncs).for_each(|_| r.jobs[0].sync.clat.record(2_000_000));
        r.jobs[0].sync.ios = syncs;
        r
    };
    let text =
        report(&[with("none", 300, 200), with("bfq", 300, 0)], Look { columns: 160, ..NARROW });
    let line = row;
    assert!(line(&text, "bfq").contains('–') && line(&text, "none").contains("2.00"), "{text}");
    assert!(!line(&text, "bfq").contains(" 0*") && !line(&text, "bfq").contains("0.00*"), "{text}");
    // No I/O at all: neither mean nor percentile, nor how even the processes' shares are.
    let text = report(&[with("none", 300, 0), with("bfq", 0, 0)], Look { columns: 160, ..NARROW });
    assert_eq!(line(&text, "bfq").matches('–').count(), 5, "{text}");
    assert!(!line(&text, "bfq").contains('*'), "{text}");
}

/// `trims` a second of one process beside `reads` of another.
fn trimming(scheduler: &str, reads: u64, trims: u64) -> Record {
    let mut r = record("disk", "w", scheduler, reads, 1_000_000);
    r.jobs[0].trim = std::mem::take(&mut r.jobs[0].read);
    (r.jobs[0].trim.ios, r.jobs[0].trim.bytes) = (trims, trims << 20);
    r
}

#[test]
fn trims_are_counted_and_are_no_bandwidth() {
    let mib = 1_048_576;
    let text = report(&[trimming("none", 512, 700), trimming("bfq", 1024, 300)], NARROW);
    assert!(text.contains("trims/s"), "{text}");
    let line = row(&text, "bfq");
    let words: Vec<&str> = line.split_whitespace().collect();
    for word in ["4.00*", "1024*", "300"] {
        assert!(words.contains(&word), "{word}: {text}");
    }
    let by_job = &text[text.find("by job: MiB/s (of trims, their number /s)").unwrap()..];
    assert!(
        by_job.contains("700/s*") && by_job.contains("300/s") && by_job.contains("4.00*"),
        "{text}"
    );
    // Trims alone are compared by their number.
    let alone = |scheduler: &str, trims| {
        let mut r = trimming(scheduler, 0, trims);
        r.jobs.truncate(1);
        r
    };
    let (a, b) = (alone("none", 400), alone("bfq", 500));
    assert_eq!(Figures::of(&a).bandwidth, 0.0);
    assert_eq!((Figures::of(&b).trims, Figures::of(&b).rate()), (500.0, 500.0));
    assert!(a.jobs[0].trim.bytes > 100 * mib, "fio's own figure stays in the record");
    let text = report(&[a, b], Look { columns: 160, ..NARROW });
    assert!(text.contains("500*") && text.contains("+25"), "{text}");
    assert!(!report(&[record("disk", "w", "none", 9, 9)], NARROW).contains("trims"));
}

/// Five runs of 77, 106, 77, 71 and 101 syncs: means beside percentiles would compare nothing.
#[test]
fn a_column_of_syncs_holds_one_figure() {
    let run = |scheduler: &str, repetition: u32, syncs: u64| {
        let mut r = record("disk", "w", scheduler, 100, 1_000_000);
        (r.trial.repetition, r.jobs[0].sync.ios) = (repetition, syncs);
        (0..syncs).for_each(|i| {
            r.jobs[0].sync.clat.record(if i * 50 < syncs { 900_000_000 } else { 100_000_000 });
        });
        r
    };
    let mut records = vec![run("none", 1, 200), run("none", 2, 200), run("bfq", 1, 200)];
    let wide = Look { columns: 200, ..NARROW };
    records.push(run("bfq", 2, 200));
    let text = report(&records, wide);
    assert!(text.contains(" fsync ") && text.contains("fsync: its 99th percentile"), "{text}");
    let line = |text: &str| row(text, "bfq");
    assert!(line(&text).split_whitespace().any(|w| w.starts_with("90")), "{text}");
    records[3] = run("bfq", 2, 50);
    let text = report(&records, wide);
    assert!(text.contains("fsync mean") && !text.contains("fsync: its"), "{text}");
    assert!(line(&text).split_whitespace().any(|w| w.starts_with("116")), "{text}");
}

/// A parent that only syncs has no I/O whose percentile could be 0.
#[test]
fn who_only_syncs_has_no_percentile() {
    let mut all = Vec::new();
    for scheduler in ["none", "bfq"] {
        let mut r = record("disk", "w", scheduler, 200, 1_000_000);
        let mut parent = r.jobs[0].clone();
        (parent.name, parent.sync) = ("parent".into(), std::mem::take(&mut parent.read));
        r.jobs.push(parent);
        all.push(r);
    }
    let text = report(&all, NARROW);
    let by_job = &text[text.find("by job").unwrap()..];
    let line = by_job.lines().find(|l| l.starts_with("none")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert!(words.ends_with(&["0", "–"]), "{by_job}");
}

#[test]
fn failed_trials_are_named_with_their_reason() {
    let mut bad = record("disk", "w", "bfq", 1, 1);
    bad.status = Status::Failed("stuck\u{1b}[2J".into());
    let text = report(&[record("disk", "w", "none", 9, 9), bad], NARROW);
    assert!(text.contains("bfq: not usable: stuck"), "{text}");
    assert!(!text.contains('\u{1b}'), "names cannot steer the terminal");
}

#[test]
fn noise_that_is_allowed_shows_in_grey_and_wins_nothing() {
    let mut noisy = record("disk", "w", "bfq", 900, 1_000_000);
    noisy.status = Status::Invalid("others used 90 % of the CPUs".into());
    let mut failed = record("disk", "w", "kyber", 1, 1);
    failed.status = Status::Failed("stuck".into());
    let records = [record("disk", "w", "none", 100, 5_000_000), noisy, failed];
    let hidden = report(&records, NARROW);
    assert!(!hidden.contains("1800") && hidden.contains("bfq: not usable: others"), "{hidden}");
    let text = report(&records, Look { noise: true, ..NARROW });
    assert!(text.contains("1800"), "{text}");
    assert!(text.contains("bfq: invalid: others used 90 % of the CPUs"), "{text}");
    assert!(text.contains("kyber: not usable: stuck"), "{text}");
    assert!(!text.contains('*') && !text.contains('+'), "nothing is ranked against noise: {text}");
    assert!(report(&records, Look { noise: true, color: true, ..NARROW }).contains("\u{1b}[90m"));
    // A usable run of the same scheduler leaves no room for an invalid one.
    let records = [records[0].clone(), records[1].clone(), record("disk", "w", "bfq", 7, 9)];
    let text = report(&records, Look { noise: true, ..NARROW });
    assert!(!text.contains("1800"), "{text}");
}

#[test]
fn a_run_that_has_not_settled_is_marked() {
    let mut unsteady = record("disk", "w", "bfq", 900, 1_000_000);
    unsteady.warnings.push(Warning { code: "halves-differ".into(), ..Warning::default() });
    let text = report(&[record("disk", "w", "none", 100, 5_000_000), unsteady], NARROW);
    assert!(text.contains("rate changes: under bfq\n"), "{text}");
    assert!(text.contains("rate changes: by over 10 %"), "{text}");
    let steady = report(&[record("disk", "w", "none", 100, 5_000_000)], NARROW);
    assert!(!steady.contains("rate changes"), "{steady}");
}

/// A version is named only beside another one of the family.
#[test]
fn tables_call_schedulers_as_the_kernel_does() {
    let of = |s: &str| record("disk", "w", s, 100, 5_000_000);
    let text =
        report(&[of("mq-deadline@D"), of("noop@2.6.19"), of("bfq@4.12"), of("bfq@6.12")], NARROW);
    let lines: Vec<&str> = text.lines().filter_map(|l| l.split_whitespace().next()).collect();
    assert!(
        ["mq-deadline", "noop", "bfq@4.12", "bfq@6.12"].iter().all(|n| lines.contains(n)),
        "{text}"
    );
    assert!(text.contains("@X: that generation"), "{text}");
    let text = report(&[of("mq-deadline@D"), of("noop@2.6.19")], NARROW);
    assert!(!text.contains('@'), "{text}");
}

#[test]
fn an_import_of_one_scheduler_says_why_it_has_no_verdict() {
    let mut one = record("disk", "w", "unknown", 100, 5_000_000);
    one.backend = BackendKind::Imported;
    let text = report(&[one], NARROW);
    assert!(text.contains("No verdict: this is one scheduler."), "{text}");
    assert!(!report(&[record("disk", "w", "none", 9, 9)], NARROW).contains("No verdict"));
}

#[test]
fn wide_tables_have_core_time() {
    let mut known = record("disk", "w", "none", 100, 1_000_000);
    let (per_io, utilisation) = (Some(4_200.0), 0.25);
    known.core_time = Some(CoreTime { per_io, utilisation, ..CoreTime::default() });
    let all = [known, record("disk", "w", "bfq", 100, 1_000_000)];
    let text = report(&all, Look { wide: true, ..NARROW });
    assert!(text.contains("cpu %") && text.contains("25.0") && text.contains("4.20"), "{text}");
    assert!(text.contains("kernel threads included"), "{text}");
    assert!(!report(&all, NARROW).contains("cpu"));
}

/// The bins end at 17.1 s: a percentile there is at least what it says.
#[test]
fn a_percentile_beyond_the_bins_is_at_least_that() {
    let text = report(&[record("disk", "w", "none", 3, 60_000_000_000)], NARROW);
    assert!(text.contains(">=60000") && text.contains(">= at least"), "{text}");
    let text = report(&[record("disk", "w", "none", 3, 1_000_000_000)], NARROW);
    assert!(!text.contains(">="), "{text}");
}

#[test]
fn a_value_beyond_its_limit_is_never_the_best() {
    let of = |scheduler: &str, value, censored| Record {
        trial: record("d", "w", scheduler, 0, 0).trial,
        metrics: vec![Metric {
            name: "startup_time".into(),
            value,
            unit: "s".into(),
            higher_is_better: Some(false),
            censored,
        }],
        ..Record::default()
    };
    let text =
        report(&[of("none", 2.0, true), of("bfq", 3.0, false), of("cfq", 4.0, false)], NARROW);
    assert!(text.contains(">2.00 ") && text.contains("3.00*"), "{text}");
}

/// A program that gave up early never made its second process: that has no figures, and none that are best.
#[test]
fn a_job_that_did_not_take_part_has_no_figures() {
    let none = record("d", "w", "none", 200, 1_000_000);
    let mut bfq = record("d", "w", "bfq", 200, 1_000_000);
    bfq.jobs.push(JobRecord { name: "late".into(), ..bfq.jobs[0].clone() });
    let text = report(&[none, bfq], NARROW);
    let jobs = &text[text.find("by job").unwrap()..];
    let line = jobs.lines().find(|l| l.starts_with("none")).unwrap();
    assert_eq!(line.matches('–').count(), 2, "{jobs}");
    assert!(!line.contains("0*"), "{jobs}");
}

/// Where nothing is drawn at random five runs are one.
#[test]
fn runs_that_are_all_the_same_are_one_draw() {
    let mut records = Vec::new();
    for (scheduler, ios) in [("none", 100), ("bfq", 200)] {
        for repetition in 1..=5 {
            let mut r = record("d", "w", scheduler, ios, 1_000_000);
            r.trial.repetition = repetition;
            records.push(r);
        }
    }
    let text = report(&records, NARROW);
    let tables = text.split("All workloads").next().unwrap();
    assert!(tables.contains("2.00× one draw"), "{text}");
    assert!(!tables.contains("% better"), "{text}");
}

#[test]
fn colours_only_when_asked_for() {
    let records = [record("d", "w", "none", 1, 9), record("d", "w", "bfq", 2, 9)];
    assert!(!report(&records, NARROW).contains('\u{1b}'));
    let colored = report(&records, Look { color: true, ..NARROW });
    assert!(colored.contains("\u{1b}[32;1m"));
    for text in [colored, report(&records, NARROW)] {
        assert!(text.contains("* the best of its column"), "the sign is explained: {text}");
    }
}

#[test]
fn bars_are_as_long_as_their_share() {
    assert_eq!(bar(1.0, 4), "████");
    assert_eq!(bar(0.5, 4), "██");
    assert_eq!(bar(1e-9, 4), "▏");
    assert_eq!((bar(0.0, 4), bar(f64::NAN, 4)), (String::new(), String::new()));
}

proptest! {
    #[test]
    fn narrow_tables_fit_eighty_columns(
        ios in proptest::collection::vec((0u64..400, 0u64..1 << 40, "[a-z-]{1,30}"), 1..6),
        runs in 1u32..4,
    ) {
        let mut records = Vec::new();
        for (i, (n, latency, name)) in ios.iter().enumerate() {
            for repetition in 1..=runs {
                let mut r = record("a-device", "a-workload", &format!("{name}@{i}"), *n, *latency);
                r.trial.repetition = repetition;
                r.device.seeks = *latency;
                records.push(r);
            }
        }
        // Sentences beside a goal cannot break a name that is longer than what is left of a line.
        let short = ios.iter().all(|(_, _, name)| name.len() < 12);
        for columns in [0, 70, 132].into_iter().chain(short.then_some(40)) {
            let most = if columns == 0 { 80 } else { columns };
            for line in report(&records, Look { columns, ..NARROW }).lines() {
                prop_assert!(line.chars().count() <= most, "{columns} columns: {line}");
            }
        }
    }
}

#[test]
fn the_columns_of_the_device_are_explained() {
    let text = report(&[record("disk", "w", "none", 200, 1_000_000)], NARROW);
    assert!(text.contains("\nidle %: of the time") && text.contains("\nseeks: "), "{text}");
}

#[test]
fn of_many_jobs_the_extremes_are_shown() {
    let mut r = record("disk", "w", "none", 100, 1_000_000);
    let one = r.jobs[0].clone();
    r.jobs = (0..1000)
        .map(|i| {
            let mut j = one.clone();
            (j.name, j.read.ios) = (format!("task{i}"), 10_000 - i);
            j
        })
        .collect();
    let text = report(std::slice::from_ref(&r), NARROW);
    let has = |i: u64| text.split_whitespace().any(|w| w == format!("task{i}"));
    assert!(has(0) && has(7) && !has(8) && !has(991) && has(992) && has(999), "{text}");
    assert!(text.contains("984 more jobs: shown are the 8 with the fewest"), "{text}");
    let wide = report(&[r], Look { wide: true, ..NARROW });
    assert!(wide.contains("task500") && !wide.contains("more jobs"), "all on one wide line");
}

/// Whether jobs overlap by a nanosecond or miss each other by one makes no difference: the column is one total, which is
/// also what the change beside it and the answer compare.
#[test]
fn a_total_does_not_jump_where_jobs_begin_to_overlap() {
    let of = |began: u64| {
        let mut r = record("disk", "w", "none", 100, 1_000_000);
        r.jobs.truncate(1);
        let mut late = r.jobs[0].clone();
        let length = late.read.runtime;
        late.name = "late".into();
        std::mem::swap(&mut late.read, &mut late.write);
        r.jobs[0].ended = length;
        (late.began, late.ended) = (began, began + length);
        r.jobs.push(late);
        r
    };
    let length = of(0).jobs[0].read.runtime;
    let [before, after] = [of(length - 1), of(length)].map(|r| Figures::of(&r));
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
    assert!(near(before.bandwidth, after.bandwidth) && near(before.iops, after.iops));
    let measures = iosched_results::measure::measures(&of(length - 1));
    let total = measures.iter().find(|m| m.name == "total.bw").unwrap();
    assert!(near(total.value, before.bandwidth));
}

#[test]
fn rates_of_jobs_at_different_times_are_explained() {
    let mut r = record("disk", "w", "none", 100, 1_000_000);
    let mut late = r.jobs[0].clone();
    late.name = "late".into();
    r.jobs.push(late);
    let words = "over the time in which that job ran";
    assert!(!report(std::slice::from_ref(&r), NARROW).contains(words));
    let told = |r: &Record| {
        let text = report(std::slice::from_ref(r), NARROW);
        text.split_whitespace().collect::<Vec<_>>().join(" ").contains(words)
    };
    // As long as the others, but later: 1.3 s of a total, and 1 s of each job.
    r.jobs[2].began = 300_000_000;
    assert!(told(&r));
    r.jobs[2].began = 10_000_000;
    assert!(!told(&r));
    r.jobs[1].read.runtime /= 2;
    assert!(told(&r));
}
