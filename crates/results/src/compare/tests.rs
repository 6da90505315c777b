use super::*;
use iosched_experiment::BackendKind;
use iosched_experiment::record::{DirStats, JobRecord, Metric, Status, TrialId};

fn records(kernel: &str, values: &[f64]) -> Vec<Record> {
    let of = |(v, i): (&f64, u32)| Record {
        trial: TrialId {
            device: "d".into(),
            workload: "w".into(),
            scheduler: "bfq".into(),
            kernel: kernel.into(),
            repetition: i,
            ..TrialId::default()
        },
        backend: BackendKind::Real,
        metrics: vec![Metric {
            name: "iops".into(),
            value: *v,
            unit: "1/s".into(),
            higher_is_better: Some(true),
            censored: false,
        }],
        provenance: [
            ("device.model".to_string(), "x".to_string()),
            ("timestamp".into(), i.to_string()),
        ]
        .into(),
        ..Record::default()
    };
    values.iter().zip(1..).map(of).collect()
}

const FAST: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];

fn scaled(by: f64) -> Vec<f64> {
    FAST.iter().zip([1.0, 1.001, 0.999, 1.0005, 0.9995, 1.0]).map(|(v, j)| v * by * j).collect()
}

#[test]
fn only_a_significant_loss_beyond_the_threshold_is_a_regression() {
    let o = CompareOptions::default();
    let run = |by| compare(&records("6.1", &FAST), &records("6.1", &scaled(by)), &o).unwrap();
    assert!(run(0.9).has_regression());
    assert!(!run(0.97).has_regression());
    assert_eq!(run(0.97).changes[0].judged.verdict, Verdict::Worse);
    assert!(!run(1.1).has_regression());
    let noisy = [60.0, 140.0, 99.0, 80.0, 120.0, 70.0];
    assert!(
        !compare(&records("6.1", &FAST), &records("6.1", &noisy), &o).unwrap().has_regression()
    );
}

/// A server of nine processes: their figures are not read, and take no certainty from those that are.
#[test]
fn figures_of_very_many_jobs_are_left_out() {
    let with = |values: &[f64], jobs: u32| {
        let mut all = records("6.1", values);
        for (r, i) in all.iter_mut().zip(1u32..) {
            for j in 0..jobs {
                let value = 100.0 + f64::from((i * 7 + j * 3 + values[0] as u32) % 11);
                let name = format!("job/{j}/read.bw");
                r.metrics.push(Metric { name, value, ..r.metrics[0].clone() });
            }
        }
        all
    };
    let of = |jobs: u32, measures: &[&str]| {
        let measures = measures.iter().map(ToString::to_string).collect();
        let options = CompareOptions { measures, ..CompareOptions::default() };
        let c = compare(&with(&FAST, jobs), &with(&scaled(0.985), jobs), &options).unwrap();
        (c.changes.len(), c.left_out, c.changes[0].judged.p_corrected)
    };
    let (n, left, p) = of(9, &[]);
    assert_eq!((n, left, p), (1, 9, of(0, &[]).2));
    assert_eq!((of(8, &[]).0, of(8, &[]).1), (9, 0));
    assert_eq!((of(9, &["job/"]).0, of(9, &["job/"]).1), (9, 0));
}

#[test]
fn a_guard_is_told_when_nobody_can_tell() {
    let o = CompareOptions::default();
    let run = |a: &[f64], b: &[f64]| compare(&records("6.1", a), &records("6.1", b), &o).unwrap();
    assert_eq!(run(&FAST, &scaled(0.4)).answer(), Answer::Regression);
    assert_eq!(run(&FAST, &FAST).answer(), Answer::NoRegression);
    assert_eq!(run(&FAST, &scaled(0.97)).answer(), Answer::NoRegression);
    // Two and a half times slower in the only run there is.
    assert_eq!(run(&[100.0], &[40.0]).answer(), Answer::CannotTell);
    let noisy = [60.0, 140.0, 99.0, 80.0, 120.0, 70.0];
    assert_eq!(run(&FAST, &noisy).answer(), Answer::CannotTell);
    // Uncertain, but surely not much slower.
    assert_eq!(run(&[100.0, 120.0, 90.0], &[150.0, 260.0, 180.0]).answer(), Answer::NoRegression);
    let mut failed = records("6.1", &FAST);
    failed.iter_mut().for_each(|r| r.status = Status::Failed("no memory".into()));
    let mut base = records("6.1", &FAST);
    for r in &mut base {
        r.trial.scheduler = "kyber".into();
    }
    let (both, half) = ([base.clone(), records("6.1", &FAST)].concat(), [base, failed].concat());
    assert_eq!(compare(&both, &half, &o).unwrap().answer(), Answer::CannotTell);
    assert_eq!(compare(&half, &both, &o).unwrap().answer(), Answer::NoRegression);
    // Nothing was compared.
    let mut lost = records("6.1", &FAST);
    lost.iter_mut().for_each(|r| r.status = Status::Failed("no memory".into()));
    assert_eq!(compare(&lost, &lost, &o).unwrap().answer(), Answer::CannotTell);
}

