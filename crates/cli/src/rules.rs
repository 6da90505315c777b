//! `iosched rules`.

mod suite;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use iosched_block::KernelProfile;
use iosched_experiment::Place;
use iosched_experiment::until::{TIME_HELP, parse_time};
use iosched_policy::{
    Class, Judgement, Machine, Outcome as End, Policy, SHIPPED, Verdict, builtin_classes,
    classes_from_toml, judge, shipped,
};
use iosched_results::answer::wrap;
use iosched_results::render::printable;
use iosched_schedulers::{KernelVersion, registry};
use iosched_types::Nanos;
use iosched_types::nearest::did_you_mean;
use serde_json::{Value, json};

use crate::args::{Format, RulesArgs};
use crate::fail::{Failure, Outcome, code};
use crate::files::{self, print, print_json};
use crate::tables::{columns, print_fitted, prose};
use suite::{Cell, Suite};

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
    let (judgement, problems) = judged(&args.files, &machine, &classes)?;
    let mut others = Vec::new();
    for name in &args.against {
        others.push((short(name), judged(std::slice::from_ref(name), &machine, &classes)?.0));
    }
    let names = args.files.iter().map(|f| short(f)).collect::<Vec<_>>().join(", ");
    if !args.situations.is_empty() {
        others.insert(0, (names, judgement));
        return measured(args, kernel, &others, &problems);
    }
    if args.format == Format::Json {
        return print_json(&as_json(kernel, &judgement, &problems, &others));
    }
    if others.is_empty() {
        return print(&text(&names, kernel, &judgement));
    }
    others.insert(0, (names, judgement));
    print_fitted(&side_by_side(kernel, &others))
}

fn as_json(
    kernel: KernelVersion,
    judgement: &Judgement,
    problems: &[String],
    others: &[(String, Judgement)],
) -> Value {
    let against: Vec<Value> = others
        .iter()
        .map(|(name, j)| json!({"policy": name, "classes": j.classes, "flags": j.flags}))
        .collect();
    json!({
        "kernel": kernel.to_string(),
        "classes": judgement.classes,
        "flags": judgement.flags,
        "problems": problems,
        "against": against,
    })
}

/// Simulates situations for policies, the first of which is judged.
fn measured(
    args: &RulesArgs,
    kernel: KernelVersion,
    all: &[(String, Judgement)],
    problems: &[String],
) -> Outcome {
    let (threshold, budget) = (threshold(args)?, budget(args)?);
    let profile = KernelProfile::find(&kernel.to_string()).map_err(Failure::input)?;
    let suite = Suite {
        situations: suite::named(&args.situations)?,
        budget,
        threads: args.jobs,
        kernel: &profile.version,
        schedulers: &args.schedulers,
    };
    let devices: BTreeSet<&str> =
        all.iter().flat_map(|(_, j)| &j.classes).filter_map(|c| c.device.as_deref()).collect();
    let measured = suite.run(&devices)?;
    let told: Vec<(String, Vec<Cell>)> =
        all.iter().map(|(name, j)| (name.clone(), suite::cells(j, &measured))).collect();
    let Some((name, cells)) = told.first() else { return Ok(()) };
    if cells.is_empty() {
        return Err(Failure::with_help(
            format!("{name}: no class with a model is in these situations"),
            "`device = \"NAME\"` of a class names its model; `iosched show workload SITUATION` has the models of a situation",
        ));
    }
    let fails = cells.iter().filter(|c| c.fails(threshold)).count();
    if args.format == Format::Json {
        let mut value = as_json(kernel, &all[0].1, problems, &all[1..]);
        value["situations"] = json!(
            told.iter()
                .map(|(name, cells)| json!({"policy": name, "cells": cells}))
                .collect::<Vec<_>>()
        );
        value["worse"] = json!(fails);
        print_json(&value)?;
    } else {
        print_fitted(&in_words(&all[0].1, &told, &profile.version, (fails, threshold)))?;
    }
    match fails {
        0 => Ok(()),
        n => {
            let message = format!(
                "{name} is worse than the kernel's default by over {} % in {}",
                threshold * 100.0,
                told::cases(n)
            );
            Err(Failure::new(code::REGRESSION, message))
        }
    }
}

/// By how much a class must be worse for the exit code, as a share.
fn threshold(args: &RulesArgs) -> Outcome<f64> {
    let percent = args.threshold.trim().trim_end_matches('%').parse::<f64>();
    let percent = percent.ok().filter(|p| (0.0..=10_000.0).contains(p)).ok_or_else(|| {
        let place = Place::option("--threshold", &args.threshold, &args.threshold);
        place
            .error(format!("\"{}\" is no percentage", args.threshold))
            .with_help("0 to 10000, such as 10 or 10%")
    })?;
    Ok(percent / 100.0)
}

fn budget(args: &RulesArgs) -> Outcome<Nanos> {
    let time = parse_time(&args.budget).ok_or_else(|| {
        let place = Place::option("--budget", &args.budget, &args.budget);
        place.error(format!("\"{}\" is no time", args.budget)).with_help(TIME_HELP)
    })?;
    Ok(time)
}

