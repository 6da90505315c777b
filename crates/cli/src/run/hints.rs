//! Where the rest is: what a short report ends with.

use iosched_results::render::printable;
use iosched_results::verdict::Verdict;

use crate::args::LookArgs;
use crate::asked::quoted;

/// Whether all tables are shown.
pub(crate) fn shows_tables(look: LookArgs) -> bool {
    look.tables || look.wide
}

/// The commands that show tables, a page, and what the scheduler does that was chosen. `stored`: the name of the experiment in
/// the results file.
pub(crate) fn after(verdicts: &[Verdict], look: LookArgs, stored: Option<&str>) -> String {
    if shows_tables(look) {
        return String::new();
    }
    let Some(first) = verdicts.first() else { return String::new() };
    let scheduler = chosen(verdicts).unwrap_or(first);
    let name = scheduler.scheduler.split(' ').next().unwrap_or_default();
    let why = format!("why      iosched show scheduler {}\n", quoted(&printable(name)));
    let Some(stored) = stored else {
        return format!(
            "tables   the same command with --tables\npage     … with --html FILE\n{why}"
        );
    };
    let name = quoted(&printable(stored));
    format!(
        "tables   iosched results show {name} --tables\npage     iosched report {name} --html {name}.html\n{why}"
    )
}

/// The first that says to change something.
fn chosen(all: &[Verdict]) -> Option<&Verdict> {
    all.iter().find(|v| !v.set.is_empty())
}
