//! Generated pages, shipped jobs, and the option table against fio's own list.

use std::process::Command;

use iosched_workloads::fio::{
    Effect, Kind, check_files, find_option, options, options_page, parse,
};

use super::support::{Machine, fio_3_33, golden, no_include};

#[test]
fn the_options_page_is_up_to_date() {
    golden("docs/fio-options.md", &options_page());
}

#[test]
fn the_jobs_shipped_with_iosched_run_without_warnings() {
    let folder = format!("{}/../../examples/jobs", env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "fio") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let set = parse(&path.to_string_lossy(), &text, &Machine, &no_include, &[]);
        let set = set.unwrap_or_else(|e| panic!("{}", e[0]));
        check_files(&set).unwrap_or_else(|e| panic!("{}", e[0]));
        assert_eq!(set.warnings, [""; 0], "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 5);
}

fn output(arg: &str) -> String {
    let out = Command::new("fio").arg(arg).output().unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// fio's table of options, line by line `name : help`.
fn listed(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|l| l.split_once(':'));
    lines.map(|(n, _)| n.trim().to_string()).filter(|n| !n.is_empty()).collect()
}

#[test]
fn the_table_knows_every_option_of_the_installed_fio() {
    if !fio_3_33() {
        return;
    }
    let names = listed(&output("--cmdhelp=all"));
    assert!(names.len() > 200);
    for (i, name) in names.iter().enumerate() {
        let option = find_option(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(option.name, name);
        // Asking fio takes time: a sixth of the options, all when IOSCHED_SLOW_TESTS is set.
        if i % 6 == 0 || std::env::var("IOSCHED_SLOW_TESTS").is_ok() {
            bounds(name, option.kind);
        }
    }
    let engines = output("--enghelp");
    let engines = engines.lines().skip(1).map(str::trim).filter(|e| !e.is_empty());
    for engine in engines {
        let text = output(&format!("--enghelp={engine}"));
        for name in listed(&text) {
            assert!(find_option(&name).is_some(), "{name} of {engine} is missing");
        }
    }
}

/// Aliases, types and bounds as fio prints them for one option.
fn bounds(name: &str, kind: Kind) {
    let text = output(&format!("--cmdhelp={name}"));
    let field = |key: &str| text.lines().find_map(|l| l.trim().strip_prefix(key)).map(str::trim);
    if let Some(alias) = field("alias:") {
        assert_eq!(find_option(alias).map(|o| o.name), Some(name), "alias {alias}");
    }
    let kind = if let Kind::Three(k) = kind { *k } else { kind };
    let number = |key: &str| -> Option<i64> {
        let range = field("range:")?;
        range.split(", ").find_map(|p| p.trim().strip_prefix(key))?.parse().ok()
    };
    match kind {
        Kind::Bool => assert!(text.contains("boolean value"), "{name}"),
        // The four that must not be zero for a simulation are stricter than fio.
        Kind::Int(lo, hi)
            if !["numjobs", "loops", "nrfiles", "thinktime_blocks"].contains(&name) =>
        {
            let fio_lo = number("min=").unwrap_or(0);
            assert!(lo == fio_lo || fio_lo == 0 && lo == 1, "{name}: {lo} and {fio_lo}");
            match number("max=") {
                Some(max) if max >= 0 => assert_eq!(hi, max, "{name}"),
                _ => assert_eq!(hi, i64::from(u32::MAX), "{name}"),
            }
        }
        Kind::Word(words) => {
            let valid = text.split("valid values:").nth(1).unwrap_or("");
            for line in valid.lines() {
                let word = line.trim().trim_start_matches(':').split_whitespace().next();
                let Some(word) = word else { continue };
                assert!(words.contains(&word), "{name}: {word} is missing");
            }
        }
        _ => {}
    }
}

#[test]
fn every_refusal_and_every_warning_has_a_reason() {
    for o in options() {
        let reason = match o.effect {
            Effect::Simulated => continue,
            Effect::NoEffect(why) | Effect::Unmodelled(why) => why,
            Effect::Refused { reason, .. } => reason,
        };
        assert!(reason.len() > 10 && !reason.ends_with('.'), "{}", o.name);
    }
}
