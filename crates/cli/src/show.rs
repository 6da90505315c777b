//! `iosched show`.

use iosched_block::{KernelProfile, queue_settings};
use iosched_devices::DeviceSpec;
use iosched_devices::datasheet::Sheet;
use iosched_devices::describe::Description;
use iosched_schedulers::{Descriptor, KernelVersion, Tunable, registry};
use iosched_types::nearest::did_you_mean;
use iosched_workloads::fio::{Effect, describe, find_option, nearest_option};
use iosched_workloads::programs::Descriptor as Program;
use serde_json::json;

use crate::args::{ShowArgs, ShowKind};
use crate::choose;
use crate::fail::{Failure, Outcome};
use crate::files::{note, print, print_json, required};
use crate::tables::{columns, entry, print_fitted, prose};
use crate::{jobs, list, situations};

pub(crate) fn show(args: &ShowArgs) -> Outcome {
    if let Some(file) = &args.from_datasheet {
        return datasheet(args, file);
    }
    // Clap asks for a name where there is no data sheet.
    let name = args.name.as_deref().unwrap_or_default();
    match args.what {
        ShowKind::Scheduler => scheduler(args, name),
        ShowKind::Device => {
            let spec = choose::device(name)?;
            let d = Description::of(&spec)
                .map_err(|e| Failure::input(format!("device \"{}\": {e}", spec.name)))?;
            if args.json {
                print_json(&d)
            } else {
                print_fitted(&format!("{d:0$}", prose(columns())))
            }
        }
        ShowKind::Kernel => {
            let k = KernelProfile::find(name).map_err(Failure::input)?;
            if args.json {
                return print_json(&k);
            }
            // The profile's own file is the clearest text there is.
            let text = toml::to_string(&k).map_err(Failure::input)?;
            print_fitted(&text)
        }
        ShowKind::Workload => {
            if let Ok(program) = Program::find(name) {
                return match args.json {
                    true => print_json(&list::program(program)),
                    false => print(&list::program_text(program)),
                };
            }
            if let Some(situation) = situations::find(name) {
                let text = situation.text;
                return match args.json {
                    true => print_json(&json!({"name": name, "experiment": text})),
                    false => print(text),
                };
            }
            let text = jobs::find(name)
                .map_err(|help| Failure::with_help(format!("unknown workload \"{name}\""), help))?;
            if args.json { print_json(&json!({"name": name, "job": text})) } else { print(text) }
        }
        ShowKind::Option => option(args, name),
    }
}

/// The device file that follows from a data sheet.
fn datasheet(args: &ShowArgs, file: &str) -> Outcome {
    if args.what != ShowKind::Device {
        let help = "iosched show device --from-datasheet FILE";
        return Err(Failure::with_help("a data sheet is of a device", help));
    }
    let sheet = Sheet::from_toml(file, &required(file)?)?;
    let (text, agreement) = sheet
        .device_file()
        .map_err(|why| Failure::input(format!("{file}: no device has these figures: {why}")))?;
    if let Some(hint) = sheet.hint() {
        note(&format!("note: {hint}"));
    }
    for a in agreement.iter().filter(|a| !a.holds()) {
        let error = a.error() * 100.0;
        note(&format!("warning: {}: the model is {error:+.0} % off the sheet", a.key));
    }
    if !args.json {
        return print(&text);
    }
    let spec = DeviceSpec::from_toml(file, &text)?;
    print_json(&Description::of(&spec).map_err(Failure::input)?)
}

fn scheduler(args: &ShowArgs, name: &str) -> Outcome {
    let family = name.split('@').next().unwrap_or_default();
    let d = match name.contains('@') {
        // With a version the kernel does not matter.
        true => registry::resolve(name, KernelVersion(0, 0, 0)).map_err(Failure::input)?.0,
        false => registry::family(family).map_err(Failure::input)?,
    };
    if args.json {
        return print_json(&list::scheduler(d));
    }
    let mut out = entry(d.name, d.name.chars().count() + 2, d.summary);
    if !d.aliases.is_empty() {
        out.push_str(&format!("also called: {}\n", d.aliases.join(", ")));
    }
    out.push_str("\nGenerations\n");
    for g in d.generations {
        let layer = list::path_word(d.path_of(g));
        let text = format!("Linux {} ({layer}): {}", g.range(), d.told(g));
        out.push_str(&entry(&format!("  {}@{}", d.name, g.name), 24, &text));
    }
    if d.tunables.is_empty() {
        out.push_str("\nIt has no tunables.\n");
        return print_fitted(&out);
    }
    out.push_str("\nTunables (sysfs name, default)\n");
    for t in d.tunables {
        out.push_str(&tunable(d, t));
    }
    print_fitted(&out)
}

fn tunable(d: &Descriptor, t: &Tunable) -> String {
    let has = |g: &&iosched_schedulers::Generation| t.generations.contains(&g.index);
    let of: Vec<&str> = d.generations.iter().filter(has).map(|g| g.name).collect();
    let of = if of.len() == d.generations.len() {
        String::new()
    } else {
        format!(" Generations: {}.", of.join(", "))
    };
    let (min, max) = (t.shown(t.min), t.shown(t.max));
    let text = format!("{} {} ({min} to {max}). {}{of}", t.default_text, t.unit, t.help);
    entry(&format!("  {}", t.name), 24, &text)
}

/// A fio option, a queue attribute, or a tunable of any scheduler.
fn option(args: &ShowArgs, name: &str) -> Outcome {
    let mut out = String::new();
    if let Some(o) = find_option(name) {
        let mut names = vec![o.name];
        names.extend(o.aliases);
        out.push_str(&entry("fio option", 16, &names.join(", ")));
        out.push_str(&entry("  value", 16, &describe(o.kind)));
        out.push_str(&entry("  meaning", 16, o.help));
        let effect = match o.effect {
            Effect::Simulated => "yes".to_string(),
            Effect::NoEffect(why) => format!("accepted without effect on timing: {why}"),
            Effect::Unmodelled(instead) => {
                format!("accepted with a warning, and not modelled: {instead}")
            }
            Effect::Refused { reason, harmless: [] } => {
                format!("refused: {reason}")
            }
            Effect::Refused { reason, harmless } => {
                format!("refused unless it is {}: {reason}", harmless.join(" or "))
            }
        };
        out.push_str(&entry("  simulated", 16, &effect));
    }
    if let Some(s) = queue_settings().iter().find(|s| s.name == name) {
        out.push_str(&entry("queue attribute", 16, s.name));
        out.push_str(&entry("  value", 16, &format!("{} to {} {}", s.min, s.max, s.unit)));
        out.push_str(&entry("  meaning", 16, s.help));
    }
    for d in registry::SCHEDULERS {
        for t in d.tunables.iter().filter(|t| t.name == name) {
            out.push_str(&format!("tunable of {}\n{}", d.name, tunable(d, t)));
        }
    }
    if out.is_empty() {
        let others = queue_settings().iter().map(|s| s.name);
        let tunables = registry::SCHEDULERS.iter().flat_map(|d| d.tunables).map(|t| t.name);
        let mut help = nearest_option(name);
        if help.is_empty() {
            help = did_you_mean(name, others.chain(tunables));
        }
        return Err(Failure::with_help(format!("unknown option \"{name}\""), help));
    }
    if args.json { print_json(&json!({"name": name, "text": out})) } else { print_fitted(&out) }
}
