//! The B-WF2Q+ engine alone: worked examples, a slow oracle, the lag against an ideal server.

use iosched_schedulers::bfq::wf2q::{Engine, ROOT, Rules};
use proptest::prelude::*;

const CURRENT: Rules = Rules {
    cached_next: true,
    lookup_when_beaten: true,
    raise_on_expiry: true,
    quick_on_expiry: true,
    leaves_as_served: true,
    forgets_when_raised: false,
    idle_turn_when_found: false,
};
const V7: Rules = Rules {
    cached_next: false,
    lookup_when_beaten: true,
    raise_on_expiry: false,
    quick_on_expiry: false,
    leaves_as_served: false,
    forgets_when_raised: true,
    idle_turn_when_found: true,
};
const V4_12: Rules =
    Rules { cached_next: true, lookup_when_beaten: false, idle_turn_when_found: false, ..V7 };
const RULES: [Rules; 3] = [V7, V4_12, CURRENT];

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.01
}

/// Serves backlogged queues by turns of `requests` sectors each, as many as the budget holds.
fn slot(e: &mut Engine, ids: &[u32], request: u64, next_budget: u64) -> (u32, u64) {
    let q = e.take().expect("a backlogged queue");
    let id = ids[q as usize];
    let mut served = 0;
    while e.left(id) >= request {
        e.charge(id, request);
        served += request;
    }
    e.set_budget(id, next_budget);
    e.expire(id, true);
    (q, served)
}

#[test]
fn two_equal_queues_alternate_with_growing_budgets() {
    for rules in RULES {
        let mut e = Engine::new(rules, 1000);
        let ids: Vec<u32> = (0..2).map(|q| e.add_queue(ROOT, 40, 1, q)).collect();
        for &id in &ids {
            e.set_budget(id, 10_922);
            e.activate(id, false);
            assert!(near(e.times(id).1, 273.05));
        }
        let mut vtimes = Vec::new();
        let mut order = Vec::new();
        for _ in 0..6 {
            order.push(slot(&mut e, &ids, 1024, 16_384));
            vtimes.push(e.times(ids[0]).2);
        }
        assert_eq!(order[..2], [(0, 10_240), (1, 10_240)]);
        assert_eq!(order[2..], [(0, 16_384), (1, 16_384), (0, 16_384), (1, 16_384)]);
        for (v, want) in vtimes.iter().zip([128.0, 256.0, 460.8, 665.6, 870.4, 1075.2]) {
            assert!(near(*v, want), "{rules:?}: {vtimes:?}");
        }
    }
}

#[test]
fn weights_80_and_40_give_two_slots_to_one() {
    for rules in RULES {
        let mut e = Engine::new(rules, 1000);
        let ids = [e.add_queue(ROOT, 80, 1, 0), e.add_queue(ROOT, 40, 1, 1)];
        for id in ids {
            e.set_budget(id, 16_384);
            e.activate(id, false);
        }
        let order: Vec<u32> = (0..9).map(|_| slot(&mut e, &ids, 1024, 16_384).0).collect();
        assert_eq!(order, [0, 1, 0, 0, 1, 0, 0, 1, 0], "{rules:?}");
    }
}

/// Two queues that are away finish together. The first counts as the last to finish. Once it is forgotten, none does. V
/// stops at that finish while no queue waits. So V then goes on although the second queue is still there.
#[test]
fn v_stops_at_the_last_finish_once_even_if_two_queues_share_it() {
    for rules in RULES {
        let mut e = Engine::new(rules, 1000);
        let [a, b, y] = [0, 1, 2].map(|q| e.add_queue(ROOT, 40, 1, q));
        for (id, budget) in [(a, 1000), (b, 1000), (y, 1 << 40)] {
            e.set_budget(id, budget);
            e.activate(id, false);
        }
        for (number, id) in [(0, a), (1, b)] {
            assert_eq!(e.take(), Some(number));
            e.charge(id, 400);
            e.expire(id, false);
            assert!(near(e.times(id).1, 10.0));
        }
        assert_eq!(e.take(), Some(2));
        e.charge(y, 600);
        assert!(near(e.times(y).2, 10.0), "not 11.67");
        assert_eq!((e.counted(a), e.counted(b)), (false, true));
        e.charge(y, 160);
        assert!(near(e.times(y).2, 12.0), "not 10 again");
        assert!(!e.counted(b));
    }
}

