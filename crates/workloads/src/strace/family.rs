//! Who made whom: process numbers of a log, and tasks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Act;
use super::line;
use super::read::{Call, Reader};
use super::rows::Rows;

/// What is known of the numbers of processes.
///
/// In another namespace of process ids (a container, `unshare --pid`) a call returns the number of that namespace, and the
/// lines of the child have that of strace's own.
#[derive(Debug, Default)]
pub(super) struct Family {
    /// Numbers at the beginning of lines.
    lines: BTreeSet<u32>,
    /// The number in its lines of a child, by the number of the parent and that which its parent was given.
    aliases: BTreeMap<(u32, u32), u32>,
    /// Children whose numbers no line has, the oldest first: number of the parent, number given.
    unseen: VecDeque<(u32, u32)>,
    /// Tasks that a parent has made.
    made: BTreeSet<usize>,
    /// Numbers of tasks that strace is known to follow and that have not ended.
    pub(super) followed: BTreeSet<u32>,
    /// Whose the last line without a number was.
    pub(super) nameless: u32,
}

impl Family {
    pub(super) fn of(rows: &Rows<'_>) -> Family {
        let lines = rows.rows.iter().filter_map(|row| line::pid(&row.text).0).collect();
        Family { lines, ..Family::default() }
    }

    /// Whether no line says whose it is.
    pub(super) fn is_nameless(&self) -> bool {
        self.lines.is_empty()
    }

    /// A task has another number from here on.
    pub(super) fn renumber(&mut self, from: u32, to: u32) {
        self.followed.remove(&from);
        self.unseen.iter_mut().filter(|(p, _)| *p == from).for_each(|(p, _)| *p = to);
        let number = |pid: u32| if pid == from { to } else { pid };
        let aliases = std::mem::take(&mut self.aliases).into_iter();
        self.aliases = aliases.map(|((p, given), seen)| ((number(p), given), seen)).collect();
    }

    /// Whether the number that a parent was given is another one of the child that was seen; noted if so.
    pub(super) fn is_alias(&mut self, parent: u32, given: u32, seen: u32) -> bool {
        let other = !self.lines.contains(&given);
        if other {
            self.aliases.insert((parent, given), seen);
        }
        other
    }

    /// The number in a child's lines.
    fn in_lines(&self, parent: u32, given: u32) -> u32 {
        self.aliases.get(&(parent, given)).copied().unwrap_or(given)
    }
}

impl Reader {
    /// A process nobody made yet: it is the oldest child whose number no line has, if there is one.
    pub(super) fn adopt(&mut self, pid: u32) -> bool {
        let Some((parent, given)) = self.family.unseen.pop_front() else { return false };
        let Some(child) = self.tables.alive.remove(&given) else { return false };
        self.log.tasks[child.task].pid = pid;
        self.tables.alive.insert(pid, child);
        self.family.aliases.insert((parent, given), pid);
        true
    }

    /// The task of a child that was waited for.
    pub(super) fn child_of(&mut self, c: &Call<'_>, given: u32) -> Option<usize> {
        let pid = self.family.in_lines(c.pid, given);
        let task = match self.dead.remove(&pid) {
            Some(t) => t,
            // The task is gone although its last line comes later.
            None => self.tables.alive.get(&pid)?.task,
        };
        let own = self.tables.alive.get(&c.pid)?.task;
        (self.log.tasks[task].parent == Some(own)).then_some(task)
    }

    pub(super) fn make_task(&mut self, c: &Call<'_>) -> bool {
        let Some(given) = c.ok().and_then(|p| u32::try_from(p).ok()) else { return self.null(c) };
        let Some(own) = self.tables.alive.get(&c.pid).map(|t| t.task) else { return self.null(c) };
        let pid = self.family.in_lines(c.pid, given);
        let seen = self.tables.alive.get(&pid).map(|t| t.task);
        let mut known = seen.or_else(|| self.dead.get(&pid).copied());
        if known.is_some_and(|t| self.is_above(t, own)) {
            let (line, own) = (c.line, c.pid);
            let text = format!(
                "line {line}: process {own} made {given}, which it descends from: left out"
            );
            self.log.warnings.push(text);
            return self.null(c);
        }
        if known.is_some_and(|t| self.family.made.contains(&t)) {
            // The number was given again. The log does not say how the process before it ended.
            self.gone(pid);
            self.dead.remove(&pid);
            known = None;
        }
        let task = match known {
            Some(task) => task,
            None => {
                self.born(c.pid, pid, &c.args.join(","), c.start);
                if !self.family.lines.contains(&pid) {
                    self.family.unseen.push_back((c.pid, pid));
                }
                match self.tables.alive.get(&pid) {
                    Some(t) => t.task,
                    None => return self.null(c),
                }
            }
        };
        let parent = &mut self.log.tasks[task].parent;
        if parent.is_none() {
            if task < own {
                // It began before its parent did: it runs from the start.
                return self.null(c);
            }
            *parent = Some(own);
        }
        self.family.made.insert(task);
        self.done(c, Act::Child { task: task as u32 }, None)
    }

    /// Whether a task is another one, or one of those that it descends from.
    fn is_above(&self, task: usize, of: usize) -> bool {
        let up = |t: &usize| self.log.tasks[*t].parent;
        std::iter::successors(Some(of), up).any(|t| t == task)
    }
}
