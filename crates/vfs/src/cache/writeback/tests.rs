use super::*;

const MS: u64 = 1_000_000;

fn sight(now: u64) -> Sight {
    Sight { now, over_background: false, dirty: 10, bandwidth: 25600, limit: 10682 }
}

/// Runs a flusher on a device without delay: who is written when, in milliseconds.
struct Toy {
    flusher: Flusher,
    /// The device has written something before.
    known: bool,
    wake: Option<u64>,
    written: Vec<(u64, Inode)>,
}

impl Toy {
    fn new(known: bool) -> Self {
        let intervals = Intervals { wake: 1000 * MS, expire: 2000 * MS, tick: 0 };
        Self { flusher: Flusher::new(intervals), known, wake: None, written: Vec::new() }
    }

    /// Goes on until `to`, waking the flusher when it wants to be.
    fn run(&mut self, to: u64) {
        while let Some(at) = self.wake.filter(|at| *at <= to) {
            loop {
                let over = !self.known && self.flusher.inodes() > 0;
                match self.flusher.next(&Sight { over_background: over, ..sight(at) }) {
                    Action::Write { inode, .. } => {
                        self.written.push((at / MS, inode));
                        self.flusher.wrote(inode, 1, Left::Clean, at);
                    }
                    Action::Done { .. } => unreachable!("nobody asked"),
                    Action::Sleep { until } => {
                        self.wake = until;
                        break;
                    }
                }
            }
        }
    }

    fn dirty(&mut self, at_ms: u64, inode: Inode) {
        self.run(at_ms * MS);
        if let Some(at) = self.flusher.dirtied(inode, at_ms * MS) {
            self.wake = Some(at);
        }
    }
}

/// Linux 6.12 with an interval of 1 s and an age of 2 s: 2.04 s, and 2.04 and 3.07 s.
#[test]
fn what_is_dirty_is_written_at_the_first_look_after_its_age() {
    let mut toy = Toy::new(true);
    toy.dirty(0, 1);
    toy.dirty(970, 2);
    toy.run(10_000 * MS);
    assert_eq!(toy.written, [(2000, 1), (3000, 2)]);
}

/// A device that never completed a write has no share of the background threshold: each look writes everything.
#[test]
fn a_device_without_a_share_is_written_at_every_look() {
    let mut toy = Toy::new(false);
    for i in 0..4 {
        toy.dirty(i * 400, 1);
    }
    toy.run(1100 * MS);
    assert_eq!(toy.written, [(1000, 1)]);
}

/// Chunks of 6.12 with 512 MiB: 8 MiB and 12 MiB.
#[test]
fn a_turn_is_a_multiple_of_four_mib() {
    assert_eq!(chunk(&sight(0), u64::MAX), 2048);
    assert_eq!(chunk(&Sight { limit: 20610, ..sight(0) }, u64::MAX), 3072);
    assert_eq!(chunk(&Sight { limit: 600_000, ..sight(0) }, u64::MAX), 13312);
    assert_eq!(chunk(&sight(0), 10), 1024);
}

#[test]
fn a_sync_takes_what_is_dirty_and_tells_who_waits() {
    let mut flusher = Flusher::new(Intervals { wake: 0, expire: 0, tick: 0 });
    flusher.dirtied(1, 5);
    flusher.dirtied(2, 6);
    flusher.ask(Task::Sync { waiter: 9 });
    let task = Task::Sync { waiter: 9 };
    let at = sight(10);
    assert_eq!(flusher.next(&at), Action::Write { inode: 1, pages: u64::MAX, task });
    flusher.dirtied(3, 11);
    flusher.wrote(1, 4, Left::Clean, 11);
    assert_eq!(flusher.next(&at), Action::Write { inode: 2, pages: u64::MAX, task });
    flusher.wrote(2, 4, Left::Some, 12);
    assert_eq!(flusher.next(&at), Action::Done { waiter: 9 });
    assert_eq!(flusher.next(&at), Action::Sleep { until: None });
    assert_eq!(flusher.inodes(), 2);
}

/// Large files take turns.
#[test]
fn used_up_turns_come_round() {
    let mut flusher = Flusher::new(Intervals { wake: 0, expire: 0, tick: 0 });
    flusher.dirtied(1, 0);
    flusher.dirtied(2, 0);
    flusher.ask(Task::Background);
    let over = Sight { over_background: true, ..sight(1) };
    let mut turns = Vec::new();
    for _ in 0..5 {
        let Action::Write { inode, pages, .. } = flusher.next(&over) else { panic!("asleep") };
        turns.push(inode);
        flusher.wrote(inode, pages, Left::More, 1);
    }
    assert_eq!(turns, [1, 2, 1, 2, 1]);
    flusher.forget(2);
    flusher.wrote(1, 0, Left::Clean, 2);
    assert_eq!(flusher.next(&sight(2)), Action::Sleep { until: None });
}

/// A full disk: pages stay dirty, and the flusher gives up until it wakes again.
#[test]
fn a_round_that_wrote_nothing_ends_the_pass() {
    let mut flusher = Flusher::new(Intervals { wake: 5, expire: 0, tick: 0 });
    flusher.dirtied(1, 0);
    flusher.ask(Task::Sync { waiter: 3 });
    let mut done = false;
    for _ in 0..10 {
        match flusher.next(&Sight { over_background: false, ..sight(0) }) {
            Action::Write { inode, .. } => flusher.wrote(inode, 0, Left::Some, 0),
            Action::Done { .. } => done = true,
            Action::Sleep { .. } => {
                assert!(done && flusher.inodes() == 1);
                return;
            }
        }
    }
    panic!("it goes on for ever");
}

/// Event log of 6.12: metadata that a commit leaves while background write-back goes on is written in its next round.
#[test]
fn background_takes_along_what_becomes_dirty_meanwhile() {
    let mut flusher = Flusher::new(Intervals { wake: 0, expire: 0, tick: 0 });
    flusher.dirtied(1, 5);
    flusher.ask(Task::Background);
    let at = |now| Sight { over_background: true, ..sight(now) };
    let written = |action| match action {
        Action::Write { inode, .. } => inode,
        other => panic!("{other:?}"),
    };
    assert_eq!(written(flusher.next(&at(10))), 1);
    flusher.dirtied(2, 20);
    flusher.wrote(1, 1024, Left::More, 30);
    assert_eq!(written(flusher.next(&at(30))), 1);
    flusher.wrote(1, 1024, Left::More, 40);
    assert_eq!(written(flusher.next(&at(40))), 2);
}
