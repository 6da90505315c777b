//! The catalogue: well formed, honest about its sources, and doing what the figures say.
//!
//! Tolerances, by the confidence of a figure: 10 % where a parameter was taken from it, 20 % where it
//! follows from other parameters, and for the sequential rate of a disk 5 %.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use iosched_devices::describe::{Description, LOADS, Load, flush_time, measure};
use iosched_devices::{Confidence, DeviceSpec, FigureValue, Model, catalogue};
use iosched_types::Op;

const NAMES: &[&str] = &[
    "adata-su800",
    "cloud-gp3",
    "emmc",
    "exos-x18",
    "fixed",
    "hdd-7200",
    "nvme",
    "optane-p5800x",
    "plextor-px-256m5s",
    "raid1-st1000dm003",
    "raid10-bbu-8",
    "samsung-950-pro",
    "samsung-980-pro",
    "samsung-990-pro",
    "samsung-pm9a3",
    "san-lun-2x4gfc",
    "sd-card",
    "ssd-sata",
    "st1000dm003",
    "st3320620as",
    "usb-sata-bridge",
    "usb-stick",
    "wd-sn580",
    "wd10ezrx",
];

#[test]
fn every_file_is_a_device() {
    for (name, text) in catalogue::files() {
        let spec = DeviceSpec::from_toml(name, text).unwrap_or_else(|d| panic!("{name}: {d}"));
        spec.legs().iter().for_each(|leg| drop(leg.build().unwrap()));
        assert!(!spec.summary.is_empty() && spec.title != spec.name, "{name}");
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<DeviceSpec>(&json).unwrap(), spec);
    }
    let names: Vec<&str> = catalogue::all().iter().map(|d| d.0).collect();
    for name in NAMES {
        assert!(names.contains(name), "{name} is missing from {names:?}");
    }
}

#[test]
fn the_nearest_name_is_offered() {
    let e = catalogue::find("samsung-990pro").unwrap_err().to_string();
    assert!(e.contains("did you mean \"samsung-990-pro\"?"), "{e}");
    let e = catalogue::find("floppy").unwrap_err().to_string();
    assert!(e.contains("hdd-7200"), "{e}");
}

#[test]
fn assumptions_are_never_called_published() {
    for (name, spec) in catalogue::all() {
        for f in &spec.figures {
            let assumed = f.source.starts_with("not published here");
            assert_eq!(assumed, f.confidence == Confidence::Assumed, "{name}: {}", f.name);
        }
        // Every parameter that is not obvious says where it comes from; a stack has few.
        if name != &"fixed" && spec.stack.is_none() {
            assert!(spec.derivation.len() >= 5, "{name}");
        }
    }
}

fn spec(name: &str) -> DeviceSpec {
    catalogue::find(name).unwrap()
}

fn figure(spec: &DeviceSpec, name: &str) -> f64 {
    let all = || spec.figures.iter().map(|f| &f.name).collect::<Vec<_>>();
    let f = spec.figures.iter().find(|f| f.name == name);
    match &f.unwrap_or_else(|| panic!("{} has no {name}: {:?}", spec.name, all())).value {
        FigureValue::Number(v) => *v,
        other => panic!("{name} is {other:?}"),
    }
}

fn near(what: &str, ours: f64, figure: f64, tolerance: f64) {
    let error = (ours / figure - 1.0).abs();
    assert!(error <= tolerance, "{what}: {ours:.1} against {figure:.1}, {:.1} %", 100.0 * error);
}

/// IOPS at 4 KiB.
fn iops(spec: &DeviceSpec, op: Op, depth: u32) -> f64 {
    let commands = match (op, depth) {
        // The write cache (64 MiB at most) is full long before the half that counts.
        (Op::Write, 2..) => 80_000,
        (_, 1) => 4000,
        _ => 12_000,
    };
    measure(spec, Load { op, depth, commands, ..LOADS[0] }).unwrap().iops
}

fn sequential(spec: &DeviceSpec, i: usize) -> f64 {
    measure(spec, LOADS[i]).unwrap().mb_per_s
}

