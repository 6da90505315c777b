//! `trace_pipe` lines of the block tracepoints.

use iosched_types::units::SEC;
use iosched_types::{Nanos, Op, Sector};

use crate::root::DevNum;

/// Which tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// `block_bio_queue`.
    Queue,
    /// `block_rq_issue`.
    Issue,
    /// `block_rq_complete`.
    Complete,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// Time since boot.
    pub at: Nanos,
    /// Tracepoint.
    pub event: Event,
    /// Device.
    pub dev: DevNum,
    /// Operation. A write with flags that only flush is a flush.
    pub op: Op,
    /// `RWBS` flags as printed.
    pub rwbs: String,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// Process that was running: for `Complete` usually an interrupt's victim.
    pub pid: u32,
    /// I/O priority as printed (`be,0,4`), empty on old kernels.
    pub prio: String,
}

/// Reads one line; `None` for anything but the three events.
#[must_use]
pub fn parse_line(line: &str) -> Option<TraceLine> {
    let (head, rest) = ["block_bio_queue: ", "block_rq_issue: ", "block_rq_complete: "]
        .iter()
        .find_map(|name| line.split_once(name))?;
    let event = if line.contains("block_bio_queue: ") {
        Event::Queue
    } else if line.contains("block_rq_issue: ") {
        Event::Issue
    } else {
        Event::Complete
    };
    // `comm-PID [cpu] flags time: `; the name may contain anything, so read from the right.
    let head = head.trim_end().strip_suffix(':')?;
    let (head, time) = head.rsplit_once(' ')?;
    let (task, _) = head.rsplit_once('[')?;
    let pid = task.trim_end().rsplit_once('-')?.1.parse().ok()?;
    let mut words = rest.split_whitespace();
    let dev = DevNum::parse(&words.next()?.replacen(',', ":", 1))?;
    let rwbs = words.next()?.to_string();
    let tail: Vec<&str> = words.collect();
    let plus = tail.iter().position(|w| *w == "+")?;
    let sector = tail.get(plus.checked_sub(1)?)?.parse().ok()?;
    let sectors = tail.get(plus + 1)?.parse().ok()?;
    let prio = tail.get(plus + 2).filter(|w| w.contains(',')).map_or("", |w| *w).to_string();
    Some(TraceLine {
        at: seconds(time)?,
        event,
        dev,
        op: op(&rwbs),
        rwbs,
        sector,
        sectors,
        pid,
        prio,
    })
}

/// `3923.302202` as ns, without going through floating point.
fn seconds(text: &str) -> Option<Nanos> {
    let (s, frac) = text.split_once('.')?;
    if frac.is_empty() || frac.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - frac.len() as u32);
    let (s, frac): (u64, u64) = (s.trim().parse().ok()?, frac.parse().ok()?);
    s.checked_mul(SEC)?.checked_add(frac.checked_mul(scale)?)
}

fn op(rwbs: &str) -> Op {
    let bare = rwbs.strip_prefix('F').unwrap_or(rwbs);
    match bare.chars().next() {
        Some('R') => Op::Read,
        Some('D') => Op::Discard,
        Some('W') => Op::Write,
        _ if rwbs.starts_with('F') => Op::Flush,
        _ => Op::Read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_real_lines() {
        let issue = "             fio-30496   [001] .....  3923.302239: block_rq_issue: 7,3 WS 4096 () \
                     1437200 + 8 be,0,4 [fio]";
        let t = parse_line(issue).unwrap();
        assert_eq!((t.event, t.op, t.pid), (Event::Issue, Op::Write, 30_496));
        assert_eq!((t.sector, t.sectors, t.at), (1_437_200, 8, 3_923_302_239_000));
        assert_eq!((t.dev.to_string().as_str(), t.prio.as_str()), ("7:3", "be,0,4"));
        let queue = "           <...>-7 [000] ..... 1.000001: block_bio_queue: 7,3 FWS 0 + 0 [a-b]";
        assert_eq!(parse_line(queue).unwrap().op, Op::Write);
        let done =
            " x y-1-22 [001] ..s.. 3.302599: block_rq_complete: 7,3 FF () 0 + 0 none,0,0 [0]";
        let t = parse_line(done).unwrap();
        assert_eq!((t.event, t.op, t.pid), (Event::Complete, Op::Flush, 22));
        assert_eq!(parse_line("CPU:1 [LOST 15 EVENTS]"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(
            head in ".{0,40}", time in "[0-9.]{0,24}", tail in "[0-9, +A-Z()]{0,60}",
        ) {
            let _ = parse_line(&format!("{head}-1 [001] ..... {time}: block_rq_issue: {tail}"));
            let _ = parse_line(&head);
        }
    }
}
