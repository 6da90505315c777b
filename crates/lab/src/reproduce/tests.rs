use super::claims::Whose;
use super::*;
use iosched_experiment::record::Metric;

/// The published figures as if they were ours: everything must agree with itself.
fn as_ours(r: &Reproduction, factor: impl Fn(&str) -> f64) -> Vec<Record> {
    let mut out = Vec::new();
    // `iops` and `bytes per second` come from jobs, which these records lack.
    let from_jobs = ["iops", "bytes per second"];
    let rows = r.map.tests.iter().filter(|row| row.own.is_none());
    for row in rows.filter(|row| !from_jobs.contains(&&*row.metric)) {
        let test = r.test(row).unwrap();
        for cell in &test.cells {
            let (Some(value), Some(run)) =
                (cell.value, r.published.runs.iter().find(|x| x.name == cell.run))
            else {
                continue;
            };
            let mut record = Record::default();
            record.trial.workload.clone_from(&row.workload);
            let model = r.map.devices.iter().find(|d| d.published == run.device).unwrap();
            record.trial.device.clone_from(&model.model);
            record.trial.scheduler.clone_from(&run.scheduler);
            record.metrics.push(Metric {
                name: row.metric.clone(),
                value: value * factor(&run.name) / row.factor,
                ..Metric::default()
            });
            out.push(record);
        }
    }
    out
}

#[test]
fn every_shipped_file_reads_and_its_rows_and_columns_are_there() {
    for name in names() {
        let r = Reproduction::load(name).unwrap();
        for quick in [false, true] {
            let all = r.experiments(quick).unwrap();
            let n = if r.map.not_run.is_some() { 0 } else { r.map.experiments.len() };
            assert_eq!(all.len(), n, "{name}");
        }
        let mut r = r;
        r.map.not_run = None;
        let all = r.experiments(true).unwrap();
        let known = |w: &str| all.iter().any(|e| e.workloads.iter().any(|x| x.value.name == w));
        for row in &r.map.tests {
            assert!(row.own.is_some() || r.test(row).is_some(), "{name}: {}", row.name);
            assert!(known(&row.workload), "{name}: no workload {}", row.workload);
        }
        for w in r.map.quick.keys() {
            assert!(known(w), "{name}: quick: no workload {w}");
        }
        let test = |t: &str| r.map.tests.iter().any(|row| row.name == t);
        for check in r.map.claims.iter().flat_map(|c| &c.checks) {
            let mut named = check.largest.iter().chain(&check.sum).chain(&check.sum_over);
            let known = named.all(|t| test(t));
            let several = !check.largest.is_empty() || !check.sum.is_empty();
            assert!(known && (several || test(&check.test)), "{name}: {check:?}");
            assert!(check.over_test.is_empty() || test(&check.over_test), "{}", check.over_test);
            assert!(check.like.is_empty() || test(&check.like), "{name}: no test {}", check.like);
            assert!(check.at_least.is_some() || check.at_most.is_some(), "a check asks nothing");
        }
        for run in r.published.runs.iter().filter(|_| r.map.tests.iter().all(|t| t.own.is_none())) {
            let d = r.map.devices.iter().find(|d| d.published == run.device);
            let base = &d.unwrap_or_else(|| panic!("{name}: {}", run.device)).base;
            assert!(r.published.runs.iter().any(|x| x.name == *base), "{name}: no run {base}");
        }
        // Every published test is run, left out with a reason, or an n/a of the source.
        for t in &r.published.tests {
            let run = r.map.tests.iter().any(|row| r.test(row) == Some(t));
            let out = r.map.left_out.iter().any(|a| a.is_of_test(t));
            let missing = t.cells.iter().all(|c| c.value.is_none());
            let reciprocal = t.unit == "usecs/op";
            assert!(run || out || missing || reciprocal, "{name}: {} is not run", t.description);
        }
    }
}

/// Files of a quick look that fit into memory would show nothing of the disk.
#[test]
fn a_quick_look_has_less_memory_where_its_files_are_smaller() {
    let r = Reproduction::load("iozone-san").unwrap();
    let memory = |quick| r.experiments(quick).unwrap()[0].host.memory;
    assert_eq!((memory(false), memory(true)), (12 << 30, 2 << 30));
}

