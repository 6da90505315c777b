//! The parts of a scheduler's documentation page that come from its [`Descriptor`].
//!
//! A page is written by hand around generated tables, each between two markers:
//!
//! ```text
//! <!-- tunables:begin -->
//! …generated…
//! <!-- tunables:end -->
//! ```
//!
//! Everything here is text in, text out; a test reads and (asked to bless) writes the pages.

use std::fmt::Write;

use crate::descriptor::{Descriptor, Tunable};
use crate::pair;

/// A page without a pair of markers that it must have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the page of {scheduler} has no <!-- {section}:begin --> … <!-- {section}:end -->")]
pub struct MissingMarker {
    /// The scheduler of the page.
    pub scheduler: String,
    /// Section that is not marked.
    pub section: &'static str,
}

/// The table of tunables: one row per sysfs file.
#[must_use]
pub fn tunables_table(d: &Descriptor) -> String {
    if d.tunables.is_empty() {
        return format!("{} has no tunables.\n", d.name);
    }
    let mut out = String::from(
        "| tunable | unit | default | range | generations | meaning |\n|---|---|---|---|---|---|\n",
    );
    for t in d.tunables {
        row(
            &mut out,
            &[
                &format!("`{}`", t.name),
                t.unit,
                t.default_text,
                &range(t),
                &generations_of(d, t),
                t.help,
            ],
        );
    }
    out
}

/// The table of generations: which kernels behave alike, and what each changed.
#[must_use]
pub fn generations_table(d: &Descriptor) -> String {
    let mut out =
        String::from("| generation | kernels | name to ask for | behaviour |\n|---|---|---|---|\n");
    for g in d.generations {
        let ask = format!("`{}@{}`", d.name, g.name);
        row(&mut out, &[g.name, &g.range(), &ask, &d.told(g)]);
    }
    out
}

/// The page with every generated section brought up to date.
///
/// # Errors
/// [`MissingMarker`] when the page does not mark a section.
pub fn fill(page: &str, d: &Descriptor) -> Result<String, MissingMarker> {
    let page = fill_section(page, d, "generations", &generations_table(d))?;
    fill_section(&page, d, "tunables", &tunables_table(d))
}

fn fill_section(
    page: &str,
    d: &Descriptor,
    section: &'static str,
    text: &str,
) -> Result<String, MissingMarker> {
    let (begin, end) = (format!("<!-- {section}:begin -->\n"), format!("<!-- {section}:end -->"));
    let parts = page
        .split_once(&begin)
        .and_then(|(before, rest)| rest.split_once(&end).map(|(_, after)| (before, after)));
    let Some((before, after)) = parts else {
        return Err(MissingMarker { scheduler: d.name.into(), section });
    };
    Ok(format!("{before}{begin}\n{text}\n{end}{after}"))
}

fn row(out: &mut String, cells: &[&str]) {
    out.push('|');
    for cell in cells {
        // A bar inside a cell would end it.
        let _ = write!(out, " {} |", cell.replace('|', "\\|"));
    }
    out.push('\n');
}

fn range(t: &Tunable) -> String {
    let side = |v: i64| match v {
        _ if t.unit == pair::UNIT => pair::text(v),
        _ if v == i64::from(i32::MAX) => "2³¹−1".into(),
        _ if v == i64::from(i32::MIN) => "−2³¹".into(),
        _ if v == i64::from(u32::MAX) => "2³²−1".into(),
        i64::MAX => "2⁶³−1".into(),
        _ => v.to_string(),
    };
    if t.min == t.max { side(t.min) } else { format!("{} … {}", side(t.min), side(t.max)) }
}

fn generations_of(d: &Descriptor, t: &Tunable) -> String {
    let has = |index: u8| t.generations.contains(&index);
    if d.generations.iter().all(|g| has(g.index)) {
        return "all".into();
    }
    let names: Vec<&str> = d.generations.iter().filter(|g| has(g.index)).map(|g| g.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# x\n<!-- generations:begin -->\nold\n<!-- generations:end -->\nmid\n\
                        <!-- tunables:begin -->\n<!-- tunables:end -->\nend\n";

    #[test]
    fn filling_replaces_what_is_between_the_markers_and_nothing_else() {
        let d = &crate::noop::DESCRIPTOR;
        let once = fill(PAGE, d).unwrap();
        assert!(once.starts_with("# x\n") && once.ends_with("\nend\n") && once.contains("\nmid\n"));
        assert!(once.contains("noop has no tunables.") && once.contains("`noop@2.6.18`"));
        assert!(!once.contains("old"));
        assert_eq!(fill(&once, d).unwrap(), once);
    }

    #[test]
    fn a_page_without_markers_is_named() {
        let e = fill("# x\n", &crate::noop::DESCRIPTOR).unwrap_err();
        assert_eq!((e.scheduler.as_str(), e.section), ("noop", "generations"));
    }
}
