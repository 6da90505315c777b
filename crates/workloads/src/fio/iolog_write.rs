//! Writing what simulated jobs did as fio I/O logs of version 3 (`write_iolog`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use iosched_types::{Nanos, Op};

use super::process::{Job, Logged};

/// Jobs that share a log are in one file, in order of time.
#[derive(Default)]
struct Shared<'a> {
    files: Vec<String>,
    ios: Vec<(&'a Logged, String)>,
    end: Nanos,
}

/// The logs of some processes: names as `write_iolog` gives them, and texts.
#[must_use]
pub fn texts<'a>(processes: impl Iterator<Item = &'a Job>) -> Vec<(String, String)> {
    let mut logs: BTreeMap<&str, Shared<'a>> = BTreeMap::new();
    for p in processes {
        let (Some(name), Some(ios)) = (&p.spec().write_iolog, p.log()) else { continue };
        let names = p.spec().file_names();
        let log = logs.entry(name).or_default();
        for n in &names {
            if !log.files.contains(n) {
                log.files.push(n.clone());
            }
        }
        let mut last = 0;
        for io in ios {
            if io.op != Op::Flush {
                let holds =
                    |f: &&super::layout::Extent| (f.origin..f.start + f.len).contains(&io.offset);
                last = p.files().iter().position(|f| holds(&f)).unwrap_or(last);
            }
            let origin = p.files().get(last).map_or(0, |f| f.origin);
            let name = names.get(last).map_or("", String::as_str);
            log.ios.push((io, line(name, io, origin)));
        }
        log.end = log.end.max(p.stats().ended);
    }
    logs.into_iter().map(|(name, log)| (name.to_string(), text(log))).collect()
}

fn line(file: &str, io: &Logged, origin: u64) -> String {
    let action = match io.op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Discard => "trim",
        Op::Flush if io.data_only => return format!("{file} datasync 0 0"),
        Op::Flush => return format!("{file} sync 0 0"),
    };
    format!("{file} {action} {} {}", io.offset.saturating_sub(origin), io.len)
}

fn text(mut log: Shared<'_>) -> String {
    // Stable: what one job did at one time stays in its order.
    log.ios.sort_by_key(|(io, _)| io.at);
    let mut out = String::from("fio version 3 iolog\n");
    let each = |out: &mut String, at: Nanos, what: &str| {
        for f in &log.files {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{} {f} {what}", at / 1_000);
        }
    };
    each(&mut out, 0, "add");
    each(&mut out, 0, "open");
    for (io, line) in &log.ios {
        let _ = writeln!(out, "{} {line}", io.at / 1_000);
    }
    let end = log.ios.last().map_or(log.end, |(io, _)| log.end.max(io.at));
    each(&mut out, end, "close");
    out
}
