use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

proptest! {
    /// Bitmaps beside sets of pages, across leaves and chunks.
    #[test]
    fn bitmaps_say_what_sets_say(
        steps in prop::collection::vec((0..4_u8, 0..400_u64, 1..150_u64, any::<bool>()), 1..60),
        base in prop_oneof![Just(0), Just(CHUNK as u64 * LEAF - 250)],
    ) {
        let mut pages = Mapping::default();
        let (mut present, mut dirty) = (BTreeSet::new(), BTreeSet::new());
        for (what, from, length, on) in steps {
            let from = base + from;
            let to = from + length;
            match what {
                0 => {
                    let mut at = from;
                    while let Some(a) = pages.next(at, to, Mark::Present, false) {
                        let b = pages.next(a, to, Mark::Present, true).unwrap_or(to);
                        pages.insert(a, b, 1);
                        present.extend(a..b);
                        at = b;
                    }
                }
                1 => {
                    let before = present.len();
                    present.retain(|p| !(from..to).contains(p));
                    dirty.retain(|p| !(from..to).contains(p));
                    prop_assert_eq!(pages.remove(from, to), (before - present.len()) as u64);
                }
                _ => {
                    for page in from..to {
                        if present.contains(&page) {
                            pages.set(page, page + 1, Mark::Dirty, on);
                            if on { dirty.insert(page); } else { dirty.remove(&page); }
                        }
                    }
                }
            }
            prop_assert_eq!(pages.present(), present.len() as u64);
            prop_assert_eq!(pages.dirty(), dirty.len() as u64);
            prop_assert_eq!(pages.count(from, to, Mark::Dirty), dirty.range(from..to).count() as u64);
            prop_assert_eq!(pages.next(from, to, Mark::Dirty, true), dirty.range(from..to).next().copied());
            prop_assert_eq!(pages.last(from, to, Mark::Dirty, true), dirty.range(from..to).last().copied());
            let (far, end) = (u64::MAX, pages.end());
            prop_assert_eq!(pages.next(0, far, Mark::Dirty, true), dirty.first().copied());
            let hole = (from..).find(|p| !present.contains(p));
            prop_assert_eq!(pages.next(from, end.max(to), Mark::Present, false), hole.filter(|h| *h < end.max(to)));
            prop_assert_eq!(
                pages.next(from, to, Mark::Present, false),
                (from..to).find(|p| !present.contains(p))
            );
            prop_assert_eq!(
                pages.last(from, to, Mark::Present, false),
                (from..to).rev().find(|p| !present.contains(p))
            );
        }
    }
}
