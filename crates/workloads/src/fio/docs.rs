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
         | option | meaning | why it has no effect on timing |\n|---|---|---|\n",
    );
    for o in options() {
        if let Effect::NoEffect(why) = o.effect {
            out.push_str(&format!("| {} | {} | {} |\n", names(o), o.help, cell(why)));
        }
    }
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
        "\n## Refused\n\nA job file with such an option is not run, unless the value is the one in the \
         second column.\n\nLive only: the options `",
    );
    out.push_str(&live::OPTIONS.join("`, `"));
    out.push_str(
        "`\nare handed to fio by the backends `emulated` and `real`, and have no effect or are refused in the \
         simulator.\n\n| option | accepted value | meaning | reason |\n|---|---|---|---|\n",
    );
    for o in options() {
        if let Effect::Refused { reason, harmless } = o.effect {
            let ok: Vec<String> = harmless.iter().map(|v| format!("`{v}`")).collect();
            let ok = ok.join(", ");
            out.push_str(&format!("| {} | {ok} | {} | {} |\n", names(o), o.help, cell(reason)));
        }
    }
    out
}

fn names(o: &OptionDef) -> String {
    let all: Vec<String> =
        std::iter::once(&o.name).chain(o.aliases).map(|n| format!("`{n}`")).collect();
    all.join(", ")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
