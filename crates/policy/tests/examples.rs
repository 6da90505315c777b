//! Policies with known outcomes: which class gets which scheduler, and which remarks are made.
#![allow(clippy::unwrap_used, reason = "tests")]

use iosched_policy::{Judgement, Kind, Machine, Outcome, Policy, builtin_classes, judge};
use iosched_schedulers::KernelVersion;

fn judged(kernel: (u16, u16), files: &[(&str, &str)]) -> Judgement {
    let files: Vec<(String, String)> =
        files.iter().map(|(p, t)| ((*p).into(), (*t).into())).collect();
    let policy = Policy::read(&files).unwrap();
    let machine = Machine { kernel: KernelVersion(kernel.0, kernel.1, 0), schedulers: Vec::new() };
    judge(&policy, &machine, &builtin_classes())
}

fn rules(text: &str) -> Judgement {
    judged((6, 12), &[("/etc/udev/rules.d/66-x.rules", text)])
}

fn scheduler(o: &[Outcome]) -> &str {
    o[0].scheduler.as_deref().unwrap_or("-")
}

/// Classes and their schedulers at boot.
fn boot(j: &Judgement, wanted: &[(&str, &str)]) {
    for (class, name) in wanted {
        let v = j.classes.iter().find(|v| v.class == *class).unwrap_or_else(|| panic!("{class}"));
        assert_eq!(scheduler(&v.boot), *name, "{class}: {:?}", v.boot);
    }
}

fn later<'a>(j: &'a Judgement, class: &str) -> &'a Outcome {
    &j.classes.iter().find(|v| v.class == class).unwrap().later[0]
}

/// The texts of remarks of a kind, with their classes.
fn said(j: &Judgement, kind: Kind) -> String {
    let of = j.flags.iter().filter(|f| f.kind == kind);
    of.map(|f| format!("{}: {} [{}]\n", f.place, f.text, f.classes.join(" "))).collect()
}

#[test]
fn a_class_split_that_misses_a_class() {
    let j = rules(
        "ACTION==\"add|change\", KERNEL==\"sd[a-z]\", ATTR{queue/rotational}==\"1\", ATTR{queue/scheduler}=\"bfq\"\n\
         ACTION==\"add|change\", KERNEL==\"nvme[0-9]n[0-9]\", ATTR{queue/scheduler}=\"kyber\"\n",
    );
    boot(
        &j,
        &[
            ("sata-hdd", "bfq"),
            ("sata-ssd", "mq-deadline"),
            ("sata-hdd-27", "mq-deadline"),
            ("nvme", "kyber"),
            ("nvme-11", "none"),
            ("sd-card", "mq-deadline"),
            ("usb-stick", "bfq"),
            ("virtio-1q", "mq-deadline"),
            ("virtio", "none"),
        ],
    );
    let missed = said(&j, Kind::Missed);
    assert!(
        missed.contains("sdb and not sdaa") && missed.contains("nvme0n1 and not nvme10n1"),
        "{missed}"
    );
    let accident = said(&j, Kind::Accident);
    assert!(accident.starts_with("66-x.rules:1:") && accident.contains("usb-stick"), "{accident}");
}

#[test]
fn an_exemption_that_exempts_nothing_and_one_that_works() {
    let j = rules(
        "SUBSYSTEM==\"block\", SUBSYSTEMS!=\"usb\", ATTR{queue/rotational}==\"1\", ATTR{queue/scheduler}=\"bfq\"\n",
    );
    boot(&j, &[("usb-stick", "bfq"), ("sata-hdd", "bfq"), ("virtio-1q", "bfq"), ("loop", "bfq")]);
    assert!(
        said(&j, Kind::Exemption).contains("SUBSYSTEMS!=\"usb\" exempts nothing"),
        "{:?}",
        j.flags
    );
    let j = rules(
        "SUBSYSTEM!=\"block\", GOTO=\"out\"\nENV{DEVTYPE}!=\"disk\", GOTO=\"out\"\nSUBSYSTEMS==\"usb\", GOTO=\"out\"\n\
         TEST!=\"queue/scheduler\", GOTO=\"out\"\nATTR{queue/rotational}==\"1\", ATTR{queue/scheduler}=\"bfq\"\nLABEL=\"out\"\n",
    );
    boot(
        &j,
        &[
            ("usb-stick", "mq-deadline"),
            ("sata-hdd", "bfq"),
            ("virtio-1q", "bfq"),
            ("zram", "-"),
            ("md", "-"),
            ("luks", "-"),
        ],
    );
    assert_eq!(said(&j, Kind::Refused), "", "what has no scheduler is left at TEST");
}

