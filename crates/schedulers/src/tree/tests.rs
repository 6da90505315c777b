//! The tree beside a sorted vector.

use proptest::prelude::*;

use super::*;

/// The slow, obvious model: a sorted vector of (sector, insertion number, id).
#[derive(Default)]
struct Oracle(Vec<(Sector, u64, ReqId)>, u64);

impl Oracle {
    fn insert(&mut self, sector: Sector, id: ReqId) {
        self.1 += 1;
        self.0.push((sector, self.1, id));
        self.0.sort_unstable();
    }
    fn at(&self, sector: Sector, id: ReqId) -> Option<usize> {
        self.0.iter().position(|e| e.0 == sector && e.2 == id)
    }
    fn id(&self, i: Option<usize>) -> Option<ReqId> {
        self.0.get(i?).map(|e| e.2)
    }
}

fn check(t: &PosTree, o: &Oracle, probe: Sector) {
    assert_eq!(t.len(), o.0.len());
    assert_eq!(t.is_empty(), o.0.is_empty());
    assert_eq!(t.first(), o.id(Some(0)));
    assert_eq!(t.last(), o.id(o.0.len().checked_sub(1)));
    let from = o.0.iter().position(|e| e.0 >= probe);
    assert_eq!(t.first_at_or_after(probe), o.id(from));
    assert_eq!(t.last_before(probe), o.id(from.unwrap_or(o.0.len()).checked_sub(1)));
    assert_eq!(t.find(probe), o.id(o.0.iter().position(|e| e.0 == probe)));
}

fn check_all(t: &PosTree, o: &Oracle) {
    assert!(t.iter().eq(o.0.iter().map(|e| (e.0, e.2))));
    for (i, e) in o.0.iter().enumerate() {
        assert_eq!(t.next(e.0, e.2), o.id(Some(i + 1)));
        assert_eq!(t.prev(e.0, e.2), o.id(i.checked_sub(1)));
        assert!(t.contains(e.0, e.2) && !t.contains(e.0, e.2 + 1_000_000));
    }
}

/// A step: insert at a sector, or remove the n-th.
#[derive(Clone, Debug)]
enum Step {
    Insert(Sector),
    Remove(usize),
    RemoveAndNext(usize),
    RemoveAndNeighbours(usize),
}

fn steps(spread: Sector) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..spread).prop_map(Step::Insert),
        2 => any::<usize>().prop_map(Step::Remove),
        2 => any::<usize>().prop_map(Step::RemoveAndNext),
        2 => any::<usize>().prop_map(Step::RemoveAndNeighbours),
    ];
    // Growth, then shrinkage: the second half only removes.
    (prop::collection::vec(step, 0..700), any::<bool>()).prop_map(|(mut v, drain)| {
        if drain {
            let n = v.len();
            v.extend((0..n).map(|i| Step::Remove(i.wrapping_mul(2_654_435_761))));
        }
        v
    })
}

fn run(steps: &[Step]) {
    let (mut t, mut o) = (PosTree::new(), Oracle::default());
    for (n, step) in steps.iter().enumerate() {
        let probe = match *step {
            Step::Insert(sector) => {
                t.insert(sector, n as ReqId);
                o.insert(sector, n as ReqId);
                sector
            }
            Step::Remove(i) | Step::RemoveAndNext(i) | Step::RemoveAndNeighbours(i)
                if !o.0.is_empty() =>
            {
                let i = i % o.0.len();
                let (sector, _, id) = o.0.remove(i);
                let (before, after) = (o.id(i.checked_sub(1)), o.id(Some(i)));
                match step {
                    Step::Remove(_) => assert!(t.remove(sector, id)),
                    Step::RemoveAndNext(_) => {
                        assert_eq!(t.remove_and_next(sector, id), after);
                    }
                    _ => assert_eq!(t.remove_and_neighbours(sector, id), Some((before, after))),
                }
                assert_eq!(o.at(sector, id), None);
                sector
            }
            _ => 0,
        };
        check(&t, &o, probe);
        check(&t, &o, probe + 1);
    }
    check_all(&t, &o);
    t.clear();
    check(&t, &Oracle::default(), 7);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn equals_a_sorted_vector(s in steps(1 << 40)) { run(&s); }

    #[test]
    fn equals_a_sorted_vector_with_duplicates(s in steps(9)) { run(&s); }
}

#[test]
fn equal_starts_keep_their_order_across_chunks() {
    let mut t = PosTree::new();
    for id in 0..300 {
        t.insert(5, id);
    }
    t.insert(4, 900);
    t.insert(6, 901);
    assert_eq!(t.find(5), Some(0));
    assert_eq!(t.next(4, 900), Some(0));
    assert_eq!(t.prev(6, 901), Some(299));
    assert_eq!(t.remove_and_next(5, 150), Some(151));
    let ids: Vec<ReqId> = t.iter().map(|(_, id)| id).collect();
    assert!(ids[1..ids.len() - 1].is_sorted() && ids.len() == 301);
}

#[test]
fn what_is_not_there_is_not_found() {
    let mut t = PosTree::new();
    assert!(!t.remove(1, 1) && t.next(1, 1).is_none() && t.prev(1, 1).is_none());
    t.insert(10, 1);
    assert!(!t.remove(10, 2) && !t.remove(11, 1) && t.remove(10, 1) && t.first().is_none());
}
