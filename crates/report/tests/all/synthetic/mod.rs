//! Records made by rule, with every field a page shows, for tests and the example.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "shared by several programs, none of which uses all of it"
)]

use std::collections::BTreeMap;

use iosched_experiment::record::{
    BackendKind, DeviceStats, DirStats, DispatchPoint, JobRecord, Metric, Record, SCHEMA,
    SchedulerStats, Series, Status, TrialId, Warning,
};
use iosched_types::Op;

/// A name that tries to break out of HTML, attributes, scripts, comments, CSS and URLs.
pub const HOSTILE: &str = "</script><script>window.hacked=1</script><img src=x onerror=\"window.hacked=2\">'\"><!-- ]]> {{7*7}} {% raw %} javascript:window.hacked=3 \u{202e}";

const NAMES: [&str; 8] =
    ["none", "mq-deadline", "kyber", "bfq", "cfq", "noop", "deadline", "anticipatory"];

/// A small generator, so that the records are the same everywhere.
struct Lcg(u64);

impl Lcg {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1u32 << 31)
    }
}

fn side(rng: &mut Lcg, ios: u64, latency: f64) -> DirStats {
    let mut d = DirStats { ios, bytes: ios * 4096, runtime: 10_000_000_000, ..DirStats::default() };
    for _ in 0..ios.min(12_000) {
        let u = rng.next().max(1e-9);
        d.clat.record((latency * (0.4 - u.ln())) as u64);
    }
    d
}

/// One record.
pub fn record(workload: usize, scheduler: usize, repetition: u32) -> Record {
    let seed = (workload * 97 + scheduler * 13) as u64 * 1000 + u64::from(repetition);
    let mut rng = Lcg(seed);
    let speed = 1.0 + 0.12 * scheduler as f64 + 0.03 * (workload % 5) as f64 + 0.04 * rng.next();
    let mut jobs = Vec::new();
    for k in 0..4u32 {
        let share = if scheduler.is_multiple_of(2) { 1.0 } else { 1.0 / f64::from(k + 1) };
        let ios = (9_000.0 * speed * share) as u64;
        let read = side(&mut rng, ios, 80_000.0 * speed);
        let write = if workload % 2 == 1 {
            side(&mut rng, ios / 3, 300_000.0)
        } else {
            DirStats::default()
        };
        let options = BTreeMap::from([
            ("bs".to_string(), "4096".to_string()),
            ("rw".to_string(), if workload % 2 == 1 { "randrw" } else { "randread" }.to_string()),
        ]);
        jobs.push(JobRecord {
            name: "reader".into(),
            subjob: k,
            pid: k + 1,
            options,
            read,
            write,
            runtime: 10_000_000_000,
            ..JobRecord::default()
        });
    }
    let curve = |rng: &mut Lcg, name: &str, unit: &str, top: f64| Series {
        name: name.into(),
        unit: unit.into(),
        step: 50_000_000,
        values: (0..200)
            .map(|i| top * (0.8 + 0.2 * rng.next()) * (1.0 - f64::from(i % 50) / 200.0))
            .collect(),
    };
    let series = vec![
        curve(&mut rng, "throughput", "B/s", 6e7 * speed),
        curve(&mut rng, "queue_depth", "requests", 32.0),
    ];
    let dispatches = (0..2000u64)
        .map(|i| {
            let pid = (i / 40 % 4) as u32;
            let sector = u64::from(pid) * 500_000_000 + i * 9000 + (rng.next() * 4e7) as u64;
            DispatchPoint { t: i * 5_000_000, sector, sectors: 8, op: Op::Read, pid: pid + 1 }
        })
        .collect();
    let name =
        NAMES.get(scheduler).map_or_else(|| format!("custom{scheduler}"), |n| (*n).to_string());
    Record {
        schema: SCHEMA,
        trial: TrialId {
            experiment: "synthetic".into(),
            device: "NVMe synthetic 1 TB".into(),
            scheduler: format!("{name}@6.12"),
            kernel: "6.12".into(),
            workload: format!("workload {workload:02}"),
            repetition,
            seed,
        },
        backend: BackendKind::Real,
        jobs,
        series,
        dispatches,
        device: DeviceStats {
            commands: [30_000, 10_000, 0, 0],
            seeks: 25_000,
            travel: 1 << 40,
            busy: 9_000_000_000,
            max_in_flight: 32,
            ..DeviceStats::default()
        },
        scheduler: SchedulerStats {
            dispatched: 40_000,
            tunables: BTreeMap::from([
                ("read_expire".to_string(), 500),
                ("fifo_batch".to_string(), 16),
            ]),
            ..SchedulerStats::default()
        },
        provenance: BTreeMap::from([
            ("tool".to_string(), "iosched 0.1.0".to_string()),
            ("started".to_string(), format!("2026-01-{:02}T00:00:00Z", scheduler + 1)),
            ("cpu".to_string(), "Synthetic CPU, 8 cores".to_string()),
        ]),
        elapsed: 10_000_000_000,
        ..Record::default()
    }
}

