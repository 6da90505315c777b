//! A verdict in one sentence of at most some 25 words, for places that have room for no more.

use super::choose::is_met;
use super::text::{all_called, amount, apart, beside, called, firm, opening, short, shown, whole};
use super::{Advice, Kind, Point, Verdict};
use crate::render::value;

impl Verdict {
    /// A job gets less than it asks for under the base, and no scheduler gives it more.
    #[must_use]
    pub(super) fn is_beyond_schedulers(&self) -> bool {
        let level = |column: usize| self.matrix.iter().all(|r| r.ratios[column] == Some(1.0));
        let lacks = |p: &Point| {
            let own = |name: &&String| **name == p.job || name.ends_with(&format!(" {}", p.job));
            let column = self.asks.iter().position(|a| own(&a));
            matches!(p.ask, Kind::Rate(_)) && p.met() == Some(false) && column.is_some_and(level)
        };
        self.demands.iter().any(lacks)
    }

    /// The advice in few words, as the sentence begins: `Use bfq`.
    #[must_use]
    pub fn opening(&self) -> String {
        let said = opening(self);
        let mut letters = said.chars();
        match letters.next() {
            // A name keeps its letters.
            Some(first) if !said.starts_with(called(self, &self.scheduler)) => {
                first.to_uppercase().chain(letters).collect()
            }
            _ => said,
        }
    }

    /// `Use bfq: film 7.98 instead of 1.77 MiB/s (8 MiB/s asked for), 3 more gains. Price: copy 43 % worse.`
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut out = self.opening();
        match self.verdict {
            Advice::Unknown => out += ": more runs may (--runs 12)",
            Advice::Keep => out += &format!(": {}", self.kept()),
            Advice::Use => {
                let first = self.gains.first().map(|p| format!(": {}", change(p)));
                out += &first.unwrap_or_default();
                out += &more(self.gains.len().saturating_sub(1), "gain");
                if let Some(first) = self.prices.first() {
                    let rest = more(self.prices.len() - 1, "price");
                    out += &format!(". Price: {}{rest}", short(first));
                }
            }
        }
        out + "."
    }

    /// Why the base is kept.
    fn kept(&self) -> String {
        match (&self.other, &self.level[..]) {
            (Some(o), _) if !o.gains.is_empty() => {
                let price = o.prices.first().map(|p| format!(" at the price of {}", short(p)));
                let price = price.unwrap_or_default();
                format!("{} would give {}{price}", called(self, &o.scheduler), short(&o.gains[0]))
            }
            (_, [one]) => format!("{} is level with it", called(self, one)),
            (_, all) if !all.is_empty() => format!("{} are level with it", all_called(self, all)),
            _ if !self.open.is_empty() => {
                format!("{} may differ, and more runs tell", all_called(self, &self.open))
            }
            _ => "no other is better".into(),
        }
    }

    /// How sure it is, with its evidence: `sure, 12 of 12`.
    #[must_use]
    pub fn firmly(&self) -> String {
        firm(self)
    }

    /// A scheduler as people call it: without its generation where the kernel has one of the family here.
    #[must_use]
    pub fn called<'a>(&'a self, scheduler: &'a str) -> &'a str {
        called(self, scheduler)
    }
}

impl Point {
    /// Whether the job has the rate or the share that it asks for; `None` where it asks for neither.
    #[must_use]
    pub fn met(&self) -> Option<bool> {
        self.value.and_then(|v| is_met(self.ask, v))
    }

    /// The figures under the scheduler of the verdict and under the base: (`7.98 of 8.00 MiB/s`, `1.77 MiB/s`).
    #[must_use]
    pub fn figures(&self) -> (String, String) {
        (amount(self, self.value), beside(self))
    }
}

/// `, 3 more gains`.
fn more(n: usize, word: &str) -> String {
    match n {
        0 => String::new(),
        1 => format!(", 1 more {word}"),
        n => format!(", {n} more {word}s"),
    }
}

/// `film 7.98 instead of 1.77 MiB/s (8 MiB/s asked for)`.
fn change(p: &Point) -> String {
    let (now, then) = (shown(p.value, &p.unit), beside(p));
    let bare = match (apart(&now), apart(&then)) {
        ((number, unit), (_, other)) if unit == other => number,
        _ => now.as_str(),
    };
    let asked = match p.ask {
        Kind::Rate(of) => format!(" ({} asked for)", whole(&value(of, &p.unit))),
        Kind::Share(due) => format!(" of the throughput ({due:.0} % due)"),
        _ => String::new(),
    };
    format!("{} {bare} instead of {then}{asked}", p.job)
}
