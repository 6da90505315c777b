//! Calls of a log that make tasks, wait for them, and change their tables.

use iosched_types::Nanos;
use iosched_types::units::SEC;

use super::Act;
use super::args::{field, number};
use super::calls::PIPE;
use super::read::{Call, Reader};

/// A pause of which the log does not say how long it was is no longer than a century: time has an end here.
const LONGEST: Nanos = 100 * 365 * 86_400 * SEC;

impl Reader {
    pub(super) fn numbers(&mut self, c: &Call<'_>) -> bool {
        let words = c.args.join("|");
        let cloexec = words.contains("CLOEXEC");
        if c.name.starts_with("pipe") {
            let ends: Vec<i64> =
                c.arg(0).trim_matches(['[', ']']).split(',').filter_map(number).collect();
            let ([r, w], Some(_)) = (&ends[..], c.ok()) else { return self.null(c) };
            let (reads, writes) = (self.new_file(PIPE), self.new_file(PIPE));
            self.push(c, Act::Pipe { reads, writes }, Some(Ok(0)));
            self.hold(c, *r, Some(reads), cloexec);
            self.hold(c, *w, Some(writes), cloexec);
            return true;
        }
        let setfd = c.arg(1) == "F_SETFD";
        if setfd
            && let Some(held) = c.number(0).and_then(|fd| self.tables.table(c.pid)?.get_mut(&fd))
        {
            held.closes_at_exec = cloexec;
        }
        let copies = c.name.starts_with("dup") || c.arg(1).starts_with("F_DUPFD");
        if let (true, Some(old), Some(new)) = (copies, c.number(0), c.ok())
            && old != new
            && let Some(file) = self.behind(c, c.arg(0))
        {
            self.hold(c, new, file, cloexec);
        }
        self.null(c)
    }

    pub(super) fn task_call(&mut self, c: &Call<'_>) -> bool {
        match c.name {
            "chdir" => {
                let path = self.path(c, None, 0);
                if let (Some(path), Some(_)) = (&path, c.ok()) {
                    self.disk.found(path, true);
                }
                // To /dev, for one.
                let other = || self.any_path(c, None, 0);
                if let (Some(path), Some(_)) = (path.or_else(other), c.ok())
                    && (self.part.is_none() || self.is_inside(&path))
                    && let Some(cwd) = self.tables.cwd(c.pid)
                {
                    *cwd = path;
                }
                self.null(c)
            }
            "fchdir" => {
                let Some(file) = self.file(c, 0) else { return true };
                let path = self.opened[file as usize].clone();
                if let Some(cwd) = self.tables.cwd(c.pid) {
                    *cwd = path;
                }
                self.null(c)
            }
            "execve" | "execveat" => {
                self.null(c);
                if c.ok().is_some() {
                    for file in self.tables.exec(c.pid) {
                        self.push(c, Act::Close { file }, None);
                    }
                }
                true
            }
            name if name.contains("nanosleep") => {
                let spec = c.args.iter().find(|a| a.starts_with('{')).copied().unwrap_or_default();
                let n = |f| field(spec, f).map_or(0, i64::cast_unsigned);
                let asked = n("tv_sec").saturating_mul(SEC).saturating_add(n("tv_nsec"));
                let until = c.arg(1).contains("ABSTIME");
                let took = c.end.took;
                let time = match until || c.ok().is_none() {
                    true => took.unwrap_or(0),
                    // Nobody woke early from it, so it was no longer than it took.
                    false => asked.min(took.unwrap_or(LONGEST)),
                };
                self.done(c, Act::Pause { time }, None)
            }
            name if name.starts_with("wait") => {
                let pid = match name {
                    "waitid" => c.args.iter().find_map(|a| field(a, "si_pid")),
                    _ => c.ok(),
                };
                let dead =
                    pid.and_then(|p| u32::try_from(p).ok()).and_then(|p| self.child_of(c, p));
                match dead {
                    Some(task) => self.done(c, Act::Join { task: task as u32 }, None),
                    None => self.null(c),
                }
            }
            _ => self.make_task(c),
        }
    }
}