#[test]
fn properties_come_late() {
    let text =
        "ENV{ID_BUS}==\"ata\", ATTR{queue/rotational}==\"0\", ATTR{queue/scheduler}=\"kyber\"\n";
    let j = judged((6, 12), &[("60-ioscheduler.rules", text)]);
    boot(&j, &[("sata-ssd", "mq-deadline")]);
    assert_eq!(later(&j, "sata-ssd").scheduler.as_deref(), Some("mq-deadline"));
    assert!(
        said(&j, Kind::Never).contains("ID_BUS is set by 60-persistent-storage.rules"),
        "{:?}",
        j.flags
    );
    boot(&judged((6, 12), &[("61-ioscheduler.rules", text)]), &[("sata-ssd", "kyber")]);
}

#[test]
fn a_tunable_before_its_scheduler_is_lost_until_the_next_event() {
    let j = rules(
        "KERNEL==\"sd*[!0-9]\", ATTR{queue/iosched/slice_idle}=\"0\", ATTR{queue/nr_requests}=\"512\", ATTR{queue/scheduler}=\"bfq\"\n",
    );
    let v = j.classes.iter().find(|v| v.class == "sata-hdd").unwrap();
    assert_eq!((scheduler(&v.boot), v.boot[0].nr_requests, v.boot[0].set.len()), ("bfq", 64, 0));
    assert_eq!(
        (scheduler(&v.later), v.later[0].nr_requests, v.later[0].set.len()),
        ("bfq", 512, 2)
    );
    assert!(said(&j, Kind::Lost).contains("nr_requests is put back"), "{:?}", j.flags);
    assert!(
        said(&j, Kind::Refused).contains("mq-deadline has no tunable slice_idle"),
        "{:?}",
        j.flags
    );
    assert!(said(&j, Kind::Change).contains("only after the first change event"), "{:?}", j.flags);
}

#[test]
fn files_are_sorted_by_the_bytes_of_their_names() {
    let nvme = |s: &str| format!("KERNEL==\"nvme*n*\", ATTR{{queue/scheduler}}=\"{s}\"\n");
    let two =
        |a: (&str, &str), b: (&str, &str)| judged((6, 12), &[(a.0, &nvme(a.1)), (b.0, &nvme(b.1))]);
    let j = two(
        ("/usr/lib/udev/rules.d/60-vendor.rules", "kyber"),
        ("/etc/udev/rules.d/50-local.rules", "none"),
    );
    boot(&j, &[("nvme", "kyber")]);
    let j = two(
        ("/etc/udev/rules.d/7-first.rules", "bfq"),
        ("/usr/lib/udev/rules.d/60-x.rules", "none"),
    );
    boot(&j, &[("nvme", "bfq")]);
    // The same name: that in /etc replaces the other whole, and an empty one masks it.
    let j =
        two(("/usr/lib/udev/rules.d/60-x.rules", "kyber"), ("/etc/udev/rules.d/60-x.rules", "bfq"));
    boot(&j, &[("nvme", "bfq")]);
    let masked = [
        ("/usr/lib/udev/rules.d/60-x.rules", nvme("kyber")),
        ("/etc/udev/rules.d/60-x.rules", String::new()),
    ];
    let j = judged((6, 12), &[(masked[0].0, &masked[0].1), (masked[1].0, &masked[1].1)]);
    boot(&j, &[("nvme", "none")]);
}

#[test]
fn a_rule_for_partitions_has_no_queue() {
    let text = |path: &str, more: &str| {
        format!("KERNEL==\"mmcblk[0-9]p[0-9]\", {more}ATTR{{{path}queue/scheduler}}=\"bfq\"\n")
    };
    let j = rules(&text("", "ATTR{queue/rotational}==\"0\", "));
    boot(&j, &[("sd-card", "mq-deadline")]);
    assert!(said(&j, Kind::Never).contains("matches partitions only"), "{:?}", j.flags);
    boot(&rules(&text("../", "")), &[("sd-card", "bfq")]);
}

#[test]
fn dead_names_are_refused_by_kernels_without_them() {
    let text = "KERNEL==\"sd*[!0-9]\", ATTR{queue/rotational}==\"0\", ATTR{queue/scheduler}=\"noop\"\n\
                KERNEL==\"sd*[!0-9]\", ATTR{queue/rotational}==\"1\", ATTR{queue/scheduler}=\"deadline\"\n";
    let j = rules(text);
    boot(&j, &[("sata-ssd", "mq-deadline"), ("sata-hdd", "mq-deadline")]);
    assert!(said(&j, Kind::Refused).contains("no scheduler \"noop\""), "{:?}", j.flags);
    boot(
        &judged((4, 12), &[("60-x.rules", text)]),
        &[("sata-ssd", "noop"), ("sata-hdd", "deadline")],
    );
}

