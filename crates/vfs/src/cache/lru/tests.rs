use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The same rules with one list entry a page and nothing lazy.
#[derive(Default)]
struct Oracle {
    inactive: Vec<(u32, u64)>,
    active: Vec<(u32, u64)>,
    referenced: BTreeMap<(u32, u64), bool>,
    busy: BTreeMap<(u32, u64), bool>,
}

impl Oracle {
    fn insert(&mut self, key: (u32, u64)) {
        self.inactive.push(key);
    }

    fn touch(&mut self, key: (u32, u64)) {
        if !self.inactive.contains(&key) && !self.active.contains(&key) {
            return;
        }
        if self.referenced.insert(key, true) == Some(true) && self.inactive.contains(&key) {
            self.inactive.retain(|k| *k != key);
            self.active.push(key);
            self.referenced.insert(key, false);
        }
    }

    fn remove(&mut self, key: (u32, u64)) {
        self.inactive.retain(|k| *k != key);
        self.active.retain(|k| *k != key);
        self.referenced.remove(&key);
        self.busy.remove(&key);
    }

    fn evict_one(&mut self) {
        for _ in 0..=self.inactive.len() + self.active.len() {
            while self.inactive.len() < self.active.len() {
                let key = self.active.remove(0);
                self.referenced.insert(key, false);
                self.inactive.push(key);
            }
            if self.inactive.is_empty() {
                return;
            }
            let key = self.inactive.remove(0);
            if self.busy.get(&key) == Some(&true) {
                self.inactive.push(key);
            } else {
                self.referenced.remove(&key);
                return;
            }
        }
    }
}

struct Two([Mapping; 2]);

impl Files for Two {
    fn pages(&mut self, file: u32) -> Option<&mut Mapping> {
        self.0.get_mut(file as usize)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u32, u64),
    Touch(u32, u64),
    Remove(u32, u64),
    Busy(u32, u64, bool),
    Evict,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let page = (0..2_u32, 0..40_u64);
    let step = prop_oneof![
        4 => page.clone().prop_map(|(f, p)| Step::Insert(f, p)),
        6 => page.clone().prop_map(|(f, p)| Step::Touch(f, p)),
        1 => page.clone().prop_map(|(f, p)| Step::Remove(f, p)),
        1 => (page, any::<bool>()).prop_map(|((f, p), b)| Step::Busy(f, p, b)),
        3 => Just(Step::Evict),
    ];
    prop::collection::vec(step, 1..400)
}

proptest! {
    /// The same pages stay as with one entry a page.
    #[test]
    fn lazy_lists_keep_the_same_pages(steps in steps()) {
        let mut oracle = Oracle::default();
        let mut files = Two([Mapping::default(), Mapping::default()]);
        let mut lru = Lru::default();
        for step in steps {
            match step {
                Step::Insert(file, page) => {
                    let pages = &mut files.0[file as usize];
                    if !pages.has(page, Mark::Present) {
                        pages.insert(page, page + 1, 1);
                        pages.set(page, page + 1, Mark::Uptodate, true);
                        lru.insert(file, page, page + 1);
                        oracle.insert((file, page));
                    }
                }
                Step::Touch(file, page) => {
                    lru.touch(file, page, page + 1, &mut files.0[file as usize]);
                    oracle.touch((file, page));
                }
                Step::Remove(file, page) => {
                    let pages = &mut files.0[file as usize];
                    lru.remove(file, page, page + 1, pages);
                    pages.remove(page, page + 1);
                    oracle.remove((file, page));
                }
                Step::Busy(file, page, on) => {
                    let pages = &mut files.0[file as usize];
                    if pages.has(page, Mark::Present) {
                        pages.set(page, page + 1, Mark::Writeback, on);
                        oracle.busy.insert((file, page), on);
                    }
                }
                Step::Evict => {
                    lru.evict(1, &mut files);
                    oracle.evict_one();
                }
            }
            let kept: u64 = files.0.iter().map(Mapping::present).sum();
            prop_assert_eq!(kept, lru.pages());
            prop_assert_eq!(kept as usize, oracle.inactive.len() + oracle.active.len());
            prop_assert_eq!(lru.active() as usize, oracle.active.len());
            for (file, page) in oracle.inactive.iter().chain(&oracle.active) {
                prop_assert!(files.0[*file as usize].has(*page, Mark::Present));
            }
        }
    }
}

/// A file larger than memory is never found again; one that was read twice survives it. Linux 6.12, classic LRU.
#[test]
fn a_stream_does_not_drive_out_what_was_read_twice() {
    let capacity = 98_000;
    let mut files = Two([Mapping::default(), Mapping::default()]);
    let mut lru = Lru::default();
    let mut read = |file: u32, mib: u64| {
        let mut missed = 0;
        for page in 0..mib * 256 {
            if !files.0[file as usize].has(page, Mark::Present) {
                missed += 1;
                if lru.pages() >= capacity {
                    assert_eq!(lru.evict(1, &mut files), 1);
                }
                let pages = &mut files.0[file as usize];
                pages.insert(page, page + 1, 1);
                pages.set(page, page + 1, Mark::Uptodate, true);
                lru.insert(file, page, page + 1);
            }
            lru.touch(file, page, page + 1, &mut files.0[file as usize]);
        }
        missed * 100 / (mib * 256)
    };
    assert_eq!((read(0, 600), read(0, 600)), (100, 100));
    assert_eq!((read(1, 64), read(1, 64)), (100, 0));
    assert_eq!((read(0, 600), read(1, 64)), (100, 0));
}

/// Two pages that share an entry of the active list beside one inactive page: only one of them has to age.
#[test]
fn no_more_pages_age_than_must() {
    let mut files = Two([Mapping::default(), Mapping::default()]);
    let mut lru = Lru::default();
    for (file, page) in [(0, 0), (1, 13), (1, 14)] {
        let pages = &mut files.0[file as usize];
        pages.insert(page, page + 1, 1);
        pages.set(page, page + 1, Mark::Uptodate, true);
        lru.insert(file, page, page + 1);
    }
    for page in [13, 13, 14, 14] {
        lru.touch(1, page, page + 1, &mut files.0[1]);
    }
    assert_eq!(lru.active(), 2);
    assert_eq!(lru.evict(1, &mut files), 1);
    assert_eq!((lru.active(), lru.pages(), files.0[0].present()), (1, 2, 0));
}
