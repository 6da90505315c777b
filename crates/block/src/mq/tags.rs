//! Tag maps as the kernel's `sbitmap_queue` behaves: words, shallow depth, eight wait queues, batched
//! wake-ups.

use std::collections::VecDeque;

use iosched_types::TaskId;

use crate::profile::ShallowDepth;

const WAIT_QUEUES: usize = 8;

/// One word of the map. Freed bits are only noted in `freed`; they become free again when the word has no
/// other bit to give. So tags are not reused at once, and the low bits, the only ones a shallow
/// allocation may take, are rarely held by others.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    busy: u64,
    freed: u64,
    /// The bits there are.
    all: u64,
}

fn low_bits(n: u32) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

impl Word {
    /// Takes one of the bits `from`, from `hint` on and then from 0. A word of which none may be taken is not looked at,
    /// so what was freed in it stays noted.
    #[inline]
    fn take(&mut self, from: u64, hint: u32) -> Option<u32> {
        if from == 0 {
            return None;
        }
        let mut free = !self.busy & from;
        if free == 0 {
            if self.freed == 0 {
                return None;
            }
            self.busy &= !self.freed;
            self.freed = 0;
            free = !self.busy & from;
            if free == 0 {
                return None;
            }
        }
        let from_hint = free & (u64::MAX << (hint & 63));
        let free = if from_hint == 0 { free } else { from_hint };
        self.busy |= free & free.wrapping_neg();
        Some(free.trailing_zeros())
    }

    /// Takes the first free bit.
    #[inline]
    fn take_any(&mut self) -> Option<u32> {
        let mut free = !self.busy & self.all;
        if free == 0 {
            self.busy &= !std::mem::take(&mut self.freed);
            free = !self.busy & self.all;
            if free == 0 {
                return None;
            }
        }
        self.busy |= free & free.wrapping_neg();
        Some(free.trailing_zeros())
    }
}

/// A map of tags with its sleepers.
#[derive(Debug)]
pub(crate) struct TagMap {
    depth: u32,
    shift: u32,
    words: Vec<Word>,
    /// The bits of each word that an operation limited to `allowed_by` may have. Kept because most operations have the
    /// same limit as the one before.
    allowed: Vec<u64>,
    allowed_by: u32,
    used: u32,
    hint: u32,
    mode: ShallowDepth,
    waiters: [VecDeque<TaskId>; WAIT_QUEUES],
    /// The shallow depths that tasks asleep, or just woken, ask for, by task.
    asked: Vec<Option<Option<u32>>>,
    sleeping: usize,
    wait_cursor: usize,
    wake_cursor: usize,
    wake_batch: u32,
    wake_all: bool,
    freed: u32,
}

/// log2 of the bits per word: 64, halved for maps of at least 4 bits until four words fit.
fn shift_for(depth: u32) -> u32 {
    let mut shift = 6;
    if depth >= 4 {
        while (4u32 << shift) > depth && shift > 0 {
            shift -= 1;
        }
    }
    shift
}

impl TagMap {
    /// A map of `depth` tags, first searched from bit `start` on (modulo `depth`). `shallow` is the smallest registered
    /// shallow depth, and whether a wake-up waits for an eighth of its tags, rather than of all.
    pub(crate) fn new(
        depth: u32,
        shallow: Option<(u32, bool)>,
        mode: ShallowDepth,
        wake_all: bool,
        start: u32,
    ) -> Self {
        let shift = shift_for(depth);
        let words = depth.div_ceil(1 << shift) as usize;
        let mut map = TagMap {
            depth,
            shift,
            words: vec![Word::default(); words],
            allowed: vec![0; words],
            allowed_by: 0,
            used: 0,
            hint: start % depth.max(1),
            mode,
            waiters: Default::default(),
            asked: Vec::new(),
            sleeping: 0,
            wait_cursor: 0,
            wake_cursor: 0,
            wake_batch: 1,
            wake_all,
            freed: 0,
        };
        for w in 0..map.words.len() {
            map.words[w].all = low_bits(map.bits(w));
        }
        let eighth = |tags: u32| (tags / WAIT_QUEUES as u32).clamp(1, 8);
        map.wake_batch = match shallow {
            None => eighth(depth),
            Some((shallow, true)) => eighth(map.limit(shallow)),
            // No more than can ever be given back: where all tags of the limit are in use, nothing else wakes its sleepers.
            Some((shallow, false)) => eighth(depth).min(map.limit(shallow).max(1)),
        };
        map
    }

    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    fn bits(&self, word: usize) -> u32 {
        (self.depth - ((word as u32) << self.shift)).min(1 << self.shift)
    }

