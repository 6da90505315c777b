use iosched_experiment::record::{Ask, BackendKind, DirStats, JobRecord};

use super::*;

const MIB: u64 = 1 << 20;

/// A job that moved so many bytes in ten seconds, each I/O with a latency in ms.
fn job(name: &str, ask: Option<Ask>, bytes: u64, ms: u64) -> JobRecord {
    let ios = if bytes == 0 { 0 } else { 200 };
    let mut read = DirStats { ios, bytes, runtime: 10_000_000_000, ..DirStats::default() };
    (0..ios).for_each(|_| read.clat.record(ms * 1_000_000));
    JobRecord { name: name.into(), read, ask, ended: 10_000_000_000, ..JobRecord::default() }
}

fn record(scheduler: &str, round: u32, jobs: Vec<JobRecord>) -> Record {
    let mut r =
        Record { jobs, elapsed: 10_000_000_000, backend: BackendKind::Sim, ..Record::default() };
    r.trial.device = "disk".into();
    r.trial.workload = "w".into();
    r.trial.scheduler = scheduler.into();
    r.trial.kernel = "6.12".into();
    r.trial.repetition = round;
    r.provenance.insert(BASE.into(), "mq-deadline".into());
    r
}

/// Film, start and copy under each scheduler: rate in MiB/s, ms of a read, MiB/s.
fn desktop(all: &[(&str, u64, u64, u64)], rounds: u32) -> Vec<Record> {
    let of = |round: u32| {
        all.iter().map(move |(s, film, ms, copy)| {
            // Rounds differ a little, all in the same way.
            let by = 1000 + u64::from(round);
            let jobs = vec![
                job("film", Some(Ask::Rate(8 * MIB)), film * 10 * MIB * by / 1000, 20),
                job("start", Some(Ask::Wait), 4 * MIB * by / 1000, *ms),
                job("copy", None, copy * 10 * MIB * by / 1000, 5),
            ];
            record(s, round, jobs)
        })
    };
    (1..=rounds).flat_map(of).collect()
}

fn of(records: &[Record]) -> Verdict {
    verdicts_of(records).remove(0)
}

#[test]
fn a_kept_rate_outranks_throughput() {
    let v = of(&desktop(
        &[("none", 2, 40, 90), ("mq-deadline@D", 2, 40, 88), ("bfq@6.12", 8, 30, 50)],
        6,
    ));
    assert_eq!((v.verdict, &*v.scheduler, &*v.base), (Advice::Use, "bfq@6.12", "mq-deadline@D"));
    assert_eq!(v.gains.iter().map(|p| &*p.job).collect::<Vec<_>>(), ["film", "start"]);
    assert_eq!(v.prices.iter().map(|p| &*p.job).collect::<Vec<_>>(), ["copy"]);
    assert_eq!(v.firmness, Firmness::Sure);
    let said = text(std::slice::from_ref(&v), 80);
    assert!(said.starts_with("disk: use bfq ") && said.contains("sure, 6 of 6"), "{said}");
    assert_eq!(
        v.sentence(),
        "Use bfq: film 8.03 instead of 2.01 MiB/s (8 MiB/s asked for), 1 more gain. Price: copy 43 % worse."
    );
    assert!(said.contains("8.03 of 8 MiB/s; 2.01 MiB/s under mq-deadline"), "{said}");
    assert!(said.contains("echo bfq | sudo tee"), "{said}");
    assert!(said.lines().all(|l| l.chars().count() <= 80), "{said}");
}

#[test]
fn a_lost_rate_is_never_worth_throughput() {
    let v = of(&desktop(&[("mq-deadline", 8, 40, 50), ("none", 2, 20, 90)], 6));
    assert_eq!((v.verdict, &*v.scheduler), (Advice::Keep, "mq-deadline"));
    assert_eq!(v.other.unwrap().prices[0].job, "film");
}

#[test]
fn waits_that_nobody_notices_are_level() {
    let v = of(&desktop(&[("mq-deadline", 8, 5, 88), ("bfq", 8, 1, 88)], 6));
    assert_eq!(v.verdict, Advice::Keep);
    assert_eq!(v.level, ["bfq"]);
    let v = of(&desktop(&[("mq-deadline", 8, 120, 88), ("bfq", 8, 50, 80)], 6));
    assert_eq!((v.verdict, &*v.gains[0].job), (Advice::Use, "start"));
}

