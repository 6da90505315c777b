//! Which I/O comes next: direction, block size, file and offset, by fio's rules and random streams.

use iosched_types::Bytes;

use super::layout::Files;
use super::spec::{Distribution, JobSpec};
use super::taus::{StreamId, Taus88};

use self::any::AnyKind;

mod any;

/// Read, write, trim as an index.
pub type DirIndex = usize;

/// One I/O to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextIo {
    /// 0 read, 1 write, 2 trim.
    pub dir: DirIndex,
    /// Byte offset on the device.
    pub offset: Bytes,
    /// Bytes.
    pub len: Bytes,
}

/// The generator of one job.
#[derive(Debug)]
pub struct Generator(Kind);

/// The data of the common case lies beside the process, because ten thousand processes are visited without pattern.
#[derive(Debug)]
enum Kind {
    Plain(Plain),
    Any(Box<AnyKind>),
}

/// Whether it reads or writes next.
#[derive(Clone, Debug)]
struct Directions {
    /// The only one, unless reads and writes are mixed.
    only: Option<u8>,
    current: u8,
    /// Percent of reads and writes.
    mix: [u8; 2],
    stream: Taus88,
    issued: [u64; 3],
    /// This many I/Os of the current direction come before another direction is drawn.
    until: u64,
    /// The next one was decided before its I/O is made.
    decided: bool,
}

impl Directions {
    fn new(job: &JobSpec) -> Self {
        let p = job.pattern;
        let only = match p.trim_then_write {
            true => 2,
            false => (0..3u8).find(|d| job.does(usize::from(*d))).unwrap_or(0),
        };
        let reads = job.rwmixread.min(100) as u8;
        Directions {
            only: if p.read && p.write { None } else { Some(only) },
            current: 0,
            mix: [reads, 100 - reads],
            stream: Taus88::of_job(StreamId::Mix, job),
            issued: [0; 3],
            until: 0,
            decided: false,
        }
    }

    /// Which of reads, writes and trims comes next, before the rest of the I/O is known.
    fn decide(&mut self) -> DirIndex {
        let dir = self.next();
        self.decided = true;
        dir
    }

    /// Another one comes next.
    fn insist(&mut self, dir: DirIndex) {
        if self.only.is_none() {
            (self.current, self.decided) = (dir as u8, true);
        }
    }

    /// A pass begins: the next direction is drawn, from the start of the stream where that is given. What was issued
    /// still counts for the shares, and a direction drawn at the end of the files is the current one.
    fn next_pass(&mut self, stream: Option<Taus88>) {
        self.until = 0;
        self.stream = stream.unwrap_or(self.stream);
    }

    /// The direction after `dir` in a mixed job, unless it has no share.
    fn other(&self, dir: DirIndex) -> Option<DirIndex> {
        let other = dir ^ 1;
        (self.only.is_none() && dir < 2 && self.mix[other & 1] > 0).then_some(other)
    }

    /// fio draws a new direction only when the current one has caught up with its share.
    #[inline(always)]
    fn next(&mut self) -> DirIndex {
        if let Some(only) = self.only {
            return usize::from(only);
        }
        let current = usize::from(self.current & 1);
        if std::mem::take(&mut self.decided) || self.issued[current] < self.until {
            return current;
        }
        let dir = usize::from(self.stream.between(1, 100) > u64::from(self.mix[0]));
        if dir != current {
            self.until = self.issued[current] * u64::from(self.mix[dir]) / 100;
            self.current = dir as u8;
        }
        dir
    }
}

/// The common case: uniformly random blocks of one size in one file, no map. One multiplication each.
#[derive(Clone, Debug)]
struct Plain {
    start: Bytes,
    blocks: f64,
    len: Bytes,
    offsets: Taus88,
    directions: Directions,
}

