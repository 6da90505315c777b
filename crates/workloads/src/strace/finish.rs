//! The end of a log: what the user should know of it.

use iosched_types::Diagnostic;

use super::read::{Call, Reader};
use super::{Act, Log};

/// Calls that move data and have no replay.
const MOVES_DATA: &str = "splice tee vmsplice io_uring_enter msync";

impl Reader {
    /// A call is left out. Whether it moved data is kept apart.
    pub(super) fn misses(&mut self, c: &Call<'_>) {
        let Some(n) = c.ok().filter(|n| *n > 0 || c.name == "msync") else { return };
        if MOVES_DATA.split(' ').any(|name| name == c.name) {
            // One call may submit several I/Os.
            let ios = if c.name == "io_uring_enter" { n.cast_unsigned() } else { 1 };
            self.lacks(c.name, ios);
        }
    }

    /// I/Os of which there is no replay.
    pub(super) fn lacks(&mut self, name: &str, ios: u64) {
        let count = self.missing.entry(name.to_string()).or_default();
        *count = count.saturating_add(ios);
    }

    pub(super) fn finish(mut self, file: &str) -> Result<Log, Diagnostic> {
        if self.log.calls == 0 {
            let help = "make one with: strace -f -ttt -T -o FILE COMMAND";
            return Err(
                Diagnostic::file(file, "there is no system call in this log").with_help(help)
            );
        }
        if self.options.refuse_unknown && !self.log.unknown.is_empty() {
            let list = Log::list(&self.log.unknown);
            let message = format!("calls that are not simulated: {list}");
            let help = "leave out unknown = \"refuse\" to leave them out";
            return Err(Diagnostic::file(file, message).with_help(help));
        }
        self.remark();
        self.remark_before();
        self.open_flagged();
        self.find_walks();
        let (directories, files) = self.disk.before(self.part.as_ref().map(|p| p.below.as_str()));
        self.log.tops = if self.part.is_some() { &[] } else { &["root", "work"] };
        self.log.directories = directories;
        self.log.files = files;
        Ok(self.log)
    }

    fn remark(&mut self) {
        self.log.warnings.extend(self.log.remark_devices());
        self.remark_missing();
        let unfinished = self.pending.values().filter(|p| !p.done).count() + self.killed;
        if unfinished > 0 {
            let (calls, their) = if unfinished == 1 { ("call", "its") } else { ("calls", "their") };
            let text = format!(
                "{unfinished} {calls} had not come back when the log or {their} task ended: left out"
            );
            self.log.warnings.push(text);
        }
        if !self.log.paced && self.options.think {
            let text = "the log does not say how long calls took (strace -ttt -T): \
                        there is no time between the calls of a replay";
            self.log.warnings.push(text.into());
        }
        if self.coarse && self.log.paced {
            let text = "the log's times are whole seconds (strace -t): pauses are right in their sum, and each \
                        begins up to a second too early; strace -ttt has microseconds";
            self.log.warnings.push(text.into());
        }
        if self.family.is_nameless()
            && self.log.tasks.iter().any(|t| t.parent.is_some() && t.steps.is_empty())
        {
            let text = "processes that this log's process made have no line in it: each file of strace -ff has \
                        one process; strace -f -o FILE has all of them";
            self.log.warnings.push(text.into());
        }
    }

    /// Says loudly when the I/O of a log is not in its replay.
    fn remark_missing(&mut self) {
        if self.maps > 0 {
            let text = format!(
                "{} maps of files can be written to: stores into them are no calls, so they are not replayed",
                self.maps
            );
            self.log.warnings.push(text);
        }
        let left = self.missing.values().fold(0u64, |sum, n| sum.saturating_add(*n));
        if left == 0 {
            return;
        }
        let moves = |act: &Act| {
            matches!(
                act,
                Act::Read { .. }
                    | Act::Pread { .. }
                    | Act::Write { .. }
                    | Act::Pwrite { .. }
                    | Act::CopyRange { .. }
                    | Act::Drain { .. }
                    | Act::Submit { .. }
            )
        };
        let steps = self.log.tasks.iter().flat_map(|t| &t.steps);
        let kept = steps.filter(|s| moves(&s.act)).count() as u64;
        let all = left.saturating_add(kept);
        let most = if left > kept { "MOST OF THIS LOG'S I/O IS NOT REPLAYED: " } else { "" };
        let list = Log::list(&self.missing);
        let text = format!("{most}{left} of {all} I/Os are left out ({list})");
        self.log.warnings.insert(0, text);
    }
}