#[test]
fn nothing_is_behind_any_figure() {
    let v = of(&desktop(&[("mq-deadline", 0, 40, 88), ("bfq", 2, 40, 88)], 6));
    assert_eq!((v.verdict, &*v.gains[0].job), (Advice::Use, "film"));
    let said = text(&[v], 80);
    assert!(said.contains("nothing under mq-deadline"), "{said}");
}

#[test]
fn removed_schedulers_are_named_and_never_recommended() {
    let v =
        of(&desktop(&[("mq-deadline", 2, 40, 88), ("bfq", 8, 40, 60), ("cfq@4.12", 8, 20, 95)], 6));
    assert_eq!((&*v.scheduler, &v.gone[..]), ("bfq", &["cfq@4.12".to_string()][..]));
}

#[test]
fn one_run_is_no_proof() {
    let v = of(&desktop(&[("mq-deadline", 2, 40, 88), ("bfq", 8, 40, 60)], 1));
    assert_eq!((v.verdict, v.firmness), (Advice::Use, Firmness::Unsure));
    assert!(text(&[v], 80).contains("unsure, one run"));
    let v = of(&desktop(&[("mq-deadline", 2, 40, 88), ("bfq", 2, 40, 88)], 1));
    assert_eq!(v.verdict, Advice::Unknown);
    assert!(verdicts(&Facts::default(), &Cells::default(), &[]).is_empty());
}

#[test]
fn what_two_devices_have_in_common_is_said_once() {
    let mut v = of(&desktop(&[("mq-deadline", 2, 40, 88), ("bfq", 8, 30, 50)], 6));
    v.unsteady = vec!["w".into()];
    let said = text(&[v.clone(), Verdict { device: "other".into(), ..v }], 80);
    assert_eq!(said.matches("The rate changes during w.").count(), 1, "{said}");
    assert_eq!(said.matches("Times better than").count(), 1, "{said}");
}

/// Runs that differ by much and scatter by more: neither level nor better.
#[test]
fn a_difference_that_may_be_chance_is_not_level() {
    let scattered = |scheduler: &str, rates: [u64; 3]| {
        let of = |(i, mib): (usize, u64)| {
            record(scheduler, i as u32 + 1, vec![job("copy", None, mib * 10 * MIB, 5)])
        };
        rates.into_iter().enumerate().map(of).collect::<Vec<Record>>()
    };
    let records =
        [scattered("mq-deadline", [88, 40, 120]), scattered("bfq", [60, 30, 50])].concat();
    let v = of(&records);
    assert_eq!((v.verdict, v.firmness, v.level.len()), (Advice::Keep, Firmness::Unsure, 0));
    assert_eq!((&v.open[..], v.matrix[0].ratios[0]), (&["bfq".to_string()][..], None));
    let said = text(&[v], 80);
    assert!(said.contains("bfq may differ from mq-deadline") && said.contains('?'), "{said}");
}

#[test]
fn who_gave_up_in_every_run_is_behind() {
    let run = |scheduler: &str, round, seconds: f64, censored| {
        let mut r = record(scheduler, round, Vec::new());
        r.metrics.push(iosched_experiment::Metric {
            name: "startup_time".into(),
            value: seconds,
            unit: "s".into(),
            higher_is_better: Some(false),
            censored,
        });
        r
    };
    let records: Vec<Record> = (1..=2)
        .flat_map(|n| [run("mq-deadline", n, 60.0, true), run("bfq", n, 2.0 + f64::from(n), false)])
        .collect();
    let v = of(&records);
    assert_eq!((v.verdict, &*v.scheduler, v.firmness), (Advice::Use, "bfq", Firmness::Sure));
    let turned: Vec<Record> = records
        .into_iter()
        .map(|mut r| {
            r.trial.scheduler =
                if r.trial.scheduler == "bfq" { "mq-deadline" } else { "bfq" }.into();
            r
        })
        .collect();
    let v = of(&turned);
    assert_eq!((v.verdict, v.level.len()), (Advice::Keep, 0));
}

