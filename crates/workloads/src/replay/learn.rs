//! From the I/Os of a trace to steps: what each of them waits for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use iosched_trace::{Io, Name, Tables};
use iosched_types::units::{MS, US};
use iosched_types::{Flags, Nanos, Op, PrioClass, SECTOR};

use super::{Chain, NONE, Recording, Rule, Step, TracedTask, UNKNOWN};

/// Most I/Os of a recording: about 2.5 GB of memory.
pub const MOST_IOS: usize = 40_000_000;
/// A task whose I/Os are under way goes on within this time after a completion that it waited for.
const HOP: Nanos = 10 * MS;
/// The next bio of a plug comes within this time.
const PLUG: Nanos = 50 * US;

/// A trace is too long for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the trace has more than {} million I/Os, the most that are replayed", MOST_IOS / 1_000_000)]
pub struct TooLong;

/// A completion to come: when, of which step, and whether its task waits for it.
type Due = Reverse<(Nanos, u32, bool)>;
/// A completion: when, and of which step.
type Done = Option<(Nanos, u32)>;

/// A chain while it is learnt.
#[derive(Debug, Default)]
struct Link {
    last: Option<u32>,
    /// When the last one went to the driver, if it was kept back.
    held: Nanos,
    under_way: BinaryHeap<Due>,
    /// Of these, those that the task waits for.
    waited: u32,
    /// The latest completion of those that the task waits for, and of all.
    latest: Done,
    latest_of_all: Done,
}

impl Link {
    /// Takes what is done by now.
    fn advance(&mut self, now: Nanos) {
        while let Some(Reverse((done, step, waited))) = self.under_way.peek().copied() {
            if done > now {
                break;
            }
            self.under_way.pop();
            self.latest_of_all = Some((done, step));
            if waited {
                self.waited -= 1;
                self.latest = Some((done, step));
            }
        }
    }
}

/// Synchronous writes of all tasks, for what a journal's thread and its callers wait for.
#[derive(Debug, Default)]
struct Journal {
    /// Completions to come, and whether they are a journal's.
    under_way: BinaryHeap<Due>,
    commit: Done,
    data: Done,
}

impl Journal {
    fn advance(&mut self, now: Nanos) {
        while let Some(Reverse((done, step, commit))) = self.under_way.peek().copied() {
            if done > now {
                break;
            }
            self.under_way.pop();
            let of = if commit { &mut self.commit } else { &mut self.data };
            *of = Some((done, step));
        }
    }
}

/// What a task is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nothing is known of it.
    Unknown,
    Process,
    /// A kernel worker, which writes pages back.
    Worker,
    /// The thread of a journal.
    Journal,
}

fn kind(pid: u32, name: &str) -> Kind {
    match name {
        "" if pid == 0 => Kind::Unknown,
        n if n.starts_with("kworker") || n.starts_with("flush-") || n == "pdflush" => Kind::Worker,
        n if n.starts_with("jbd2/") || n == "kjournald" => Kind::Journal,
        _ => Kind::Process,
    }
}

/// Makes a [`Recording`] of I/Os in order of arrival.
#[derive(Debug, Default)]
pub struct Learner {
    made: Recording,
    kinds: Vec<Kind>,
    links: Vec<Link>,
    tasks: BTreeMap<(u32, Name), u32>,
    chains: BTreeMap<(u32, bool), u32>,
    journal: Journal,
    first: Option<Nanos>,
    end: Nanos,
    /// The task of the I/O before.
    recent: Option<((u32, Name), u32)>,
}

impl Learner {
    /// Takes the next I/O.
    ///
    /// # Errors
    /// There are too many.
    pub fn push(&mut self, io: &Io, tables: &Tables) -> Result<(), TooLong> {
        if self.made.steps.len() >= MOST_IOS {
            return Err(TooLong);
        }
        let first = *self.first.get_or_insert(io.queued);
        let at = io.queued.saturating_sub(first).max(self.made.steps.last().map_or(0, |s| s.at));
        let done = io.done.map_or(UNKNOWN, |d| d.saturating_sub(first).max(at));
        let task = self.task(io, tables);
        let sector = io.offset / SECTOR;
        let end = io.offset.saturating_add(io.len).div_ceil(SECTOR);
        let step = Step {
            at,
            done,
            sector,
            sectors: if io.op == Op::Flush { 0 } else { (end - sector).min(MOST_SECTORS) as u32 },
            task,
            after: NONE,
            next: NONE,
            busy: 0,
            flags: self.flags(io, task),
            prio: io.prio,
            op: io.op,
            rule: Rule::Clock,
            awaited: false,
            plugged: false,
        };
        self.count(&step, io);
        let issued = io.issued.map_or(0, |t| t.saturating_sub(first));
        self.link(step, issued);
        Ok(())
    }

