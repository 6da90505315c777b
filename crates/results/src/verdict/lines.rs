//! What a verdict says of the other schedulers, line by line, for terminal and page alike.

use super::{Advice, Firmness, Verdict};

/// A piece of a line: the page marks schedulers, so that a reader's own names can take their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Words.
    Words(String),
    /// A scheduler, by its full name.
    Scheduler(String),
}

fn words(text: &str) -> Part {
    Part::Words(text.into())
}

/// `a, b and c`.
fn names(all: &[String]) -> Vec<Part> {
    let mut out = Vec::new();
    for (i, name) in all.iter().enumerate() {
        match i {
            0 => {}
            _ if i + 1 == all.len() => out.push(words(" and ")),
            _ => out.push(words(", ")),
        }
        out.push(Part::Scheduler(name.clone()));
    }
    out
}

impl Verdict {
    /// Runs that tell more than those that were made.
    fn more_runs(&self) -> usize {
        if self.runs < 12 { 12 } else { 4 * self.runs }
    }

    /// The lines. `beside`: they stand beside the sentence, which has said some of it.
    #[must_use]
    pub fn lines(&self, beside: bool) -> Vec<Vec<Part>> {
        let mut out: Vec<Vec<Part>> = Vec::new();
        let said = beside && self.verdict == Advice::Keep && self.other.is_none();
        let mut of = |all: &[String], verb: [&str; 2], rest: Vec<Part>| {
            if !all.is_empty() {
                let verb = verb[usize::from(all.len() > 1)];
                out.push([names(all), vec![words(verb)], rest].concat());
            }
        };
        let base = || Part::Scheduler(self.base.clone());
        if !said {
            of(&self.level, [" is level with ", " are level with "], vec![base()]);
        }
        of(
            &self.gone,
            [
                " does as well; this kernel does not have it",
                " do as well; this kernel does not have them",
            ],
            Vec::new(),
        );
        of(
            &self.elsewhere,
            [
                " does as well or better; it is not in mainline Linux",
                " do as well or better; they are not in mainline Linux",
            ],
            Vec::new(),
        );
        if !(said && self.level.is_empty()) {
            let more = words(&format!(": more runs tell (--runs {})", self.more_runs()));
            of(&self.open, [" may differ from "; 2], vec![base(), more]);
        }
        out.extend(self.remarks.iter().map(|r| vec![words(r)]));
        let unproven = self.firmness == Firmness::Unsure || !self.unproven.is_empty();
        if self.open.is_empty() && self.runs > 1 && unproven && !self.repeats {
            out.push(vec![words(&format!("More runs tell more: --runs {}", self.more_runs()))]);
        }
        if !self.default_not_run.is_empty() {
            let text = format!("{}, the kernel's default here, was not run", self.default_not_run);
            out.push(vec![words(&text)]);
        }
        out
    }
}