#[test]
fn published_figures_bear_out_the_published_claims() {
    for name in names() {
        let r = Reproduction::load(name).unwrap();
        let cells = r.cells(&[]);
        for check in r.map.claims.iter().flat_map(|c| &c.checks) {
            let Some(ratio) = check.ratio(&cells, Whose::Published) else { continue };
            assert!(check.holds(ratio), "{name}: {} is {ratio}", check.test);
        }
    }
}

#[test]
fn figures_equal_to_the_published_ones_agree_and_others_do_not() {
    let r = Reproduction::load("linux-4.12").unwrap();
    let twin = r.judge(&as_ours(&r, |_| 1.0), false);
    let a = twin.agreement;
    assert!(a.significant > 10 && a.compared > 30, "{a:?}");
    assert_eq!((a.same_direction, a.within_25_percent), (a.significant, a.compared));
    assert_eq!(a.claims_disagree, 0);
    let broken_off = Reproduced { interrupted: true, ..twin.clone() };
    assert!(broken_off.answer().contains("interrupted") && !twin.answer().contains("interrupted"));
    // With every scheduler but the base at half its rate nothing can agree that was faster or level.
    let half = |run: &str| if run.ends_with("Noop") { 1.0 } else { 0.4 };
    let other = r.judge(&as_ours(&r, half), false);
    assert!(other.agreement.same_direction < a.same_direction);
    // Only IOzone on the HDD has another base, which is as slow as the others here.
    let near = other.cells.iter().filter(|c| c.uncounted.is_none() && c.near() == Some(true));
    assert!(near.clone().all(|c| c.test == "IOzone" && c.run.starts_with("HDD")));
    assert!(other.agreement.claims_disagree > 0);
    let mut wrong = other.cells.iter().filter(|c| c.direction == Direction::Disagree);
    assert!(wrong.clone().all(|c| c.explanation.is_some()));
    assert!(wrong.any(|c| c.explanation.as_deref() == Some("open")));
    let text = other.text(80);
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    assert!(text.contains("DISAGREE") && text.contains("open"), "{text}");
    let page = other.page("title <b>");
    assert!(page.contains("title &lt;b&gt;") && !page.contains("<b>title"));
    assert!(page.contains("contradicted") && !page.contains("NaN") && !page.contains("inf"));
}

#[test]
fn bases_and_calibrated_cells_are_in_no_count() {
    let r = Reproduction::load("linux-4.12").unwrap();
    let all = r.judge(&as_ours(&r, |_| 1.0), false);
    let of = |run: &str| all.cells.iter().find(|c| c.test == "SQLite" && c.run == run).unwrap();
    assert!(of("HDD: Noop").uncounted.as_deref().unwrap().contains("set by this cell"));
    let dbench = all.cells.iter().find(|c| c.test == "Dbench" && c.run == "SSD: Noop");
    assert_eq!(dbench.unwrap().uncounted.as_deref(), Some("the base"));
    assert_eq!(of("HDD: MQ BFQ").uncounted, None);
    let absent = all.cells.iter().find(|c| c.test == "pgbench" && c.run == "SSD: CFQ").unwrap();
    assert!(absent.published.is_none() && absent.uncounted.is_some());
}

#[test]
fn noise_is_two_published_standard_errors_where_there_are_some() {
    let r = Reproduction::load("linux-3.12").unwrap();
    let cells = r.cells(&[]);
    let of = |test: &str, run: &str| {
        cells.iter().find(|c| c.test == test && c.run == run).unwrap().significant
    };
    // 15.40 and 15.50 files/s with errors of 0.32 and 0.26.
    assert!(!of("FS-Mark 1000", "Deadline"));
    assert!(of("Compile Bench, compile", "Deadline"));
}

#[test]
fn an_unknown_name_is_told_the_nearest() {
    let e = Reproduction::load("linux-4.13").unwrap_err();
    assert!(e.message.contains("linux-4.12"), "{}", e.message);
}

