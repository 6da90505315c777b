//! Maps of files in a log.
//!
//! A log has no line for a page that is read through a map. What it shows is for how long there is a map: a program that gives
//! one back has used it like a read, so it read all of it. Of one that stays (tables of the C library, data bases) nothing
//! says which pages were used; its first one is read.

use super::Act;
use super::args::has;
use super::read::{Call, Reader};

/// A map that is read.
pub(super) struct Mapped {
    map: u32,
    /// The step that made it.
    made: (usize, usize),
}

impl Reader {
    /// What is stored into a map is not in the log, and programs and libraries are not read through theirs.
    pub(super) fn map(&mut self, c: &Call<'_>) -> bool {
        let (protection, flags) = (c.arg(2), c.arg(3));
        let writes = has(flags, "MAP_SHARED") && has(protection, "PROT_WRITE");
        let file = self.behind(c, c.arg(4)).flatten().filter(|file| !self.is_device(*file));
        self.maps += u64::from(writes && file.is_some() && c.ok().is_some());
        let loads = has(protection, "PROT_EXEC")
            || ["MAP_FIXED", "MAP_DENYWRITE"].iter().any(|word| has(flags, word));
        let reads = has(protection, "PROT_READ") && !loads && !writes;
        let (Some(address), Some(file), Some(len), true) = (c.ok(), file, c.number(1), reads)
        else {
            return self.null(c);
        };
        let at = c.number(5).map_or(0, i64::cast_unsigned);
        let map = self.log.mapped;
        self.log.mapped += 1;
        let Some(task) = self.tables.alive.get(&c.pid).map(|t| t.task) else { return self.null(c) };
        let len = len.cast_unsigned();
        self.push(c, Act::Map { file, at, len, map, whole: false }, None);
        let made = (task, self.log.tasks[task].steps.len().saturating_sub(1));
        self.mapped.insert((c.pid, address), Mapped { map, made });
        true
    }

    pub(super) fn unmap(&mut self, c: &Call<'_>) -> bool {
        let gone = c.number(0).and_then(|address| self.mapped.remove(&(c.pid, address)));
        let Some(Mapped { map, made: (task, step) }) = gone.filter(|_| c.ok().is_some()) else {
            return self.null(c);
        };
        let made = self.log.tasks[task].steps.get_mut(step);
        if let Some(Act::Map { whole, .. }) = made.map(|s| &mut s.act) {
            *whole = true;
        }
        self.done(c, Act::Unmap { map }, None)
    }
}