    /// How many tags of a word an operation limited to `shallow` may use. A limit on the whole map is
    /// spread over the words in proportion to their size, the remainder going to the first ones.
    fn bits_within(&self, word: usize, shallow: u32) -> u32 {
        let bits = self.bits(word);
        match self.mode {
            ShallowDepth::Word => bits.min(shallow),
            ShallowDepth::Map if shallow >= self.depth => bits,
            ShallowDepth::Map => {
                let share = u64::from(bits) * u64::from(shallow);
                let (whole, rest) = (share / u64::from(self.depth), share % u64::from(self.depth));
                (whole + u64::from(rest >= (word as u64 + 1) * u64::from(bits))) as u32
            }
        }
    }

    /// How many tags an operation limited to `shallow` may use in all.
    pub(crate) fn limit(&self, shallow: u32) -> u32 {
        (0..self.words.len()).map(|w| self.bits_within(w, shallow)).sum()
    }

    /// Takes a free tag, obeying a shallow depth.
    #[inline(always)]
    pub(crate) fn get(&mut self, shallow: Option<u32>) -> Option<u32> {
        if self.used >= self.depth {
            return None;
        }
        let first = (self.hint >> self.shift) as usize;
        let found = match (shallow, self.words.get_mut(first)) {
            (None, Some(word)) => match word.take_any() {
                Some(bit) => Some((first, bit)),
                None => self.find_any(first),
            },
            (None, None) => None,
            (Some(shallow), _) => self.find_shallow(first, shallow),
        };
        let Some((w, bit)) = found else {
            self.hint = 0;
            return None;
        };
        self.used += 1;
        let tag = ((w as u32) << self.shift) + bit;
        if tag == self.hint {
            self.hint = if tag + 2 >= self.depth { 0 } else { tag + 1 };
        }
        Some(tag)
    }

    /// Any bit of the words from `first` on, around; the search starts at a word's first bit.
    #[cold]
    fn find_any(&mut self, first: usize) -> Option<(usize, u32)> {
        let (before, after) = self.words.split_at_mut_checked(first)?;
        for (w, word) in after.iter_mut().enumerate() {
            if let Some(bit) = word.take_any() {
                return Some((first + w, bit));
            }
        }
        before.iter_mut().enumerate().find_map(|(w, word)| Some((w, word.take_any()?)))
    }

    /// A bit that an operation limited to `shallow` may have; the search starts at the hint.
    fn find_shallow(&mut self, first: usize, shallow: u32) -> Option<(usize, u32)> {
        if self.allowed_by != shallow {
            self.allow(shallow);
        }
        let from = self.hint & ((1 << self.shift) - 1);
        let (before, after) = self.words.split_at_mut_checked(first)?;
        let (allowed_before, allowed_after) = self.allowed.split_at_checked(first)?;
        let mut all = after.iter_mut().zip(allowed_after).enumerate();
        if let Some((_, (word, allowed))) = all.next()
            && let Some(bit) = word.take(*allowed, from)
        {
            return Some((first, bit));
        }
        for (w, (word, allowed)) in all {
            if let Some(bit) = word.take(*allowed, 0) {
                return Some((first + w, bit));
            }
        }
        let mut rest = before.iter_mut().zip(allowed_before).enumerate();
        rest.find_map(|(w, (word, allowed))| Some((w, word.take(*allowed, 0)?)))
    }

    /// Works out which bits an operation limited to `shallow` may have.
    #[cold]
    fn allow(&mut self, shallow: u32) {
        self.allowed_by = shallow;
        for w in 0..self.words.len() {
            self.allowed[w] = low_bits(self.bits_within(w, shallow));
        }
    }

