//! Readers, a flusher and a program at one queue.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use iosched_block::{Event, Stack, Submit, Timeline};
use iosched_engine::World;
use iosched_schedulers::TaskInfo;
use iosched_types::{Bio, BioId, Bytes, Flags, Nanos, Op, SECTOR, TaskId};

use super::{BEGINS, Group, PATIENCE, S};

/// When a run ends whose program has not.
const ENDS: Nanos = BEGINS + PATIENCE + S;
const GIB: Bytes = 1 << 30;
/// What readers and the flusher move at a time.
const PIECE: Bytes = 128 << 10;
/// The files of a load lie so far apart, and are so many pieces long.
const APART: Bytes = 4 * GIB;
const PIECES: u64 = 2 * GIB / PIECE;
/// Where the written files begin.
const WRITTEN: Bytes = 20 * GIB;
/// Writes of a file's turn.
const TURN: usize = 32;
/// Writes that the flusher has of its own, which is more than a queue takes.
const WRITES: u32 = 4096;

/// Random numbers of a load.
struct Draws(u64);

impl Draws {
    fn new(seed: u64) -> Draws {
        Draws(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1))
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// What runs beside a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    readers: u32,
    /// Files that are written.
    files: u32,
    random: bool,
    repetition: u32,
}

impl Load {
    /// Reads that a program may issue together.
    pub(super) const MOST_READS: usize = 1024;

    /// `0r`, `10r-seq`, `5r5w-rand`.
    pub(super) fn parse(text: &str, repetition: u32) -> Result<Load, String> {
        let wrong = || {
            format!(
                "load \"{text}\": expected READERSr[FILESw]-seq or -rand, such as 5r5w-rand, or 0r"
            )
        };
        let (what, order) = text.split_once('-').unwrap_or((text, ""));
        let (readers, rest) = what.split_once('r').ok_or_else(wrong)?;
        let files = if rest.is_empty() { "0" } else { rest.strip_suffix('w').ok_or_else(wrong)? };
        let number = |n: &str| n.parse::<u32>().ok().filter(|n| *n < 1000).ok_or_else(wrong);
        let load = Load {
            readers: number(readers)?,
            files: number(files)?,
            random: order == "rand",
            repetition,
        };
        let idle = load.readers + load.files == 0;
        match order {
            "seq" | "rand" => Ok(load),
            "" if idle => Ok(load),
            _ => Err(wrong()),
        }
    }

    /// Where its last file ends.
    pub(super) fn end(&self) -> Bytes {
        let end =
            |n: u32, from| if n == 0 { 0 } else { from + Bytes::from(n - 1) * APART + 2 * GIB };
        end(self.readers, 0).max(end(self.files, WRITTEN))
    }

    /// Its processes in the order in which they begin, and the program.
    pub(super) fn tasks(&self) -> Vec<TaskInfo> {
        let readers = (0..self.readers).map(|i| format!("reader {i}"));
        let flusher = (self.files > 0).then(|| "flusher".to_string());
        let names = readers.chain(flusher).chain(["program".to_string()]);
        let task = |(pid, name): (u32, String)| TaskInfo { pid, name, ..TaskInfo::default() };
        (1..).zip(names).map(task).collect()
    }
}

struct Reader {
    draws: Draws,
    done: u64,
}

/// Writes files in turn as fast as it gets requests.
struct Flusher {
    draws: Draws,
    turns: u64,
    /// Offsets of this turn that are to come. It may sleep for the first.
    left: VecDeque<Bytes>,
    submitted: u32,
}

struct Program<'a> {
    groups: &'a [Group],
    /// The group under way.
    at: usize,
    /// When it was issued, and how many of its reads are to come.
    issued: Nanos,
    left: usize,
    first: Option<Nanos>,
    last: Option<Nanos>,
    reads: u64,
    waited: Nanos,
}