#[test]
fn the_idle_class_asks_for_nothing_and_settings_have_no_command() {
    let of_idle = |s: &str, idle: u64, round: u32| {
        let jobs = vec![
            job("rt", Some(Ask::Wait), 4 * MIB, 40),
            job("left", Some(Ask::Idle), idle * MIB + u64::from(round) * 999, 5),
        ];
        record(s, round, jobs)
    };
    let records: Vec<Record> =
        (1..=4).flat_map(|n| [of_idle("mq-deadline", 10, n), of_idle("none", 900, n)]).collect();
    assert_eq!((of(&records).verdict, of(&records).level.len()), (Advice::Keep, 1));
    // But how long a backup takes is a price.
    let idles = |s: &str, ms, idle, round| {
        let jobs = vec![
            job("user", Some(Ask::Wait), 4 * MIB + u64::from(round), ms),
            job("backup", Some(Ask::Idle), idle * MIB + u64::from(round) * 999, 5),
        ];
        record(s, round, jobs)
    };
    let of_one = |n| [idles("mq-deadline", 40, 900, n), idles("bfq", 11, 90, n)];
    let v = of(&(1..=4).flat_map(of_one).collect::<Vec<Record>>());
    assert_eq!((v.verdict, &*v.prices[0].job), (Advice::Use, "backup"));
    let v =
        of(&desktop(&[("mq-deadline", 2, 40, 88), ("mq-deadline (nr_requests=9)", 8, 30, 88)], 6));
    assert_eq!((&*v.scheduler, &*v.set), ("mq-deadline (nr_requests=9)", ""));
}

/// A scheduler that heeds a priority may leave nothing to the jobs behind it: it did what was asked for.
#[test]
fn nothing_for_those_behind_is_what_was_asked_for() {
    let run = |s: &str, urgent: u64, normal: u64, round: u32| {
        let jobs = vec![
            job("urgent", Some(Ask::Share), urgent * MIB + u64::from(round) * 99, 5),
            job("normal", None, normal * MIB, 5),
        ];
        record(s, round, jobs)
    };
    let all = (1..=4).flat_map(|n| [run("mq-deadline", 20, 0, n), run("none", 9, 9, n)]);
    let v = of(&all.collect::<Vec<Record>>());
    assert_eq!((v.verdict, &*v.scheduler), (Advice::Keep, "mq-deadline"));
}

/// A share of eight hundredths is near one of eleven; half is far from nine tenths.
#[test]
fn shares_are_judged_by_their_distance() {
    let run = |s: &str, gold: u64, bronze: u64, round: u32| {
        let jobs = vec![
            job("gold", Some(Ask::Due(889)), gold * MIB + u64::from(round) * 99, 5),
            job("bronze", Some(Ask::Due(111)), bronze * MIB + u64::from(round) * 99, 5),
        ];
        record(s, round, jobs)
    };
    let all = (1..=4).flat_map(|n| [run("mq-deadline", 48, 52, n), run("bfq", 43, 4, n)]);
    let v = of(&all.collect::<Vec<Record>>());
    assert_eq!((v.verdict, &*v.scheduler, &*v.gains[0].job), (Advice::Use, "bfq", "gold"));
}

/// Waits are longer, not worse by a part of what they are, and stand in one unit with their pair; settings have their command.
#[test]
fn figures_are_said_in_the_terms_of_waits() {
    let v =
        of(&desktop(&[("mq-deadline@D", 2, 463, 90), ("bfq@6.12 slice_idle=0", 8, 789, 88)], 6));
    assert_eq!(v.called("bfq@6.12 slice_idle=0"), "bfq slice_idle=0");
    assert_eq!(
        v.set,
        "echo bfq | sudo tee /sys/block/sdX/queue/scheduler; echo 0 | sudo tee /sys/block/sdX/queue/iosched/slice_idle"
    );
    let said = text(std::slice::from_ref(&v), 120);
    assert!(said.contains(" ms a read; ") && !said.contains("@"), "{said}");
    assert!(v.sentence().contains("start 70 % longer"), "{}", v.sentence());
}

