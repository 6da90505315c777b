//! Device files that are wrong: a clear error at the right place, never a panic.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use iosched_devices::{DeviceSpec, Model, truth};
use proptest::prelude::*;

fn error(text: &str) -> String {
    match DeviceSpec::from_toml("dev.toml", text) {
        Ok(spec) => panic!("accepted: {spec:?}"),
        Err(d) => d.to_string(),
    }
}

const DISK: &str = "[model]\nkind = \"hdd\"\ncap = \"1GiB\"\novh_ns = 1000\n";

#[test]
fn a_mistyped_key_is_pointed_at_and_corrected() {
    let e = error(&format!("{DISK}seek_aa = 5\n"));
    assert!(e.contains("unknown key \"seek_aa\" in [model] of kind \"hdd\""), "{e}");
    assert!(e.contains("dev.toml:5:1") && e.contains("^^^^^^^"), "{e}");
    assert!(e.contains("did you mean \"seek_a\"?"), "{e}");
    let e = error(&format!("{DISK}[queue]\nqueue_dept = 5\n"));
    assert!(e.contains("dev.toml:6:1") && e.contains("\"queue_depth\""), "{e}");
    let e = error(&format!("{DISK}[modle]\n"));
    assert!(e.contains("dev.toml:5:2") && e.contains("\"model\""), "{e}");
    // A key of another kind is not known here.
    assert!(error(&format!("{DISK}stripe = 4096\n")).contains("dev.toml:5:1"));
}

#[test]
fn what_is_missing_is_named() {
    assert!(error("").contains("[model]"));
    assert!(error("[model]\ncap = 5\n").contains("has no kind"));
    assert!(error("[model]\nkind = \"hdd\"\n").contains("lacks \"cap\""));
    assert!(error("[model]\nkind = \"fixed\"\ncap = 4096\n").contains("lacks \"lat_ns\""));
    let figure = format!("{DISK}[figure.x]\nvalue = 1\nconfidence = \"high\"\n");
    assert!(error(&figure).contains("[figure.x] lacks \"source\""));
    assert!(error("[model]\nkind = \"hhd\"\n").contains("did you mean \"hdd\"?"));
}

#[test]
fn values_of_the_wrong_kind_or_size_are_refused() {
    for (line, want) in [
        ("seek_a = \"far\"", "seek_a must be a time"),
        ("seek_a = 1.5", "seek_a must be a whole number of ns, not float"),
        ("seek_a = nan", "whole number"),
        ("seek_a = inf", "whole number"),
        ("seek_a = true", "seek_a must be a number of ns, not boolean"),
        ("seek_a = [1]", "not array"),
        ("seek_a = 1979-05-27", "not datetime"),
        ("seek_a = -1", "seek_a = -1 is out of range"),
        ("seek_b = 4294967296", "out of range: 0 to 4294967295"),
        ("seek_b = 99999999999999999999999999999999999999999999", "range"),
        ("rev_ns = 0", "out of range: 1 to"),
        ("rev_ns = 4294967296", "out of range"),
        ("spt = 0", "out of range: 1 to"),
        ("flush_ns = \"99999h\"", "out of range"),
        ("bw = 5", "at least 1024 B/s"),
        ("bw_inner = 5000", "faster than the outermost"),
        ("rot = \"anglo\"", "unknown rot \"anglo\""),
        ("rot = 2", "rot must be a word"),
        ("sptf = 2", "sptf must be true or false"),
        ("depth = 0xfffffff", "out of range"),
        ("wcache_high = 101", "out of range: 1 to 100"),
    ] {
        let e = error(&format!("{DISK}{line}\n"));
        assert!(e.contains(want) && e.contains("dev.toml:5:"), "{line}: {e}");
    }
    for cap in ["0", "511", "-1", "\"1.5TiB\"", "\"9999999TiB\"", "1e12", "18446744073709551616"] {
        let e = error(&format!("[model]\nkind = \"hdd\"\ncap = {cap}\novh_ns = 1\n"));
        assert!(e.contains("dev.toml:3:7"), "{cap}: {e}");
    }
}

#[test]
fn devices_without_progress_are_refused() {
    for (text, want) in [
        ("kind = \"hdd\"\ncap = 4096\n", "sequential commands would take no time"),
        ("kind = \"hdd\"\ncap = 4096\nbw = 999999999999999\n", "no time"),
        ("kind = \"fixed\"\ncap = 4096\nlat_ns = 0\n", "out of range: 1 to"),
        ("kind = \"fixed\"\ncap = 4096\nlat_ns = 5\npar = 0\n", "out of range: 1 to"),
        ("kind = \"ssd\"\ncap = 4096\nchans = 0\n", "out of range: 1 to"),
        ("kind = \"ssd\"\ncap = 4096\nstripe = 0\n", "out of range: 512 to"),
        ("kind = \"ssd\"\ncap = 4096\nwr_ns = 5\n", "a read would take no time"),
        ("kind = \"ssd\"\ncap = 4096\nrd_ns = 5\ncache = 4096\n", "a write would take no time"),
        ("kind = \"ssd\"\ncap = 4096\ncmd_ns = 5\nwr_ns = 5\nslc = 4096\n", "not faster"),
        ("kind = \"volume\"\ncap = 4096\nrd_ns = 5\n", "would take no time"),
        ("kind = \"volume\"\ncap = 4096\nrd_ns = 5\nwr_ns = 5\nbw_burst = 5\n", "without bw"),
    ] {
        let e = error(&format!("[model]\n{text}"));
        assert!(e.contains(want), "{text}: {e}");
    }
}