/// A whole experiment. One cell failed, one workload measures a start-up time with a limit.
pub fn records(workloads: usize, schedulers: usize, repetitions: u32) -> Vec<Record> {
    let mut out = Vec::new();
    for w in 0..workloads {
        for s in 0..schedulers {
            for rep in 1..=repetitions {
                let mut r = record(w, s, rep);
                if w == 0 && s == 1 && rep == repetitions {
                    r.warnings.push(Warning {
                        code: "noisy".into(),
                        message: "the processor's clock changed".into(),
                        advice: "fix the governor".into(),
                    });
                }
                if w == 1 && s + 1 == schedulers {
                    r.status = Status::Failed("the device vanished".into());
                }
                if w == 2 {
                    let slow = s == 2;
                    r.metrics.push(Metric {
                        name: "startup_time".into(),
                        value: if slow {
                            60.0
                        } else {
                            1.5 + s as f64 * 0.2 + 0.01 * f64::from(rep)
                        },
                        unit: "s".into(),
                        higher_is_better: Some(false),
                        censored: slow,
                    });
                }
                out.push(r);
            }
        }
    }
    out
}

/// Records in which every text is [`HOSTILE`].
pub fn hostile() -> Vec<Record> {
    let mut all = records(3, 3, 2);
    for r in &mut all {
        r.trial.experiment = HOSTILE.into();
        r.trial.device = format!("{HOSTILE}{}", r.trial.seed % 2);
        r.trial.scheduler = format!("{}{HOSTILE}", r.trial.scheduler);
        r.trial.workload.push_str(HOSTILE);
        r.trial.kernel = HOSTILE.into();
        r.provenance = BTreeMap::from([
            (HOSTILE.to_string(), HOSTILE.to_string()),
            ("test".into(), HOSTILE.into()),
            ("arguments".into(), HOSTILE.into()),
        ]);
        r.scheduler.tunables = BTreeMap::from([(HOSTILE.to_string(), 1)]);
        r.warnings =
            vec![Warning { code: HOSTILE.into(), message: HOSTILE.into(), advice: HOSTILE.into() }];
        r.metrics.push(Metric {
            name: HOSTILE.into(),
            value: 1.0 + r.trial.seed as f64,
            unit: HOSTILE.into(),
            higher_is_better: Some(true),
            censored: false,
        });
        r.jobs.iter_mut().for_each(|j| j.name = format!("{HOSTILE}{}", j.subjob));
        if let Status::Failed(why) = &mut r.status {
            *why = HOSTILE.into();
        }
    }
    all
}

/// Makes charts that filters can tell apart: a noisy one, one with little change, and a measure that some schedulers
/// lack.
pub fn variety(records: &mut [Record]) {
    for r in records {
        let (scheduler, round) = (r.trial.seed / 13_000 % 7, f64::from(r.trial.repetition));
        let metric = |name: &str, value: f64| Metric {
            name: name.into(),
            value,
            unit: "1/s".into(),
            higher_is_better: Some(true),
            censored: false,
        };
        match r.trial.workload.as_str() {
            "workload 00" => r.metrics.push(metric("shaky", 100.0 + 30.0 * (round % 3.0))),
            "workload 01" => r.metrics.push(metric("level", 500.0 + 0.1 * round)),
            "workload 03" if !scheduler.is_multiple_of(3) => {
                r.metrics.push(metric("rare", 40.0 + round));
            }
            _ => {}
        }
        if r.trial.workload == "workload 00" {
            r.provenance.insert("test".into(), "suite/one-1.0".into());
        }
    }
}
