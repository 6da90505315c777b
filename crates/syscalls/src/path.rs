//! Names in calls, without an allocation per call.

use std::cell::Cell;
use std::fmt::{self, Write};
use std::ops::Deref;
use std::rc::Rc;

/// A name, relative to the directory that the program runs in. Cheap to keep and to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Path(Rc<String>);

impl Deref for Path {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Path {
    fn from(text: &str) -> Path {
        Path(Rc::new(text.to_string()))
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Makes names. If the host of the last call has dropped its name, the next one is written into the same memory.
#[derive(Default)]
pub struct PathCache {
    // Two, since a rename has two at once.
    slots: [Cell<Option<Path>>; 2],
}

impl fmt::Debug for PathCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PathCache")
    }
}

impl PathCache {
    /// `text` as a name; `slot` 0, or 1 for the second name of a call.
    pub fn make(&self, slot: usize, text: impl fmt::Display) -> Path {
        let cell = &self.slots[slot % 2];
        let mut path = cell.take().unwrap_or_default();
        if Rc::get_mut(&mut path.0).is_none() {
            path = Path::default();
        }
        if let Some(out) = Rc::get_mut(&mut path.0) {
            out.clear();
            // Writing to a string cannot fail; a `Display` that fails leaves a shorter name.
            let _ = write!(out, "{text}");
        }
        cell.set(Some(path.clone()));
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_once_the_name_is_dropped() {
        let cache = PathCache::default();
        let first = cache.make(0, "journal");
        let kept = first.as_ptr();
        let second = cache.make(0, format_args!("f{}", 7));
        assert_eq!((&*first, &*second), ("journal", "f7"), "a name that is held is not changed");
        drop((first, second));
        let third = cache.make(0, "f8");
        assert_eq!(&*third, "f8");
        let again = third.as_ptr();
        drop(third);
        assert_eq!(cache.make(0, "f9").as_ptr(), again);
        assert_ne!(again, kept);
    }
}