#[test]
fn tuned_comes_after_udev_and_before_the_next_change() {
    let with = |action: &str| {
        let udev = format!(
            "ACTION==\"{action}\", KERNEL==\"nvme*n*\", ATTR{{queue/scheduler}}=\"none\"\n"
        );
        judged(
            (6, 12),
            &[("60-x.rules", &udev), ("tuned.conf", "[main]\nsummary=x\n[disk]\nelevator=kyber\n")],
        )
    };
    let j = with("add|change");
    boot(&j, &[("nvme", "kyber"), ("usb-stick", "mq-deadline"), ("sata-ssd", "kyber")]);
    assert_eq!(later(&j, "nvme").scheduler.as_deref(), Some("none"));
    assert!(said(&j, Kind::Change).contains("kyber at boot, none after"), "{:?}", j.flags);
    assert_eq!(later(&with("add"), "nvme").scheduler.as_deref(), Some("kyber"));
}

#[test]
fn layers_take_read_ahead_and_no_scheduler() {
    let text = "KERNEL==\"dm-*|md*\", ATTR{queue/scheduler}=\"mq-deadline\", ATTR{queue/read_ahead_kb}=\"4096\"\n";
    let j = rules(text);
    boot(&j, &[("luks", "-"), ("md", "-"), ("dm-multipath", "mq-deadline")]);
    let ahead = &later(&j, "luks").set;
    assert_eq!((ahead[0].0.as_str(), ahead[0].1.as_str()), ("queue/read_ahead_kb", "4096"));
    assert!(
        said(&j, Kind::Refused).contains("has no scheduler: the write fails [luks md]"),
        "{:?}",
        j.flags
    );
    let old = judged((6, 1), &[("66-x.rules", text)]);
    boot(&old, &[("luks", "none")]);
    assert!(said(&old, Kind::Refused).contains("accepted and has no effect"), "{:?}", old.flags);
}

#[test]
fn everything_without_a_match_on_its_kind() {
    let j = rules("ENV{DEVTYPE}==\"disk\", ATTR{queue/scheduler}=\"bfq\"\n");
    for class in
        ["sata-hdd", "sata-ssd", "nvme", "sd-card", "emmc-boot", "virtio", "loop", "optical", "nbd"]
    {
        boot(&j, &[(class, "bfq")]);
    }
    boot(&j, &[("md", "-"), ("luks", "-"), ("zram", "-"), ("nvme-multipath", "-")]);
    let effects = said(&j, Kind::Effect);
    assert!(effects.contains("nr_requests falls from 1023 to 256 [nvme nvme-11]"), "{effects}");
    assert!(effects.contains("wbt_lat_usec"), "{effects}");
    assert!(said(&j, Kind::Missed).contains("multipath"), "{:?}", j.flags);
}

#[test]
fn what_is_not_known_is_followed_both_ways() {
    let j = rules(
        "KERNEL==\"nvme*n*\", ATTRS{model}==\"Samsung SSD 980*\", ATTR{queue/scheduler}=\"kyber\"\n\
         KERNEL==\"nvme*n*\", ATTRS{model}!=\"Samsung SSD 980*\", ATTR{queue/scheduler}=\"bfq\"\n",
    );
    let v = j.classes.iter().find(|v| v.class == "nvme").unwrap();
    let ends: Vec<_> = v.boot.iter().map(|o| o.scheduler.as_deref().unwrap()).collect();
    assert!(ends.contains(&"bfq") && ends.contains(&"kyber"), "{:?}", v.boot);
    let kyber = v.boot.iter().find(|o| o.scheduler.as_deref() == Some("kyber")).unwrap();
    assert_eq!(kyber.when, ["ATTRS{model}==\"Samsung SSD 980*\""]);
    // Two devices of the chain cannot meet one line together.
    let j = rules(
        "ATTRS{queue/rotational}==\"1\", SUBSYSTEMS==\"virtio\", ATTR{queue/scheduler}=\"none\"\n",
    );
    assert!(said(&j, Kind::Never).contains("must hold on one device"), "{:?}", j.flags);
    let j = rules(
        "ATTR{queue/rotational}==\"1\", SUBSYSTEMS==\"virtio\", ATTR{queue/scheduler}=\"none\"\n",
    );
    boot(&j, &[("virtio-1q", "none"), ("sata-hdd", "mq-deadline")]);
}