#[test]
fn a_claim_may_be_of_the_largest_figure_of_some_tests() {
    let r = Reproduction::load("bfq-v7r3-responsiveness").unwrap();
    let with = |seconds: &[f64]| {
        let record = |(n, value): (usize, &f64)| {
            let mut record = Record::default();
            record.trial.workload = ["bash, 10r-seq", "konsole, 5r5w-rand"][n].into();
            record.trial.device = "st1000dm003".into();
            record.trial.scheduler = "NOOP".into();
            let name = "startup_time".into();
            record.metrics.push(Metric { name, value: *value, ..Metric::default() });
            record
        };
        let records: Vec<Record> = seconds.iter().enumerate().map(record).collect();
        let claims = r.judge(&records, false).claims;
        claims.into_iter().find(|c| c.claim.starts_with("Start-up")).unwrap()
    };
    assert_eq!(with(&[4.0, 60.0]).verdict, Verdict::Agree);
    assert_eq!(with(&[4.0, 59.0]).verdict, Verdict::Disagree);
    assert!(with(&[4.0, 60.0]).evidence.contains("HDD: konsole, 5r5w-rand: 60"));
    assert_eq!(with(&[]).verdict, Verdict::NotMeasurable);
}

#[test]
fn a_claim_may_be_of_a_part_of_all() {
    let r = Reproduction::load("bfq-v7r3-responsiveness").unwrap();
    let with = |films: &[(f64, f64)]| {
        let record = |(n, (given_up, never)): (usize, &(f64, f64))| {
            let mut record = Record::default();
            record.trial.workload =
                ["video, 10r-seq", "video, 5r5w-rand", "video, 10r-rand"][n].into();
            record.trial.device = "st1000dm003".into();
            record.trial.scheduler = "NOOP".into();
            for (name, value) in [("films given up", *given_up), ("films never begun", *never)] {
                record.metrics.push(Metric { name: name.into(), value, ..Metric::default() });
            }
            record
        };
        let records: Vec<Record> = films.iter().enumerate().map(record).collect();
        let claims = r.judge(&records, false).claims;
        claims.into_iter().find(|c| c.claim.starts_with("Video X")).unwrap()
    };
    assert_eq!(with(&[(1.0, 1.0), (1.0, 0.0), (0.0, 0.0)]).verdict, Verdict::Agree);
    assert_eq!(with(&[(1.0, 1.0), (1.0, 0.0), (1.0, 0.0)]).verdict, Verdict::Disagree);
    assert_eq!(with(&[(0.0, 0.0), (0.0, 0.0)]).verdict, Verdict::Disagree);
    assert!(with(&[(1.0, 1.0)]).evidence.contains("together over"));
    assert_eq!(with(&[]).verdict, Verdict::NotMeasurable);
}

#[test]
fn a_mirror_is_like_one_disk_as_far_as_its_furthest_run() {
    let r = Reproduction::load("bfq-v7r3-responsiveness").unwrap();
    let loads = ["10r-seq", "10r-rand", "5r5w-seq", "5r5w-rand"];
    let with = |mirrored: f64, drops: f64| {
        let mut records = Vec::new();
        for device in ["st1000dm003", "raid1-st1000dm003"] {
            for (scheduler, seconds) in
                [("NOOP", 8.0), ("DEADLINE", 9.0), ("CFQ", 4.0), ("BFQ", 3.0)]
            {
                for what in ["bash", "konsole", "video"] {
                    for load in loads {
                        let mut record = Record::default();
                        record.trial.workload = format!("{what}, {load}");
                        record.trial.device = device.into();
                        record.trial.scheduler = scheduler.into();
                        let mirror = device.starts_with("raid1");
                        let (name, value) = match (what, mirror) {
                            ("video", true) => ("drop rate", drops),
                            ("video", false) => ("drop rate", 0.0),
                            (_, true) if scheduler == "BFQ" => ("startup_time", seconds * mirrored),
                            _ => ("startup_time", seconds),
                        };
                        let metric = Metric { name: name.into(), value, ..Metric::default() };
                        record.metrics.push(metric);
                        records.push(record);
                    }
                }
            }
        }
        let judged = r.judge(&records, false);
        let claim = judged.claims.into_iter().find(|c| c.claim.starts_with("RAID1")).unwrap();
        (claim.verdict, claim.evidence)
    };
    assert_eq!(with(1.0, 0.0).0, Verdict::Agree);
    // Slower and faster, drops where there were none: each alone is unlike. A little of nothing is not.
    assert_eq!(with(1.0, 4.0).0, Verdict::Agree);
    for (mirrored, drops) in [(4.0, 0.0), (0.2, 0.0), (1.0, 40.0)] {
        assert_eq!(with(mirrored, drops).0, Verdict::Disagree, "{mirrored} {drops}");
    }
    let (_, evidence) = with(4.0, 0.0);
    assert!(evidence.contains("RAID1: bash, 10r-seq and HDD: bash, 10r-seq"), "{evidence}");
}