/// An import may have a rate of 0, which has no ratio to anything.
#[test]
fn a_rate_of_zero_is_behind_any_other() {
    let run = |scheduler: &str, round, rate| {
        let mut r = record(scheduler, round, Vec::new());
        r.metrics.push(iosched_experiment::Metric {
            name: "transactions".into(),
            value: rate,
            unit: "1/s".into(),
            higher_is_better: Some(true),
            censored: false,
        });
        r
    };
    let records: Vec<Record> = (1..=3)
        .flat_map(|n| [run("mq-deadline", n, 0.0), run("bfq", n, 50.0 + f64::from(n))])
        .collect();
    let v = of(&records);
    assert_eq!((v.verdict, &*v.scheduler), (Advice::Use, "bfq"));
    assert!(v.level.is_empty());
}

/// Test suites name a figure by all its options.
#[test]
fn figures_of_suites_have_short_names() {
    let write = "Type: Write - Engine: Libaio - Target: Default Test Directory";
    let read = "Type: Random Read - Engine: Libaio - Target: Default Test Directory";
    let run = |scheduler: &str, round: u32, (program, name, unit): (&str, &str, &str)| {
        let mut r = record(scheduler, round, Vec::new());
        r.trial.workload = format!("{program}: {name} [{unit}]");
        r.metrics.push(iosched_experiment::Metric {
            name: name.into(),
            value: f64::from(round) + 10.0,
            unit: unit.into(),
            higher_is_better: Some(true),
            censored: false,
        });
        r
    };
    let all = [
        ("Flexible IO Tester 2.1.13", write, "MB/s"),
        ("Flexible IO Tester 2.1.13", write, "IOPS"),
        ("Flexible IO Tester 2.1.13", read, "MB/s"),
        ("pgbench 9.6.3", "Scaling: On-Disk - Test: Normal Load", "TPS"),
    ];
    let of = |s: &'static str| {
        let each = move |n| all.map(|a| run(s, n, a));
        (1..=3).flat_map(each)
    };
    let records: Vec<Record> = of("none").chain(of("bfq")).collect();
    assert_eq!(super::verdicts_of(&records)[0].asks, ["Write", "Random Read", "pgbench 9.6.3"]);
}

/// Two jobs that share by weight, 3 to 1: rate of each in MiB/s.
fn sharing(all: &[(&str, u64, u64)]) -> Vec<Record> {
    let of = |round: u32| {
        all.iter().map(move |(s, heavy, light)| {
            let by = 1000 + u64::from(round);
            let jobs = vec![
                job("heavy", Some(Ask::Due(750)), heavy * 10 * MIB * by / 1000, 5),
                job("light", Some(Ask::Due(250)), light * 10 * MIB, 5),
            ];
            record(s, round, jobs)
        })
    };
    (1..=4).flat_map(of).collect()
}

/// Throughput does not judge a share: what is due does.
#[test]
fn weights_are_judged_by_what_is_due() {
    let v = of(&sharing(&[("none", 50, 50), ("mq-deadline", 50, 50), ("bfq", 60, 20)]));
    assert_eq!((v.verdict, &*v.scheduler), (Advice::Use, "bfq"));
    assert_eq!((&*v.gains[0].job, v.gains[0].ask), ("heavy", Kind::Share(75.0)));
    assert_eq!(v.prices[0].job, "all together");
    let said = text(&[v], 80);
    assert!(said.contains("75 % of the throughput, 75 % due; 50 % under mq-deadline"), "{said}");
    // Who has what is due needs no more.
    let v = of(&sharing(&[("mq-deadline", 72, 25), ("bfq", 85, 15)]));
    assert_ne!(v.verdict, Advice::Use);
}

#[test]
fn what_mainline_does_not_have_is_named_and_not_set() {
    let mut records = desktop(&[("mq-deadline", 2, 40, 88), ("adios", 8, 30, 88)], 6);
    records.iter_mut().for_each(|r| r.trial.kernel = "7.1".into());
    records.extend(desktop(&[("none", 2, 40, 88)], 6));
    let v = of(&records);
    assert_eq!((v.verdict, &*v.scheduler, &*v.set), (Advice::Keep, "mq-deadline", ""));
    assert_eq!(v.elsewhere, ["adios"]);
    assert!(text(&[v], 80).contains("adios does as well or better; it is not in mainline"));
    // A kernel that runs it has it.
    records.iter_mut().for_each(|r| r.backend = BackendKind::Real);
    assert_eq!(of(&records).scheduler, "adios");
}