#[test]
fn a_queue_keeps_its_finish_time_while_it_is_away() {
    let mut e = Engine::new(CURRENT, 1000);
    let (x, y) = (e.add_queue(ROOT, 40, 1, 0), e.add_queue(ROOT, 40, 1, 1));
    let bring_v_to = |e: &mut Engine, v: f64| {
        let now = e.times(y).2;
        e.charge(y, ((v - now) * e.weight_sum(y) as f64).round() as u64);
    };
    e.set_budget(y, 1 << 40);
    e.activate(y, false);
    e.take();
    bring_v_to(&mut e, 100.0);
    e.expire(y, true);
    e.set_budget(x, 1000);
    e.activate(x, false);
    assert!(near(e.times(x).0, 100.0));
    assert_eq!(e.take(), Some(0));
    e.charge(x, 400);
    assert!(near(e.times(x).2, 105.0));
    e.expire(x, false);
    assert!(near(e.times(x).1, 110.0) && e.weight_sum(x) == 80);
    e.take();
    bring_v_to(&mut e, 107.0);
    let mut early = e.clone();
    early.activate(x, false);
    assert!(near(early.times(x).0, 110.0), "not 107");
    // Passing 110 forgets x (V stops there, because no other queue waits). Then V goes on.
    bring_v_to(&mut e, 111.0);
    bring_v_to(&mut e, 112.0);
    e.activate(x, false);
    assert!(near(e.times(x).0, 112.0));
}

#[test]
fn the_idle_class_gets_a_turn_every_200_ms_and_real_time_goes_first() {
    for rules in RULES {
        let mut e = Engine::new(rules, 1000);
        let ids = [e.add_queue(ROOT, 40, 1, 0), e.add_queue(ROOT, 40, 2, 1)];
        for id in ids {
            e.set_budget(id, 1024);
            e.activate(id, false);
        }
        // Without a cache every selection is a look-up; with one, the look-up that finds the idle class' time
        // come must be that of a slot's end, so slots last 250 ms here.
        let slot_ms = if rules.cached_next { 250 } else { 1 };
        let mut idle_turns = Vec::new();
        for n in 0..1000 / slot_ms {
            let q = e.take().expect("two queues wait");
            if q == 1 {
                idle_turns.push(n * slot_ms);
            }
            e.charge(ids[q as usize], 1024);
            e.tick((n + 1) * slot_ms);
            e.expire(ids[q as usize], true);
        }
        // The first look-up is a turn, as the last one was infinitely long ago; 4.12 makes none before the
        // first slot ends.
        let looks_up = !rules.cached_next || rules.lookup_when_beaten;
        assert_eq!(idle_turns.first() == Some(&0), looks_up, "{rules:?}: {idle_turns:?}");
        let wanted = if rules.cached_next { 1..=4 } else { 4..=5 };
        assert!(wanted.contains(&idle_turns.len()), "{rules:?}: {idle_turns:?}");
        assert!(idle_turns.windows(2).all(|w| w[1] - w[0] > 200), "{idle_turns:?}");
        let rt = e.add_queue(ROOT, 40, 0, 2);
        e.set_budget(rt, 1024);
        e.activate(rt, false);
        assert_eq!(e.take(), Some(2));
    }
}

#[test]
fn a_larger_request_moves_a_waiting_queue_back() {
    let mut e = Engine::new(CURRENT, 1000);
    let (other, q) = (e.add_queue(ROOT, 40, 1, 0), e.add_queue(ROOT, 40, 1, 1));
    e.set_budget(other, 4000);
    e.activate(other, false);
    e.take();
    e.charge(other, 400);
    e.set_budget(q, 512);
    e.activate(q, false);
    assert!(near(e.times(q).0, 10.0) && near(e.times(q).1, 22.8));
    e.reposition(q, 1000);
    assert!(near(e.times(q).0, 10.0) && near(e.times(q).1, 35.0));
}

/// What a group gets is shared by its queues: 100 against 100 outside, 80 against 40 inside.
#[test]
fn groups_share_by_their_weights_and_queues_within() {
    for rules in RULES {
        let mut e = Engine::new(rules, 1000);
        let (a, b) = (e.add_group(ROOT, 300), e.add_group(ROOT, 100));
        let ids = [e.add_queue(a, 80, 1, 0), e.add_queue(a, 40, 1, 1), e.add_queue(b, 40, 1, 2)];
        for id in ids {
            e.set_budget(id, 1024);
            e.activate(id, false);
        }
        let mut served = [0u64; 3];
        for _ in 0..1200 {
            let (q, n) = slot(&mut e, &ids, 128, 1024);
            served[q as usize] += n;
        }
        let share = |q: usize| served[q] as f64 / served.iter().sum::<u64>() as f64;
        for (q, want) in [(0, 0.5), (1, 0.25), (2, 0.25)] {
            assert!((share(q) - want).abs() < 0.02, "{rules:?}: {served:?}");
        }
    }
}

