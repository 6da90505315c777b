//! The worked scenarios of Kyber, and what it promises.

#![allow(clippy::unwrap_used, reason = "tests say what they expect")]

mod files;
mod guarantees;
mod resizing;

use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Dispatch, MergeKind, Merging, QueueFacts};
use iosched_types::{Bio, Flags, IoPrio, Op, ReqId, Request};

const MS: u64 = 1_000_000;
const ALL: [&str; 4] = ["kyber@4.12", "kyber@4.20", "kyber@5.0", "kyber@6.17"];
const NEW: [&str; 3] = ["kyber@4.20", "kyber@5.0", "kyber@6.17"];

fn bench(name: &str) -> Bench {
    Bench::on(name, &[], QueueFacts { nr_requests: 256, ..QueueFacts::default() })
}

/// `n` requests, 1000 sectors apart.
fn insert(b: &mut Bench, n: u64, op: Op, sync: bool) -> Vec<ReqId> {
    (0..n).map(|i| insert_at(b, 0, request(op, i * 1000, sync))).collect()
}

fn request(op: Op, sector: u64, sync: bool) -> Request {
    let mut r = Request::new(op, sector, 8);
    if sync {
        r.flags = Flags::SYNC;
    }
    r
}

fn insert_at(b: &mut Bench, now: u64, r: Request) -> ReqId {
    b.insert_request(now, r)
}

fn dispatch(b: &mut Bench, now: u64, hctx: u16) -> Option<ReqId> {
    match b.with(now, |s, c| s.dispatch(c, hctx)) {
        Dispatch::Request(id) => {
            b.reqs[id].t_issue = now;
            Some(id)
        }
        Dispatch::Idle(_) => panic!("kyber never idles"),
        Dispatch::Empty => None,
    }
}

/// Dispatches while there is work and something comes; nothing completes.
fn hold(b: &mut Bench, now: u64) -> Vec<ReqId> {
    let mut next = || if b.scheduler.has_work() { dispatch(b, now, 0) } else { None };
    std::iter::from_fn(&mut next).collect()
}

/// `R16 W8`: lengths of runs of one kind.
fn runs(b: &Bench, ids: &[ReqId]) -> String {
    let kind = |id: &ReqId| match (b.reqs[*id].op, b.reqs[*id].is_sync()) {
        (Op::Write, true) => 'S',
        (op, _) => op.letter(),
    };
    let kinds: Vec<char> = ids.iter().map(kind).collect();
    let runs = kinds.chunk_by(|a, b| a == b).map(|run| format!("{}{}", run[0], run.len()));
    runs.collect::<Vec<_>>().join(" ")
}

fn counter(b: &Bench, name: &str) -> u64 {
    b.scheduler.counters().iter().find(|(n, _)| *n == name).unwrap().1
}

/// KA-1.
#[test]
fn domains_take_turns_by_batches_412() {
    let mut b = bench("kyber@4.12");
    insert(&mut b, 10, Op::Write, false);
    insert(&mut b, 20, Op::Read, true);
    insert(&mut b, 10, Op::Write, true);
    let order = hold(&mut b, 0);
    assert_eq!(runs(&b, &order), "R16 S8 W8 R4 S2 W2");
}

/// Seven writes leave, and the next question has no answer, so eight writes go before the read (4.12, jobs `sr1rw4` of four
/// writers).
#[test]
fn a_question_without_an_answer_ends_the_batch() {
    for name in ["kyber@4.12"].iter().chain(NEW.iter()) {
        let mut b = bench(name);
        insert(&mut b, 7, Op::Write, true);
        assert_eq!(hold(&mut b, 0).len(), 7);
        assert_eq!(dispatch(&mut b, 0, 0), None);
        insert(&mut b, 8, Op::Write, true);
        insert(&mut b, 1, Op::Read, true);
        let order = hold(&mut b, 0);
        assert_eq!(runs(&b, &order), "S8 R1", "{name}");
    }
}

/// KB-1.
#[test]
fn domains_take_turns_by_batches_420() {
    for name in NEW {
        let mut b = bench(name);
        insert(&mut b, 3, Op::Flush, false);
        insert(&mut b, 3, Op::Discard, false);
        insert(&mut b, 20, Op::Write, false);
        insert(&mut b, 40, Op::Read, true);
        let order = hold(&mut b, 0);
        let want = "R16 W8 D1 F1 R16 W8 D1 F1 R8 W4 D1 F1";
        assert_eq!(runs(&b, &order), want, "{name}");
    }
}

