//! Data sheets become device files that run and do what the sheets say.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use iosched_devices::datasheet::Sheet;
use iosched_devices::describe::{LOADS, measure};
use iosched_devices::{DeviceSpec, Model};

const SHEETS: &[(&str, &str)] = &[
    (
        "disk",
        "name = \"A \\\"7200\\\" disk\"\ncapacity = \"4TB\"\nrpm = 7200\nseek_ms = 8.5\nsequential_read = 210\ncache = \"256MiB\"\n",
    ),
    (
        "disk by its reads",
        "capacity = \"1TB\"\nrpm = 5400\nrandom_read_iops = 62\nsequential_read = 150\nsequential_read_inner = 75\n",
    ),
    (
        "SAS disk",
        "capacity = \"600GB\"\ninterface = \"sas\"\nrpm = 15000\nseek_ms = \"2.9ms\"\ntrack_to_track_ms = 0.2\nfull_stroke_ms = 6\nsequential_read = 250\npower_loss_protection = true\ncache = \"128MiB\"\n",
    ),
    (
        "SATA drive",
        "capacity = \"500GB\"\ninterface = \"sata\"\nrandom_read_iops = 95000\nrandom_write_iops = 85000\nlatency_us = 100\nsequential_read = 545\nsequential_write = 500\n",
    ),
    (
        "NVMe drive",
        "capacity = \"1TB\"\ninterface = \"nvme\"\nrandom_read_iops = 1000000\nrandom_write_iops = 900000\ndepth = 512\nlatency_us = 50\nwrite_latency_us = 15\nsequential_read = 7000\nsequential_write = 5000\n",
    ),
    (
        "server drive",
        "capacity = \"960GB\"\ninterface = \"nvme\"\nrandom_read_iops = 580000\nrandom_write_iops = 70000\ndepth = 256\nlatency_us = 85\nsequential_read = 6800\nsequential_write = 1400\npower_loss_protection = true\n",
    ),
];

#[test]
fn a_sheet_becomes_a_device_that_agrees_with_it() {
    for (name, text) in SHEETS {
        let sheet =
            Sheet::from_toml("sheet.toml", text).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let (file, agreement) = sheet.device_file().unwrap_or_else(|e| panic!("{name}: {e}"));
        let spec = DeviceSpec::from_toml("made.toml", &file)
            .unwrap_or_else(|d| panic!("{name}: {d}\n{file}"));
        spec.build().unwrap();
        assert!(agreement.len() >= 2, "{name}: {agreement:?}");
        for a in &agreement {
            assert!(a.holds(), "{name}: {a:?}\n{file}");
            assert!(file.contains(&format!("# {}: ", a.key)), "{name}: {file}");
            assert!(spec.figures.iter().any(|f| f.name == a.key), "{name}: {file}");
        }
        // Every derived parameter has its rule.
        for key in match &spec.model {
            Model::Hdd(_) => ["seek_a", "seek_b", "rev_ns", "bw"],
            _ => ["chans", "rd_ns", "wr_ns", "bus_bw"],
        } {
            assert!(spec.derivation.iter().any(|d| d.0 == key), "{name}: {key}");
        }
    }
}

/// No drive does both: its interface would carry a third of what it reads in 4 KiB pieces.
#[test]
fn a_figure_that_the_model_cannot_have_is_named() {
    let text = "capacity = \"500GB\"\nlatency_us = 100\nrandom_read_iops = 900000\nsequential_read = 500\n";
    let (file, agreement) = Sheet::from_toml("s.toml", text).unwrap().device_file().unwrap();
    let missed: Vec<&str> = agreement.iter().filter(|a| !a.holds()).map(|a| a.key).collect();
    assert_eq!(missed, ["random_read_iops"], "{agreement:?}");
    assert!(file.contains("MISSED") && file.contains("reason = "), "{file}");
    DeviceSpec::from_toml("made.toml", &file).unwrap();
}