/// The same operations on flat vectors with exact fractions: no trees, no cache, no groups.
#[derive(Default)]
struct Slow {
    queues: Vec<SlowQueue>,
    v: u64,
    inserted: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct SlowQueue {
    s: u64,
    f: u64,
    w: u64,
    budget: u64,
    service: u64,
    active: Option<u64>,
    idle: bool,
    serving: bool,
    idle_order: u64,
}

impl Slow {
    fn delta(x: u64, w: u64) -> u64 {
        (x << 22) / w
    }
    fn wsum(&self) -> u64 {
        let counted = |q: &&SlowQueue| q.active.is_some() || q.idle || q.serving;
        self.queues.iter().filter(counted).map(|q| q.w).sum()
    }
    fn put(&mut self, i: usize) {
        self.inserted += 1;
        let q = &mut self.queues[i];
        q.f = q.s + Self::delta(q.budget, q.w);
        q.active = Some(self.inserted);
    }
    fn activate(&mut self, i: usize, budget: u64) {
        let v = self.v;
        let q = &mut self.queues[i];
        q.budget = budget;
        q.service = 0;
        q.s = if q.idle { v.max(q.f) } else { v };
        q.idle = false;
        self.put(i);
    }
    /// Whether `choice` may be served next; it then is. Of the eligible queues any may be: which of them the
    /// search finds depends on the shape of its tree.
    fn take(&mut self, choice: Option<usize>) -> bool {
        let starts = self.queues.iter().filter(|q| q.active.is_some()).map(|q| q.s);
        let (Some(least), Some(i)) = (starts.min(), choice) else {
            return choice.is_none() && self.queues.iter().all(|q| q.active.is_none());
        };
        if least > self.v {
            self.v = least;
            self.forget();
        }
        let q = &mut self.queues[i];
        let fits = q.active.is_some() && q.s <= self.v;
        (q.active, q.serving, q.service) = (None, true, 0);
        fits
    }
    fn charge(&mut self, i: usize, n: u64) {
        self.queues[i].service += n;
        self.v += Self::delta(n, self.wsum());
        self.forget();
    }
    fn forget(&mut self) {
        let none_active = self.queues.iter().all(|q| q.active.is_none());
        let idle: Vec<usize> = (0..self.queues.len()).filter(|i| self.queues[*i].idle).collect();
        let by_finish = |i: &usize| (self.queues[*i].f, self.queues[*i].idle_order);
        let (Some(first), Some(last)) = (
            idle.iter().copied().min_by_key(by_finish),
            idle.iter().copied().max_by_key(by_finish),
        ) else {
            return;
        };
        if none_active && self.queues[last].f <= self.v {
            self.v = self.queues[last].f;
        }
        if self.queues[first].f <= self.v {
            self.queues[first].idle = false;
        }
    }
    fn end(&mut self, i: usize, backlogged: bool, budget: u64) {
        let served = Self::delta(self.queues[i].service, self.queues[i].w);
        self.queues[i].serving = false;
        self.queues[i].budget = budget;
        if backlogged {
            self.queues[i].s += served;
            self.put(i);
        } else {
            self.inserted += 1;
            let v = self.v;
            let n = self.inserted;
            let q = &mut self.queues[i];
            q.f = q.s + served;
            q.idle = q.f > v;
            q.idle_order = n;
        }
    }
}

/// Who leaves without being in service has had no service, so it counts no longer; before, the budget it
/// never used kept it in the sum of weights.
#[test]
fn a_queue_that_leaves_unserved_counts_no_longer() {
    for (rules, counts) in [(V7, true), (V4_12, true), (CURRENT, false)] {
        let mut e = Engine::new(rules, 1000);
        let ids: Vec<u32> = (0..2).map(|q| e.add_queue(ROOT, 40, 1, q)).collect();
        for &id in &ids {
            e.set_budget(id, 1024);
            e.activate(id, false);
        }
        assert_eq!(e.take(), Some(0));
        e.charge(ids[0], 8);
        e.deactivate(ids[1]);
        assert_eq!((e.counted(ids[1]), e.weight_sum(ids[0]) == 80), (counts, counts), "{rules:?}");
    }
}

/// A queue that goes on alone after its slot does not pull V up to its own start, so one that left keeps
/// counting until it would have been served.
#[test]
fn a_slot_that_ends_without_rivals_leaves_v_alone() {
    for (rules, v) in [
        (CURRENT, 12.8 + 400.0 / 80.0),
        (Rules { quick_on_expiry: false, ..CURRENT }, 12.8 + 400.0 / 40.0),
    ] {
        let mut e = Engine::new(rules, 1000);
        let ids: Vec<u32> = (0..3).map(|q| e.add_queue(ROOT, 40, 1, q)).collect();
        ids.iter().for_each(|id| e.set_budget(*id, 1024));
        e.activate(ids[1], false);
        e.activate(ids[2], false);
        e.take();
        // It leaves at a finish of 25.6, with V at 12.8.
        e.charge(ids[1], 1024);
        e.activate(ids[0], false);
        e.expire(ids[1], false);
        e.deactivate(ids[2]);
        assert_eq!(e.take(), Some(0));
        e.charge(ids[0], 400);
        e.expire(ids[0], true);
        assert!(near(e.times(ids[0]).2, v), "{rules:?}: {:?}", e.times(ids[0]));
        assert!(e.counted(ids[1]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The engine without a cache does what the definition says, operation for operation, except for the choice among
    /// eligible queues.
    #[test]
    fn equals_the_definition(
        weights in prop::collection::vec(1u64..=1000, 1..12),
        steps in prop::collection::vec((0u8..4, any::<u16>(), 1u64..5000), 1..300),
    ) {
        let mut e = Engine::new(RULES[0], 1000);
        let mut slow = Slow::default();
        let mut ids = Vec::new();
        for (q, w) in weights.iter().enumerate() {
            ids.push(e.add_queue(ROOT, *w, 1, q as u32));
            slow.queues.push(SlowQueue { w: *w, ..SlowQueue::default() });
        }
        for (kind, which, n) in steps {
            let i = usize::from(which) % ids.len();
            let waiting = slow.queues[i].active.is_some() || slow.queues[i].serving;
            match kind {
                0 | 1 if !waiting => {
                    e.set_budget(ids[i], n);
                    e.set_service(ids[i], 0);
                    e.activate(ids[i], false);
                    slow.activate(i, n);
                }
                1 if slow.queues[i].active.is_some() => {
                    e.reposition(ids[i], n);
                    slow.queues[i].budget = n;
                    slow.put(i);
                }
                _ => {
                    let got = e.take().map(|q| q as usize);
                    prop_assert!(slow.take(got), "{got:?} of {:?}", slow.queues);
                    if let Some(q) = got {
                        for part in [n / 3, n / 2] {
                            e.charge(ids[q], part);
                            slow.charge(q, part);
                        }
                        let stays = which % 3 != 0;
                        e.set_budget(ids[q], n);
                        e.expire(ids[q], stays);
                        slow.end(q, stays, n);
                    }
                }
            }
            prop_assert_eq!(e.weight_sum(ids[0]), slow.wsum());
        }
    }

    /// Backlogged queues get their share of an ideal fluid server to within a budget, whatever the weights,
    /// the rules and the sizes of their requests.
    #[test]
    fn lag_stays_within_a_budget(
        weights in prop::collection::vec(1u64..=1000, 2..=50),
        sizes in prop::collection::vec(1u64..256, 50),
        rules in prop::sample::select(RULES.to_vec()),
    ) {
        const BUDGET: u64 = 2048;
        let mut e = Engine::new(rules, 1000);
        let mut ids = Vec::new();
        for (q, w) in weights.iter().enumerate() {
            let id = e.add_queue(ROOT, *w, 1, q as u32);
            e.set_budget(id, BUDGET);
            e.activate(id, false);
            ids.push(id);
        }
        let total_weight: u64 = weights.iter().sum();
        let mut served = vec![0u64; weights.len()];
        let mut total = 0u64;
        for _ in 0..20 * weights.len() {
            let q = e.take().expect("all are backlogged") as usize;
            while e.left(ids[q]) >= sizes[q] {
                e.charge(ids[q], sizes[q]);
                served[q] += sizes[q];
                total += sizes[q];
                for (i, w) in weights.iter().enumerate() {
                    let ideal = total as f64 * *w as f64 / total_weight as f64;
                    let lag = ideal - served[i] as f64;
                    // Never ahead by more than one budget, nor behind by more than one and what budgets
                    // do not divide by (all get the same budget, so a light one waits at most its turn).
                    prop_assert!(lag >= -(BUDGET as f64), "queue {i} ahead by {}", -lag);
                    let bound = BUDGET as f64 * (1.0 + *w as f64 / total_weight as f64) + 256.0;
                    prop_assert!(lag <= bound, "queue {i} behind by {lag}, bound {bound}");
                }
            }
            e.expire(ids[q], true);
        }
    }

    /// Other queues come and go. The first queue stays and gets what it would get if all were always there.
    #[test]
    fn a_backlogged_queue_keeps_its_share_while_others_come_and_go(
        weights in prop::collection::vec(1u64..=1000, 2..=50),
        steps in prop::collection::vec((any::<u16>(), any::<bool>(), 1u64..=2048), 50..1500),
        rules in prop::sample::select(RULES.to_vec()),
    ) {
        const BUDGET: u64 = 2048;
        let mut e = Engine::new(rules, 1000);
        let add = |(q, w): (usize, &u64)| e.add_queue(ROOT, *w, 1, q as u32);
        let ids: Vec<u32> = weights.iter().enumerate().map(add).collect();
        let share = weights[0] as f64 / weights.iter().sum::<u64>() as f64;
        let mut away = vec![true; ids.len()];
        let (mut own, mut total) = (0, 0);
        for (which, stays, used) in steps {
            for q in [0, usize::from(which) % ids.len(), usize::from(which / 50) % ids.len()] {
                if std::mem::take(&mut away[q]) {
                    e.set_budget(ids[q], BUDGET);
                    e.set_service(ids[q], 0);
                    e.activate(ids[q], false);
                }
            }
            let q = e.take().expect("the first is always there") as usize;
            let served = if q == 0 { BUDGET } else { used };
            e.charge(ids[q], served);
            total += served;
            own += if q == 0 { served } else { 0 };
            away[q] = q != 0 && !stays;
            e.set_budget(ids[q], BUDGET);
            e.expire(ids[q], !away[q]);
            let lag = total as f64 * share - own as f64;
            prop_assert!(lag <= 2.0 * BUDGET as f64, "behind by {lag}");
        }
    }
}

/// A queue that was given service while it waited, by injection, has less of its budget left when its slot begins. The
/// kernel let a writer with a budget of 10,922 send nine requests of 1024 sectors after one had been injected.
#[test]
fn what_was_injected_counts_in_the_slot() {
    let mut e = Engine::new(CURRENT, 1000);
    let ids = [e.add_queue(ROOT, 80, 1, 0), e.add_queue(ROOT, 40, 1, 1)];
    for id in ids {
        e.set_budget(id, 10_922);
        e.activate(id, false);
    }
    assert_eq!(e.take(), Some(0));
    e.charge(ids[1], 1024);
    e.expire(ids[0], false);
    assert_eq!(slot(&mut e, &ids, 1024, 10_922), (1, 9 * 1024));
}

/// Injection asks the queues in this order. One that is put back, after its slot or with another budget, is the newest.
#[test]
fn the_queue_put_on_its_tree_last_comes_first() {
    let mut e = Engine::new(CURRENT, 1000);
    let group = e.add_group(ROOT, 100);
    let ids: Vec<u32> = [ROOT, group, ROOT, ROOT]
        .into_iter()
        .enumerate()
        .map(|(q, set)| e.add_queue(set, 40, 1, q as u32))
        .collect();
    let order = |e: &Engine| e.waiting().collect::<Vec<_>>();
    for &id in &ids {
        e.set_budget(id, 1000);
        e.activate(id, false);
    }
    assert_eq!(order(&e), [3, 2, 1, 0]);
    e.reposition(ids[1], 500);
    assert_eq!(order(&e), [1, 3, 2, 0]);
    let served = e.take().unwrap();
    assert!(!order(&e).contains(&served), "a queue in service does not wait");
    e.charge(ids[served as usize], 8);
    e.expire(ids[served as usize], true);
    assert_eq!(order(&e)[0], served);
    e.deactivate(ids[3]);
    assert!(!order(&e).contains(&3));
}

/// A heavier queue outranks a lighter one of a higher class, which only decides whether it may try to preempt.
#[test]
fn class_or_weight_outranks() {
    let mut e = Engine::new(CURRENT, 1000);
    let mut queue = |weight, class| e.add_queue(ROOT, weight, class, 0);
    let (light_rt, heavy_rt, be) = (queue(20, 0), queue(80, 0), queue(40, 1));
    assert!(e.outranks(light_rt, be) && e.outranks(heavy_rt, be));
    assert!(e.outranks(be, light_rt));
    assert!(!e.outranks(be, heavy_rt));
    assert!(e.outranks(heavy_rt, light_rt) && !e.outranks(light_rt, heavy_rt));
}
