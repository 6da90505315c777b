//! What a record says of a live run beside the figures of its load: the machine, its settings, CPU time, and whether
//! they can be trusted.

use std::time::{Duration, SystemTime};

use iosched_experiment::{DispatchPoint, Metric, Record, Status, Warning};
use iosched_types::CpuTime;

use super::live::Place;
use crate::discover::QueueState;
use crate::error::{Error, Result};
use crate::load::meter;
use crate::parse::proc_stat::parse_process;
use crate::root::SysRoot;
use crate::switch::{Disks, running_kernel};
use crate::trace::Times;

/// Most of a file of the system that is kept.
const SYSTEM_FILE: usize = 8 << 10;

/// The machine in the kernel's own words.
pub(super) fn system() -> String {
    let root = SysRoot::default();
    let mut out = String::new();
    for path in ["/proc/version", "/proc/loadavg", "/proc/meminfo", "/proc/cpuinfo"] {
        let Some(text) = root.get(path) else { continue };
        let kept: String = text.chars().take(SYSTEM_FILE).collect();
        out.push_str(&format!("==> {path}\n{}\n\n", kept.trim_end()));
    }
    out
}

/// With limits of the control group, the limits are measured instead of the disk.
pub(super) fn throttled() -> Vec<Warning> {
    let limits = crate::cgroup::limits(&SysRoot::default());
    let warning = |what| Warning {
        code: "throttled".into(),
        message: format!("the load is limited: {what}"),
        advice: "start it outside of that control group, unless that is what you compare".into(),
    };
    limits.into_iter().map(warning).collect()
}

/// If the wall clock was set during a run, rates by wall-clock tools are wrong.
pub(super) fn clock_check(wall: SystemTime, elapsed: Duration) -> Result<()> {
    let seconds = match wall.elapsed() {
        Ok(w) => w.as_secs_f64() - elapsed.as_secs_f64(),
        Err(e) => -e.duration().as_secs_f64() - elapsed.as_secs_f64(),
    };
    if seconds.abs() > 1.0 + elapsed.as_secs_f64() * 0.01 {
        return Err(Error::ClockJump { seconds, during: "a run".into() });
    }
    Ok(())
}

/// Priorities go to the load, and schedulers heed them.
pub(super) fn priority() -> Option<Warning> {
    let stat = SysRoot::default().get("/proc/self/stat").unwrap_or_default();
    let nice = parse_process(&stat).map_or(0, |p| p.nice);
    unusual(crate::sys::io_priority(), nice)
}

fn unusual((class, level): (i64, i64), nice: i64) -> Option<Warning> {
    let io = match (class, level) {
        // What a process has that was given none, in the words of different kernels.
        (0, _) | (2, 4) => None,
        (1, level) => Some(format!("real-time I/O priority {level}")),
        (2, level) => Some(format!("best-effort I/O priority {level}")),
        _ => Some("idle I/O priority".into()),
    };
    let nice = (nice != 0).then(|| format!("nice value {nice}"));
    let told: Vec<String> = io.into_iter().chain(nice).collect();
    (!told.is_empty()).then(|| Warning {
        code: "priority".into(),
        message: format!("the load has iosched's own priority: {}", told.join(", ")),
        advice: "start it without nice and ionice, unless that is what you compare".into(),
    })
}

pub(super) fn tunables(record: &mut Record, now: &QueueState) {
    for (name, value) in &now.tunables {
        if let Ok(v) = value.parse() {
            record.scheduler.tunables.insert(name.clone(), v);
        }
    }
}

pub(super) fn provenance(
    record: &mut Record,
    place: &Place<'_>,
    disks: &Disks,
    now: &[QueueState],
) {
    let depths = disks.tag_depths();
    if let Some(before) = disks.before() {
        before.note_as_base(record);
    }
    let disks = disks.names();
    let describe = |name: &str| crate::discover::Disk::read(&SysRoot::default(), name, None);
    let (Some(disk), Some(queue)) = (disks.first().map(|d| describe(d)), now.first()) else {
        return;
    };
    let mut put = |k: &str, v: String| {
        if !v.is_empty() {
            record.provenance.insert(k.into(), v);
        }
    };
    put("kernel", running_kernel());
    put("device", disk.model);
    put("firmware", disk.firmware);
    put("device.by-id", disk.by_id.first().cloned().unwrap_or_default());
    put("target", place.shown.to_string());
    put("scheduler", queue.scheduler.clone().unwrap_or_default());
    for (name, value) in &queue.attributes {
        put(&format!("queue.{name}"), value.clone());
    }
    let depth = |d: Option<u32>| d.map_or_else(String::new, |d| d.to_string());
    put("queue.driver_tags", depth(depths.first().copied().flatten()));
    if disks.len() == 1 {
        return;
    }
    for (name, d) in disks.iter().zip(&depths).filter(|(_, d)| Some(*d) != depths.first()) {
        put(&format!("disk.{name}.queue.driver_tags"), depth(*d));
    }
    put("disks", disks.join(" "));
    for (name, state) in disks.iter().zip(now) {
        put(&format!("disk.{name}"), describe(name).model);
        put(&format!("disk.{name}.scheduler"), state.scheduler.clone().unwrap_or_default());
        for (attribute, value) in
            state.attributes.iter().filter(|a| queue.attributes.get(a.0) != Some(a.1))
        {
            put(&format!("disk.{name}.queue.{attribute}"), value.clone());
        }
    }
}