impl Plain {
    fn of(job: &JobSpec, files: &Files) -> Option<Plain> {
        let [file] = files.as_slice() else { return None };
        let p = job.pattern;
        let len = (0..3).find(|d| job.does(*d)).map(|d| job.bs.range[d].0)?;
        let same = (0..3).filter(|d| job.does(*d)).all(|d| {
            job.bs.range[d] == (len, len)
                && job.bs.split[d].is_empty()
                && (job.bs.align[d] == 0 || job.bs.align[d] == len)
                && job.percentage_random[d] >= 100
                && job.distribution[d] == Distribution::Random
        });
        let blocks = file.len / len.max(1);
        let fits = p.random
            && !p.trim_then_write
            && p.ddir_seq_nr <= 1
            && !job.bs.seq_rand
            && job.norandommap
            && (1..=1 << 32).contains(&blocks);
        (same && fits).then(|| Plain {
            start: file.start,
            blocks: blocks as f64,
            len,
            offsets: Taus88::of_job(StreamId::Offset, job),
            directions: Directions::new(job),
        })
    }

    #[inline(always)]
    fn next_io(&mut self) -> NextIo {
        let dir = self.directions.next();
        self.directions.issued[dir] += 1;
        // Through i64, which the processor converts to in one instruction; there are at most 2^32 blocks.
        let block = (self.blocks * self.offsets.unit()) as i64 as u64;
        NextIo { dir, offset: self.start + block * self.len, len: self.len }
    }

    /// It has no end of its files, but passes may end by bytes.
    fn rewind(&mut self, job: &JobSpec) {
        let again = repeats(job);
        self.directions.next_pass(again.then(|| Taus88::of_job(StreamId::Mix, job)));
        if again {
            self.offsets = Taus88::of_job(StreamId::Offset, job);
        }
    }
}

/// A repeatable job begins every pass through its files with the streams it began with, unless it names its seed.
fn repeats(job: &JobSpec) -> bool {
    job.randrepeat && job.randseed.is_none()
}

impl Generator {
    /// The generator of a job. Its files are laid out already.
    #[must_use]
    pub fn new(job: &JobSpec, files: &Files) -> Self {
        Generator(match Plain::of(job, files) {
            Some(plain) => Kind::Plain(plain),
            None => Kind::Any(Box::new(AnyKind::new(job, files))),
        })
    }

    /// The next I/O; `None` when a job has reached the end of all its files.
    #[inline(always)]
    pub fn next_io(&mut self) -> Option<NextIo> {
        match &mut self.0 {
            Kind::Plain(plain) => Some(plain.next_io()),
            Kind::Any(any) => any.next_io(),
        }
    }

    /// Which direction comes next, before the rest of the I/O is known.
    pub fn decide(&mut self) -> DirIndex {
        self.directions().decide()
    }

    /// The ramp is over: the counts of I/Os begin anew, and the next direction is drawn.
    pub fn begin_anew(&mut self) {
        let directions = self.directions();
        (directions.issued, directions.until) = ([0; 3], 0);
    }

    /// Another direction than the decided one comes next.
    pub fn insist(&mut self, dir: DirIndex) {
        self.directions().insist(dir);
    }

    /// The other direction of a mixed job, where it has a share.
    pub fn other(&mut self, dir: DirIndex) -> Option<DirIndex> {
        self.directions().other(dir)
    }

    fn directions(&mut self) -> &mut Directions {
        match &mut self.0 {
            Kind::Plain(plain) => &mut plain.directions,
            Kind::Any(any) => any.directions(),
        }
    }

    /// Reads a word of what [`next_io`](Self::next_io) will need.
    #[inline(always)]
    pub(super) fn fetch(&self) -> u64 {
        match &self.0 {
            Kind::Plain(plain) => plain.directions.until,
            Kind::Any(_) => 0,
        }
    }

    /// Back to the start of every file (`loops`, or a job that transfers more than its size).
    pub fn rewind(&mut self, job: &JobSpec) {
        match &mut self.0 {
            Kind::Plain(plain) => plain.rewind(job),
            Kind::Any(any) => any.rewind(),
        }
    }

    /// A sync takes its turn among the files.
    pub fn sync_turn(&mut self) {
        if let Kind::Any(any) = &mut self.0 {
            any.sync_turn();
        }
    }
}