/// What a run did is no condition of it.
#[test]
fn commits_may_differ() {
    let with = |n: &str| {
        let mut all = records("6.1", &FAST);
        all.iter_mut().for_each(|r| _ = r.provenance.insert("journal_commits".into(), n.into()));
        all
    };
    let c = compare(&with("11"), &with("12"), &CompareOptions::default()).unwrap();
    assert_eq!(c.answer(), Answer::NoRegression);
}

#[test]
fn names_that_nothing_has_are_errors() {
    let a = records("6.1", &FAST);
    let of = |measure: &str, vary: &str| {
        let list = |s: &str| if s.is_empty() { vec![] } else { vec![s.to_string()] };
        let (measures, vary) = (list(measure), list(vary));
        let o = CompareOptions { measures, vary, ..CompareOptions::default() };
        compare(&a, &a, &o).map(|c| c.changes.len()).map_err(|e| e.to_string())
    };
    assert_eq!(of("io", "kernel"), Ok(1));
    assert!(of("iosp", "").unwrap_err().contains("did you mean \"iops\""));
    assert!(of(" ", "").unwrap_err().contains("no measure begins with"));
    assert!(of("", "kernal").unwrap_err().contains("did you mean \"kernel\""));
}

#[test]
fn a_device_of_the_same_name_may_be_another() {
    let with = |hash: &str| {
        let mut all = records("6.1", &FAST);
        for r in all.iter_mut().filter(|_| !hash.is_empty()) {
            r.provenance.insert(DEVICE_CONTENT.into(), hash.into());
        }
        all
    };
    let run = |a, b| compare(&with(a), &with(b), &CompareOptions::default());
    assert!(run("1", "2").unwrap_err().to_string().contains("device.content"));
    assert!(run("1", "1").is_ok());
    assert!(run("", "1").is_ok(), "earlier versions did not record it");
}

#[test]
fn unequal_conditions_are_refused_by_name() {
    let (a, b) = (records("6.1", &FAST), records("6.2", &FAST));
    let e = compare(&a, &b, &CompareOptions::default()).unwrap_err().to_string();
    assert!(e.contains("kernel is 6.1 in base, 6.2 in new") && !e.contains("timestamp"), "{e}");
    let vary = CompareOptions { vary: vec!["kernel".into()], ..CompareOptions::default() };
    assert_eq!(compare(&a, &b, &vary).unwrap().differing.len(), 1);
    let mut c = records("6.1", &FAST);
    c.iter_mut().for_each(|r| drop(r.provenance.remove("device.model")));
    let e = compare(&a, &c, &vary).unwrap_err().to_string();
    assert!(e.contains("device.model is x in base, not recorded in new"), "{e}");
    assert!(compare(&a, &c, &CompareOptions { force: true, ..vary }).is_ok());
}

/// Samples that a page saved say nothing of the device. That is told, and is no difference; another kernel is one.
#[test]
fn what_a_file_does_not_say_is_no_difference() {
    let (a, mut saved) = (records("6.1", &FAST), records("6.1", &FAST));
    for r in &mut saved {
        r.backend = BackendKind::Imported;
        r.provenance.clear();
    }
    let options = CompareOptions::default();
    for (base, new) in [(&a, &saved), (&saved, &a)] {
        let c = compare(base, new, &options).unwrap();
        assert!(c.differing.iter().any(|d| d.field == "device.model"), "{:?}", c.differing);
        assert_eq!(c.answer(), Answer::NoRegression);
        let text = crate::render::comparison(&c, false, 80);
        assert!(text.contains("not recorded in ") && text.contains("device.model"), "{text}");
    }
    saved.iter_mut().for_each(|r| r.trial.kernel = "6.2".into());
    let e = compare(&a, &saved, &options).unwrap_err().to_string();
    assert!(e.contains("kernel is 6.1 in base, 6.2 in new") && !e.contains("model"), "{e}");
}