#[test]
fn queue_facts_and_figures_are_checked() {
    for (text, want) in [
        ("[queue]\nqueue_depth = 0\n", "out of range: 1 to"),
        ("[queue]\nlogical_block = 513\n", "power of two"),
        ("[queue]\nmax_hw_sectors_kb = 3\n", "out of range"),
        ("[figure.x]\nvalue = nan\nsource = \"s\"\nconfidence = \"high\"\n", "finite"),
        ("[figure.x]\nvalue = [1, 2, 3]\nsource = \"s\"\nconfidence = \"high\"\n", "two numbers"),
        ("[figure.x]\nvalue = 1\nsource = \" \"\nconfidence = \"high\"\n", "empty source"),
        ("[figure.x]\nvalue = 1\nsource = \"s\"\nconfidence = \"sure\"\n", "assumed, low"),
        ("[price]\nvalue = 1\n", "lacks \"unit\""),
        ("[derivation]\nseek_aa = \"x\"\n", "seek_a"),
        ("figure = 5\n", "TOML"),
    ] {
        let e = error(&format!("{DISK}{text}"));
        assert!(e.contains(want) || want == "TOML", "{text}: {e}");
    }
    let small = "[model]\nkind = \"fixed\"\ncap = 512\nlat_ns = 5\n[queue]\nlogical_block = 4096\n";
    assert!(error(small).contains("smaller than one logical block"));
}

#[test]
fn broken_text_is_refused() {
    for text in ["[model", "\u{0}", "= 1", "[model]\nkind = \"hdd", "a = 1\na = 2", "\u{feff}\u{1}"]
    {
        assert!(error(text).contains("dev.toml"), "{text:?}");
    }
}

#[test]
fn sizes_and_times_take_suffixes() {
    let text = "[model]\nkind = \"hdd\"\ncap = \"64GiB\"\novh_ns = \"10us\"\nrev_ns = \"8.33ms\"\n";
    let spec = DeviceSpec::from_toml("folder/my-disk.toml", text).unwrap();
    let Model::Hdd(p) = &spec.model else { panic!("a disk") };
    assert_eq!((p.cap, p.ovh_ns, p.rev_ns), (64 << 30, 10_000, 8_330_000));
    assert_eq!((spec.name.as_str(), spec.rotational), ("my-disk", true));
}

#[test]
fn truth_files_are_checked_the_same_way() {
    let error = |text: &str| truth::parse("devices.toml", text).unwrap_err().to_string();
    let fixed = "[a]\nkind = \"fixed\"\ncap = 4096\nlat_ns = 5\n";
    let e = error(&format!("{fixed}nr_request = 5\n"));
    assert!(e.contains("devices.toml:5:1") && e.contains("nr_requests"), "{e}");
    assert!(error(&format!("{fixed}runtime_s = 0\n")).contains("runtime_s"));
    assert!(error(&format!("{fixed}runtime_s = nan\n")).contains("finite"));
    assert!(error("a = 1\n").contains("must be a table"));
    assert!(error(&format!("{fixed}nr_requests = 0\n")).contains("out of range"));
    let one = truth::parse("d", &format!("{fixed}queue_depth = 7\nruntime_s = 0.5\n")).unwrap();
    let got = (one[0].spec.queue_depth, one[0].nr_requests, one[0].runtime_s);
    assert_eq!((one[0].spec.name.as_str(), got), ("a", (7, 14, 0.5)));
    let table: toml::Table = toml::from_str("kind = \"fixed\"\ncap = 4096\nlat_ns = 5\n").unwrap();
    assert_eq!(DeviceSpec::from_truth("a", &table).unwrap().spec.model, one[0].spec.model);
    let table: toml::Table = toml::from_str("kind = \"fixed\"\ncap = 4096\n").unwrap();
    assert!(DeviceSpec::from_truth("a", &table).unwrap_err().to_string().contains("lat_ns"));
}

#[test]
fn a_spec_made_in_code_is_checked_too() {
    let mut spec = DeviceSpec::from_toml("d", &format!("{DISK}bw = 1_000_000\n")).unwrap();
    assert!(spec.build().is_ok());
    spec.queue_depth = 0;
    assert!(spec.build().err().unwrap().to_string().contains("queue_depth = 0"));
    spec.queue_depth = 1;
    let Model::Hdd(p) = &mut spec.model else { panic!("a disk") };
    p.spt = 0;
    assert!(spec.build().err().unwrap().to_string().contains("spt = 0"));
}

proptest! {
    /// Any text gives an answer, not a panic. An accepted text can be built.
    #[test]
    fn any_text_gets_an_answer(
        kind in "hdd|ssd|fixed|volume|h",
        lines in proptest::collection::vec(
            "(cap|seek_b|rev_ns|bw|bw_inner|wcache|spt|par|chans|lat_ns|rd_ns|ovh_ns|stripe|zones) \
             = (-?[0-9]{1,22}|\"[0-9]{1,8}[kMGTms]{0,2}\"|nan|true|\"angle\")", 0..6),
        noise in "\\PC{0,12}",
    ) {
        let body = lines.join("\n");
        for text in [format!("[model]\nkind = \"{kind}\"\n{body}\n"), format!("{body}\n{noise}")] {
            if let Ok(spec) = DeviceSpec::from_toml("any.toml", &text) {
                prop_assert!(spec.validate().is_ok());
            }
        }
    }
}