#[test]
fn everything_wrong_is_said_at_once_with_its_place() {
    let text = "capacty = \"1TB\"\nrpm = \"fast\"\ninterface = \"scsi\"\nseek_ms = -1\nsequential_read = 0\n";
    let errors = Sheet::from_toml("s.toml", text).unwrap_err();
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let all = all.join("\n");
    for words in [
        "did you mean \"capacity\"?",
        "s.toml:2:7",
        "rpm must be a number, not string",
        "s.toml:3:13",
        "one of: sata, sas, nvme, usb",
        "seek_ms is out of range",
        "s.toml:5:19",
    ] {
        assert!(all.contains(words), "{words}\n{all}");
    }
    let lacks = |text: &str| Sheet::from_toml("s.toml", text).unwrap_err()[0].to_string();
    let bare = lacks("capacity = \"1TB\"\nrandom_read_iops = \"75K\"\n");
    assert!(bare.contains("write it as a bare number: random_read_iops = 75000"), "{bare}");
    assert!(lacks("rpm = 7200\n").contains("no capacity"));
    assert!(lacks("capacity = \"1TB\"\nrpm = 7200\n").contains("no sequential_read"));
    assert!(lacks("capacity = \"1TB\"\nsequential_read = 5\n").contains("latency_us"));
}

#[test]
fn rates_may_have_units_and_an_interface_that_lacks_is_said() {
    let sheet = |rate: &str, rest: &str| {
        let text = format!("capacity = \"1TB\"\nlatency_us = 80\nsequential_read = {rate}\n{rest}");
        Sheet::from_toml("s.toml", &text)
    };
    let plain = sheet("190", "").unwrap();
    for rate in ["\"190MB/s\"", "\"190 MB/s\"", "\"0.19 GB/s\"", "\"190MBps\""] {
        assert_eq!(sheet(rate, "").unwrap(), plain, "{rate}");
    }
    for rate in ["\"190\"", "\"fast\"", "\"190 IOPS\""] {
        let why = sheet(rate, "").unwrap_err()[0].to_string();
        assert!(why.contains("a rate in MB/s, such as 190 or \"190MB/s\""), "{why}");
    }
    assert!(plain.hint().unwrap().contains("taken as sata, 32 commands"), "{:?}", plain.hint());
    let fast = sheet("\"3.5GB/s\"", "").unwrap().hint().unwrap();
    assert!(fast.contains("slower than its sequential_read") && fast.contains("nvme"), "{fast}");
    assert_eq!(sheet("3500", "interface = \"nvme\"\n").unwrap().hint(), None);
    assert_eq!(sheet("190", "rpm = 7200\n").unwrap().hint(), None, "disks are sata");
}

/// The sheet of the catalogue's disk, and that of a slower one.
const CLASS: &str = "capacity = 1000204886016\nrpm = 7200\nseek_ms = 9\ntrack_to_track_ms = 1\nfull_stroke_ms = 17.1\nsequential_read = 200\nsequential_read_inner = 95\ncache = \"64MiB\"\n";
const SLOWER: &str =
    "capacity = \"1TB\"\nrpm = 5400\nseek_ms = 8.9\nsequential_read = 180\ncache = \"64MiB\"\n";

fn derived(text: &str) -> DeviceSpec {
    let sheet = Sheet::from_toml("s.toml", text).unwrap();
    DeviceSpec::from_toml("made.toml", &sheet.device_file().unwrap().0).unwrap()
}

/// A disk of the catalogue and one from the figures of its sheet do the same, and a slower disk is slower in everything.
#[test]
fn a_disk_from_its_sheet_does_what_the_catalogue_s_does() {
    let catalogue = iosched_devices::catalogue::find("hdd-7200").unwrap();
    let (same, slower) = (derived(CLASS), derived(SLOWER));
    for load in LOADS {
        let of = |spec: &DeviceSpec| measure(spec, load).unwrap().iops;
        let [class, same, slower] = [&catalogue, &same, &slower].map(of);
        assert!((same / class - 1.0).abs() < 0.02, "{}: {same} for {class}", load.name);
        assert!(slower < class * 1.01, "{}: {slower} is above {class}", load.name);
    }
}

/// Exos X18: 550 random writes a second are more than four cached ones to choose from allow.
#[test]
fn random_writes_of_a_disk_say_among_how_many_it_chooses() {
    let text = format!("{CLASS}random_write_iops = 320\n");
    let (file, agreement) = Sheet::from_toml("s.toml", &text).unwrap().device_file().unwrap();
    let writes = agreement.iter().find(|a| a.key == "random_write_iops").unwrap();
    assert!(writes.error().abs() < 0.25, "{writes:?}");
    let Model::Hdd(p) = DeviceSpec::from_toml("made.toml", &file).unwrap().model else {
        panic!("no disk")
    };
    assert!((16..=1024).contains(&p.destage_window), "{}", p.destage_window);
}
