//! Operations of a program as their system calls: a picture, and text for the terminal.

use iosched_syscalls::OpenFlags;
use iosched_syscalls::operations::{Folded, Group, Lane, Operation};
use iosched_types::units::{show_bytes, show_nanos};
use serde_json::{Value, json};

use crate::svg::Svg;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 12.0;
const RIGHT: f64 = WIDTH - LEFT;
/// Height of the box of a call, and of a row of boxes.
const BOX: f64 = 46.0;
const ROW: f64 = BOX + 10.0;
/// Calls of an operation's own process that are drawn or printed, and of others; what is behind them is counted.
const MOST: [usize; 2] = [24, 8];
/// Other processes that are drawn or printed.
const OTHERS: usize = 4;
/// Letters of a file's name.
const NAME: usize = 24;

const STYLE: &str = "text{font:11px sans-serif;fill:#222}.what text{font-weight:bold;font-size:13px}\
    .small text{fill:#555;font-size:10px}rect{stroke:none}path.round{stroke:#556;stroke-width:2}\
    .read{fill:#bcd9f2}.write{fill:#fbd5a5}.sync{fill:#f2a3a3}.name{fill:#e1e4e8}.cpu{fill:#bfe3c0}\
    .wait{fill:#e4d3f0}.rest{fill:#f4f5f7}";

/// Width of a text in the size of the boxes, about.
fn width(text: &str) -> f64 {
    let of = |c: char| match c {
        'A'..='Z' => 7.6,
        '0'..='9' | '_' | '×' | '…' => 6.4,
        _ => 6.0,
    };
    text.chars().map(of).sum()
}

/// What a call is about, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Read,
    Write,
    Sync,
    Name,
    Cpu,
    Wait,
}

impl Class {
    const ALL: [Class; 6] =
        [Class::Read, Class::Write, Class::Sync, Class::Name, Class::Cpu, Class::Wait];

    fn of(call: &Folded) -> Class {
        let synced = call.flags.has(OpenFlags::SYNC) || call.flags.has(OpenFlags::DSYNC);
        match call.call {
            "write" | "pwrite" if synced => Class::Sync,
            "write" | "pwrite" | "store" | "copy_file_range" | "ftruncate" | "fallocate" => {
                Class::Write
            }
            "read" | "pread" | "load" | "getdents" => Class::Read,
            "fsync" | "fdatasync" | "sync_file_range" | "syncfs" | "sync" => Class::Sync,
            "compute" | "memcpy" => Class::Cpu,
            "sleep" | "wait" | "join" | "barrier" | "reap" => Class::Wait,
            _ => Class::Name,
        }
    }

    /// Class of the style, and what the legend says.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Class::Read => ("read", "reads"),
            Class::Write => ("write", "writes into memory"),
            Class::Sync => ("sync", "waits until data are durable"),
            Class::Name => ("name", "names, descriptors, others"),
            Class::Cpu => ("cpu", "computes"),
            Class::Wait => ("wait", "waits for something else"),
        }
    }
}

/// A call as it is drawn and printed.
struct Shown<'a> {
    call: &'a Folded,
    /// How often, where it is folded on its own.
    times: usize,
    /// The calls that come in turns begin and end with it: how often.
    begins: Option<usize>,
    in_round: bool,
}

/// The calls that there is room for, and the groups behind them.
fn shown(groups: &[Group], most: usize) -> (Vec<Shown<'_>>, &[Group]) {
    let mut all = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        let in_round = group.calls.len() > 1;
        if all.len() + group.calls.len() > most && i > 0 {
            return (all, &groups[i..]);
        }
        for (n, call) in group.calls.iter().enumerate() {
            let begins = (in_round && n == 0).then_some(group.times);
            all.push(Shown {
                call,
                times: if in_round { 1 } else { group.times },
                begins,
                in_round,
            });
        }
    }
    (all, &[])
}

fn file(call: &Folded) -> String {
    match &call.name {
        Some(name) => {
            // A name in a log may hold anything.
            let last = name.rsplit('/').next().unwrap_or_default();
            let last = last.replace(char::is_control, "\u{fffd}");
            match last.chars().count() {
                0..=NAME => last,
                _ => last.chars().take(NAME - 1).chain(['…']).collect(),
            }
        }
        None if call.files > 1 => format!("{} files", call.files),
        None => String::new(),
    }
}

