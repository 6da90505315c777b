//! The example jobs that Debian's fio package ships.

use std::collections::BTreeMap;
use std::path::PathBuf;

use iosched_workloads::fio::{Lookup, check_files, parse};

use super::support::golden;

/// Variables without which some examples make no sense.
struct Variables;

impl Lookup for Variables {
    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "FIO_BS" => Some("4k".into()),
            "FIO_RW" => Some("randread".into()),
            "FIO_FILENAME" => Some("/dev/disk".into()),
            _ => Some("1".into()),
        }
    }

    fn keyword(&self, _: &str) -> Option<u64> {
        None
    }
}

fn folder() -> Option<PathBuf> {
    let given = std::env::var("IOSCHED_FIO_EXAMPLES").ok().map(PathBuf::from);
    let installed = ["/usr/share/doc/fio-examples/examples", "/usr/share/doc/fio/examples"];
    let found = given
        .into_iter()
        .chain(installed.map(PathBuf::from))
        .find(|p| std::fs::read_dir(p).is_ok());
    if found.is_none() {
        eprintln!("SKIPPED: install fio-examples or name its folder in IOSCHED_FIO_EXAMPLES");
    }
    found
}

#[test]
fn each_example_is_accepted_or_refused_for_a_stated_reason() {
    let Some(folder) = folder() else { return };
    let mut rows = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".fio") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let include = |p: &str| std::fs::read_to_string(p).map_err(|e| e.to_string());
        let row = match parse(&name, &text, &Variables, &include, &[]) {
            Ok(set) => match check_files(&set) {
                Ok(()) => format!("runs: {} jobs", set.jobs.len()),
                Err(e) => format!("refused: {}", e[0].message),
            },
            Err(e) => {
                // fio refuses the unknown option of one of its own examples as well.
                let stated = ["not supported: ", "not simulated", "unknown option \"threads\""];
                for d in &e {
                    assert!(stated.iter().any(|s| d.message.contains(s)), "{name}: {d}");
                }
                format!("refused: {}", e[0].message)
            }
        };
        rows.insert(name, row);
    }
    assert!(rows.len() > 80, "only {} examples in {}", rows.len(), folder.display());
    let mut page = String::from(
        "# fio's own examples\n\n\
         What becomes of each example job of Debian's package fio-examples 3.33. This page is\n\
         generated (`BLESS=1 cargo test -p iosched-workloads`, with the package installed or its\n\
         folder named in `IOSCHED_FIO_EXAMPLES`).\n\n| example | result |\n|---|---|\n",
    );
    for (name, row) in &rows {
        page.push_str(&format!("| {name} | {} |\n", row.replace('|', "\\|")));
    }
    golden("docs/fio-examples.md", &page);
}