#[test]
fn idioms_of_distributions() {
    // One hardware queue; a list that offers bfq; a write of a program that is run last; brackets that never match.
    let j = rules(
        "ATTR{queue/rotational}!=\"0\", TEST!=\"%S%p/mq/1\", ATTR{queue/scheduler}==\"*bfq*\", ATTR{queue/scheduler}=\"bfq\"\n\
         KERNEL==\"mmcblk[0-9]*\", ENV{DEVTYPE}==\"disk\", RUN+=\"/bin/sh -c 'echo kyber > /sys/block/%k/queue/scheduler'\"\n\
         KERNEL==\"nvme*\", ATTR{queue/scheduler}==\"[none]*\", ATTR{queue/scheduler}=\"kyber\"\n",
    );
    boot(
        &j,
        &[("sata-hdd", "bfq"), ("sas-hdd", "mq-deadline"), ("sd-card", "kyber"), ("nvme", "none")],
    );
    assert!(said(&j, Kind::Never).contains("brackets in a pattern"), "{:?}", j.flags);
    // The file of nvme1n1 is "none [mq-deadline] …": it begins with one of the four letters.
    boot(&j, &[("nvme-1q", "kyber")]);
    boot(
        &rules(
            "KERNEL==\"nvme*\", ATTR{queue/scheduler}==\"[[]none]*\", ATTR{queue/scheduler}=\"kyber\"\n",
        ),
        &[("nvme", "kyber"), ("nvme-1q", "mq-deadline")],
    );
    // All matches of a line come before its assignments.
    let j = rules(
        "KERNEL==\"sdb\", ATTR{queue/scheduler}=\"bfq\", ATTR{queue/scheduler}==\"*[[]bfq[]]*\"\n",
    );
    boot(&j, &[("sata-hdd", "mq-deadline")]);
}

#[test]
fn the_other_forms() {
    let j = judged(
        (6, 12),
        &[
            ("x.conf", "w /sys/block/sdb/queue/scheduler - - - - bfq\n"),
            ("tlp.conf", "DISK_DEVICES=\"nvme0n1 sda\"\nDISK_IOSCHED=\"kyber keep\"\n"),
            ("policy.txt", "# ours\nusb-* = none\nsd-card = bfq\n"),
            ("sysfs.conf", "block/sdk/queue/scheduler = none\n"),
        ],
    );
    boot(
        &j,
        &[
            ("sata-hdd", "bfq"),
            ("nvme", "kyber"),
            ("sata-ssd", "mq-deadline"),
            ("usb-stick", "none"),
            ("sd-card", "bfq"),
            ("zoned-hdd", "none"),
        ],
    );
    let none = Policy::read(&[("x.txt".into(), "hello\n".into())]).unwrap_err();
    assert!(none.message.contains("sets no scheduler"), "{none}");
}

#[test]
fn what_programs_of_rules_do_is_known_or_said() {
    let j = rules(
        "KERNEL==\"sdb\", RUN+=\"/bin/sh -c 'echo 512 > /sys/block/%k/queue/nr_requests'\"\n",
    );
    assert_eq!(later(&j, "sata-hdd").nr_requests, 512);
    let j = rules(
        "KERNEL==\"sdb\", RUN+=\"/bin/sh -c 'echo bfq | tee /sys/block/%k/queue/scheduler'\"\n",
    );
    boot(&j, &[("sata-hdd", "bfq")]);
    let j = rules("KERNEL==\"sdb\", RUN+=\"/usr/lib/set /sys/block/%k/queue/scheduler\"\n");
    assert!(said(&j, Kind::Refused).contains("is not known: it is not judged"), "{:?}", j.flags);
    let j = rules("KERNEL==\"sdb\", ATTR{queue/nr_requests}=\"-5\"\n");
    assert!(said(&j, Kind::Refused).contains("is no number"), "{:?}", j.flags);
}

#[test]
fn zones_were_written_in_order_by_one_scheduler() {
    let text = "KERNEL==\"sd*[!0-9]\", ATTR{queue/scheduler}=\"bfq\"\n";
    boot(
        &judged((6, 6), &[("66-x.rules", text)]),
        &[("zoned-hdd", "mq-deadline"), ("sata-hdd", "bfq")],
    );
    boot(&rules(text), &[("zoned-hdd", "bfq")]);
}

