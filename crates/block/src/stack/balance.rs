//! Which leg of a mirror serves a read. The rule is another one in each age of md.

use iosched_schedulers::KernelVersion;
use iosched_types::Sector;

/// Why a leg was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// There is no choice: writes and flushes go to every leg.
    Every,
    /// The sectors lie there.
    Place,
    /// The read goes on where the one before ended.
    Sequential,
    /// It has nothing to do.
    Idle,
    /// It has the fewest bios under way.
    FewestPending,
    /// Its head is nearest.
    Nearest,
}

impl Why {
    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Why::Every => "goes to every leg",
            Why::Place => "lies on this leg",
            Why::Sequential => "goes on where this leg was read",
            Why::Idle => "this leg is idle",
            Why::FewestPending => "this leg has the fewest bios under way",
            Why::Nearest => "the head of this leg is nearest",
        }
    }
}

/// The rule of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Before 2.6.39: one end of reads for the whole array; the other legs first.
    Others,
    /// 2.6.39 to 3.5: the same, beginning with the leg used last.
    SameFirst,
    /// 3.6 to 4.9: an end of reads for each leg; the first idle leg is taken.
    IdleFirst,
    /// 4.10 to 6.8: the idle leg counts only at the end.
    Fewest,
    /// Since 6.9: a long run may leave its leg.
    RunsEnd,
}

impl Rule {
    fn of(kernel: KernelVersion) -> Rule {
        match kernel {
            k if k < KernelVersion(2, 6, 39) => Rule::Others,
            k if k < KernelVersion(3, 6, 0) => Rule::SameFirst,
            k if k < KernelVersion(4, 10, 0) => Rule::IdleFirst,
            k if k < KernelVersion(6, 9, 0) => Rule::Fewest,
            _ => Rule::RunsEnd,
        }
    }
}

/// What md remembers of a leg.
#[derive(Clone, Copy, Debug, Default)]
struct Leg {
    /// Where the last finished read ended.
    head: Sector,
    /// Where the last read sent there ends.
    next: Sector,
    /// Where that sequential run began.
    start: Sector,
    /// Bios under way.
    pending: u32,
    rotational: bool,
    write_mostly: bool,
}

/// The legs of a mirror as its reads see them.
#[derive(Debug)]
pub(super) struct Balance {
    rule: Rule,
    legs: Vec<Leg>,
    optimal_io: Sector,
    /// Of the whole array, for the old rules.
    next: Sector,
    last_used: usize,
}

impl Balance {
    /// Legs by whether they have a head to move.
    pub(super) fn new(
        kernel: KernelVersion,
        rotational: impl Iterator<Item = bool>,
        optimal_io: Sector,
        write_mostly: &[usize],
    ) -> Balance {
        let leg = |(i, rotational)| Leg {
            rotational,
            write_mostly: write_mostly.contains(&i),
            ..Leg::default()
        };
        let mut legs: Vec<Leg> = rotational.enumerate().map(leg).collect();
        if legs.iter().all(|l| l.write_mostly) {
            legs.iter_mut().for_each(|l| l.write_mostly = false);
        }
        Balance { rule: Rule::of(kernel), legs, optimal_io, next: 0, last_used: 0 }
    }

    /// A bio goes to a leg.
    pub(super) fn sent(&mut self, leg: usize) {
        self.legs[leg].pending += 1;
    }

    /// A bio came back.
    pub(super) fn came_back(&mut self, leg: usize, end: Sector, read: bool) {
        self.legs[leg].pending -= 1;
        // Writes move it too until md was rewritten.
        if read || self.rule != Rule::RunsEnd {
            self.legs[leg].head = end;
        }
    }

    /// Chooses the leg of a read and counts the bio there.
    pub(super) fn choose(&mut self, sector: Sector, end: Sector) -> (usize, Why) {
        let (leg, why) = match self.rule {
            Rule::Others => self.others(sector),
            Rule::SameFirst => self.same_first(sector),
            Rule::IdleFirst => self.idle_first(sector),
            Rule::Fewest | Rule::RunsEnd => self.fewest(sector),
        };
        let l = &mut self.legs[leg];
        if l.next != sector {
            l.start = sector;
        }
        l.next = end;
        l.pending += 1;
        (self.next, self.last_used) = (end, leg);
        (leg, why)
    }