fn bytes(call: &Folded) -> String {
    match call.len {
        None | Some((0, 0)) => String::new(),
        Some((low, high)) if low == high => show_bytes(low as f64),
        Some((low, high)) => format!("{} to {}", show_bytes(low as f64), show_bytes(high as f64)),
    }
}

/// Name of the call, and what makes it durable or leads it past the page cache.
fn name(shown: &Shown<'_>) -> String {
    let mut text = shown.call.call.to_string();
    let transfers = matches!(shown.call.call, "open" | "read" | "pread" | "write" | "pwrite");
    let flags = [
        (OpenFlags::SYNC, " O_SYNC"),
        (OpenFlags::DSYNC, " O_DSYNC"),
        (OpenFlags::DIRECT, " O_DIRECT"),
    ];
    for (_, word) in flags.iter().filter(|f| transfers && shown.call.flags.has(f.0)) {
        text.push_str(word);
    }
    if shown.times > 1 {
        text.push_str(&format!(" × {}", shown.times));
    }
    text
}

/// Calls behind those that are shown, by name, the most frequent first.
fn behind(groups: &[Group]) -> Option<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for group in groups {
        for call in &group.calls {
            match counts.iter_mut().find(|c| c.0 == call.call) {
                Some(c) => c.1 += group.times,
                None => counts.push((call.call, group.times)),
            }
        }
    }
    let all: usize = counts.iter().map(|c| c.1).sum();
    counts.sort_by_key(|c| std::cmp::Reverse(c.1));
    let list: Vec<String> = counts.iter().take(6).map(|(n, c)| format!("{c} {n}")).collect();
    let more = if counts.len() > 6 { ", …" } else { "" };
    (all > 0).then(|| format!("and {all} more: {}{more}", list.join(", ")))
}

/// What stands above the calls of an operation.
fn heading(operation: &Operation) -> (&str, String) {
    let took = show_nanos(operation.took as f64);
    match operation.of {
        1 => (title(operation), took),
        n => (title(operation), format!("{took}, the median of {n}")),
    }
}

fn title(operation: &Operation) -> &str {
    if operation.what.is_empty() { "the whole program" } else { operation.what }
}

/// The operations as a picture that stands alone: the calls of each in their order, and above them how its time goes to
/// them. `title` says of what.
#[must_use]
pub fn svg(title: &str, operations: &[Operation]) -> String {
    let mut boxes = Vec::new();
    let mut y = 34.0;
    for operation in operations {
        boxes.push(y);
        y += height(operation);
    }
    let mut out = Svg::new(WIDTH as u32, (y + 26.0) as u32, "calls", title);
    out.open("small", &[]);
    out.text((LEFT, 16.0), "start", title);
    out.close();
    for (operation, y) in operations.iter().zip(boxes) {
        draw(&mut out, operation, y);
    }
    legend(&mut out, y);
    out.finish_alone(STYLE)
}

fn legend(out: &mut Svg, y: f64) {
    let mut x = LEFT;
    out.open("small", &[]);
    for (class, text) in Class::ALL.map(Class::words) {
        out.block(class, (x, y), (11.0, 11.0), "");
        out.text((x + 15.0, y + 9.5), "start", text);
        x += 15.0 + 5.2 * text.chars().count() as f64 + 12.0;
    }
    out.close();
}

/// The lines of text in a box, and how wide it is.
fn lines(call: &Shown<'_>) -> ([String; 3], f64) {
    let took = if call.call.took == 0 { String::new() } else { show_nanos(call.call.took as f64) };
    let about = [file(call.call), bytes(call.call)];
    let about: Vec<String> = about.into_iter().filter(|t| !t.is_empty()).collect();
    let lines = [name(call), about.join(", "), took];
    let most = lines.iter().map(|l| width(l)).fold(0.0, f64::max);
    (lines, most + 12.0)
}

