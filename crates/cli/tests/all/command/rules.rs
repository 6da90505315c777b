//! `iosched rules`: which scheduler each class of devices gets.

use super::Place;

const SPLIT: &str = "# HDD\n\
     ACTION==\"add|change\", KERNEL==\"sd[a-z]\", ATTR{queue/rotational}==\"1\", ATTR{queue/scheduler}=\"bfq\"\n\
     ACTION==\"add|change\", KERNEL==\"nvme[0-9]n[0-9]\", ATTR{queue/scheduler}=\"kyber\"\n";

fn output(place: &Place, args: &[&str]) -> (String, String) {
    let out = place.iosched(args).assert().success().get_output().clone();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (text(out.stdout), text(out.stderr))
}

#[test]
fn a_policy_is_judged_class_by_class() {
    let place = Place::new();
    let file = place.file("60-x.rules", SPLIT);
    let (text, warnings) = output(&place, &["rules", &file, "--kernel", "6.12"]);
    assert!(text.starts_with("60-x.rules: "), "{text}");
    assert!(text.contains("bfq (kernel: mq-deadline) by 60-x.rules:2"), "{text}");
    assert!(text.contains("kyber (kernel: none) by 60-x.rules:3"), "{text}");
    assert!(text.contains("takes sdb and not sdaa"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    assert_eq!(warnings, "");
    let (json, _) = output(&place, &["rules", &file, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let class = |name: &str| {
        let all = json["classes"].as_array().unwrap();
        all.iter().find(|c| c["class"] == name).unwrap()["boot"][0]["scheduler"].clone()
    };
    assert_eq!((class("sata-hdd"), class("nvme-11")), ("bfq".into(), "none".into()));
}

#[test]
fn a_kernel_without_a_scheduler_keeps_its_default() {
    let place = Place::new();
    let file = place.file("60-x.rules", SPLIT);
    let (text, _) = output(&place, &["rules", &file, "--schedulers", "mq-deadline,kyber"]);
    assert!(text.contains("has no scheduler \"bfq\"") && !text.contains("bfq (kernel"), "{text}");
}

#[test]
fn what_udev_ignores_is_said_with_its_place() {
    let place = Place::new();
    let file = place.file("60-x.rules", "KERNEL==\"sd*\", ATRR{queue/scheduler}=\"bfq\"\n");
    let (_, warnings) = output(&place, &["rules", &file]);
    assert!(warnings.contains("60-x.rules:1:16") && warnings.contains("\"ATTR\""), "{warnings}");
    for (args, wanted) in [
        (vec!["rules", "nothing.rules"], "nothing.rules"),
        (vec!["rules", &file, "--kernel", "six"], "no version of Linux"),
        (vec!["rules", &file, "--schedulers", "bqf"], "bfq"),
    ] {
        let out = place.iosched(&args).assert().code(2).get_output().stderr.clone();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(wanted), "{args:?}: {text}");
    }
}

#[test]
fn policies_that_come_with_the_program_stand_beside_each_other() {
    let place = Place::new();
    let args = ["rules", "fedora", "--against", "cachyos", "--kernel", "6.12"];
    let (text, _) = output(&place, &args);
    let nvme = text.lines().find(|l| l.starts_with("nvme ")).unwrap();
    let words: Vec<&str> = nvme.split_whitespace().collect();
    assert_eq!(words, ["nvme", "none", "none", "kyber"], "{text}");
    let out = place.iosched(&["rules", "fedroa"]).assert().code(2).get_output().stderr.clone();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("\"fedora\""), "{text}");
}

/// Under bfq the syncs of a small database on a card wait for the idle time of others.
#[test]
fn situations_tell_the_price_of_a_policy() {
    let place = Place::new();
    let set = |scheduler: &str| {
        format!("KERNEL==\"mmcblk[0-9]\", ATTR{{queue/scheduler}}=\"{scheduler}\"\n")
    };
    let json = |scheduler: &str| -> (Option<i32>, serde_json::Value) {
        let file = place.file("70-card.rules", set(scheduler));
        let args = ["rules", &file, "--situations", "home-hub", "--budget", "300ms"];
        let more = ["--kernel", "6.12", "--format", "json"];
        let out = place.iosched(&[&args[..], &more].concat()).output().unwrap();
        (out.status.code(), serde_json::from_slice(&out.stdout).unwrap())
    };
    let cells = |v: &serde_json::Value| v["situations"][0]["cells"].as_array().unwrap().clone();
    // The kernel's own choice is level with itself.
    let (code, as_is) = json("mq-deadline");
    assert_eq!(code, Some(0));
    assert!(cells(&as_is).iter().all(|c| c["against_default"]["way"] == "level"), "{as_is}");
    assert!(cells(&as_is).iter().any(|c| c["device"] == "sd-card"), "{as_is}");
    // The exit code follows from the cells that are worse by more than the threshold.
    let (code, other) = json("bfq");
    let worse = other["worse"].as_u64().unwrap();
    assert_eq!(code, Some(i32::from(worse > 0)), "{other}");
    let card = cells(&other).into_iter().find(|c| c["device"] == "sd-card").unwrap();
    assert_eq!((&card["scheduler"], &card["default"]), (&"bfq".into(), &"mq-deadline".into()));
}

#[test]
fn unknown_situations_and_thresholds_are_refused() {
    let place = Place::new();
    let said = |args: &[&str]| {
        let out = place.iosched(args).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        String::from_utf8(out.stderr).unwrap()
    };
    assert!(said(&["rules", "fedora", "--situations", "nass"]).contains("did you mean \"nas\"?"));
    assert!(
        said(&["rules", "fedora", "--situations", "nas", "--threshold", "x"])
            .contains("percentage")
    );
    assert!(said(&["rules", "fedora", "--threshold", "5"]).contains("--situations"));
}