#[test]
fn cells_on_one_side_only_are_listed() {
    let (a, mut b) = (records("6.1", &FAST), records("6.1", &FAST));
    let mut extra = b[0].clone();
    extra.trial.scheduler = "kyber".into();
    b.push(extra);
    let c = compare(&a, &b, &CompareOptions::default()).unwrap();
    assert_eq!(c.incomplete[0].1, "not in base");
    b.drain(..6);
    assert!(matches!(
        compare(&a, &b, &CompareOptions::default()),
        Err(CompareError::NothingInCommon { .. })
    ));
    let bad = CompareOptions { threshold: f64::NAN, ..CompareOptions::default() };
    assert!(matches!(compare(&a, &a, &bad), Err(CompareError::Threshold(_))));
}

/// A file imported from CSV has no seeds, but every value of every round.
#[test]
fn a_copy_is_equal_whatever_was_recorded_about_it() {
    let noisy = [60.0, 140.0, 99.0, 80.0, 120.0, 70.0];
    let o = CompareOptions { force: true, ..CompareOptions::default() };
    let copy = |values: &[f64]| {
        let mut all = records("6.1", values);
        all.iter_mut().for_each(|r| r.backend = BackendKind::Imported);
        all
    };
    let c = compare(&records("6.1", &noisy), &copy(&noisy), &o).unwrap();
    assert_eq!(c.changes[0].judged.words(), "equal (exact)");
    assert_eq!(c.answer(), Answer::NoRegression);
    let c = compare(&records("6.1", &[7.0]), &copy(&[7.0]), &o).unwrap();
    assert_eq!(c.answer(), Answer::CannotTell, "one run of each");
}

/// One of the same seed: not "equal (exact)" beside "not enough data" of a figure that differs in the last digit.
#[test]
fn one_simulated_run_of_each_is_not_enough_data() {
    let of = |value| {
        let mut all = records("6.1", &[value]);
        all.iter_mut().for_each(|r| r.backend = BackendKind::Sim);
        all
    };
    for value in [7.0, 7.001] {
        let c = compare(&of(7.0), &of(value), &CompareOptions::default()).unwrap();
        assert_eq!(c.changes[0].judged.words(), "not enough data", "{value}");
        // "Not enough data" and "no regression" contradict each other.
        assert_eq!(c.answer(), Answer::CannotTell);
    }
}

#[test]
fn a_figure_that_looks_better_asks_for_few_runs() {
    let o = CompareOptions::default();
    let base = [100.0, 130.0, 80.0, 110.0, 90.0];
    let new = base.map(|v| v * 1.01);
    let new = [new[1], new[4], new[2], new[0], new[3]];
    let c = compare(&records("6.1", &base), &records("6.1", &new), &o).unwrap();
    assert_eq!(c.answer(), Answer::CannotTell);
    let (guard, verdict) = (c.changes[0].needs.unwrap(), c.changes[0].judged.needs.unwrap());
    assert!(guard > 5 && guard < verdict, "{guard} {verdict}");
    // What is better, beyond chance, is no reason to doubt.
    let better = compare(&records("6.1", &base), &records("6.1", &base.map(|v| v * 4.0)), &o);
    let better = better.unwrap();
    assert_eq!((better.changes[0].open, better.answer()), (false, Answer::NoRegression));
}

#[test]
fn a_list_that_was_cut_says_so() {
    let mut all = records("6.1", &FAST);
    for r in &mut all {
        for i in 0..20 {
            let mut m = r.metrics[0].clone();
            m.name = format!("figure{i}");
            r.metrics.push(m);
        }
    }
    let o = CompareOptions { measures: vec!["typo".into()], ..CompareOptions::default() };
    let why = compare(&all, &all, &o).unwrap_err().to_string();
    assert!(why.ends_with(", … (9 more)"), "{why}");
}

/// Of two jobs only one reads: its figure is the workload's, and nothing is left out with it.
#[test]
fn the_figure_of_a_single_job_is_not_left_out() {
    let with_jobs = |n: u64| {
        let mut all = records("6.1", &FAST);
        for r in &mut all {
            let job = |i: u64| {
                let ios = 300 + u64::from(r.trial.repetition);
                let side = DirStats {
                    ios,
                    bytes: ios * 4096,
                    runtime: 1_000_000_000,
                    ..DirStats::default()
                };
                let (read, write) =
                    if i == 0 { (side, DirStats::default()) } else { (DirStats::default(), side) };
                JobRecord { name: format!("j{i}"), read, write, ..JobRecord::default() }
            };
            r.jobs = (0..n).map(job).collect();
        }
        compare(&all, &all, &CompareOptions::default()).unwrap().left_out
    };
    assert_eq!(with_jobs(2), 0);
    assert!(with_jobs(10) > 0, "nine of them write");
}