    /// Flags of the bio. A trace does not tell direct writes from those of the page cache; synchronous writes of data by
    /// processes are taken for direct ones, which the writeback throttle lets pass.
    fn flags(&self, io: &Io, task: u32) -> Flags {
        let process = !matches!(self.kinds[task as usize], Kind::Worker | Kind::Journal);
        match io.op {
            Op::Write if process && io.flags.has(Flags::SYNC) && !io.flags.has(Flags::META) => {
                io.flags.with(Flags::IDLE)
            }
            Op::Flush => io.flags.with(Flags::SYNC).with(Flags::PREFLUSH),
            Op::Discard => io.flags.with(Flags::SYNC),
            _ => io.flags,
        }
    }

    fn task(&mut self, io: &Io, tables: &Tables) -> u32 {
        let key = (io.pid, if io.pid == 0 { io.task } else { Name(0) });
        if let Some((_, task)) = self.recent.filter(|r| r.0 == key) {
            return task;
        }
        let (made, kinds) = (&mut self.made.tasks, &mut self.kinds);
        let task = *self.tasks.entry(key).or_insert_with(|| {
            let name = tables.tasks.text(io.task).to_string();
            kinds.push(kind(io.pid, &name));
            made.push(TracedTask { pid: io.pid, name, ..TracedTask::default() });
            (made.len() - 1) as u32
        });
        self.recent = Some((key, task));
        task
    }

