//! Whose a line is.
//!
//! In a file of `-o` each line has the number of its task. On a terminal lines have one as long as strace follows several
//! tasks, and none while it follows one: whichever that is. A child is followed from the line on which strace says that
//! it is attached, or from its own first line on. The call that made it may have come back long before.

use iosched_types::Nanos;

use super::read::{Reader, makes_tasks};

impl Reader {
    /// The task that a line is about; made if it is new. A line that `resumes` a call is never the first of a child.
    pub(super) fn who(&mut self, pid: Option<u32>, resumes: bool, now: Option<Nanos>) -> u32 {
        let pid = match pid {
            Some(pid) => {
                self.named(pid, resumes, now);
                pid
            }
            None => self.nameless(),
        };
        self.family.followed.insert(pid);
        pid
    }

    /// A line with a number.
    fn named(&mut self, pid: u32, resumes: bool, now: Option<Nanos>) {
        if self.tables.alive.contains_key(&pid) {
            return;
        }
        let first = self.tables.alive.contains_key(&0);
        match self.maker() {
            Some(parent) if !(resumes && first) => self.child(parent, pid, now),
            _ if first => self.number_of_the_first(pid),
            _ if self.adopt(pid) => {}
            _ => self.arrives(pid),
        }
    }

    /// The task of a line without a number: the only one that is followed.
    fn nameless(&mut self) -> u32 {
        let alive = &self.tables.alive;
        let mut followed = alive.keys().copied().filter(|p| self.family.followed.contains(p));
        let only = match (followed.next(), followed.next()) {
            (only, None) => only,
            _ => None,
        };
        // With -qq nobody says that a task is gone.
        let first = || [0, self.family.nameless].into_iter().find(|p| alive.contains_key(p));
        let oldest = || alive.iter().min_by_key(|(_, t)| t.task).map(|(pid, _)| *pid);
        let pid = only.or_else(first).or_else(oldest).unwrap_or(0);
        if !self.tables.alive.contains_key(&pid) {
            self.arrives(pid);
        }
        self.family.nameless = pid;
        pid
    }

    /// strace says that it follows a task from here on.
    pub(super) fn attached(&mut self, pid: u32) {
        if !self.tables.alive.contains_key(&pid)
            && let Some(parent) = self.maker()
        {
            self.child(parent, pid, self.clock);
        }
        self.family.followed.insert(pid);
    }

    /// Who is making a task of which nothing is known yet.
    fn maker(&self) -> Option<u32> {
        let maker = self.pending.iter().find(|(_, p)| makes_tasks(&p.name) && p.child.is_none());
        maker.map(|(pid, _)| *pid)
    }

    /// The first task had no number as long as it was alone.
    fn number_of_the_first(&mut self, pid: u32) {
        let Some(first) = self.tables.alive.remove(&0) else { return };
        self.log.tasks[first.task].pid = pid;
        self.tables.alive.insert(pid, first);
        if let Some(p) = self.pending.remove(&0) {
            self.pending.insert(pid, p);
        }
        self.family.renumber(0, pid);
    }

    fn arrives(&mut self, pid: u32) {
        let cwd = self.cwd.clone();
        let task = self.task(pid, None, false);
        self.tables.arrive(pid, task, &cwd, self.before.threads);
    }
}
