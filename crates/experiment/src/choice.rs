//! Schedulers of an experiment: those of a kernel profile, and those of the running kernel.

use iosched_block::{KernelProfile, SchedulerChoice};
use iosched_schedulers::registry::Registry;
use iosched_schedulers::{BlockPath, KernelVersion};
use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;

use crate::file::SchedulerRef;
use crate::place::{Place, Placed};
use crate::record::{NEAREST, Warning};
use crate::trial::{ChoiceError, choose_scheduler, label, path_of};

/// A scheduler, looked up.
pub(crate) struct Choice<'e> {
    pub(crate) kernel: KernelProfile,
    pub(crate) scheduler: SchedulerChoice,
    /// The kernel's name of a scheduler that iosched does not have.
    pub(crate) foreign: Option<String>,
    pub(crate) label: String,
    /// How the experiment names it.
    pub(crate) named: &'e str,
    pub(crate) place: &'e Place,
    /// `queue/*` settings of its own.
    pub(crate) settings: Vec<(String, i64)>,
    /// What the label does not tell.
    pub(crate) remark: Option<Warning>,
}

/// A scheduler of a kernel profile, for the simulator.
pub(crate) fn simulated<'e>(
    s: &'e Placed<SchedulerRef>,
    kernel: &KernelProfile,
    several: bool,
    registry: &Registry,
) -> Result<Choice<'e>, Diagnostic> {
    let fail = |e: ChoiceError| s.place.error(e.to_string());
    too_new(s)?;
    in_one_unit(&s.value)?;
    choose_scheduler(&s.value.name, &[], kernel, registry).map_err(fail)?;
    for t in &s.value.tunables {
        choose_scheduler(&s.value.name, std::slice::from_ref(&t.value), kernel, registry)
            .map_err(|e| t.place.error(e.to_string()))?;
    }
    let choice =
        choose_scheduler(&s.value.name, &tunables(&s.value), kernel, registry).map_err(fail)?;
    if !s.value.name.contains('@') && !kernel.has_path(path_of(&choice)) {
        let layer = match path_of(&choice) {
            BlockPath::Legacy => "single-queue",
            BlockPath::Mq => "multi-queue",
        };
        let name = &s.value.name;
        let d = s
            .place
            .error(format!("Linux {} has no {layer} block layer for {name}", kernel.version));
        return Err(d.with_help(format!("write {name}@VERSION to run it all the same")));
    }
    let mut text = s.value.label.clone().unwrap_or_else(|| label(&choice));
    text.push_str(&queue_label(&s.value));
    if several {
        text.push_str(&format!(" on {}", kernel.version));
    }
    let remark = stands_for(&s.value.name, &choice).or_else(|| never_ran(&choice, kernel));
    Ok(Choice {
        kernel: kernel.clone(),
        scheduler: choice,
        foreign: None,
        label: text,
        place: &s.place,
        settings: settings(&s.value),
        named: &s.value.name,
        remark,
    })
}

fn settings(s: &SchedulerRef) -> Vec<(String, i64)> {
    s.queue.iter().map(|q| q.value.clone()).collect()
}

fn queue_label(s: &SchedulerRef) -> String {
    s.queue.iter().map(|q| format!(" {}={}", q.value.0, q.value.1)).collect()
}

/// `bfq@5.17` runs as the generation that Linux 5.17 had. Where there is no profile of that kernel, the name of the
/// generation alone does not tell so.
fn stands_for(name: &str, choice: &SchedulerChoice) -> Option<Warning> {
    let (_, wanted) = name.split_once('@')?;
    KernelVersion::parse(wanted)?;
    let known = KernelProfile::names().contains(&wanted) || choice.generation.name == wanted;
    (!known).then(|| Warning {
        code: NEAREST.into(),
        message: format!(
            "{name} runs as {}, the generation of Linux {}",
            label(choice),
            choice.generation.range()
        ),
        advice: String::new(),
    })
}

/// A release of a patch that was never made for a kernel runs there by its own rules.
fn never_ran(choice: &SchedulerChoice, kernel: &KernelProfile) -> Option<Warning> {
    let (d, g) = (choice.descriptor, choice.generation);
    let from = d.origin(g).filter(|_| !g.covers(kernel.kernel_version()))?;
    Some(Warning {
        code: NEAREST.into(),
        message: format!(
            "{} {} ({from}) was made for Linux {}; on Linux {} it runs by its own rules on that block layer",
            d.name,
            g.name,
            g.range(),
            kernel.version
        ),
        advice: "compare it with others of a kernel that it was made for".into(),
    })
}

/// Refuses `bfq@9.9`. The newest generation covers all later kernels, but nobody knows what they will do.
fn too_new(s: &Placed<SchedulerRef>) -> Result<(), Diagnostic> {
    let Some((family, wanted)) = s.value.name.split_once('@') else { return Ok(()) };
    let known = KernelProfile::names().into_iter().filter_map(KernelVersion::parse).max();
    match (KernelVersion::parse(wanted), known) {
        (Some(version), Some(newest)) if (version.0, version.1) > (newest.0, newest.1) => {
            let d = s.place.error(format!(
                "Linux {wanted} is newer than {newest}, the newest kernel that is known"
            ));
            Err(d.with_help(format!("write {family}@{newest}")))
        }
        _ => Ok(()),
    }
}

