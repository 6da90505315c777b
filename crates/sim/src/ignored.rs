//! Warnings about settings that change nothing, or that the kernel takes for other values.

use iosched_experiment::{Trial, Warning, path_of};
use iosched_schedulers::{BlockPath, KernelVersion};
use iosched_workloads::fio::on_files;

/// `queue/async_depth` came with this one.
const ASYNC_DEPTH: KernelVersion = KernelVersion(7, 1, 0);

/// Attributes of the queue and tunables of the scheduler that are set and change nothing, each with the reason.
pub(crate) fn settings(trial: &Trial) -> Vec<Warning> {
    let of_queue = trial.settings.iter().filter_map(|(n, v)| of_queue(trial, n, *v));
    of_queue.chain(of_scheduler(trial)).collect()
}

fn warning(message: String, advice: &str) -> Warning {
    Warning { code: "setting-ignored".into(), message, advice: advice.into() }
}

fn of_queue(trial: &Trial, name: &str, value: i64) -> Option<Warning> {
    let scheduler = trial.scheduler.descriptor;
    let none = scheduler.facts.bypass;
    let says = |why: String, advice| Some(warning(format!("{name}={value} {why}"), advice));
    match name {
        "io_timeout" => {
            says("changes nothing: no modelled device times out".into(), "leave it out")
        }
        "read_ahead_kb" if trial.work.load().is_none() && !on_files::needed(trial.jobs()) => says(
            "changes nothing: direct I/O is not read ahead".into(),
            "leave it out, or name a load for which it matters",
        ),
        "async_depth" if none => says(
            format!(
                "changes nothing under {}: Linux refuses it where no scheduler is",
                scheduler.name
            ),
            "name it for the schedulers that it is for: queue = { async_depth = … } beside their name",
        ),
        "async_depth" if scheduler.name == "adios" => says(
            "changes nothing under adios, which limits writes by a rule of its own".into(),
            "name it for the schedulers that it is for: queue = { async_depth = … } beside their name",
        ),
        "async_depth" if trial.kernel.kernel_version() < ASYNC_DEPTH => says(
            format!("changes nothing: Linux {} has no such file", trial.kernel.version),
            "leave it out",
        ),
        "nr_requests" if value < 4 => {
            says("is less than any queue has: it counts as 4".into(), "write 4 or more")
        }
        "nr_requests" if none && path_of(&trial.scheduler) == BlockPath::Mq => {
            let depth = i64::from(trial.device.queue_depth.max(1));
            let why =
                format!("is more than the {depth} tags of the device, which count under none");
            (value > depth)
                .then(|| warning(format!("{name}={value} {why}"), "leave it out for none"))
        }
        _ => None,
    }
}

/// ADIOS sorts batches only where there is a head to move.
fn of_scheduler(trial: &Trial) -> Option<Warning> {
    let set = trial.settings.iter().rev().find(|(n, _)| n == "rotational").map(|(_, v)| *v != 0);
    let rotational = set.unwrap_or(trial.device.rotational);
    let adios = trial.scheduler.descriptor.name == "adios";
    let order = trial.scheduler.tunables.iter().find(|(n, v)| n == "batch_order" && *v != 0)?;
    (adios && !rotational).then(|| {
        let why = "is for devices with a head to move (rotational), and this one has none: batches keep order 0";
        warning(format!("adios.batch_order={} on {} {why}", order.1, trial.id.device), "leave it out")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use iosched_block::KernelProfile;
    use iosched_devices::params::FixedParams;
    use iosched_devices::{DeviceSpec, Model};
    use iosched_experiment::choose_scheduler;
    use iosched_schedulers::registry::Registry;
    use iosched_workloads::fio::JobSet;

    use super::*;

    fn said(scheduler: &str, tunables: &[(&str, i64)], set: &[(&str, i64)]) -> Vec<String> {
        let all = |list: &[(&str, i64)]| {
            list.iter().map(|(n, v)| ((*n).to_string(), *v)).collect::<Vec<_>>()
        };
        let kernel = KernelProfile::find("7.1").unwrap();
        let scheduler =
            choose_scheduler(scheduler, &all(tunables), &kernel, Registry::builtin()).unwrap();
        let device = DeviceSpec {
            queue_depth: 32,
            ..DeviceSpec::new(
                "flash",
                Model::Fixed(FixedParams {
                    cap: 1 << 30,
                    depth: 0,
                    flush_ns: 0,
                    lat_ns: 1,
                    par: 1,
                }),
            )
        };
        let trial = Trial {
            settings: all(set),
            ..Trial::new(device, scheduler, kernel, JobSet::default())
        };
        settings(&trial).into_iter().map(|w| w.message).collect()
    }

    /// What Linux 7.1 does with these values: see docs/kernels.md.
    #[test]
    fn what_a_scheduler_does_not_take_is_told() {
        let depth = &[("async_depth", 3)];
        assert!(
            said("none", &[], depth)[0]
                .starts_with("async_depth=3 changes nothing under none: Linux refuses it")
        );
        assert!(said("adios", &[], depth)[0].contains("changes nothing under adios"));
        assert_eq!(said("mq-deadline", &[], depth), [""; 0]);
        assert!(said("adios", &[("batch_order", 1)], &[])[0].contains("batch_order=1 on"));
        assert_eq!(said("adios", &[("batch_order", 1)], &[("rotational", 1)]), [""; 0]);
        assert!(said("bfq", &[], &[("nr_requests", 2)])[0].ends_with("it counts as 4"));
        assert!(said("none", &[], &[("nr_requests", 64)])[0].contains("more than the 32 tags"));
        assert_eq!(said("bfq", &[], &[("nr_requests", 64)]), [""; 0]);
    }
}