/// On request removed schedulers are compared like any other, and it is said that they are gone.
#[test]
fn a_removed_scheduler_is_compared_with_one_that_is_there() {
    let with = |cfq: u64, bfq: u64| {
        let mut all = desktop(&[("cfq@4.12", cfq, 40, 88), ("bfq@6.12", bfq, 40, 88)], 6);
        all.iter_mut().for_each(|r| drop(r.provenance.remove(BASE)));
        of(&all)
    };
    let v = with(2, 8);
    assert_eq!((v.verdict, &*v.scheduler, v.set.is_empty()), (Advice::Use, "bfq@6.12", false));
    let said = text(&[v], 80);
    assert!(said.starts_with("disk: use bfq") && said.contains("Linux 6.12 has no cfq"), "{said}");
    let said = text(&[with(8, 2)], 80);
    assert!(said.starts_with("disk: cfq is ahead"), "{said}");
    // Two that are both gone.
    let v = of(&desktop(&[("cfq@4.12", 8, 40, 88), ("anticipatory@2.6.32", 2, 40, 88)], 6));
    assert_eq!((v.remarks.len(), v.set.is_empty()), (1, true));
}

/// A load that was given time to settle and did not is said with its reason; one that changes later without one.
#[test]
fn what_never_gets_steady_says_why() {
    let mut records = desktop(&[("mq-deadline", 2, 40, 88), ("bfq", 8, 30, 50)], 6);
    for r in &mut records {
        r.provenance.insert(WARM_UP.into(), "steady".into());
        let code = iosched_experiment::record::HALVES_DIFFER.into();
        r.warnings.push(iosched_experiment::Warning { code, ..Default::default() });
    }
    let v = of(&records);
    assert_eq!(v.unsteady, ["w"]);
    assert!(text(&[v], 80).contains("The rate changes during w."));
    records[0].provenance.insert(UNSTEADY.into(), "the SLC cache of the device fills".into());
    let v = of(&records);
    assert_eq!(v.unsteady, ["w"]);
    assert!(text(&[v], 80).contains("w on disk is not steady: the SLC cache"));
}

/// Four readers are the readers: a line and a column of theirs, and the film comes first.
#[test]
fn jobs_with_numbers_are_one_ask() {
    let of = |s: &str, round: u32, mib: u64, film: u64| {
        let by = u64::from(round);
        let reader = |n: u32| job(&format!("reader{n}"), None, mib * 10 * MIB + by, 5);
        let film = job("film", Some(Ask::Rate(8 * MIB)), film * 10 * MIB + by, 20);
        record(s, round, vec![reader(1), reader(2), film])
    };
    let records: Vec<Record> =
        (1..=4).flat_map(|n| [of("mq-deadline", n, 3, 2), of("bfq", n, 30, 8)]).collect();
    let v = verdicts_of(&records).remove(0);
    assert_eq!(v.asks, ["readers", "film"]);
    let gains: Vec<(&str, Option<f64>)> = v.gains.iter().map(|p| (&*p.job, p.value)).collect();
    assert_eq!(gains[0].0, "film");
    assert!(gains[1].1.is_some_and(|v| (v / MIB as f64 - 60.0).abs() < 0.1), "{gains:?}");
}

/// What is level in all has a line, not a row of signs.
#[test]
fn level_schedulers_share_a_line() {
    let v = of(&desktop(
        &[
            ("mq-deadline", 2, 40, 88),
            ("none", 2, 40, 88),
            ("kyber", 2, 40, 88),
            ("bfq", 8, 30, 50),
        ],
        6,
    ));
    let said = text(&[v], 80);
    assert!(said.contains("none and kyber: = in all\n"), "{said}");
}