/// The last value of each tunable, in the order in which they were set.
fn tunables(s: &SchedulerRef) -> Vec<(String, i64)> {
    let mut out: Vec<(String, i64)> = Vec::new();
    for t in &s.tunables {
        out.retain(|(n, _)| *n != t.value.0);
        out.push(t.value.clone());
    }
    out
}

/// `slice_idle` and `slice_idle_us` are one tunable in two units: the later one would replace the earlier without a word.
fn in_one_unit(s: &SchedulerRef) -> Result<(), Diagnostic> {
    for t in &s.tunables {
        let (name, value) = &t.value;
        let twin = |o: &&Placed<(String, i64)>| o.value.0.strip_suffix("_us") == Some(name);
        if let Some(twin) = s.tunables.iter().find(twin) {
            let (other, micros) = &twin.value;
            let message =
                format!("{name}={value} and {other}={micros} set one tunable in two units");
            let help =
                format!("leave one out; to compare both values, set {other} to each of them");
            return Err(twin.place.error(message).with_help(help));
        }
    }
    Ok(())
}

/// A scheduler of the running kernel. The kernel decides which tunables it has, and a generation means nothing to it. A
/// name that iosched does not have must be among those that the kernel offers.
pub(crate) fn live<'e>(
    s: &'e Placed<SchedulerRef>,
    kernel: &KernelProfile,
    offered: &dyn Fn() -> Vec<String>,
    registry: &Registry,
) -> Result<Choice<'e>, Diagnostic> {
    let name = s.value.name.split('@').next().unwrap_or_default();
    let (found, foreign) = match registry.family(name) {
        Ok(d) => (d, None),
        Err(e) => {
            let offered = offered();
            if !offered.iter().any(|o| o == name) {
                let known = registry.families().map(|d| d.name);
                let near = did_you_mean(name, known.chain(offered.iter().map(String::as_str)));
                let d = s.place.error(e.to_string().split(';').next().unwrap_or_default());
                let offers = format!("the running kernel offers {}", offered.join(", "));
                let help = if near.is_empty() { offers } else { format!("{near} ({offers})") };
                return Err(d.with_help(help));
            }
            // A stand-in: nothing but its name reaches the kernel.
            (
                registry.family("none").map_err(|e| s.place.error(e.to_string()))?,
                Some(name.to_string()),
            )
        }
    };
    let generation = found
        .generations
        .last()
        .ok_or_else(|| s.place.error(format!("{name} has no generation")))?;
    in_one_unit(&s.value)?;
    let tunables = tunables(&s.value);
    let mut text = foreign.clone().unwrap_or_else(|| found.name.into());
    for (n, v) in &tunables {
        text.push_str(&format!(" {n}={v}"));
    }
    Ok(Choice {
        kernel: kernel.clone(),
        scheduler: SchedulerChoice { descriptor: found, generation, tunables },
        foreign,
        label: s.value.label.clone().unwrap_or(text) + &queue_label(&s.value),
        place: &s.place,
        settings: settings(&s.value),
        named: &s.value.name,
        remark: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(name: &str) -> Result<(String, Option<String>), String> {
        let tunables = Vec::new();
        let s = SchedulerRef { name: name.into(), tunables, ..SchedulerRef::default() };
        let s = Placed::new(s, Place::file("e.toml"));
        let kernel = KernelProfile::find("6.12").unwrap();
        let offered = || vec!["none".to_string(), "ssg".into()];
        let result = live(&s, &kernel, &offered, Registry::builtin());
        result.map(|c| (c.label, c.foreign)).map_err(|d| d.to_string())
    }

    #[test]
    fn the_running_kernel_may_have_schedulers_of_its_own() {
        assert_eq!(chosen("ssg").unwrap(), ("ssg".into(), Some("ssg".into())));
        assert_eq!(chosen("bfq@6.12").unwrap(), ("bfq".into(), None));
        let e = chosen("sgg").unwrap_err();
        assert!(e.contains("unknown scheduler") && e.contains("did you mean \"ssg\"?"), "{e}");
    }

    #[test]
    fn a_tunable_in_two_units_is_refused() {
        let kernel = KernelProfile::find("6.12").unwrap();
        let offered = || vec!["bfq".to_string()];
        let of = |tunables: &[(&str, i64)]| {
            let placed = |(n, v): &(&str, i64)| {
                Placed::new(((*n).to_string(), *v), Place::option("--tunable", n, n))
            };
            let tunables = tunables.iter().map(placed).collect();
            let s = SchedulerRef { name: "bfq".into(), tunables, ..SchedulerRef::default() };
            let s = Placed::new(s, Place::file("e.toml"));
            let registry = Registry::builtin();
            let said =
                |c: Result<Choice<'_>, Diagnostic>| c.map(|c| c.label).map_err(|d| d.to_string());
            (
                said(simulated(&s, &kernel, false, registry)),
                said(live(&s, &kernel, &offered, registry)),
            )
        };
        for order in [[0, 1], [1, 0]] {
            let both = [("slice_idle", 0), ("slice_idle_us", 8000)];
            let (simulated, live) = of(&order.map(|i| both[i]));
            for e in [simulated.unwrap_err(), live.unwrap_err()] {
                assert!(e.contains("slice_idle=0 and slice_idle_us=8000"), "{e}");
            }
        }
        let (simulated, live) = of(&[("slice_idle_us", 8000), ("low_latency", 0)]);
        assert!(simulated.is_ok() && live.is_ok());
    }
}