/// KB-2: two read tokens left.
#[test]
fn a_domain_without_tokens_is_passed_over_and_its_return_wakes_the_queue() {
    for name in NEW {
        let mut b = bench(name);
        insert(&mut b, 254, Op::Read, true);
        let reads = hold(&mut b, 0);
        assert_eq!(reads.len(), 254);
        // Bring the cursor back to a fresh read batch: one of each kind, completed at once.
        let other = insert(&mut b, 1, Op::Flush, false);
        assert_eq!(hold(&mut b, 0), other);
        b.complete(0, other[0]);
        insert(&mut b, 3, Op::Flush, false);
        insert(&mut b, 3, Op::Discard, false);
        insert(&mut b, 20, Op::Write, false);
        insert(&mut b, 40, Op::Read, true);
        b.out.why.as_mut().unwrap().notes.clear();
        let order = hold(&mut b, 0);
        assert_eq!(runs(&b, &order), "R2 W8 D1 F1 W8 D1 F1 W4 D1 F1", "{name}");
        let notes = &b.out.why.as_ref().unwrap().notes;
        assert!(notes.iter().any(|(_, n)| n == "no READ token: 256 of 256 in use"));
        assert_eq!(counter(&b, "token_waits"), 1, "one waiter per hardware queue and domain");
        // 256 / 8 is 32, so the wake batch is 8.
        for (i, id) in reads.iter().take(8).enumerate() {
            assert!(b.out.run_hctxs.is_empty(), "{name}: woken after {i}");
            b.complete(0, *id);
        }
        assert_eq!(b.out.run_hctxs, [0], "{name}");
        let order = hold(&mut b, 0);
        assert_eq!(runs(&b, &order), "R8");
    }
}

#[test]
fn async_operations_get_three_quarters_of_a_word_or_of_the_map() {
    let limit = |name: &str, nr_requests, op, flags| {
        let whole = name == "kyber@6.17";
        let limit_unit = if whole { nr_requests } else { QueueFacts::tag_word(nr_requests) };
        let queue = QueueFacts {
            nr_requests,
            limit_base: nr_requests,
            limit_unit,
            ..QueueFacts::default()
        };
        let mut b = Bench::on(name, &[], queue);
        let limit = b.with(0, |s, c| s.limit_depth(c, op, flags, 0));
        let smallest = b.scheduler.min_shallow_depth(&b.queue);
        assert!(limit.is_none() || limit == smallest);
        limit
    };
    for name in ALL {
        assert_eq!(limit(name, 256, Op::Read, Flags::NONE), None);
        assert_eq!(limit(name, 256, Op::Write, Flags::SYNC), None);
        let whole = name == "kyber@6.17";
        // 256 tags: four words of 64; 64: four of 16; 62: four of 8 and more; 31: of 4.
        for (nr, per_word, of_map) in [(256, 48, 192), (64, 12, 48), (62, 6, 46), (31, 3, 23)] {
            let want = if whole { of_map } else { per_word };
            assert_eq!(limit(name, nr, Op::Write, Flags::NONE), Some(want), "{name}, {nr}");
        }
        assert_eq!(limit(name, 4, Op::Discard, Flags::NONE), Some(if whole { 3 } else { 1 }));
    }
}

#[test]
fn the_async_limit_follows_nr_requests() {
    let mut b = bench("kyber");
    let mut limit = |nr| {
        b.queue.nr_requests = nr;
        (b.queue.limit_base, b.queue.limit_unit) = (nr, QueueFacts::tag_word(nr));
        b.with(0, |s, c| s.limit_depth(c, Op::Write, Flags::NONE, 0)).unwrap()
    };
    assert_eq!([limit(256), limit(64), limit(256)], [48, 12, 48]);
}

fn bio(op: Op, sector: u64, cpu: u16) -> Bio {
    let (flags, prio) = (Flags::NONE, IoPrio::default());
    Bio { id: 0, op, flags, sector, sectors: 8, task: 0, thread: 0, prio, cgroup: 0, cpu }
}

fn find(b: &mut Bench, bio: Bio) -> Option<(ReqId, MergeKind)> {
    assert_eq!(b.scheduler.merging(), Merging::Own);
    b.with(0, |s, c| s.find_merge(c, &bio))
}

