//! Asynchronous I/O of a log through `io_submit`.

use super::Act;
use super::args::{number, split};
use super::by_flags;
use super::read::{Call, Reader};

impl Reader {
    /// `io_submit`: its control blocks have file, place and length. Whether all of them are replayed.
    pub(super) fn submit(&mut self, c: &Call<'_>) -> bool {
        let Some(n) = c.ok().and_then(|n| usize::try_from(n).ok()) else { return self.null(c) };
        let list = c.arg(2);
        let blocks = list.strip_prefix('[').and_then(|l| l.strip_suffix(']')).unwrap_or_default();
        let acts: Vec<Act> = split(blocks)
            .into_iter()
            .filter(|b| b.starts_with('{'))
            .take(n)
            .filter_map(|block| self.started(c, block))
            .collect();
        let Some(task) = self.tables.alive.get(&c.pid).map(|t| t.task) else { return true };
        *self.under_way.entry(task).or_default() += acts.len() as u64;
        let left = n.saturating_sub(acts.len()) as u64;
        for act in acts {
            self.push(c, act, None);
        }
        if left > 0 {
            *self.log.unknown.entry("io_submit (a part)".into()).or_default() += 1;
            self.lacks("io_submit", left);
        }
        true
    }

    /// One control block; `None` for what is on no file of the log, or where strace does not print the length.
    fn started(&mut self, c: &Call<'_>, block: &str) -> Option<Act> {
        let n = |name| number(member(block, name)?).map(i64::cast_unsigned);
        let mut file = self.behind(c, member(block, "aio_fildes")?)??;
        if self.is_device(file) {
            self.log.devices.insert(self.opened[file as usize].as_str().into());
            return None;
        }
        let command = member(block, "aio_lio_opcode")?.strip_prefix("IOCB_CMD_")?;
        let write = command.starts_with("PWRITE");
        if !write && !command.starts_with("PREAD") {
            return None;
        }
        let len = match command.ends_with('V') {
            true => vector(member(block, "aio_buf")?),
            false => n("aio_nbytes"),
        };
        let (at, len) = (n("aio_offset")?, len.filter(|len| *len > 0)?);
        match write {
            true => {
                let flags = by_flags::of_write(member(block, "aio_rw_flags").unwrap_or_default());
                self.disk.wrote(file, Some(at), len);
                file = self.with_flags(file, flags);
            }
            false => self.disk.read(file, Some(at), len),
        }
        Some(Act::Submit { file, write, at, len: u32::try_from(len).unwrap_or(u32::MAX) })
    }

    /// `io_getevents`: waits for as many as came. Of a task that submitted none, nothing can be waited for.
    pub(super) fn reap(&mut self, c: &Call<'_>) -> bool {
        let Some(n) = c.ok().and_then(|n| u32::try_from(n).ok()) else { return self.null(c) };
        let task = self.tables.alive.get(&c.pid).map(|t| t.task);
        let under_way = task.and_then(|t| self.under_way.get_mut(&t)).filter(|left| **left > 0);
        match (n, under_way) {
            // It ran out of time.
            (0, Some(_)) => self.done(c, Act::Pause { time: c.end.took.unwrap_or(0) }, None),
            (n, Some(left)) => {
                *left = left.saturating_sub(u64::from(n));
                self.done(c, Act::Reap { count: n }, None)
            }
            _ => false,
        }
    }
}

/// The value of a member of `{a=1, b="x"}`. What stands in strings is none.
fn member<'a>(block: &'a str, name: &str) -> Option<&'a str> {
    let inner = block.strip_prefix('{')?.trim_end_matches('}');
    split(inner).into_iter().find_map(|m| m.strip_prefix(name)?.strip_prefix('='))
}

/// The bytes of a vector, if strace prints its pieces.
fn vector(pieces: &str) -> Option<u64> {
    let inner = pieces.strip_prefix('[')?.trim_end_matches(']');
    let each = split(inner).into_iter().map(|p| number(member(p, "iov_len")?));
    each.map(|n| n.map(i64::cast_unsigned)).try_fold(0u64, |all, n| all.checked_add(n?))
}