/// One of six runs has the 1,000 I/Os of a 99.9th percentile: it says nothing of the others, and the guard can tell.
#[test]
fn a_percentile_that_some_runs_lack_is_not_compared() {
    let with = |all_runs: bool| {
        let mut all = records("6.1", &FAST);
        for r in all.iter_mut().filter(|r| all_runs || r.trial.repetition == 2) {
            let (name, value) = ("read.lat.p99.9".into(), r.metrics[0].value);
            r.metrics.push(Metric { name, value, ..r.metrics[0].clone() });
        }
        all
    };
    let of = |all_runs: bool, measures: &[&str]| {
        let measures = measures.iter().map(ToString::to_string).collect();
        let options = CompareOptions { measures, ..CompareOptions::default() };
        let all = with(all_runs);
        let c = compare(&all, &all, &options).unwrap();
        (c.changes.len(), c.unresolved, c.answer())
    };
    assert_eq!(of(false, &[]), (1, 1, Answer::NoRegression));
    assert_eq!(of(true, &[]), (2, 0, Answer::NoRegression));
    assert_eq!(of(false, &["read.lat.p99.9"]), (1, 0, Answer::CannotTell));
    // Who counts no I/Os may lack the 99th, too. If only one side does, it may starve a process.
    let p99 = |runs: std::ops::RangeInclusive<u32>| {
        let mut all = records("6.1", &FAST);
        for r in all.iter_mut().filter(|r| runs.contains(&r.trial.repetition)) {
            let (name, value) = ("read.lat.p99".into(), r.metrics[0].value);
            r.metrics.push(Metric { name, value, ..r.metrics[0].clone() });
        }
        all
    };
    let o = CompareOptions { force: true, ..CompareOptions::default() };
    let both = |a, b| compare(&p99(a), &p99(b), &o).unwrap();
    assert_eq!(both(2..=2, 2..=2).answer(), Answer::NoRegression);
    assert_eq!((both(1..=6, 2..=2).unresolved, both(1..=6, 2..=2).changes.len()), (0, 2));
}

/// The same family in two kernels: no name is common, or only that of another.
#[test]
fn families_are_compared_across_kernels() {
    let called = |kernel: &str, scheduler: &str, by: f64| {
        let mut all = records(kernel, &scaled(by));
        all.iter_mut().for_each(|r| r.trial.scheduler = scheduler.into());
        all
    };
    let base = [called("6.1", "bfq@5.12", 1.0), called("6.1", "none", 1.0)].concat();
    let new = [called("6.12", "bfq@6.12", 0.8), called("6.12", "none", 1.0)].concat();
    let names =
        compare(&base, &new, &CompareOptions { vary: vec!["kernel".into()], ..Default::default() });
    assert!(!names.unwrap().has_regression(), "none is as it was");
    let families = CompareOptions { families: true, ..CompareOptions::default() };
    let c = compare(&base, &new, &families).unwrap();
    assert!(c.has_regression() && c.matched.len() == 2, "{c:?}");
    let none = compare(&called("6.1", "bfq", 1.0), &called("6.1", "none", 1.0), &families);
    assert!(none.unwrap_err().to_string().contains("base has bfq, new has none"));
}

/// The refusal of two kernels names the way to compare them, and a kernel is one thing in two fields.
#[test]
fn two_kernels_are_offered_as_families() {
    let of = |kernel: &str| {
        let mut all = records(kernel, &FAST);
        for r in &mut all {
            r.provenance.insert("kernel_profile".into(), format!("linux-{kernel}"));
        }
        all
    };
    let (base, new) = (of("6.1"), of("6.12"));
    let refused = compare(&base, &new, &CompareOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("--match family"), "{refused}");
    for field in ["kernel", "kernel_profile"] {
        let vary = CompareOptions { vary: vec![field.into()], ..CompareOptions::default() };
        assert!(compare(&base, &new, &vary).is_ok(), "{field}");
    }
    let families = CompareOptions { families: true, ..CompareOptions::default() };
    let c = compare(&base, &new, &families).unwrap();
    let text = crate::render::comparison(&c, true, 100);
    assert!(!text.contains("by family") && !text.contains('→'), "{text}");
}
