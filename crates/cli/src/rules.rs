//! `iosched rules`.

use std::collections::BTreeMap;
use std::path::Path;

use iosched_block::KernelProfile;
use iosched_policy::{
    Class, Judgement, Machine, Outcome as End, Policy, Verdict, builtin_classes, classes_from_toml,
    judge,
};
use iosched_results::answer::wrap;
use iosched_results::render::printable;
use iosched_schedulers::{KernelVersion, registry};
use serde_json::json;

use crate::args::{Format, RulesArgs};
use crate::fail::{Failure, Outcome};
use crate::files::{self, print, print_json};
use crate::tables::{columns, prose};

pub(crate) fn rules(args: &RulesArgs) -> Outcome {
    let kernel = kernel(args.kernel.as_deref())?;
    for name in &args.schedulers {
        if name != "none" {
            registry::family(name).map_err(Failure::input)?;
        }
    }
    let machine = Machine { kernel, schedulers: args.schedulers.clone() };
    let classes = match &args.device_classes {
        None => builtin_classes(),
        Some(path) => {
            let name = path.display().to_string();
            classes_from_toml(&name, &files::required(&name)?).map_err(Failure::input)?
        }
    };
    let texts = texts(&args.files)?;
    let policy = Policy::read(&texts).map_err(Failure::input)?;
    let judgement = judge(&policy, &machine, &classes);
    for problem in &policy.problems {
        eprintln!("warning: {problem}");
    }
    if args.format == Format::Json {
        let problems: Vec<String> = policy.problems.iter().map(ToString::to_string).collect();
        return print_json(&json!({
            "kernel": kernel.to_string(),
            "classes": judgement.classes,
            "flags": judgement.flags,
            "problems": problems,
        }));
    }
    print(&text(&args.files, kernel, &classes, &judgement))
}

fn kernel(name: Option<&str>) -> Outcome<KernelVersion> {
    let newest = KernelProfile::preferred().next().map(|p| p.version);
    let name = name.or(newest.as_deref()).unwrap_or_default();
    KernelVersion::parse(name).ok_or_else(|| {
        Failure::with_help(
            format!("\"{}\" is no version of Linux", printable(name)),
            "for instance --kernel 6.12",
        )
    })
}

/// Paths and texts of files; of a folder those in it that can set schedulers.
fn texts(paths: &[String]) -> Outcome<Vec<(String, String)>> {
    let mut out = Vec::new();
    for path in paths {
        if !Path::new(path).is_dir() {
            out.push((path.clone(), files::required(path)?));
            continue;
        }
        let entries =
            std::fs::read_dir(path).map_err(|e| Failure::input(format!("{path}: {e}")))?;
        let mut names: Vec<String> = entries
            .filter_map(|e| Some(e.ok()?.path().display().to_string()))
            .filter(|p| p.ends_with(".rules"))
            .collect();
        names.sort();
        if names.is_empty() {
            return Err(Failure::input(format!(
                "{path}: there are no .rules files in this folder"
            )));
        }
        for name in names {
            // A link to /dev/null masks the file of its name.
            let target = std::fs::canonicalize(&name).unwrap_or_default();
            let text = match target == Path::new("/dev/null") {
                true => String::new(),
                false => files::required(&name)?,
            };
            out.push((name, text));
        }
    }
    Ok(out)
}

fn named(scheduler: Option<&String>) -> String {
    scheduler.cloned().unwrap_or_else(|| "no scheduler".into())
}

/// `bfq`, or `mq-deadline or bfq`.
fn ends(all: &[End]) -> String {
    let mut names: Vec<String> = Vec::new();
    for o in all {
        let name = named(o.scheduler.as_ref());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" or ")
}

/// Classes by default, boot, later and the line that decided, in the order of the first of each.
type Row<'a> = ((String, String, String, String), Vec<&'a Verdict>);

fn grouped(j: &Judgement) -> (Vec<Row<'_>>, BTreeMap<String, Vec<&str>>) {
    let (mut rows, mut left): (Vec<Row<'_>>, BTreeMap<String, Vec<&str>>) = Default::default();
    for v in &j.classes {
        let touched = v.boot.iter().chain(&v.later).any(|o| o.by.is_some());
        let default = named(v.default.as_ref());
        if !touched {
            left.entry(default).or_default().push(&v.class);
            continue;
        }
        let by = v.boot.iter().chain(&v.later).find_map(|o| o.by.clone()).unwrap_or_default();
        let key = (default, ends(&v.boot), ends(&v.later), by);
        match rows.iter_mut().find(|r| r.0 == key) {
            Some(row) => row.1.push(v),
            None => rows.push((key, vec![v])),
        }
    }
    (rows, left)
}

fn text(files: &[String], kernel: KernelVersion, classes: &[Class], j: &Judgement) -> String {
    let width = prose(columns());
    let changed = |v: &&Verdict| v.boot.first().map(|o| &o.scheduler) != Some(&v.default);
    let count = j.classes.iter().filter(changed).count();
    let names =
        files.iter().map(|f| f.rsplit('/').next().unwrap_or(f)).collect::<Vec<_>>().join(", ");
    let head = format!(
        "{}: {count} of {} classes of devices get another scheduler than Linux {kernel} gives them.",
        printable(&names),
        classes.len()
    );
    let mut out = wrap("", 0, &head, width);
    let (rows, left) = grouped(j);
    for ((default, boot, later, by), members) in &rows {
        let change = match boot == later {
            true => String::new(),
            false => format!("; {later} after the first change event"),
        };
        let from =
            if boot == default { "as the kernel".into() } else { format!("kernel: {default}") };
        out.push_str(&format!("\n{boot} ({from}{change}) by {}\n", printable(by)));
        let list: Vec<String> =
            members.iter().map(|v| format!("{} ({})", v.class, v.kernel)).collect();
        out.push_str(&wrap("  ", 2, &list.join(", "), width));
        for o in members.iter().take(1).flat_map(|v| &v.boot).filter(|o| !o.when.is_empty()) {
            let when = format!("{} if {}", named(o.scheduler.as_ref()), o.when.join(" and "));
            out.push_str(&wrap("  ", 4, &printable(&when), width));
        }
    }
    if !left.is_empty() {
        out.push_str("\nleft as the kernel has them\n");
        for (default, members) in &left {
            out.push_str(&wrap("  ", 4, &format!("{default}: {}", members.join(", ")), width));
        }
    }
    if !j.flags.is_empty() {
        out.push_str("\nremarks\n");
    }
    for f in &j.flags {
        let place = if f.place.is_empty() { String::new() } else { format!("{}: ", f.place) };
        let about = match f.classes.len() {
            0 => String::new(),
            1..=6 => format!(" ({})", f.classes.join(", ")),
            n => format!(" ({} and {} more)", f.classes[..4].join(", "), n - 4),
        };
        out.push_str(&wrap("  ", 4, &printable(&format!("{place}{}{about}", f.text)), width));
    }
    out
}