#[test]
fn a_bio_joins_one_of_the_newest_eight_of_its_cpu_and_from_50_on_of_its_domain() {
    for name in ALL {
        let queue = QueueFacts { cpus: 2, ..QueueFacts::default() };
        let mut b = Bench::on(name, &[], queue);
        let write = insert_at(&mut b, 0, request(Op::Write, 500, false));
        let reads = insert(&mut b, 8, Op::Read, true);
        assert_eq!(find(&mut b, bio(Op::Read, 8, 0)), Some((reads[0], MergeKind::Back)));
        assert_eq!(find(&mut b, bio(Op::Read, 992, 0)), Some((reads[1], MergeKind::Front)));
        assert_eq!(find(&mut b, bio(Op::Read, 8, 1)), None, "another CPU");
        assert_eq!(find(&mut b, bio(Op::Discard, 8, 0)), None, "another operation");
        // The write is the ninth newest of its CPU, and the newest of its domain.
        let own_list = ["kyber@5.0", "kyber@6.17"].contains(&name);
        let want = own_list.then_some((write, MergeKind::Back));
        assert_eq!(find(&mut b, bio(Op::Write, 508, 0)), want, "{name}");
    }
}

#[test]
fn from_50_on_requests_of_a_throttled_domain_can_still_merge() {
    for name in ALL {
        let mut b = bench(name);
        insert(&mut b, 128, Op::Write, true);
        assert_eq!(hold(&mut b, 0).len(), 128);
        let waiting = insert_at(&mut b, 0, request(Op::Write, 500, true));
        assert_eq!(dispatch(&mut b, 0, 0), None);
        let own_list = ["kyber@5.0", "kyber@6.17"].contains(&name);
        let want = own_list.then_some((waiting, MergeKind::Back));
        let bio = Bio { flags: Flags::SYNC, ..bio(Op::Write, 508, 0) };
        assert_eq!(find(&mut b, bio), want, "{name}");
    }
}

#[test]
fn a_requeued_request_gives_its_token_back_and_follows_those_already_pulled() {
    for name in ALL {
        let mut b = bench(name);
        let reads = insert(&mut b, 3, Op::Read, true);
        assert_eq!(dispatch(&mut b, 0, 0), Some(reads[0]));
        assert_eq!(counter(&b, "read_tokens_in_use"), 1);
        let late = insert_at(&mut b, 0, request(Op::Read, 9000, true));
        b.with(0, |s, c| {
            s.requeued(c, reads[0]);
            s.insert(c, reads[0], iosched_schedulers::Position::Head);
        });
        assert_eq!(counter(&b, "read_tokens_in_use"), 0);
        // The first dispatch moved the other two to the list of the hardware queue.
        assert_eq!(hold(&mut b, 0), [reads[1], reads[2], reads[0], late], "{name}");
    }
}

#[test]
fn batches_belong_to_the_hardware_queue_and_tokens_to_the_device() {
    for name in ALL {
        let queue = QueueFacts { cpus: 2, hw_queues: 2, ..QueueFacts::default() };
        let mut b = Bench::on(name, &[], queue);
        for cpu in [0, 1] {
            for i in 0..200 {
                let mut r = request(Op::Read, i * 1000, true);
                (r.cpu, r.hctx) = (cpu, cpu);
                insert_at(&mut b, 0, r);
            }
        }
        let first = hold(&mut b, 0);
        assert!(first.len() == 200 && first.iter().all(|&id| b.reqs[id].cpu == 0));
        let second: Vec<ReqId> = std::iter::from_fn(|| dispatch(&mut b, 0, 1)).collect();
        assert_eq!(second.len(), 56, "{name}: 256 tokens for both");
        b.out.run_hctxs.clear();
        first.iter().take(8).for_each(|&id| b.complete(0, id));
        assert_eq!(b.out.run_hctxs, [1], "the one that waits is woken");
    }
}

#[test]
fn a_forced_drain_asks_no_tokens_and_leaves_nobody_waiting() {
    for name in ALL {
        let mut b = bench(name);
        insert(&mut b, 300, Op::Read, true);
        insert(&mut b, 20, Op::Write, false);
        let held = hold(&mut b, 0);
        let drained = std::iter::from_fn(|| b.with(0, |s, c| s.force_dispatch(c)));
        assert_eq!(held.len() + drained.count(), 320);
        assert!(!b.scheduler.has_work() && b.scheduler.is_empty());
        held.iter().for_each(|&id| b.complete(0, id));
        assert!(b.out.run_hctxs.is_empty() && counter(&b, "read_tokens_in_use") == 0);
    }
}

#[test]
fn an_absorbed_request_is_gone() {
    for name in ALL {
        let mut b = bench(name);
        let reads = insert(&mut b, 3, Op::Read, true);
        b.with(0, |s, c| {
            s.absorbed(c, reads[0], reads[1]);
            s.finished(c, reads[1]);
        });
        assert_eq!(hold(&mut b, 0), [reads[0], reads[2]], "{name}");
    }
}
