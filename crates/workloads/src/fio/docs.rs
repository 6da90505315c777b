//! The options page of the documentation, from the option table.

use super::live;
use super::option::{Effect, OptionDef, describe, options};

/// `docs/fio-options.md`.
#[must_use]
pub fn options_page() -> String {
    let mut out = String::from(
        "# fio options\n\n\
         Every option of fio 3.33 and what iosched does with it. This page is generated from the\n\
         option table (`BLESS=1 cargo test -p iosched-workloads` writes it anew).\n\n\
         ## Simulated\n\n| option | value | meaning |\n|---|---|---|\n",
    );
    for o in options().filter(|o| o.effect == Effect::Simulated) {
        out.push_str(&format!("| {} | {} | {} |\n", names(o), cell(&describe(o.kind)), o.help));
    }
    out.push_str(
        "\n## Accepted without effect\n\nEach use is reported as a warning.\n\n\
         | why it has no effect on timing | options |\n|---|---|\n",
    );
    out.push_str(&by_reason(|e| match e {
        Effect::NoEffect(why) => Some((why, &[])),
        _ => None,
    }));
    out.push_str(
        "\n## Accepted, and not modelled\n\nEach use is reported as a warning, but for a value of 0.\n\n\
         | option | meaning | what is simulated instead |\n|---|---|---|\n",
    );
    for o in options() {
        if let Effect::Unmodelled(instead) = o.effect {
            out.push_str(&format!("| {} | {} | {} |\n", names(o), o.help, cell(instead)));
        }
    }
    out.push_str(
        "\n## Refused\n\nA job file with such an option is not run, unless with a value in brackets.\n\nLive only: the options `",
    );
    out.push_str(&live::OPTIONS.join("`, `"));
    out.push_str(
        "`\nare handed to fio by the backends `emulated` and `real`, and have no effect or are refused in the \
         simulator.\n\n| reason | options, with the values that are accepted |\n|---|---|\n",
    );
    out.push_str(&by_reason(|e| match e {
        Effect::Refused { reason, harmless } => Some((reason, harmless)),
        _ => None,
    }));
    out
}

/// Rows of a reason and all options that have it, with values that are accepted all the same.
fn by_reason(of: impl Fn(Effect) -> Option<(&'static str, &'static [&'static str])>) -> String {
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    for o in options() {
        let Some((reason, harmless)) = of(o.effect) else { continue };
        let values: Vec<String> = harmless.iter().map(|v| format!("`{v}`")).collect();
        let values = match values.is_empty() {
            true => String::new(),
            false => format!(" ({})", values.join(", ")),
        };
        let option = names(o) + &values;
        match rows.iter_mut().find(|r| r.0 == reason) {
            Some(row) => row.1.push(option),
            None => rows.push((reason, vec![option])),
        }
    }
    rows.iter().map(|(why, all)| format!("| {} | {} |\n", cell(why), all.join(", "))).collect()
}

fn names(o: &OptionDef) -> String {
    let all: Vec<String> =
        std::iter::once(&o.name).chain(o.aliases).map(|n| format!("`{n}`")).collect();
    all.join(", ")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