/// IOzone on the SSD of 2017 writes at the rate of the drive's flash, as published, not at that of its fast cache.
#[test]
fn iozone_finds_the_fast_cache_of_the_ssd_full() {
    use iosched_experiment::{Sources, plan};
    let r = Reproduction::load("linux-4.12").unwrap();
    let mut experiments = r.experiments(true).unwrap();
    let trials = experiments.iter_mut().flat_map(|e| plan(e, &Sources::default()).unwrap());
    let one = |t: &Trial| {
        let id = &t.id;
        (&*id.workload, &*id.device, &*id.scheduler) == ("IOzone", "adata-su800", "Noop")
    };
    let trial = trials.into_iter().find(one).unwrap();
    let record = iosched_sim::simulate(&trial).unwrap();
    let kb = record.metrics.iter().find(|m| m.name == "write").unwrap().value;
    let published = 49.09;
    assert!((0.5 * published..1.5 * published).contains(&(kb / 1024.0)), "{kb} KB/s");
}

/// A difference of ours within its own noise is no agreement by chance, and it is not one the other way.
#[test]
fn our_own_noise_counts() {
    let r = Reproduction::load("linux-4.12").unwrap();
    // Published: MQ Kyber is 6 % ahead of Noop on the HDD.
    let with = |kyber: [f64; 3]| {
        let mut records = Vec::new();
        for (scheduler, values) in [("Noop", [100.0, 101.0, 99.0]), ("MQ Kyber", kyber)] {
            for value in values {
                let mut record = Record::default();
                record.trial.workload = "pgbench".into();
                record.trial.device = "wd10ezrx".into();
                record.trial.scheduler = scheduler.into();
                record.metrics.push(Metric { name: "tps".into(), value, ..Metric::default() });
                records.push(record);
            }
        }
        let judged = r.judge(&records, false);
        let cell = judged.cells.iter().find(|c| c.test == "pgbench" && c.run == "HDD: MQ Kyber");
        let c = cell.unwrap();
        (c.direction, c.our_difference, judged.agreement.no_difference_here)
    };
    assert_eq!(with([105.0, 106.0, 104.0]), (Direction::Agree, true, 0));
    // The same mean, from runs that scatter by 20 %.
    assert_eq!(with([105.0, 126.0, 84.0]), (Direction::Disagree, false, 1));
    assert_eq!(with([95.0, 96.0, 94.0]), (Direction::Disagree, true, 0));
}

/// Most published ratios are near 1: a model without any difference has a score, too, and it stands beside ours.
#[test]
fn the_score_of_no_difference_stands_beside_ours() {
    let r = Reproduction::load("linux-4.12").unwrap();
    let twin = r.judge(&as_ours(&r, |_| 1.0), false);
    let mut flat = as_ours(&r, |_| 1.0);
    flat.iter_mut().for_each(|x| x.metrics[0].value = 1.0);
    let flat = r.judge(&flat, false);
    let none = flat.agreement.within_25_percent;
    assert!(none > 10 && none < flat.agreement.compared, "{none}");
    assert_eq!(twin.agreement.no_difference_within_25_percent, none);
    assert_eq!(flat.agreement.no_difference_within_25_percent, none);
    let said = format!("({none} would be if schedulers made no difference)");
    assert!(twin.answer().contains(&said), "{}", twin.answer());
    // Nothing here points the other way, so no name is bold; those that show nothing are counted.
    let page = flat.page("t");
    assert!(!page.contains("<g class=\"bad\""));
    let lost = page.matches("<g class=\"lost\"").count();
    assert_eq!(lost, flat.agreement.no_difference_here);
}

