//! Where the rest is: what a short report ends with.

use iosched_experiment::Record;
use iosched_results::render::printable;
use iosched_results::verdict::Verdict;

use crate::args::LookArgs;
use crate::asked::quoted;

/// Whether all tables are shown.
pub(crate) fn shows_tables(look: LookArgs) -> bool {
    look.tables || look.wide
}

/// The commands that show tables, a page, and why the scheduler that was chosen is better. `stored`: the name of the experiment in
/// the results file.
pub(crate) fn after(
    (verdicts, records): (&[Verdict], &[Record]),
    look: LookArgs,
    stored: Option<&str>,
) -> String {
    if shows_tables(look) {
        return String::new();
    }
    let Some(first) = verdicts.first() else { return String::new() };
    let chosen = chosen(verdicts).unwrap_or(first);
    let Some(stored) = stored else {
        let name = quoted(&printable(chosen.called(&chosen.scheduler)));
        return format!(
            "tables   the same command with --tables\npage     … with --html FILE\nwhy      iosched show scheduler {name}\n"
        );
    };
    let name = quoted(&printable(stored));
    let again = records.iter().all(|r| r.backend.traits().deterministic);
    let why = pair(chosen).filter(|_| again).map(|both| {
        let [a, b] = both.map(|s| quoted(&printable(chosen.called(s))));
        format!("why      iosched explain --from {name} {a} {b}\n")
    });
    format!(
        "tables   iosched results show {name} --tables\npage     iosched report {name} --html {name}.html\n{}",
        why.unwrap_or_default()
    )
}

/// The first that says to change something.
fn chosen(all: &[Verdict]) -> Option<&Verdict> {
    all.iter().find(|v| !v.set.is_empty())
}

/// The scheduler to use and the base; where the base is kept, the best of the others.
fn pair(v: &Verdict) -> Option<[&str; 2]> {
    let other = || v.other.as_ref().map(|o| o.scheduler.as_str());
    let any = || v.matrix.iter().flat_map(|r| &r.schedulers).map(String::as_str).next();
    let new = if v.scheduler == v.base { other().or_else(any)? } else { &v.scheduler };
    Some([new, &v.base])
}
