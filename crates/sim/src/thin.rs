//! Evenly thinned out lists: a picture needs thousands of points, not millions.

/// Keeps every k-th item, doubling k whenever the list is full.
#[derive(Debug)]
pub(crate) struct Thin<T> {
    items: Vec<T>,
    stride: u64,
    seen: u64,
    most: usize,
}

impl<T: Copy> Thin<T> {
    pub(crate) fn new(most: usize) -> Self {
        Thin { items: Vec::new(), stride: 1, seen: 0, most }
    }

    pub(crate) fn push(&mut self, item: T) {
        if self.seen.is_multiple_of(self.stride) {
            if self.items.len() == self.most {
                let mut i = 0;
                self.items.retain(|_| {
                    i += 1;
                    i % 2 == 1
                });
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                self.items.push(item);
            }
        }
        self.seen += 1;
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_evenly_spaced_items() {
        let mut t = Thin::new(8);
        (0..100u32).for_each(|i| t.push(i));
        let v = t.into_vec();
        assert!(v.len() <= 8 && v.len() > 4, "{v:?}");
        assert!(v.windows(2).all(|w| w[1] - w[0] == v[1] - v[0]), "{v:?}");
    }
}