#[test]
fn a_slight_difference_beside_a_large_one_agrees_in_sign_only() {
    let r = Reproduction::load("linux-4.12").unwrap();
    let mut records = as_ours(&r, |_| 1.0);
    records.iter_mut().for_each(|x| x.metrics[0].value = x.metrics[0].value.powf(0.02));
    let out = r.judge(&records, false);
    let why =
        |c: &&Cell| c.explanation.as_deref().is_some_and(|e| e.starts_with("agrees in sign only"));
    let all: Vec<&Cell> = out.cells.iter().filter(why).collect();
    assert!(!all.is_empty());
    let apart = |v: Option<f64>| (v.unwrap() - 1.0).abs();
    assert!(all.iter().all(|c| c.direction == Direction::Agree));
    assert!(all.iter().all(|c| apart(c.published_ratio) > 0.25 && apart(c.our_ratio) <= 0.03));
    let twin = r.judge(&as_ours(&r, |_| 1.0), false);
    assert_eq!(twin.cells.iter().filter(why).count(), 0);
}

#[test]
fn claims_without_figures_are_run_all_the_same() {
    let r = Reproduction::load("bfq-v7r3-responsiveness").unwrap();
    assert!(r.judge(&[], true).answer().starts_with("It is not run."));
    let mut record = Record::default();
    record.trial.workload = "bash, 10r-seq".into();
    record.trial.device = "st1000dm003".into();
    record.trial.scheduler = "NOOP".into();
    let name = "startup_time".into();
    record.metrics.push(Metric { name, value: 4.0, ..Metric::default() });
    let out = r.judge(&[record], true);
    assert!(out.answer().starts_with("No figures are published, only claims. Claims:"));
    assert!(!out.text(80).contains("counts beyond") && !out.page("t").contains("counts beyond"));
}

#[test]
fn a_quick_look_says_nothing_of_full_runs() {
    let r = Reproduction::load("linux-4.12").unwrap();
    let said = |quick| r.judge(&[], quick).remarks.iter().any(|t| t.contains("Dbench runs once"));
    assert_eq!((said(false), said(true)), (true, false));
}

#[test]
fn a_narrow_terminal_has_no_wide_tables() {
    for name in ["linux-4.12", "linux-3.12", "bfq-v7r3-responsiveness"] {
        let r = Reproduction::load(name).unwrap();
        let out = r.judge(&as_ours(&r, |_| 1.0), false);
        for columns in [40, 60, 80] {
            let text = out.text(columns);
            let wide = text.lines().find(|l| l.chars().count() > columns);
            assert_eq!(wide, None, "{name} in {columns}");
        }
    }
}

#[test]
fn every_figure_of_the_real_kernel_has_its_cell() {
    let r = Reproduction::load("linux-4.12").unwrap();
    let cells = r.judge(&as_ours(&r, |_| 1.0), true).cells;
    let beside = cells.iter().filter(|c| c.kernel_ratio.is_some()).count();
    // 98 figures; fio's reads and writes stand in two tests each, with 7 schedulers on two drives.
    assert_eq!(beside, 98 + 28);
    assert!(cells.iter().all(|c| c.scheduler != c.base || c.kernel_ratio == Some(1.0)));
}

#[test]
fn figures_of_the_publication_are_counted_beside_the_kernel() {
    let r = Reproduction::load("linux-4.12").unwrap();
    // As published, all differences are shown here, and the kernel shows some of them. Without any, it is alone.
    let published = r.judge(&as_ours(&r, |_| 1.0), true).kernel.unwrap();
    assert_eq!(
        (published.published_shown_by_kernel_only, published.published_shown_by_neither),
        (0, 0)
    );
    assert!(published.published_shown_by_both > 0 && published.published_shown_by_us_only > 0);
    let mut records = as_ours(&r, |_| 1.0);
    records.iter_mut().flat_map(|r| &mut r.metrics).for_each(|m| m.value = 1.0);
    let flat = r.judge(&records, true);
    let n = flat.kernel.unwrap();
    assert_eq!(
        (n.same_direction, n.published_shown_by_both, n.published_shown_by_us_only),
        (0, 0, 0)
    );
    assert_eq!(n.published_shown_by_kernel_only, published.published_shown_by_both);
    assert!(flat.text(120).contains("×kernel"), "its column is there");
    assert!(flat.text(120).contains("kernel only") && flat.text(120).contains("  neither"));
    assert!(flat.page("").contains("the kernel itself"));
}
