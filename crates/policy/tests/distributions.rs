//! `docs/distributions.md`: what the policies of distributions give each class of devices.
//!
//! `BLESS=1 cargo test -p iosched-policy --test distributions` writes it anew.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reads the page it checks"
)]

use std::fmt::Write;
use std::path::Path;

use iosched_policy::{
    Judgement, Kind, Machine, Policy, SHIPPED, Shipped, Verdict, builtin_classes, judge, origin,
    title,
};
use iosched_schedulers::KernelVersion;

/// Columns: a class that stands for its kind, and its head.
const COLUMNS: [(&str, &str); 11] = [
    ("sata-hdd", "SATA disk"),
    ("sas-hdd", "SAS disk"),
    ("sata-ssd", "SATA SSD"),
    ("usb-stick", "USB stick"),
    ("usb-ssd", "USB SSD"),
    ("sd-card", "SD card"),
    ("emmc", "eMMC"),
    ("nvme", "NVMe"),
    ("nvme-11", "11th NVMe"),
    ("virtio-1q", "virtio, 1 queue"),
    ("loop", "loop"),
];

const HEAD: &str = "# Policies of distributions

Which scheduler each class of devices gets at boot on Linux 6.12, from the facts of each policy as rules
(`data/policy/distributions/`); `iosched rules NAME` prints one with all classes and remarks, `iosched rules NAME
--against NAME` two side by side. **Bold**: another scheduler than the kernel's default. This page is generated
(`BLESS=1 cargo test -p iosched-policy --test distributions`). It says what is chosen, not whether that is good: for
that, run a load under both (`iosched run`).

";

fn judged(policy: Option<&Shipped>) -> Judgement {
    let files: Vec<(String, String)> = policy.iter().map(|p| (p.1.into(), p.2.into())).collect();
    let read = Policy::read(&files).unwrap();
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    let machine = Machine { kernel: KernelVersion(6, 12, 0), schedulers: Vec::new() };
    judge(&read, &machine, &builtin_classes())
}

fn cell(v: &Verdict) -> String {
    let mut names: Vec<String> = Vec::new();
    for o in &v.boot {
        let name = o.scheduler.clone().unwrap_or_else(|| "–".into());
        let name = if o.scheduler == v.default { name } else { format!("**{name}**") };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" or ")
}

fn row(out: &mut String, name: &str, j: &Judgement) {
    let of = |class: &str| cell(j.classes.iter().find(|v| v.class == class).unwrap());
    let cells: Vec<String> = COLUMNS.iter().map(|(c, _)| of(c)).collect();
    writeln!(out, "| {name} | {} |", cells.join(" | ")).unwrap();
}

#[test]
fn the_page_says_what_the_rules_give() {
    let heads: Vec<&str> = COLUMNS.iter().map(|(_, head)| *head).collect();
    let mut page =
        format!("{HEAD}| policy | {} |\n|---|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    row(&mut page, "kernel's default", &judged(None));
    for p in SHIPPED {
        row(&mut page, p.0, &judged(Some(p)));
    }
    page.push_str("\n## The policies, and remarks on them\n\n| policy | what it is | source | remarks |\n|---|---|---|---|\n");
    for p in SHIPPED {
        let j = judged(Some(p));
        let serious = |k: Kind| k < Kind::Change;
        let remarks: Vec<String> = j
            .flags
            .iter()
            .filter(|f| serious(f.kind))
            .map(|f| f.text.replace('|', "\\|"))
            .collect();
        let remarks = if remarks.is_empty() { "–".into() } else { remarks.join("; ") };
        writeln!(page, "| {} | {} | {} | {remarks} |", p.0, title(p), origin(p)).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/distributions.md");
    iosched_testing::golden(&path, &page);
}

#[test]
fn each_policy_is_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/policy/distributions");
    let files = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        files.map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    let mut listed: Vec<&str> = SHIPPED.iter().map(|s| s.1).collect();
    names.sort();
    listed.sort_unstable();
    assert_eq!(names, listed);
}