    fn usable(&self) -> impl Iterator<Item = (usize, &Leg)> {
        self.legs.iter().enumerate().filter(|(_, l)| !l.write_mostly)
    }

    fn others(&self, sector: Sector) -> (usize, Why) {
        let (n, last) = (self.legs.len(), self.last_used);
        if self.next == sector || self.legs[last].head == sector {
            return (last, Why::Sequential);
        }
        let walk = (1..=n).map(|i| (last + n - i % n) % n).filter(|i| !self.legs[*i].write_mostly);
        self.idle_or_nearest(walk, sector)
    }

    fn same_first(&self, sector: Sector) -> (usize, Why) {
        let (n, last) = (self.legs.len(), self.last_used);
        if self.next == sector && !self.legs[last].write_mostly {
            return (last, Why::Sequential);
        }
        let walk = (0..n).map(|i| (last + i) % n).filter(|i| !self.legs[*i].write_mostly);
        self.idle_or_nearest(walk, sector)
    }

    fn idle_or_nearest(&self, walk: impl Iterator<Item = usize>, sector: Sector) -> (usize, Why) {
        let mut best = (0, Sector::MAX);
        for i in walk {
            let leg = &self.legs[i];
            if leg.head == sector && self.rule == Rule::SameFirst {
                return (i, Why::Sequential);
            }
            if leg.pending == 0 {
                return (i, Why::Idle);
            }
            let distance = leg.head.abs_diff(sector);
            if distance < best.1 {
                best = (i, distance);
            }
        }
        (best.0, Why::Nearest)
    }

    /// A run on a solid-state leg that is longer than its optimal size: an idle leg may take over.
    fn long_run(&self, leg: &Leg) -> bool {
        !leg.rotational
            && self.optimal_io > 0
            && leg.next.checked_sub(self.optimal_io).is_some_and(|past| past >= leg.start)
    }

    fn idle_first(&self, sector: Sector) -> (usize, Why) {
        let mut run = None;
        for (i, leg) in self.usable() {
            if leg.next == sector || leg.head == sector {
                if !self.long_run(leg) {
                    return (i, Why::Sequential);
                }
                run = Some(i);
            } else if leg.pending == 0 {
                return (i, Why::Idle);
            }
        }
        run.map_or_else(|| self.at_the_end(sector, None), |i| (i, Why::Sequential))
    }

    fn fewest(&self, sector: Sector) -> (usize, Why) {
        let mut run = None;
        for (i, leg) in self.usable() {
            if leg.next == sector || leg.head == sector {
                if self.rule == Rule::Fewest || !self.long_run(leg) {
                    return (i, Why::Sequential);
                }
                run = Some(i);
            }
        }
        if let Some(i) = run
            && self.usable().all(|(j, leg)| j == i || leg.pending > 0)
        {
            return (i, Why::Sequential);
        }
        self.at_the_end(sector, run)
    }

    /// Nothing fits: by bios under way if that can tell, else by distance. A run that may leave counts one more.
    fn at_the_end(&self, sector: Sector, run: Option<usize>) -> (usize, Why) {
        let load = |i: usize, l: &Leg| l.pending + u32::from(run == Some(i));
        let fewest = self.usable().min_by_key(|(i, l)| load(*i, l));
        let solid = self.usable().any(|(_, l)| !l.rotational);
        match fewest {
            Some((i, l)) if load(i, l) == 0 => (i, Why::Idle),
            Some((i, _)) if solid => (i, Why::FewestPending),
            _ => {
                let nearest = self.usable().min_by_key(|(_, l)| l.head.abs_diff(sector));
                (nearest.map_or(0, |(i, _)| i), Why::Nearest)
            }
        }
    }
}
