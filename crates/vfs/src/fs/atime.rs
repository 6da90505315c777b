//! The time of a file's last access: when a read changes it.

use iosched_types::Nanos;

/// `noatime`, `relatime`, `strictatime`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Atime {
    /// Never.
    Never,
    /// When the file was changed since, or a day ago.
    #[default]
    Relative,
    /// In each second anew.
    Strict,
}

const SECOND: Nanos = 1_000_000_000;
const DAY: Nanos = 86_400 * SECOND;

/// The times of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    accessed: Option<Nanos>,
    changed: Nanos,
}

impl Times {
    /// The file was changed.
    pub fn change(&mut self, now: Nanos) {
        self.changed = now;
    }

    /// The file is read. Whether that is noted.
    pub fn access(&mut self, rule: Atime, now: Nanos) -> bool {
        let due = match (rule, self.accessed) {
            (Atime::Never, _) => false,
            (_, None) => true,
            (Atime::Relative, Some(at)) => at <= self.changed || at + DAY <= now,
            (Atime::Strict, Some(at)) => at / SECOND != now / SECOND,
        };
        if due {
            self.accessed = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_read_after_a_change_is_noted() {
        let mut t = Times::default();
        t.change(5);
        let read = |t: &mut Times, rule, at| t.access(rule, at * SECOND);
        assert!(!read(&mut t, Atime::Never, 1));
        assert!(read(&mut t, Atime::Relative, 1));
        assert!(!read(&mut t, Atime::Relative, 2));
        t.change(3 * SECOND);
        assert!(read(&mut t, Atime::Relative, 4));
        assert!(!read(&mut t, Atime::Relative, 86_000));
        assert!(read(&mut t, Atime::Relative, 86_500));
        assert!(read(&mut t, Atime::Strict, 86_501));
        assert!(!t.access(Atime::Strict, 86_501 * SECOND + 7));
    }
}
