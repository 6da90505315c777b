//! A scenario of calls as a table of 80 columns.

use std::fmt::{self, Write};

use super::super::explanation::{WIDTH, ms, wrapped};
use super::shown::{CallsShown, FoundShown, ShownBio, Step, StepKind};

impl fmt::Display for CallsShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows();
        let first =
            rows.iter().map(|(s, _)| ms(s.t_ns).len()).max().unwrap_or(0).max("time ms".len());
        let names = rows.iter().map(|(s, _)| s.who.chars().count()).max().unwrap_or(0);
        let second = names.clamp("who".len(), WIDTH / 3);
        writeln!(f, "{:>first$}  {:second$}  what", "time ms", "who")?;
        let indent = first + second + 4;
        for (step, more) in rows {
            // What belongs to a call stands below it.
            let inside = match step.kind {
                StepKind::Calls | StepKind::Dispatches { .. } => 0,
                _ => 2,
            };
            let room = WIDTH - indent - inside;
            let hanging = " ".repeat(indent + inside + 2);
            let mut who: String = step.who.chars().take(second).collect();
            who.extend(std::iter::repeat_n(' ', second - who.chars().count()));
            for (i, line) in
                wrapped(&self.words(step, more), room.saturating_sub(2)).iter().enumerate()
            {
                let left = match i {
                    0 => format!("{:>first$}  {who}  {}", ms(step.t_ns), " ".repeat(inside)),
                    _ => hanging.clone(),
                };
                writeln!(f, "{}", format!("{left}{line}").trim_end())?;
            }
        }
        if self.cut {
            writeln!(f, "and more, which is not kept")?;
        }
        Ok(())
    }
}

impl CallsShown {
    /// A thread that has nothing to do, and commands of a scheduler that decides nothing, are left out.
    fn shows(&self, step: &Step) -> bool {
        match &step.kind {
            StepKind::Sleeps { idle, .. } => !idle,
            StepKind::Dispatches { .. } => step.who != "none",
            _ => true,
        }
    }

    /// The rows, each with how many bios it stands for: neighbours on the disk that somebody makes at once are one.
    fn rows(&self) -> Vec<(&Step, usize)> {
        let mut rows: Vec<(&Step, usize)> = Vec::new();
        for step in self.steps.iter().filter(|s| self.shows(s)) {
            if let (StepKind::Submits { bio }, Some((last, n))) = (&step.kind, rows.last_mut())
                && let StepKind::Submits { bio: first } = last.kind
                && last.t_ns == step.t_ns
                && bio - first == *n
                && self.bios[bio - 1].goes_on(&self.bios[*bio])
            {
                *n += 1;
                continue;
            }
            rows.push((step, 1));
        }
        rows
    }

    fn words(&self, step: &Step, bios: usize) -> String {
        let call = step.call.and_then(|i| self.calls.get(i));
        match &step.kind {
            StepKind::Calls => call.map_or_else(String::new, |c| c.call.clone()),
            StepKind::Finds(found) => found.words(),
            StepKind::Submits { bio } => {
                let all = &self.bios[*bio..*bio + bios];
                let joined = ShownBio::joined(all);
                let many = if bios > 1 { format!(", {bios} bios") } else { String::new() };
                format!("{} {}{many}", joined.name(), joined.holds())
            }
            StepKind::Sleeps { until, .. } => format!("sleeps: {until}"),
            StepKind::Woken { by } => format!("goes on: {by}"),
            StepKind::Returns => call.map_or_else(String::new, |c| {
                let answer = match (&c.error, c.answer) {
                    (Some(e), _) => e.clone(),
                    (None, n) => n.unwrap_or_default().to_string(),
                };
                let took = step.t_ns - c.t_ns;
                if took == 0 {
                    format!("= {answer}")
                } else {
                    format!("= {answer} after {} ms", ms(took))
                }
            }),
            StepKind::Dispatches { request, reason, .. } => {
                format!("dispatches {request}: {reason}")
            }
        }
    }
}

impl FoundShown {
    /// `16 pages: 4 in memory, 12 absent`.
    fn words(&self) -> String {
        let mut text =
            format!("finds {} page{}: ", self.pages, if self.pages == 1 { "" } else { "s" });
        let parts = [
            (self.absent, "absent"),
            (self.being_read, "being read"),
            (self.cached, "in memory"),
            (self.dirty, "dirty"),
            (self.writeback, "being written"),
        ];
        let mut any = false;
        for (n, what) in parts.into_iter().filter(|(n, _)| *n > 0) {
            let _ = write!(text, "{}{n} {what}", if any { ", " } else { "" });
            any = true;
        }
        if let Some(page) = self.mark {
            let _ = write!(text, "; the mark of read-ahead is on page {page}");
        }
        text
    }
}