    /// Frees a tag and names the sleepers this wakes.
    #[inline(always)]
    pub(crate) fn put(&mut self, tag: u32, woken: &mut Vec<TaskId>) {
        let (w, bit) = ((tag >> self.shift) as usize, tag & ((1 << self.shift) - 1));
        let word = &mut self.words[w];
        debug_assert!((word.busy & !word.freed) >> bit & 1 == 1, "tag {tag} freed twice");
        word.freed |= 1 << bit;
        self.used -= 1;
        self.hint = tag;
        if self.sleeping == 0 {
            return;
        }
        self.freed += 1;
        if self.freed >= self.wake_batch {
            self.freed -= self.wake_batch;
            self.wake(woken);
        }
    }

    /// Wakes as many as a batch of tags serves, or all who sleep in the next queue that has any.
    fn wake(&mut self, woken: &mut Vec<TaskId>) {
        let before = woken.len();
        for _ in 0..WAIT_QUEUES {
            let q = self.wake_cursor;
            self.wake_cursor = (self.wake_cursor + 1) % WAIT_QUEUES;
            let left = if self.wake_all {
                self.wake_batch as usize - (woken.len() - before)
            } else {
                usize::MAX
            };
            let some = left.min(self.waiters[q].len());
            woken.extend(self.waiters[q].drain(..some));
            self.sleeping -= some;
            if some == left || (!self.wake_all && some > 0) {
                break;
            }
        }
        if self.sleeping == 0 {
            self.freed = 0;
        }
    }

    /// The shallow depth a woken task went to sleep with. The scheduler names it once an allocation,
    /// before the first try.
    #[inline(always)]
    pub(crate) fn take_asked(&mut self, task: TaskId) -> Option<Option<u32>> {
        self.asked.get_mut(task as usize)?.take()
    }

    /// The wait queue of a task that found no tag. The task takes its turn now, whether it has to sleep or finds a tag
    /// at the second try.
    pub(crate) fn next_place(&mut self) -> usize {
        let place = self.wait_cursor;
        self.wait_cursor = (self.wait_cursor + 1) % WAIT_QUEUES;
        place
    }

    /// Whether a task sleeps for a tag.
    pub(crate) fn waited_for_by(&self, task: TaskId) -> bool {
        self.waiters.iter().any(|w| w.contains(&task))
    }