/// Of the machine's CPU time as much may be others' in a figure of the load.
const OTHERS: f64 = 0.25;

/// CPU cost per I/O by three meters: fio's own (misses kernel threads), block-layer kernel threads, and everything that
/// ran on the machine. The last includes the work of others. Beyond [`OTHERS`] it is theirs more than the load's, so
/// there is no figure.
pub(super) fn cpu_cost(
    record: &mut Record,
    used: &meter::Use,
    cpu: &[iosched_experiment::fio_json::FioCpu],
) {
    let ios: u64 = record.jobs.iter().map(|j| j.read.ios + j.write.ios + j.trim.ios).sum();
    if ios == 0 {
        return;
    }
    let own: f64 =
        cpu.iter().map(|c| (c.user + c.system) / 100.0 * c.job_runtime_ms as f64 * 1e3).sum();
    let sum = |part: fn(&iosched_experiment::fio_json::FioCpu) -> f64| -> u64 {
        cpu.iter().map(|c| part(c) / 100.0 * c.job_runtime_ms as f64 * 1e6).sum::<f64>() as u64
    };
    let total = CpuTime { user: sum(|c| c.user), system: sum(|c| c.system), ..CpuTime::default() };
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    record.note_core_time(total, cpus);
    let per_tick = 1e6 / meter::ticks_per_second();
    let others = used.foreign_cpu() * used.total as f64 / used.busy.max(1) as f64;
    let machine = (others <= OTHERS).then_some(("cpu_machine", used.busy as f64 * per_tick));
    if machine.is_none() {
        record.warnings.push(Warning {
            code: "cpu-of-others".into(),
            message: format!(
                "others did {:.0} % of the machine's work, so its CPU time for each I/O is not judged",
                others * 100.0
            ),
            advice: "cpu_fio and cpu_kernel_threads are the load's own; the whole needs an idle machine".into(),
        });
    }
    let own = [
        ("cpu_fio", own),
        // Work for others' disks is in it. Where that is much, the run itself is invalid.
        ("cpu_kernel_threads", used.kernel_threads as f64 * per_tick),
    ];
    for (name, us) in own.into_iter().chain(machine) {
        record.metrics.push(Metric {
            name: name.into(),
            value: us / ios as f64,
            unit: "us/IO".into(),
            higher_is_better: Some(false),
            censored: false,
        });
    }
}

/// What a trace yields for a record.
pub(crate) struct Traced {
    pub(crate) points: Vec<DispatchPoint>,
    pub(crate) seeks: u64,
    pub(crate) travel: u64,
    pub(crate) warning: Option<Warning>,
    pub(crate) times: Times,
}

/// Marks a record invalid unless it is so already.
pub(crate) fn invalidate(record: &mut Record, why: impl Into<String>) {
    if record.status == Status::Complete {
        record.status = Status::Invalid(why.into());
    }
}

#[cfg(test)]
mod tests {
    use iosched_experiment::{DirStats, JobRecord};

    use super::*;

    #[test]
    fn a_priority_that_the_load_would_not_have_is_told() {
        for (io, nice, why) in [
            ((3, 0), 0, "own priority: idle I/O priority"),
            ((1, 2), 0, "own priority: real-time I/O priority 2"),
            ((2, 7), 19, "own priority: best-effort I/O priority 7, nice value 19"),
            ((0, 0), -5, "own priority: nice value -5"),
        ] {
            let told = unusual(io, nice).unwrap().message;
            assert!(told.ends_with(why), "{told}");
        }
        assert_eq!(unusual((0, 0), 0), None);
        assert_eq!(unusual((2, 4), 0), None);
    }

    #[test]
    fn the_machines_time_is_no_figure_of_the_load_when_others_worked() {
        let noted = |busy, own| {
            let write = DirStats { ios: 100, ..DirStats::default() };
            let job = JobRecord { write, ..JobRecord::default() };
            let mut record = Record { jobs: vec![job], ..Record::default() };
            let used = meter::Use { busy, own, total: 1000, ..meter::Use::default() };
            cpu_cost(&mut record, &used, &[]);
            let machine = record.metrics.iter().any(|m| m.name == "cpu_machine");
            let told = record.warnings.iter().any(|w| w.code == "cpu-of-others");
            assert_ne!(machine, told);
            machine
        };
        assert!(noted(100, 90));
        assert!(!noted(950, 20), "they used 93 % of the CPUs");
        assert!(!noted(20, 1), "little, but theirs");
    }

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let second = Duration::from_secs(1);
        assert!(clock_check(SystemTime::now() - second, second).is_ok());
        for (wall, sign) in
            [(SystemTime::now() - second * 3600, 1.0), (SystemTime::now() + second * 3600, -1.0)]
        {
            let e = clock_check(wall, second).unwrap_err();
            assert!(
                matches!(e, Error::ClockJump { seconds, .. } if seconds * sign > 3500.0),
                "{e}"
            );
            assert_eq!(e.class(), crate::ExitClass::Failed);
            assert!(e.help_to_go_on().contains("finished runs are kept"));
        }
    }
}