    fn count(&mut self, s: &Step, io: &Io) {
        let made = &mut self.made;
        made.places.add(s.sector, s.sectors);
        let task = &mut made.tasks[s.task as usize];
        task.ios += 1;
        if task.prio.class == PrioClass::None {
            task.prio = s.prio;
        }
        let m = &mut made.measured;
        if matches!(s.op, Op::Read | Op::Write) {
            task.bytes += io.len;
            m.bytes += io.len;
        }
        self.end = self.end.max(s.at);
        if s.done != UNKNOWN {
            self.end = self.end.max(s.done);
            m.completed += 1;
            m.weighted += u128::from(s.done - s.at);
            m.latencies[usize::from(s.op != Op::Read)].record(s.done - s.at);
        }
        m.span = self.end;
        let prio = u64::from(s.prio.level) | (s.prio.class as u64) << 8;
        let words = [
            s.at,
            s.done,
            s.sector,
            u64::from(s.sectors) | u64::from(s.task) << 32,
            u64::from(s.flags.0) | (s.op as u64) << 16 | prio << 24,
        ];
        for w in words {
            made.digest = (made.digest.rotate_left(5) ^ w).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    /// The chain of a step. What of nothing is known comes from many: a write that waits for room holds no read back.
    fn chain(&mut self, s: &Step) -> u32 {
        let kind = self.kinds[s.task as usize];
        let writeback = kind == Kind::Worker && !s.is_waited_for();
        let key = match kind {
            _ if writeback => (u32::MAX, true),
            Kind::Unknown => (s.task, s.op == Op::Read),
            _ => (s.task, false),
        };
        let (chains, links) = (&mut self.made.chains, &mut self.links);
        let first = self.made.steps.len() as u32;
        *self.chains.entry(key).or_insert_with(|| {
            chains.push(Chain { first, most: 1, writeback, task: s.task });
            links.push(Link::default());
            (chains.len() - 1) as u32
        })
    }

    /// Finds what a step waits for, and appends it.
    fn link(&mut self, mut step: Step, issued: Nanos) {
        let chain = self.chain(&step) as usize;
        let index = self.made.steps.len() as u32;
        self.links[chain].advance(step.at);
        self.journal.advance(step.at);
        let kind = self.kinds[step.task as usize];
        if !self.made.chains[chain].writeback && kind != Kind::Unknown {
            self.rule(chain, kind, &mut step);
        }
        let link = &mut self.links[chain];
        if let Some(last) = link.last.replace(index) {
            let last = &mut self.made.steps[last as usize];
            last.next = index;
            // A bio that goes to the driver only after the next has come was held by a plug, or the disk was busy, and
            // then a plug changes little. Bios of one instant say nothing of plugs.
            let apart = step.at - last.at;
            last.plugged = (1..=PLUG).contains(&apart) && link.held >= step.at;
        }
        link.held = issued;
        if step.done != UNKNOWN {
            let waited = step.is_waited_for();
            link.under_way.push(Reverse((step.done, index, waited)));
            link.waited += u32::from(waited);
            let most = &mut self.made.chains[chain].most;
            *most = (*most).max(link.under_way.len() as u32);
            if waited && step.op == Op::Write {
                let commit = kind == Kind::Journal;
                self.journal.under_way.push(Reverse((step.done, index, commit)));
            }
        }
        self.made.steps.push(step);
    }

    /// The rules of dependence of the module.
    fn rule(&mut self, chain: usize, kind: Kind, step: &mut Step) {
        let link = &self.links[chain];
        let flush = step.op == Op::Flush || step.flags.has(Flags::PREFLUSH);
        let (latest, busy) = match flush {
            true => (link.latest_of_all, link.under_way.len() as u32),
            false => (link.latest, link.waited),
        };
        let before = link.last.map(|l| self.made.steps[l as usize].at);
        let idle = busy == 0;
        if let Some((_, other)) = self.of_journal(kind, link, step.at).filter(|_| idle) {
            (step.rule, step.after) = (Rule::Other, other);
            self.made.steps[other as usize].awaited = true;
            return;
        }
        step.busy = busy.min(u32::from(u16::MAX)) as u16;
        let Some(before) = before else { return };
        (step.rule, step.after) = match latest {
            // A flush is for the writes before it, whatever came between.
            Some((done, of)) if flush || done >= before && (idle || step.at - done <= HOP) => {
                (Rule::Completion, of)
            }
            _ => (Rule::Previous, NONE),
        };
    }

    /// A journal's thread commits what a process has written, and that process waits for the commit.
    fn of_journal(&self, kind: Kind, link: &Link, at: Nanos) -> Done {
        let own = link.latest.or(link.last.map(|l| (self.made.steps[l as usize].at, l)));
        let behind =
            |other: Done| other.filter(|o| at - o.0 <= HOP && own.is_none_or(|s| o.0 > s.0));
        match kind {
            Kind::Journal => behind(self.journal.data),
            Kind::Process => {
                let (_, last) = link.latest?;
                let wrote = self.made.steps[last as usize].op != Op::Read;
                behind(self.journal.commit).filter(|c| {
                    wrote && self.made.steps[c.1 as usize].at >= self.made.steps[last as usize].at
                })
            }
            Kind::Unknown | Kind::Worker => None,
        }
    }

    /// The recording.
    #[must_use]
    pub fn finish(mut self, tables: &Tables) -> Recording {
        let t = &tables.tally;
        let mut remark = |code, message: String, advice: &str| {
            self.made.remarks.push((code, message, advice.to_string()));
        };
        if t.lost > 0 {
            let message = format!("the recorder lost {} events; their I/Os are missing", t.lost);
            remark("trace-lost", message, "record with larger buffers");
        }
        if t.dropped() > 0 {
            let message = format!("{} records of the trace could not be used", t.dropped());
            remark("trace-skipped", message, "iosched trace info says why");
        }
        let unknown = self.made.steps.len() as u64 - self.made.measured.completed;
        if unknown > 0 && self.made.measured.completed > 0 {
            let message =
                format!("{unknown} I/Os are not completed in the trace; nothing waits for them");
            remark("trace-unfinished", message, "");
        }
        self.made.steps.shrink_to_fit();
        self.made
    }
}

/// Sectors of the longest I/O, just below 2 TiB.
const MOST_SECTORS: u64 = u32::MAX as u64 & !7;

#[cfg(test)]
mod tests {
    use super::*;

    /// I/Os as `(queued, done, op, flags, pid)`; `done` 0: unknown.
    fn learn(ios: &[(Nanos, Nanos, Op, Flags, u32)], names: &[&str]) -> Recording {
        let mut tables = Tables::default();
        let names: Vec<Name> = names.iter().map(|n| tables.tasks.of(n)).collect();
        let mut l = Learner::default();
        for (i, (at, done, op, flags, pid)) in ios.iter().enumerate() {
            let mut io = Io::new(*at, *op, Name(0), i as u64 * 4096, 4096);
            (io.done, io.flags, io.pid) = (Some(*done).filter(|d| *d > 0), *flags, *pid);
            io.task = names.get((*pid).saturating_sub(1) as usize).copied().unwrap_or(Name(0));
            l.push(&io, &tables).unwrap();
        }
        l.finish(&tables)
    }

    fn rules(r: &Recording) -> Vec<(Rule, u32, u16)> {
        r.steps.iter().map(|s| (s.rule, s.after, s.busy)).collect()
    }

    const R: Op = Op::Read;
    const W: Op = Op::Write;
    const NO: Flags = Flags::NONE;
    const S: Flags = Flags::SYNC;
    const RA: Flags = Flags::RAHEAD;
    use Rule::{Clock, Completion, Other, Previous};

    /// Rule 1: of two readers each waits for its own read, however long it thinks.
    #[test]
    fn a_reader_waits_for_its_read() {
        let r = learn(
            &[(0, 10, R, NO, 1), (1, 12, R, NO, 2), (11, 20, R, NO, 1), (90_000_000, 0, R, NO, 2)],
            &[],
        );
        assert_eq!(rules(&r)[..2], [(Clock, NONE, 0), (Clock, NONE, 0)]);
        assert_eq!(rules(&r)[2..], [(Completion, 0, 0), (Completion, 1, 0)]);
        assert_eq!((r.steps[0].next, r.steps[1].next, r.steps[2].next), (2, 3, NONE));
        assert_eq!(
            r.chains.iter().map(|c| (c.first, c.most)).collect::<Vec<_>>(),
            [(0, 1), (1, 1)]
        );
    }

    /// Rule 2: two deep, each follows the completion that made room; late after it, the I/O before.
    #[test]
    fn a_deep_queue_follows_its_completions() {
        let r = learn(
            &[
                (0, 10, R, NO, 1),
                (0, 40_000_000, R, NO, 1),
                (10, 20, R, NO, 1),
                (20, 21, R, NO, 1),
                (30_000_000, 50_000_000, R, NO, 1),
            ],
            &[],
        );
        let wanted = [
            (Clock, NONE, 0),
            (Previous, NONE, 1),
            (Completion, 0, 1),
            (Completion, 2, 1),
            (Previous, NONE, 1),
        ];
        assert_eq!(rules(&r), wanted);
        assert_eq!(r.chains[0].most, 2);
    }

    /// Rule 3: read-ahead follows the start of the read that triggers it; what reads on after a completion that.
    #[test]
    fn read_ahead_follows_its_trigger() {
        let r = learn(&[(0, 10, R, NO, 1), (2, 12, R, RA, 1), (13, 30, R, RA, 1)], &[]);
        assert_eq!(rules(&r), [(Clock, NONE, 0), (Previous, NONE, 1), (Completion, 1, 0)]);
    }

    /// Rule 4: kernel workers write at their times, as one chain; their reads are a task's.
    #[test]
    fn writeback_keeps_its_times() {
        let r = learn(
            &[(0, 50, W, NO, 1), (5, 60, W, NO, 2), (7, 9, R, NO, 1), (70, 80, W, NO, 1)],
            &["kworker/u8:1", "kworker/u8:2"],
        );
        assert!(r.steps.iter().all(|s| s.rule == Clock));
        assert_eq!((r.chains.len(), r.chains[0].writeback, r.chains[0].most), (2, true, 2));
        assert_eq!((r.steps[1].next, r.steps[2].next), (3, NONE));
    }

    /// A process does not wait for writes that go through the page cache.
    #[test]
    fn asynchronous_writes_are_not_waited_for() {
        let r = learn(
            &[(0, 10, R, NO, 1), (12, 90, W, NO, 1), (15, 20, R, NO, 1), (25, 30, R, NO, 1)],
            &[],
        );
        assert_eq!(rules(&r)[1..], [(Completion, 0, 0), (Previous, NONE, 0), (Completion, 2, 0)]);
    }

    /// Rule 5: a flush waits for all writes that were done, and what follows for the flush.
    #[test]
    fn a_flush_waits_for_the_writes_before_it() {
        let r = learn(
            &[
                (0, 10, W, NO, 1),
                (1, 20, W, NO, 1),
                (2, 60, W, NO, 1),
                (30, 40, Op::Flush, NO, 1),
                (41, 50, W, S, 1),
            ],
            &[],
        );
        assert_eq!(rules(&r)[3..], [(Completion, 1, 1), (Completion, 3, 0)]);
    }

    /// Rule 6: a journal commits what a process has synced, and the process waits for the commit.
    #[test]
    fn who_syncs_waits_for_the_journal() {
        let r = learn(
            &[
                (0, 10, W, S, 1),
                (11, 20, W, S, 2),
                (21, 30, W, S.with(Flags::FUA), 2),
                (31, 40, W, S, 1),
            ],
            &["postgres", "jbd2/sda1-8"],
        );
        assert_eq!(rules(&r), [(Clock, NONE, 0), (Other, 0, 0), (Completion, 1, 0), (Other, 2, 0)]);
        assert!(r.steps[0].awaited && r.steps[2].awaited && !r.steps[1].awaited);
    }

    #[test]
    fn of_unknown_tasks_only_times_are_known() {
        let r = learn(&[(5, 10, R, NO, 0), (12, 20, R, NO, 0), (12, 20, W, NO, 0)], &[]);
        assert!(r.steps.iter().all(|s| s.rule == Clock));
        assert!(!r.knows_tasks() && r.chains.len() == 2);
        assert_eq!((r.steps[0].at, r.measured.span), (0, 15));
        assert_eq!(r.usual_mode().to_string(), "as-recorded");
        let r = learn(&[(5, 0, R, NO, 3)], &[]);
        assert_eq!((r.usual_mode().to_string(), r.chains[0].most), ("as-recorded".into(), 1));
    }

    #[test]
    fn steps_are_small() {
        assert!(size_of::<Step>() <= 56, "{}", size_of::<Step>());
    }
}