    /// A task goes to sleep for a tag.
    pub(crate) fn sleep(&mut self, task: TaskId, shallow: Option<u32>, place: usize) {
        let t = task as usize;
        if t >= self.asked.len() {
            self.asked.resize(t + 1, None);
        }
        self.asked[t] = Some(shallow);
        self.waiters[place].push_back(task);
        self.sleeping += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(depth: u32, mode: ShallowDepth) -> TagMap {
        TagMap::new(depth, None, mode, true, 0)
    }

    fn take_all(m: &mut TagMap, shallow: Option<u32>) -> u32 {
        std::iter::from_fn(|| m.get(shallow)).count() as u32
    }

    #[test]
    fn words_are_as_wide_as_the_kernels() {
        let per_word = |d| 1 << shift_for(d);
        assert_eq!([256, 128, 64, 62, 32, 31].map(per_word), [64, 32, 16, 8, 8, 4]);
    }

    /// Shallow depth per word and over the whole map (spec scenario MQ-5).
    #[test]
    fn shallow_depth_is_per_word_until_6_16() {
        use ShallowDepth::{Map, Word};
        assert_eq!([192, 8].map(|s| map(256, Word).limit(s)), [256, 32]);
        assert_eq!([192, 8].map(|s| map(256, Map).limit(s)), [192, 8]);
        assert_eq!((map(64, Word).limit(48), map(64, Map).limit(48)), (64, 48));
        assert_eq!(take_all(&mut map(256, Word), Some(8)), 32);
        assert_eq!(take_all(&mut map(256, Map), Some(8)), 8);
    }

    #[test]
    fn sleepers_wake_in_batches_and_in_turn() {
        let mut m = map(32, ShallowDepth::Word);
        assert_eq!(take_all(&mut m, None), 32);
        for t in 0..10 {
            let place = m.next_place();
            m.sleep(t, None, place);
        }
        let mut woken = Vec::new();
        (0..3).for_each(|t| m.put(t, &mut woken));
        assert!(woken.is_empty(), "the batch of a map of 32 is 4");
        m.put(3, &mut woken);
        assert_eq!(woken, [0, 8, 1, 9], "the first queue holds tasks 0 and 8");
    }

    /// 4.12: job `hdd7k_q1.sr1rw4` without a scheduler, where five processes want one tag.
    #[test]
    fn all_sleepers_of_a_queue_wake_where_batches_do_not() {
        let mut m = TagMap::new(1, None, ShallowDepth::Word, false, 0);
        for t in 0..10 {
            let place = m.next_place();
            m.sleep(t, None, place);
        }
        let mut woken = Vec::new();
        for all in [vec![0, 8], vec![1, 9], vec![2]] {
            assert_eq!(m.get(None), Some(0));
            m.put(0, &mut woken);
            assert_eq!(std::mem::take(&mut woken), all);
        }
    }

    #[test]
    fn a_sleeper_keeps_the_depth_it_asked_for() {
        let mut m = map(16, ShallowDepth::Map);
        take_all(&mut m, None);
        m.sleep(3, Some(1), 0);
        m.sleep(4, None, 1);
        assert_eq!((m.take_asked(4), m.take_asked(4)), (Some(None), None));
        assert_eq!((m.take_asked(3), m.take_asked(3)), (Some(Some(1)), None));
    }

    /// Task 1 finds a tag at the second try, so the queue it would have slept in stays empty and task 0, which slept
    /// first, is woken before task 2, which sleeps in the queue behind the gap.
    #[test]
    fn a_task_takes_its_turn_even_if_it_need_not_sleep() {
        let mut m = map(8, ShallowDepth::Map);
        take_all(&mut m, None);
        let places: Vec<usize> = (0..3).map(|_| m.next_place()).collect();
        assert_eq!(places, [0, 1, 2]);
        m.sleep(0, None, places[0]);
        m.sleep(2, None, places[2]);
        let mut woken = Vec::new();
        (0..2).for_each(|t| m.put(t, &mut woken));
        assert_eq!(woken, [0, 2]);
        assert_eq!(m.next_place(), 3);
    }

    /// A limited task may take only the first bits of the map. The task before it has taken those from bit 32 on.
    #[test]
    fn the_search_begins_where_it_is_told() {
        let first = |start| TagMap::new(64, None, ShallowDepth::Map, true, start).get(Some(64));
        assert_eq!([0, 5, 32, 70].map(first), [Some(0), Some(5), Some(32), Some(6)]);
        let mut m = TagMap::new(64, None, ShallowDepth::Map, true, 32);
        assert_eq!((m.get(None), m.get(Some(1))), (Some(32), Some(0)));
    }

    /// Tag 4 comes back. A task limited to tag 0 finds nothing and does not look at that word. So when tag 5 comes back,
    /// both are only noted, and the next task takes the one at the hint.
    #[test]
    fn a_word_that_a_limit_leaves_out_is_not_looked_at() {
        let mut m = map(8, ShallowDepth::Map);
        assert_eq!(take_all(&mut m, None), 8);
        m.put(4, &mut Vec::new());
        assert_eq!(m.get(Some(1)), None);
        m.put(5, &mut Vec::new());
        assert_eq!([m.get(Some(8)), m.get(Some(8))], [Some(5), Some(4)]);
    }

    #[test]
    fn a_small_shallow_depth_shrinks_the_batch() {
        assert_eq!(TagMap::new(64, Some((1, true)), ShallowDepth::Word, true, 0).wake_batch, 1);
        let of_all = |shallow| TagMap::new(64, Some((shallow, false)), ShallowDepth::Word, true, 0);
        assert_eq!(
            (of_all(12).wake_batch, of_all(1).wake_batch),
            (8, 4),
            "4 words, one tag of each"
        );
        assert_eq!(TagMap::new(64, None, ShallowDepth::Word, true, 0).wake_batch, 8);
    }
}