#[test]
fn drives_read_and_write_at_random_as_their_figures_say() {
    let rows: &[(&str, &str, Op, u32, f64)] = &[
        ("adata-su800", "rand_read_4k_qd1", Op::Read, 1, 0.10),
        ("adata-su800", "rand_read_4k_qd32", Op::Read, 32, 0.20),
        ("samsung-950-pro", "rand_read_4k_qd32x4", Op::Read, 128, 0.20),
        ("plextor-px-256m5s", "rand_read_4k_qd1", Op::Read, 1, 0.10),
        ("plextor-px-256m5s", "rand_read_4k_qd32", Op::Read, 32, 0.20),
        ("samsung-990-pro", "rand_read_qd32xN", Op::Read, 512, 0.10),
        ("samsung-990-pro", "rand_write_qd32xN", Op::Write, 512, 0.10),
        ("samsung-pm9a3", "rand_read_qd32xN", Op::Read, 512, 0.10),
        ("optane-p5800x", "rand_read_4k_qd32", Op::Read, 32, 0.20),
        ("optane-p5800x", "rand_write_4k_qd32", Op::Write, 32, 0.20),
        ("sd-card", "a1_min_rand_read", Op::Read, 1, 0.10),
        ("emmc", "rand_read_4k_qd1", Op::Read, 1, 0.20),
        ("emmc", "rand_write_4k_qd1", Op::Write, 1, 0.20),
        ("usb-stick", "rand_read_4k_qd1", Op::Read, 1, 0.10),
        ("usb-sata-bridge", "rand_read_4k_qd1", Op::Read, 1, 0.10),
        ("wd-sn580", "rand_read_qd32xN", Op::Read, 512, 0.10),
        ("wd-sn580", "rand_write_qd32xN", Op::Write, 512, 0.10),
        ("sd-card", "a1_min_rand_write", Op::Write, 1, 0.10),
        ("wd10ezrx", "rand_read_4k_qd1", Op::Read, 1, 0.10),
        ("wd10ezrx", "rand_read_4k_qd32", Op::Read, 32, 0.25),
        ("st3320620as", "rand_read_4k_qd1", Op::Read, 1, 0.10),
        ("st3320620as", "rand_read_4k_qd32", Op::Read, 31, 0.25),
        ("st1000dm003", "rand_read_4k_qd1", Op::Read, 1, 0.10),
        ("st1000dm003", "rand_read_4k_qd32_st2000dm006", Op::Read, 32, 0.25),
        ("exos-x18", "rand_read_4k_qd16", Op::Read, 16, 0.20),
    ];
    for (name, key, op, depth, tolerance) in rows {
        let s = spec(name);
        near(&format!("{name} {key}"), iops(&s, *op, *depth), figure(&s, key), *tolerance);
    }
}

#[test]
fn sequential_rates_are_those_of_the_figures() {
    for (name, key, i, tolerance) in [
        ("wd10ezrx", "media_rate_outer", 4, 0.05),
        ("st3320620as", "media_rate_outer", 4, 0.05),
        ("st1000dm003", "media_rate_outer", 4, 0.05),
        ("exos-x18", "media_rate_outer", 4, 0.05),
        ("adata-su800", "seq_read", 4, 0.05),
        ("emmc", "seq_read", 4, 0.05),
        ("emmc", "seq_write", 5, 0.10),
        ("usb-stick", "seq_read", 4, 0.10),
        ("usb-stick", "seq_write", 5, 0.10),
        ("usb-sata-bridge", "seq_read", 4, 0.05),
        ("usb-sata-bridge", "seq_write", 5, 0.10),
        ("wd-sn580", "seq_read", 4, 0.05),
        ("wd-sn580", "seq_write", 5, 0.10),
        ("adata-su800", "seq_write", 5, 0.10),
        ("samsung-950-pro", "seq_read", 4, 0.05),
        ("samsung-950-pro", "seq_write", 5, 0.10),
        ("plextor-px-256m5s", "seq_read", 4, 0.05),
        ("samsung-990-pro", "seq_read", 4, 0.05),
        ("samsung-990-pro", "seq_write", 5, 0.10),
        ("samsung-pm9a3", "seq_read", 4, 0.05),
        ("samsung-pm9a3", "seq_write", 5, 0.10),
        ("optane-p5800x", "seq_read", 4, 0.05),
        ("optane-p5800x", "seq_write", 5, 0.10),
    ] {
        let s = spec(name);
        near(&format!("{name} {key}"), sequential(&s, i), figure(&s, key), tolerance);
    }
}

/// A write-back disk cannot keep up more than its medium takes.
#[test]
fn a_write_cache_does_not_make_the_medium_faster() {
    for name in ["wd10ezrx", "st3320620as", "st1000dm003", "exos-x18", "hdd-7200"] {
        let s = spec(name);
        let Model::Hdd(p) = &s.model else { panic!("{name} is a disk") };
        let rate = sequential(&s, 5) * 1e6;
        assert!(rate < p.bw as f64 * 1.02 && rate > p.bw as f64 * 0.85, "{name}: {rate}");
    }
}

