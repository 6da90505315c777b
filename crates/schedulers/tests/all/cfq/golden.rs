//! One golden file per generation: `tests/golden/cfq@*.md`. Each section plays the lines of its `machine`
//! block; the `served` block that follows must say what came out, and why. `BLESS=1 cargo test`
//! rewrites the latter.
//!
//! | line | meaning |
//! |---|---|
//! | `scheduler NAME [ssd] [depth=N] [service=MS] [NAME=VALUE …]` | first line |
//! | `at MS PID REQUEST …` | `R1000`, `W100+16`, `R100*6` (six in a row), `R100:rt/0`, `S100` (synchronous write) |
//! | `exit MS PID` | the process ends |
//! | `until MS` | how long |
#![allow(clippy::disallowed_methods, reason = "a test reads the files it checks")]

use std::fmt::Write;
use std::path::Path;

use iosched_schedulers::QueueFacts;
use iosched_types::{Flags, IoPrio, Op, Request};

use super::driver::Machine;

const IN: &str = "```machine\n";
const OUT: &str = "```served\n";
const END: &str = "```\n";

fn build(line: &str) -> Option<Machine> {
    let mut words = line.strip_prefix("scheduler ")?.split_whitespace();
    let name = words.next()?;
    let (mut queue, mut set) = (QueueFacts::default(), Vec::new());
    let (mut depth, mut service) = (1, 5.0);
    for word in words {
        match word.split_once('=') {
            None => queue.rotational = word != "ssd",
            Some(("depth", n)) => depth = n.parse().ok()?,
            Some(("service", n)) => service = n.parse().ok()?,
            Some((n, v)) => set.push((n, v.parse().ok()?)),
        }
    }
    Some(Machine::on(name, &set, queue).device(depth, service))
}

fn requests(m: &mut Machine, at: f64, pid: u32, word: &str) -> Option<()> {
    let (word, prio) = word.split_once(':').map_or((word, None), |(w, p)| (w, Some(p)));
    let (word, n) = word.split_once('*').unwrap_or((word, "1"));
    let (place, len) = word[1..].split_once('+').unwrap_or((&word[1..], "8"));
    let (sector, len): (u64, u32) = (place.parse().ok()?, len.parse().ok()?);
    for k in 0..n.parse::<u32>().ok()? {
        let op = if word.starts_with('R') { Op::Read } else { Op::Write };
        let mut r = Request::new(op, sector + u64::from(k * len), len);
        r.task = pid;
        if word.starts_with('S') {
            r.flags = Flags::SYNC;
        }
        if let Some(p) = prio {
            r.prio = IoPrio::parse(p)?;
        }
        m.submit(at, r);
    }
    Some(())
}

fn play(script: &str) -> Option<String> {
    let mut lines = script.lines();
    let mut m = build(lines.next()?)?;
    let mut until = 10_000.0;
    for line in lines {
        let mut words = line.split_whitespace();
        match words.next()? {
            "at" => {
                let at = words.next()?.parse().ok()?;
                let pid = words.next()?.parse().ok()?;
                words.try_for_each(|w| requests(&mut m, at, pid, w))?;
            }
            "exit" => m.exit(words.next()?.parse().ok()?, words.next()?.parse().ok()?),
            "until" => until = words.next()?.parse().ok()?,
            _ => return None,
        }
    }
    m.run(until);
    let mut out = String::new();
    for s in &m.sent {
        let _ = write!(out, "{} {} pid {}", s.at as f64 / 1e6, s.name, s.task);
        let _ = writeln!(out, ": {}", s.why.join(" | "));
    }
    let counters: Vec<String> =
        m.b.scheduler
            .counters()
            .iter()
            .filter(|c| c.1 > 0)
            .map(|(n, v)| format!("{n} {v}"))
            .collect();
    let _ = writeln!(out, "{}", counters.join(", "));
    Some(out)
}

fn replay(page: &str) -> Option<String> {
    let (mut done, mut rest) = (String::new(), page);
    while let Some((before, after)) = rest.split_once(IN) {
        let (script, after) = after.split_once(END)?;
        let (between, after) = after.split_once(OUT)?;
        let (_, after) = after.split_once(END)?;
        done += &format!("{before}{IN}{script}{END}{between}{OUT}{}{END}", play(script)?);
        rest = after;
    }
    Some(done + rest)
}

#[test]
fn golden_files_say_what_happens() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for generation in ["2.6.18", "3.12", "4.12"] {
        let path = dir.join(format!("cfq@{generation}.md"));
        let page = std::fs::read_to_string(&path).unwrap();
        let wanted = replay(&page).unwrap_or_else(|| panic!("cannot play {}", path.display()));
        assert!(wanted.contains(OUT), "{} has no scenario", path.display());
        iosched_testing::golden(&path, &wanted);
    }
}