/// Where nothing is better, people still ask whether the film plays.
#[test]
fn a_kept_base_says_whether_what_is_asked_for_is_met() {
    let said = |film: u64| {
        text(&[of(&desktop(&[("mq-deadline", film, 40, 88), ("bfq", film, 40, 88)], 4))], 80)
    };
    assert!(said(8).contains("film      8.02 of 8 MiB/s\n"), "{}", said(8));
    assert!(said(2).contains("film      2.00 of 8 MiB/s, less than it asks for\n"), "{}", said(2));
}

/// Four streams of 5 MiB/s ask for 20.
#[test]
fn clones_ask_for_the_sum_of_their_rates() {
    let of = |s: &str, round: u32, mib: u64| {
        let stream = |_| {
            let mut j =
                job("stream", Some(Ask::Rate(5 * MIB)), mib * 10 * MIB + u64::from(round), 20);
            j.options.insert("numjobs".into(), "4".into());
            j
        };
        record(s, round, (0..4).map(stream).collect())
    };
    let records: Vec<Record> =
        (1..=4).flat_map(|n| [of("mq-deadline", n, 2), of("bfq", n, 5)]).collect();
    let v = verdicts_of(&records).remove(0);
    assert_eq!((v.verdict, v.gains[0].ask), (Advice::Use, Kind::Rate(20.0 * MIB as f64)));
}

/// Neither gives what is due: which of them gives less of it decides nothing.
#[test]
fn next_to_nothing_of_a_share_is_no_gain() {
    let v = of(&sharing(&[("mq-deadline", 2, 98), ("bfq", 5, 95)]));
    assert_eq!(v.verdict, Advice::Keep);
    assert_eq!(v.demands[0].met(), Some(false));
}

/// Few scattered runs of nearly the same mean may hide a difference of a third: that is not level.
#[test]
fn scattered_runs_of_equal_means_are_not_level() {
    let run = |scheduler: &str, round: u32, copy: u64| {
        record(scheduler, round, vec![job("copy", None, copy * 10 * MIB, 5)])
    };
    let base = [60, 100, 140, 90];
    let new = [110, 64, 98, 130];
    let records: Vec<Record> = (0..4)
        .flat_map(|i| {
            let n = i as u32 + 1;
            [run("mq-deadline", n, base[i]), run("kyber", n, new[i])]
        })
        .collect();
    let v = of(&records);
    assert_eq!(
        (v.verdict, v.level.len(), &v.open[..]),
        (Advice::Keep, 0, &["kyber".to_string()][..])
    );
}

/// More runs that agree make a verdict firmer, not weaker: of twelve, one may say otherwise.
#[test]
fn one_run_of_twelve_may_say_otherwise() {
    let run = |scheduler: &str, round: u32, copy: u64| {
        record(scheduler, round, vec![job("copy", None, copy * 10 * MIB, 5)])
    };
    let spread = [0, 3, 1, 5, 2, 4, 0, 3, 1, 5, 2, 4];
    let records: Vec<Record> = (0..12)
        .flat_map(|i| {
            let n = i as u32 + 1;
            let new = if i == 3 { 99 } else { 112 + spread[(i * 5) % 12] };
            [run("mq-deadline", n, 98 + spread[i]), run("kyber", n, new)]
        })
        .collect();
    let v = of(&records);
    assert_eq!((v.verdict, v.firmness, v.agree, v.runs), (Advice::Use, Firmness::Sure, 11, 12));
}

/// Waits of which none is noticed are level, unless all of them together leave a job half of its work.
#[test]
fn short_waits_do_not_hide_how_much_was_moved() {
    let app = |ios: u64, ms: u64| {
        let mut j = job("app", Some(Ask::Wait), ios * 4096, ms);
        j.read.ios = ios;
        j
    };
    let all = |few: u64, ms: u64| -> Vec<Record> {
        let of = |round: u64| {
            let copy = || job("copy", None, 100 * MIB * (1000 + round), 5);
            let slow = vec![app(few + round, ms), copy()];
            let fast = vec![app(20_000 + round, 1), copy()];
            [record("mq-deadline", round as u32, slow), record("bfq", round as u32, fast)]
        };
        (1..=6).flat_map(of).collect()
    };
    let v = of(&all(1000, 10));
    assert_eq!((v.verdict, &*v.scheduler), (Advice::Use, "bfq"), "twenty times as much");
    let gain = &v.gains[0];
    assert_eq!((&*gain.job, gain.ask, &*gain.measure), ("app", Kind::Most, "job/app/read.bw"));
    assert!(
        v.sentence().starts_with("Use bfq: app 7.81 instead of 0.39 MiB/s"),
        "{}",
        v.sentence()
    );
    assert!(v.matrix[0].ratios[0].is_some_and(|r| r > 15.0), "{:?}", v.matrix);
    let v = of(&all(15_000, 10));
    assert_eq!(v.verdict, Advice::Keep, "a third more in waits that nobody notices");
}

