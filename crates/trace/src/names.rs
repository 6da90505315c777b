//! Names of disks and tasks, kept once.

use std::collections::BTreeMap;

/// A name by its number in [`Names`]. Number 0 is "unknown".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(pub u32);

/// Names by number.
#[derive(Clone, Debug)]
pub struct Names {
    list: Vec<String>,
    index: BTreeMap<String, u32>,
    last: u32,
}

/// Names beyond this number are all the last one, so that a file of random names takes no more memory than others.
const MOST: usize = 1 << 16;

impl Default for Names {
    fn default() -> Self {
        Names { list: vec![String::new()], index: BTreeMap::from([(String::new(), 0)]), last: 0 }
    }
}

impl Names {
    /// The number of a name, which is new if need be.
    pub fn of(&mut self, name: &str) -> Name {
        // Events of one task and disk come in a row.
        if self.list[self.last as usize] == name {
            return Name(self.last);
        }
        self.last = match self.index.get(name) {
            Some(n) => *n,
            None if self.list.len() == MOST => (MOST - 1) as u32,
            None => {
                let n = self.list.len() as u32;
                self.list.push(name.to_string());
                self.index.insert(name.to_string(), n);
                n
            }
        };
        Name(self.last)
    }

    /// The text of a name; empty when unknown.
    #[must_use]
    pub fn text(&self, name: Name) -> &str {
        self.list.get(name.0 as usize).map_or("", String::as_str)
    }

    /// The number of a name that is there.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Name> {
        self.index.get(name).map(|n| Name(*n))
    }
}
