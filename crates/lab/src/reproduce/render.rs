//! A comparison run again, for people.

use iosched_results::answer::wrap;
use iosched_types::units::three_digits;

use super::kernel::shows;
use super::{Cell, Direction, Reproduced, Verdict};

impl Reproduced {
    /// The answer in a sentence or two.
    #[must_use]
    pub fn answer(&self) -> String {
        let a = &self.agreement;
        let mut out = match a.significant {
            0 if self.cells.iter().all(|c| c.ours.is_none()) => "It is not run.".to_string(),
            0 if !self.has_published() => "No figures are published, only claims.".to_string(),
            0 => "No published difference from the base can be compared.".to_string(),
            n => format!(
                "{} of {n} published differences from the base point the same way here, {} show none, {} point the other way; \
                 {} of {} ratios are within 25 % ({} would be if schedulers made no difference).",
                a.same_direction,
                a.no_difference_here,
                n - a.same_direction - a.no_difference_here,
                a.within_25_percent,
                a.compared,
                a.no_difference_within_25_percent
            ),
        };
        out.push_str(&format!(
            " Claims: {} borne out, {} contradicted, {} not measurable.",
            a.claims_agree, a.claims_disagree, a.claims_not_measurable
        ));
        if let Some((n, kernel)) = self.kernel.as_ref().zip(self.kernel_name.as_ref()) {
            out.push(' ');
            out.push_str(&n.sentence(kernel));
        }
        if self.interrupted {
            out.push_str(" It was interrupted: figures are missing.");
        }
        if self.quick {
            out.push_str(" This was a quick look: runs were shorter than the published ones.");
        }
        out
    }

    /// Whether there is any published figure.
    pub(super) fn has_published(&self) -> bool {
        self.cells.iter().any(|c| c.published.is_some())
    }

    /// Answer, tables, claims, for a terminal of so many columns.
    #[must_use]
    pub fn text(&self, columns: usize) -> String {
        let mut out = wrap("", 0, &format!("{}: {}", self.name, self.answer()), columns);
        let mut at = 0;
        while let Some(first) = self.cells.get(at) {
            let test = self.cells[at..].iter().take_while(|c| c.test == first.test).count();
            out.push_str(&fitting(&self.cells[at..at + test], columns));
            for (who, why) in explanations(&self.cells[at..at + test]) {
                out.push_str(&wrap("  ", 4, &format!("{who}: {why}"), columns));
            }
            at += test;
        }
        out.push_str("\nClaims\n");
        for c in &self.claims {
            let verdict = match c.verdict {
                Verdict::Agree => "agree          ",
                Verdict::Disagree => "disagree       ",
                Verdict::NotMeasurable => "not measurable ",
            };
            out.push_str(&wrap(verdict, verdict.len(), &c.claim, columns));
            out.push_str(&wrap("               ", verdict.len(), &c.evidence, columns));
        }
        out.push('\n');
        let mut counted =
            "×publ, ×ours: multiples of the base, the scheduler that the others are compared with."
                .to_string();
        if self.has_published() {
            counted.push_str(&format!(
                " far: the two are more than 25 % apart. A published difference counts beyond {}. Ours counts beyond 1 % and two \
                 standard errors of our runs; where it does not, a published one is \"none here\".",
                self.noise
            ));
            if self.kernel.is_some() {
                counted.push_str(
                    " neither: the kernel itself has no such difference either. kernel only: it has.",
                );
            }
        }
        out.push_str(&wrap("", 2, &counted, columns));
        for r in &self.remarks {
            out.push_str(&wrap("", 2, r, columns));
        }
        out
    }
}

/// Why cells differ, each reason once; those of which nobody knows together.
pub(super) fn explanations(cells: &[Cell]) -> Vec<(String, &str)> {
    let mut out: Vec<(String, &str)> = Vec::new();
    for c in cells.iter().filter(|c| c.uncounted.is_none()) {
        let Some(why) = &c.explanation else { continue };
        match out.iter_mut().find(|(_, w)| w == why) {
            Some((who, _)) => who.push_str(&format!(", {}", c.run)),
            None => out.push((c.run.clone(), why)),
        }
    }
    out
}