#[test]
fn rows_that_name_nothing_are_said_and_other_settings_are_no_table() {
    let j = judged((6, 12), &[("policy.txt", "nvmee = kyber\nsd-card = bfq\n")]);
    boot(&j, &[("sd-card", "bfq"), ("nvme", "none")]);
    let never = said(&j, Kind::Never);
    assert!(
        never.contains("policy.txt:1: \"nvmee\"") && never.contains("did you mean \"nvme\""),
        "{never}"
    );
    let other = [("sysctl.conf".to_string(), "vm.dirty_bytes = 1\n".to_string())];
    assert!(Policy::read(&other).is_err());
}

#[test]
fn lines_that_udev_takes_otherwise_than_they_look() {
    // `=` on a key that is compared, `-=`: the line is ignored. A comment amid a line ends it not. The line of a label runs.
    let policy = |text: &str| {
        let read = Policy::read(&[("66-x.rules".to_string(), text.to_string())]).unwrap();
        read.problems.iter().map(|p| p.message.clone()).collect::<String>()
    };
    let text = "KERNEL=\"sd*\", ATTR{queue/scheduler}=\"bfq\"\n";
    boot(&rules(text), &[("sata-hdd", "mq-deadline")]);
    assert!(policy(text).contains("== or != belongs here"));
    assert!(
        policy("KERNEL==\"sd*\", ATTR{queue/scheduler}-=\"bfq\"\n").contains("ignores this line")
    );
    let text = "KERNEL==\"sdb\", \\\n# why\nATTR{queue/scheduler}=\"bfq\"\n";
    boot(&rules(text), &[("sata-hdd", "bfq"), ("sata-ssd", "mq-deadline")]);
    let text = "GOTO=\"x\"\nATTR{queue/scheduler}=\"none\"\nLABEL=\"x\", KERNEL==\"sdb\", ATTR{queue/scheduler}=\"bfq\"\n";
    boot(&rules(text), &[("sata-hdd", "bfq"), ("sata-ssd", "mq-deadline")]);
    let text = "ENV{IO}=\"bfq\"\nKERNEL==i\"SDB\", ATTR{queue/scheduler}=\"$env{IO}\"\n";
    boot(&rules(text), &[("sata-hdd", "bfq")]);
    let text = "KERNEL==\"sdb\", RUN+=\"/bin/sh -c 'echo bfq > /sys/block/%k/queue/scheduler; echo 9 > /sys/block/%k/queue/iosched/slice_idle'\"\n";
    let j = rules(text);
    assert!(
        later(&j, "sata-hdd").set.iter().any(|s| s.0 == "queue/iosched/slice_idle" && s.1 == "9"),
        "{:?}",
        j.classes[0]
    );
}

#[test]
fn properties_that_are_not_among_the_facts_are_unknown() {
    for on in [
        "ENV{ID_SERIAL_SHORT}==\"X\"",
        "ENV{MAJOR}==\"8\"",
        "ENV{ID_FS_TYPE}==\"btrfs\"",
        "ATTRS{product}==\"Disk\"",
    ] {
        let j = rules(&format!("KERNEL==\"sd*[!0-9]\", {on}, ATTR{{queue/scheduler}}=\"bfq\"\n"));
        let v = j.classes.iter().find(|v| v.class == "usb-stick").unwrap();
        assert_eq!(v.boot.len(), 2, "{on}: {:?}", v.boot);
    }
}

#[test]
fn a_tree_of_another_root_has_the_same_folders() {
    let bfq = "KERNEL==\"sdb\", ATTR{queue/scheduler}=\"bfq\"\n";
    let kyber = "KERNEL==\"sdb\", ATTR{queue/scheduler}=\"kyber\"\n";
    let j = judged(
        (6, 12),
        &[
            ("root/usr/lib/udev/rules.d/60-x.rules", kyber),
            ("root/etc/udev/rules.d/60-x.rules", bfq),
        ],
    );
    boot(&j, &[("sata-hdd", "bfq")]);
}

#[test]
fn tlp_has_disks_of_its_own_and_tuned_may_be_off() {
    let j = judged(
        (6, 12),
        &[
            ("tlp.conf", "DISK_IOSCHED=\"kyber bfq\"\n"),
            ("tuned.conf", "[disk]\nenabled=0\nelevator=none\n"),
        ],
    );
    boot(&j, &[("nvme", "kyber"), ("sata-ssd", "bfq"), ("sata-hdd", "mq-deadline")]);
}