/// Readers first, then the flusher if there is one, the program last: each is a task of that number, and its reads have that
/// number, too. The program's are numbered from there on, the flusher's writes behind them.
pub(super) struct Machine<'a> {
    pub(super) queue: Stack,
    tl: Timeline,
    load: &'a Load,
    readers: Vec<Reader>,
    flusher: Option<Flusher>,
    program: Program<'a>,
    ready: VecDeque<TaskId>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(queue: Stack, load: &'a Load, groups: &'a [Group]) -> Machine<'a> {
        let seed = 10_000 * u64::from(load.repetition);
        let reader = |i| Reader { draws: Draws::new(seed + u64::from(i)), done: 0 };
        let flusher =
            Flusher { draws: Draws::new(seed + 99), turns: 0, left: VecDeque::new(), submitted: 0 };
        let program = Program {
            groups,
            at: 0,
            issued: 0,
            left: 0,
            first: None,
            last: None,
            reads: 0,
            waited: 0,
        };
        let mut machine = Machine {
            queue,
            tl: Timeline::default(),
            load,
            readers: (0..load.readers).map(reader).collect(),
            flusher: (load.files > 0).then_some(flusher),
            program,
            ready: VecDeque::new(),
        };
        machine.ready.extend(0..machine.of_program());
        machine.think(BEGINS);
        machine
    }

    fn of_program(&self) -> TaskId {
        self.load.readers + u32::from(self.flusher.is_some())
    }

    /// How long the program took, if it came to its end; its reads, and the sum of their times.
    pub(super) fn started(&self) -> (Option<Nanos>, u64, Nanos) {
        let p = &self.program;
        let took = p.first.zip(p.last).map(|(first, last)| last - first);
        (took, p.reads, p.waited)
    }

    /// Runs until the program has ended or cannot end in time, or until `go_on` says stop.
    pub(super) fn run(&mut self, go_on: &mut dyn FnMut(Nanos) -> ControlFlow<()>) {
        loop {
            while let Some(t) = self.ready.pop_front() {
                self.run_task(t);
            }
            if self.program.last.is_some() || go_on(self.tl.now).is_break() {
                return;
            }
            let Some(at) = self.next().filter(|at| *at <= ENDS) else { return };
            self.turn(at);
            self.collect();
        }
    }

    fn run_task(&mut self, t: TaskId) {
        if t == self.of_program() {
            self.issue();
        } else if t < self.load.readers {
            self.read(t);
        } else {
            self.write(t);
        }
    }

    /// A reader's next read.
    fn read(&mut self, t: TaskId) {
        let reader = &mut self.readers[t as usize];
        let piece =
            if self.load.random { reader.draws.below(PIECES) } else { reader.done % PIECES };
        reader.done += 1;
        self.submit(t, t, Op::Read, (Bytes::from(t) * APART + piece * PIECE, PIECE), false);
        self.sleep(t);
    }

    /// The program thinks, and then issues its group; without one it has ended.
    fn think(&mut self, now: Nanos) {
        match self.program.groups.get(self.program.at) {
            Some((think, _)) => self.tl.events.push(now + think, Event::Host(0)),
            None => self.program.last = Some(now),
        }
    }

    fn issue(&mut self) {
        let t = self.of_program();
        let Some((_, reads)) = self.program.groups.get(self.program.at) else { return };
        let now = self.tl.now;
        self.program.first.get_or_insert(now);
        (self.program.issued, self.program.left) = (now, reads.len());
        self.queue.start_plug(t);
        for (i, read) in (0..).zip(reads) {
            self.submit(t, t + i, Op::Read, *read, false);
        }
        self.queue.finish_plug(&mut self.tl, t);
        self.sleep(t);
    }

    /// The flusher writes until it sleeps for a request.
    fn write(&mut self, t: TaskId) {
        let mut resumed = true;
        loop {
            let Some(flusher) = &mut self.flusher else { return };
            let Some(at) = flusher.left.front().copied() else {
                flusher.take_turn(self.load);
                resumed = false;
                self.queue.start_plug(t);
                continue;
            };
            let id = self.load.readers + WRITES + flusher.submitted % WRITES;
            if !self.submit(t, id, Op::Write, (at, PIECE), resumed) {
                self.settle();
                return;
            }
            resumed = false;
            let Some(flusher) = &mut self.flusher else { return };
            flusher.submitted += 1;
            flusher.left.pop_front();
            if flusher.left.is_empty() {
                self.queue.finish_plug(&mut self.tl, t);
                self.settle();
            }
        }
    }

    /// `false` when the task sleeps for a request.
    fn submit(
        &mut self,
        t: TaskId,
        id: BioId,
        op: Op,
        (at, len): (Bytes, Bytes),
        resumed: bool,
    ) -> bool {
        let bio = Bio {
            id,
            op,
            flags: Flags::NONE,
            sector: at / SECTOR,
            sectors: (len / SECTOR) as u32,
            task: t,
            thread: t,
            prio: Default::default(),
            cgroup: 0,
            cpu: 0,
        };
        self.queue.submit(&mut self.tl, &bio, resumed) != Submit::Blocked
    }

    fn sleep(&mut self, t: TaskId) {
        self.settle();
        self.queue.task_sleeps(&mut self.tl, t);
        self.settle();
    }

    /// A call returns: deferred work runs.
    fn settle(&mut self) {
        self.queue.run_deferred(&mut self.tl);
        self.queue.next_call();
        self.collect();
    }

    /// Wakes whose reads are done, and who may have a request now.
    fn collect(&mut self) {
        let program = self.of_program();
        for i in 0..self.queue.out().done.len() {
            let id = self.queue.out().done[i].bio;
            if id < self.load.readers {
                self.ready.push_back(id);
            } else if (program..self.load.readers + WRITES).contains(&id) {
                self.read_done();
            }
        }
        let out = self.queue.out_mut();
        out.done.clear();
        out.woken_behind.clear();
        self.ready.extend(out.woken.drain(..));
    }

    fn read_done(&mut self) {
        let (p, now) = (&mut self.program, self.tl.now);
        p.reads += 1;
        p.waited += now - p.issued;
        p.left -= 1;
        if p.left == 0 {
            p.at += 1;
            self.think(now);
        }
    }
}

impl Flusher {
    /// The writes of the next file's turn.
    fn take_turn(&mut self, load: &Load) {
        let file = self.turns % u64::from(load.files);
        let first = self.turns / u64::from(load.files) * TURN as u64;
        self.turns += 1;
        let mut pieces: Vec<u64> = if load.random {
            (0..TURN).map(|_| self.draws.below(PIECES)).collect()
        } else {
            (first..).take(TURN).map(|piece| piece % PIECES).collect()
        };
        if load.random {
            pieces.sort_unstable();
        }
        self.left.extend(pieces.into_iter().map(|p| WRITTEN + file * APART + p * PIECE));
    }
}

impl World for Machine<'_> {
    type Event = Event;

    fn timeline(&mut self) -> &mut Timeline {
        &mut self.tl
    }

    fn device_next(&self) -> Nanos {
        self.queue.device_next()
    }

    fn device_event(&mut self) {
        self.queue.device_event(&mut self.tl);
        self.queue.run_deferred(&mut self.tl);
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Queue(disk, event) => self.queue.event(&mut self.tl, disk, event),
            Event::Array(event) => self.queue.array_event(&mut self.tl, event),
            Event::Host(_) => self.ready.push_back(self.of_program()),
        }
    }
}