/// Measured on the follow-on drive: 28 ms and 9.4 ms for each scattered cached write.
#[test]
fn a_flush_of_scattered_writes_takes_what_was_measured() {
    let ours = flush_time(&spec("st1000dm003"), 64).unwrap() as f64 / 1e6;
    near("flush after 64 writes", ours, 28.0 + 64.0 * 9.4, 0.20);
}

#[test]
fn a_cloud_volume_gives_its_grant() {
    let s = spec("cloud-gp3");
    near("operations", iops(&s, Op::Read, 64), 3000.0, 0.01);
    let rate = sequential(&s, 4) * 1e6;
    near("bytes", rate, 125.0 * 1_048_576.0, 0.01);
}

#[test]
fn descriptions_fit_a_terminal_and_repeat() {
    for name in ["sd-card", "st3320620as", "cloud-gp3", "fixed"] {
        let text = Description::of(&spec(name)).unwrap().to_string();
        for line in text.lines() {
            assert!(line.chars().count() <= 80 && line.trim_end() == line, "{name}: {line:?}");
        }
        assert!(text.contains("4 KiB random read, QD1 ") && text.contains("flush"), "{text}");
        if name == "sd-card" {
            assert_eq!(text, Description::of(&spec(name)).unwrap().to_string());
        }
    }
}

/// Who is told to begin with full caches is told of those that the device has.
#[test]
fn the_full_state_names_the_caches_a_device_has() {
    let full = |name: &str, state: &str| {
        let mut s = spec(name);
        s.state = state.split(',').filter(|e| !e.is_empty()).fold(s.state, |mut state, entry| {
            let (key, word) = entry.split_once('=').unwrap();
            state.set(key, word).unwrap();
            state
        });
        s.all_full().map(|f| f.text())
    };
    assert_eq!(full("hdd-7200", "").as_deref(), Some("write_cache=full"));
    assert_eq!(full("adata-su800", "slc=full").as_deref(), Some("write_cache=full,slc=full"));
    assert_eq!(full("adata-su800", "write_cache=full,slc=full"), None);
    assert_eq!(full("fixed", ""), None);
}

#[test]
fn a_mirror_has_legs_with_queues_and_is_no_device_itself() {
    let mirror = spec("raid1-st1000dm003");
    let stack = mirror.stack.as_ref().unwrap();
    assert_eq!(mirror.capacity(), spec("st1000dm003").capacity() - (129 << 20));
    assert_eq!((stack.legs.len(), mirror.fua, stack.legs[0].fua), (2, true, false));
    let refused = mirror.build().err().unwrap().to_string();
    assert_eq!(refused, "raid1-st1000dm003 is 2 disks (raid1), not one device");
    assert!(Description::of(&mirror).unwrap().model[0].contains("mirror"));
}

#[test]
fn a_stack_with_a_mistake_says_where() {
    let wrong = |text: &str| DeviceSpec::from_toml("t.toml", text).unwrap_err().to_string();
    let stack = |lines: &str| wrong(&format!("[stack]\n{lines}"));
    for (text, want) in [
        ("kind = \"raid11\"\nlegs = []", "did you mean \"raid1\"?"),
        ("kind = \"raid1\"", "[stack] lacks \"legs\""),
        ("kind = \"raid1\"\nlegs = [\"hdd-7200\"]", "a list of 2 to 16 devices"),
        ("kind = \"raid1\"\nlegs = [\"hdd-720\", \"nvme\"]", "did you mean \"hdd-7200\"?"),
        ("kind = \"raid1\"\nlegs = [\"nvme\", \"raid1-st1000dm003\"]", "legs are single disks"),
        ("kind = \"raid1\"\nlegs = [\"nvme\", \"nvme\"]\nwrite_mostly = [2]", "no leg 2"),
        ("kind = \"raid1\"\nlegs = [\"nvme\", \"nvme\"]\ndata_offset = 100", "multiple of 512"),
        ("kind = \"raid1\"\nlegs = [\"nvme\", \"nvme\"]\nbitmap = true", "unknown key"),
        (
            "kind = \"raid1\"\nlegs = [\"nvme\", \"nvme\"]\n[queue]\nfua = true",
            "leave this table out",
        ),
    ] {
        let message = stack(text);
        assert!(message.contains(want), "{text}: {message}");
    }
}