/// Where the boxes of an operation lie: left edge and row; and how many rows there are.
fn places(calls: &[Shown<'_>]) -> (Vec<(f64, usize)>, usize) {
    let (mut x, mut row) = (LEFT, 0);
    let mut places = Vec::new();
    for call in calls {
        let chip = call.begins.map_or(0.0, |n| chip(n).1);
        let width = lines(call).1;
        if x + chip + width > RIGHT && x > LEFT {
            (x, row) = (LEFT, row + 1);
        }
        x += chip;
        places.push((x, row));
        x += width + 5.0;
    }
    (places, row + 1)
}

/// What stands before calls that come in turns, and its width.
fn chip(times: usize) -> (String, f64) {
    let text = format!("{times} times:");
    let wide = width(&text) + 6.0;
    (text, wide)
}

/// The lanes that there is room for: what stands above each, which is nothing for an operation's own process, and how
/// many calls it may have; and how many processes are left out.
fn lanes(operation: &Operation) -> (Vec<(String, &Lane, usize)>, usize) {
    let title = |lane: &Lane| match lane.processes {
        1 => "beside it, a process".to_string(),
        n => format!("beside it, {n} processes, each"),
    };
    let own = operation.lanes.iter().take(1).map(|l| (String::new(), l, MOST[0]));
    let others = operation.lanes.iter().skip(1).take(OTHERS).map(|l| (title(l), l, MOST[1]));
    let behind = operation.lanes.iter().skip(1 + OTHERS).map(|l| l.processes).sum();
    (own.chain(others).collect(), behind)
}

fn height(operation: &Operation) -> f64 {
    let (lanes, behind) = lanes(operation);
    let of = |(title, lane, most): &(String, &Lane, usize)| {
        let (calls, rest) = shown(&lane.groups, *most);
        let [title, rest] =
            [!title.is_empty(), !rest.is_empty()].map(|is| if is { 16.0 } else { 0.0 });
        title + places(&calls).1 as f64 * ROW + rest
    };
    let behind = if behind > 0 { 16.0 } else { 0.0 };
    34.0 + lanes.iter().map(of).sum::<f64>() + behind + 12.0
}

fn draw(out: &mut Svg, operation: &Operation, y: f64) {
    let (what, took) = heading(operation);
    out.open("what", &[]);
    out.text((LEFT, y + 10.0), "start", what);
    out.close();
    out.text((RIGHT, y + 10.0), "end", &took);
    strip(out, operation, y + 16.0);
    let (lanes, behind) = lanes(operation);
    let mut top = y + 34.0;
    for (title, lane, most) in lanes {
        if !title.is_empty() {
            out.text((LEFT, top + 8.0), "start", &title);
            top += 16.0;
        }
        top = draw_lane(out, lane, most, top);
    }
    if behind > 0 {
        out.text((LEFT, top + 8.0), "start", &others(behind));
    }
}

fn others(n: usize) -> String {
    format!("and {n} more processes beside it")
}

/// Draws the boxes of a process; returns where the next thing comes.
fn draw_lane(out: &mut Svg, lane: &Lane, most: usize, top: f64) -> f64 {
    let (calls, rest) = shown(&lane.groups, most);
    let (places, rows) = places(&calls);
    for (call, (x, row)) in calls.iter().zip(&places) {
        let (text, width) = lines(call);
        let (class, meaning) = Class::of(call.call).words();
        let y = top + *row as f64 * ROW;
        if let Some(n) = call.begins {
            let (text, wide) = chip(n);
            out.text((x - wide, y + 14.0), "start", &text);
        }
        out.block(class, (*x, y), (width, BOX), meaning);
        for (n, line) in text.iter().enumerate().filter(|l| !l.1.is_empty()) {
            out.text((x + 6.0, y + 14.0 + 13.5 * n as f64), "start", line);
        }
        if call.in_round {
            out.line("round", (*x, y + BOX + 3.0), (x + width + 5.0, y + BOX + 3.0));
        }
    }
    let bottom = top + rows as f64 * ROW;
    let Some(text) = behind(rest) else { return bottom };
    out.text((LEFT, bottom + 8.0), "start", &text);
    bottom + 16.0
}

/// How the time of an operation goes to its own calls: one bar, in their order. Each piece of it has the colour of what
/// takes most of that piece's time.
fn strip(out: &mut Svg, operation: &Operation, y: f64) {
    const PIECES: usize = 368;
    let own = operation.lanes.iter().take(1).flat_map(|l| &l.groups).flat_map(|g| &g.calls);
    let piece = operation.took.max(1) as f64 / PIECES as f64;
    let mut shares = vec![[0.0; Class::ALL.len()]; PIECES];
    let mut end = 0;
    for call in own {
        let class = Class::ALL.iter().position(|c| *c == Class::of(call)).unwrap_or(0);
        let from = end as f64 / piece;
        end += call.took;
        let to = end as f64 / piece;
        for (n, share) in shares.iter_mut().enumerate().skip(from as usize) {
            if n as f64 >= to {
                break;
            }
            share[class] += to.min(n as f64 + 1.0) - from.max(n as f64);
        }
    }
    let most = |share: &[f64; Class::ALL.len()]| {
        // Of equal ones the first.
        let largest = share.iter().enumerate().rev().max_by(|a, b| a.1.total_cmp(b.1))?;
        (*largest.1 > 0.25).then(|| Class::ALL[largest.0].words())
    };
    let width = (RIGHT - LEFT) / PIECES as f64;
    out.block("rest", (LEFT, y), (RIGHT - LEFT, 9.0), "the program itself");
    let mut from = 0;
    for run in shares.chunk_by(|a, b| most(a) == most(b)) {
        if let Some((class, meaning)) = most(&run[0]) {
            let at = (LEFT + width * from as f64, y);
            out.block(class, at, (width * run.len() as f64, 9.0), meaning);
        }
        from += run.len();
    }
}

/// The operations as JSON: all of their calls, times in nanoseconds.
#[must_use]
pub fn json(title: &str, operations: &[Operation]) -> Value {
    let call = |c: &Folded| {
        json!({
            "call": c.call,
            "file": c.name.as_deref(),
            "files": c.files,
            "opened": format!("{:?}", c.flags),
            "bytes": c.len,
            "total_bytes": c.bytes,
            "took_ns": c.took,
        })
    };
    let group = |g: &Group| json!({"times": g.times, "calls": g.calls.iter().map(call).collect::<Vec<_>>()});
    let lane = |l: &Lane| json!({"processes": l.processes, "groups": l.groups.iter().map(group).collect::<Vec<_>>()});
    let operation = |o: &Operation| {
        let lanes: Vec<Value> = o.lanes.iter().map(lane).collect();
        json!({"operation": o.what, "of": o.of, "took_ns": o.took, "lanes": lanes})
    };
    let operations: Vec<Value> = operations.iter().map(operation).collect();
    json!({"title": title, "operations": operations})
}

/// The operations as text, a line a call.
#[must_use]
pub fn text(title: &str, operations: &[Operation]) -> String {
    let mut out = format!("{title}\n");
    for operation in operations {
        let (what, took) = heading(operation);
        out.push_str(&format!("\n{what}: {took}\n"));
        let (lanes, behind) = lanes(operation);
        for (title, lane, most) in lanes {
            if !title.is_empty() {
                out.push_str(&format!("  {title}:\n"));
            }
            text_lane(&mut out, lane, most, if title.is_empty() { 2 } else { 4 });
        }
        if behind > 0 {
            out.push_str(&format!("  {}\n", others(behind)));
        }
    }
    out
}

fn text_lane(out: &mut String, lane: &Lane, most: usize, indent: usize) {
    let (calls, rest) = shown(&lane.groups, most);
    for call in &calls {
        if let Some(n) = call.begins {
            out.push_str(&format!("{:indent$}{n} times:\n", ""));
        }
        let deeper = indent + if call.in_round { 2 } else { 0 };
        let about = format!("{:deeper$}{}", "", name(call));
        let took = show_nanos(call.call.took as f64);
        let line = format!("{about:<28} {:<24} {:<20} {took}", file(call.call), bytes(call.call));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if let Some(text) = behind(rest) {
        out.push_str(&format!("{:indent$}{text}\n", ""));
    }
}

#[cfg(test)]
mod tests;
