//! The tables on `docs/schedulers/*.md` are those of the descriptors. `BLESS=1 cargo test` rewrites them.
#![allow(clippy::disallowed_methods, reason = "a test reads the pages it checks")]

use std::path::Path;

use iosched_schedulers::docs::fill;
use iosched_schedulers::registry::SCHEDULERS;

#[test]
fn every_page_holds_the_tables_of_its_descriptor() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schedulers");
    let mut pages = 0;
    for d in SCHEDULERS {
        let path = dir.join(format!("{}.md", d.name));
        let Ok(page) = std::fs::read_to_string(&path) else { continue };
        pages += 1;
        let wanted = fill(&page, d).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        iosched_testing::golden(&path, &wanted);
    }
    assert!(pages > 0, "no page found in {}", dir.display());
}

/// Each page has a picture of its scheduler's queues, which is there.
#[test]
fn every_page_has_its_picture() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schedulers");
    for d in SCHEDULERS {
        let page = std::fs::read_to_string(dir.join(format!("{}.md", d.name))).unwrap();
        let picture = format!("img/{}.svg", d.name);
        assert!(page.contains(&format!("]({picture})")), "{}", d.name);
        let svg = std::fs::read_to_string(dir.join(&picture)).unwrap();
        assert!(svg.contains("<title") && svg.contains("<desc"), "{picture} says what it shows");
        for part in [
            "## Overview",
            "## Kernel versions",
            "## Tunables",
            "## Typical use",
            "## Known deviations",
        ] {
            assert!(page.contains(part), "{} has no \"{part}\"", d.name);
        }
    }
}