/// A test in so many columns: its table, or where that is wider a sentence for each cell.
fn fitting(cells: &[Cell], columns: usize) -> String {
    let table = table(cells);
    if table.lines().all(|l| l.chars().count() <= columns) {
        return table;
    }
    let mut out = format!("\n{}", wrap("", 2, &title(cells), columns));
    for c in cells {
        let number = |v: Option<f64>| v.map_or("–".into(), three_digits);
        let times = |v: Option<f64>| v.map_or(String::new(), |v| format!(" (×{v:.2})"));
        let mut line = format!("{}, {}: ", c.model, c.scheduler);
        if c.published.is_some() {
            line.push_str(&format!(
                "published {}{}, ",
                number(c.published),
                times(c.published_ratio)
            ));
        }
        line.push_str(&format!("ours {}{}", number(c.ours), times(c.our_ratio)));
        if let Some(ratio) = c.kernel_ratio {
            line.push_str(&format!(", kernel ×{ratio:.2}"));
        }
        let mark = mark(c);
        if !mark.is_empty() {
            line.push_str(&format!(": {mark}"));
        }
        out.push_str(&wrap("", 2, &line, columns));
    }
    out
}

/// What a test is called.
fn title(cells: &[Cell]) -> String {
    let Some(first) = cells.first() else { return String::new() };
    let better = match first.higher_is_better {
        Some(true) => ", more is better",
        Some(false) => ", less is better",
        None => "",
    };
    format!("{} ({}{better})", first.test, first.unit)
}

/// The table of a test.
fn table(cells: &[Cell]) -> String {
    let mut out = format!("\n{}\n", title(cells));
    let kernel = cells.iter().any(|c| c.kernel_ratio.is_some());
    let third = |text: &str| if kernel { format!(" {text:>7}") } else { String::new() };
    let widest = |name: fn(&Cell) -> &str, head: &str| {
        cells.iter().map(|c| name(c).chars().count()).fold(head.len(), usize::max)
    };
    let (devices, schedulers) =
        (widest(|c| &c.model, "device"), widest(|c| &c.scheduler, "scheduler"));
    out.push_str(&format!(
        "{:<devices$} {:<schedulers$} {:>9} {:>8} {:>6} {:>6}{}\n",
        "device",
        "scheduler",
        "published",
        "ours",
        "×publ",
        "×ours",
        third("×kernel")
    ));
    let mut device = "";
    for c in cells {
        let shown = if c.model == device { "" } else { &c.model };
        device = &c.model;
        let number = |v: Option<f64>| v.map_or("–".into(), three_digits);
        let ratio = |v: Option<f64>| v.map_or("–".into(), |v| format!("{v:.2}"));
        let line = format!(
            "{shown:<devices$} {:<schedulers$} {:>9} {:>8} {:>6} {:>6}{}  {}",
            c.scheduler,
            number(c.published),
            number(c.ours),
            ratio(c.published_ratio),
            ratio(c.our_ratio),
            third(&ratio(c.kernel_ratio)),
            mark(c)
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// What is to be said of a cell, in a word or two.
fn mark(c: &Cell) -> String {
    if let Some(why) = &c.uncounted {
        return match why.as_str() {
            "the base" => "base".into(),
            w if w.contains("published") => String::new(),
            w if w.contains("not run") => "no result".into(),
            w if w.contains("outlier") => "outlier".into(),
            _ => "calibrated".into(),
        };
    }
    let kernel = c.kernel_ratio.zip(c.published_ratio).map(|(k, published)| shows(k, published));
    let direction = match (c.direction, kernel) {
        (Direction::Agree, _) => "agree",
        (Direction::Disagree, Some(true)) if !c.our_difference => "kernel only",
        (Direction::Disagree, Some(false)) if !c.our_difference => "neither",
        (Direction::Disagree, None) if !c.our_difference => "none here",
        (Direction::Disagree, _) => "DISAGREE",
        (Direction::None, _) => "",
    };
    let mut words: Vec<&str> = Vec::from_iter((!direction.is_empty()).then_some(direction));
    words.extend((c.near() == Some(false)).then_some("far"));
    words.join(", ")
}