/// The same records with each scheduler as the chosen one and as the default: better one way is worse the other way.
#[test]
fn a_chosen_scheduler_stands_to_the_default_and_to_the_best() {
    use crate::standing::{Way, standing};
    let all =
        desktop(&[("none", 2, 40, 90), ("mq-deadline@D", 2, 40, 88), ("bfq@6.12", 8, 30, 50)], 6);
    let up = standing(&all, "bfq", "mq-deadline").unwrap();
    assert_eq!((up.against_default.way, up.best), (Way::Better, None));
    assert_eq!(up.against_default.times(), f64::INFINITY, "only one keeps the film's rate");
    assert_eq!(up.against_default.prices[0].job, "copy");
    let down = standing(&all, "mq-deadline", "bfq").unwrap();
    assert_eq!((down.against_default.way, down.best.as_deref()), (Way::Worse, Some("bfq")));
    assert_eq!(down.against_default.gains[0].job, "film");
    let same = standing(&all, "mq-deadline", "mq-deadline").unwrap();
    assert_eq!((same.against_default.way, same.best.as_deref()), (Way::Level, Some("bfq")));
    assert!(standing(&all, "kyber", "mq-deadline").is_none(), "it was not run");
    // Only the start differs: 80 ms beside 40 ms pass the same waits that are noticed.
    let slower = desktop(&[("mq-deadline", 8, 40, 50), ("bfq", 8, 80, 50)], 6);
    let s = standing(&slower, "bfq", "mq-deadline").unwrap();
    assert_eq!(s.against_default.way, Way::Worse);
    assert!((s.against_default.times() - 2.0).abs() < 0.05, "{}", s.against_default.times());
    let level = desktop(&[("mq-deadline", 8, 5, 88), ("bfq", 8, 1, 88)], 6);
    let s = standing(&level, "bfq", "mq-deadline").unwrap();
    assert_eq!((s.against_default.way, s.against_default.times()), (Way::Level, 1.0));
}

/// Equal runs are one draw, however many there are.
#[test]
fn equal_runs_are_not_called_sure() {
    let job = |rate: u64| vec![job("a", None, rate * 10 * MIB, 20)];
    let of_round = |round| [record("mq-deadline", round, job(50)), record("none", round, job(90))];
    let all: Vec<Record> = (1..=5).flat_map(of_round).collect();
    let v = of(&all);
    assert_eq!((v.verdict, &*v.scheduler), (Advice::Use, "none"));
    let said = text(std::slice::from_ref(&v), 80);
    assert!(said.contains("5 equal runs: one draw") && !said.contains("sure"), "{said}");
}

/// A rate that no scheduler gives is no matter of schedulers.
#[test]
fn a_rate_that_none_gives_is_beyond_schedulers() {
    let film = |least: u64| {
        of(&desktop(
            &[("mq-deadline", least, 40, 50), ("none", least, 40, 50), ("bfq", least, 40, 50)],
            6,
        ))
    };
    let said = |v: &Verdict| text(std::slice::from_ref(v), 80);
    let (lacks, has) = (film(4), film(8));
    assert!(
        said(&lacks).starts_with("disk: no scheduler helps; keep mq-deadline"),
        "{}",
        said(&lacks)
    );
    assert!(said(&lacks).contains("less than it asks for"), "{}", said(&lacks));
    assert!(said(&has).starts_with("disk: keep mq-deadline"), "{}", said(&has));
    assert!(
        lacks.sentence().starts_with("No scheduler helps; keep mq-deadline"),
        "{}",
        lacks.sentence()
    );
}