/// The first policy in all situations, the others beside it, and what was left out.
fn in_words(
    judgement: &Judgement,
    told: &[(String, Vec<Cell>)],
    kernel: &str,
    (fails, threshold): (usize, f64),
) -> String {
    let Some((name, cells)) = told.first() else { return String::new() };
    let width = prose(columns());
    let mut text = told::policy(name, kernel, cells, width);
    if told.len() > 1 {
        text.push('\n');
        text.push_str(&told::beside(told, width));
    }
    text.push('\n');
    if fails == 0 && told::worst_loss(cells).is_some() {
        let within = format!("None is worse by over {} %, beyond chance.", threshold * 100.0);
        text.push_str(&wrap("", 2, &within, width));
    }
    let without: Vec<&str> = judgement
        .classes
        .iter()
        .filter(|c| c.device.is_none() && c.boot.iter().any(|o| o.by.is_some()))
        .map(|c| c.class.as_str())
        .collect();
    if !without.is_empty() {
        let left = format!("Left out, without a model: {}.", without.join(", "));
        text.push_str(&wrap("", 2, &left, width));
    }
    let limits = "Only the scheduler of a policy is simulated, not what else it sets (queue/read_ahead_kb …), with a model of one \
                  drive for each class.";
    text.push_str(&wrap("", 2, limits, width));
    text
}

/// A policy on all classes, and what of it is ignored, which is said, too.
fn judged(
    files: &[String],
    machine: &Machine,
    classes: &[Class],
) -> Outcome<(Judgement, Vec<String>)> {
    let policy = Policy::read(&texts(files)?).map_err(Failure::input)?;
    let problems: Vec<String> = policy.problems.iter().map(ToString::to_string).collect();
    for problem in &problems {
        eprintln!("warning: {problem}");
    }
    Ok((judge(&policy, machine, classes), problems))
}

/// The name of a file without its folder.
fn short(path: &str) -> String {
    printable(path.rsplit('/').find(|p| !p.is_empty()).unwrap_or(path))
}

/// A row for each class that policies treat differently.
fn side_by_side(kernel: KernelVersion, all: &[(String, Judgement)]) -> String {
    let head = ["class".into(), "kernel".into()].into_iter().chain(all.iter().map(|a| a.0.clone()));
    let mut rows: Vec<Vec<String>> = vec![head.collect()];
    let mut same = Vec::new();
    let classes = all.first().map_or(&[][..], |a| &a.1.classes);
    for (i, v) in classes.iter().enumerate() {
        let of =
            |a: &(String, Judgement)| a.1.classes.get(i).map_or(String::new(), |v| ends(&v.boot));
        let cells: Vec<String> = all.iter().map(of).collect();
        match cells.windows(2).all(|w| w[0] == w[1]) {
            true => same.push(format!("{} ({})", v.class, cells[0])),
            false => {
                let lead = [v.class.clone(), named(v.default.as_ref())];
                rows.push(lead.into_iter().chain(cells).collect());
            }
        }
    }
    let mut out = format!(
        "At boot on Linux {kernel}: {} of {} classes differ.\n\n",
        rows.len() - 1,
        classes.len()
    );
    if rows.len() > 1 {
        out.push_str(&columns_of(&rows));
    }
    if !same.is_empty() {
        out.push('\n');
        out.push_str(&wrap("", 2, &format!("the same: {}", same.join(", ")), prose(columns())));
    }
    out
}

/// Rows in columns as wide as their longest cell.
fn columns_of(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |c: usize| rows.iter().filter_map(|r| Some(r.get(c)?.chars().count())).max();
    let widths: Vec<usize> = (0..count).map(|c| wide(c).unwrap_or(0)).collect();
    let mut out = String::new();
    for r in rows {
        let cells = r.iter().zip(&widths).map(|(c, w)| format!("{c:w$}")).collect::<Vec<_>>();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
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
        if let Some((_, name, text)) = shipped(path).filter(|_| !Path::new(path).exists()) {
            out.push(((*name).into(), (*text).into()));
            continue;
        }
        if !Path::new(path).exists() && !path.contains(['/', '.']) {
            let help = did_you_mean(path, SHIPPED.iter().map(|p| p.0));
            let known = SHIPPED.iter().map(|p| p.0).collect::<Vec<_>>().join(", ");
            let help = if help.is_empty() { format!("known policies are {known}") } else { help };
            return Err(Failure::with_help(
                format!("there is no file and no policy \"{}\"", printable(path)),
                help,
            ));
        }
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
                // A comment in another encoding is no reason to read nothing.
                false => match std::fs::read(&name) {
                    Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                    Err(e) => {
                        eprintln!("warning: {name} is left out: {e}");
                        continue;
                    }
                },
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

fn text(names: &str, kernel: KernelVersion, j: &Judgement) -> String {
    let width = prose(columns());
    let changed = |v: &&Verdict| v.boot.first().map(|o| &o.scheduler) != Some(&v.default);
    let count = j.classes.iter().filter(changed).count();
    let depends = |v: &&Verdict| v.boot.iter().any(|o| o.scheduler != v.default) && !changed(v);
    let may = match j.classes.iter().filter(depends).count() {
        0 => String::new(),
        n => format!(", {n} may, which depends"),
    };
    let head = format!(
        "{names}: {count} of {} classes of devices get another scheduler than Linux {kernel} gives them{may}.",
        j.classes.len()
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
