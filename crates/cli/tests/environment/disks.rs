//! Disks that nobody named, queues that outlive their disk, and loads that others disturb.

use super::*;

/// A loop device `$L` over the file `one`, its settings in `$q`, and what it had before, which it has again at the end.
const LOOP: &str = "truncate -s 64M one two; L=$(losetup -f --show one); q=/sys/block/${L#/dev/}/queue; \
                    had=$(sed 's/.*\\[\\(.*\\)\\].*/\\1/' $q/scheduler); echo kyber >$q/scheduler; \
                    trap 'losetup -d $L 2>/dev/null || true; echo $had >$q/scheduler' EXIT; ";
/// Compares on it with 400 reads in four seconds, in the background.
const RUN: &str = "\"$1\" run paced.fio --backend real --device $L --scheduler bfq --runs 1 --no-warm-up --no-store \
                   --allow-noise --quiet --format json >out.json 2>said & run=$!; ";
const PACED: &str =
    "[r]\nfilename=/dev/disk\nrw=randread\nbs=4k\ndirect=1\nnumber_ios=400\nrate_iops=100\n";
/// Until fio has a job that reads; its number is in `$job`, fio's in `$fio`.
const READS: &str = "i=0; until fio=$(pgrep -P $run -x fio) && job=$(pgrep -P $fio -x fio) && \
                     grep -q '\\[bfq\\]' $q/scheduler || [ $i = 600 ]; do sleep 0.05; i=$((i + 1)); done; sleep 0.7; ";

impl Place {
    fn paced(&self, script: &str) -> Output {
        std::fs::write(self.path("paced.fio"), PACED).unwrap();
        self.in_own_mounts(&format!("{LOOP}{script}"))
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

/// The paths among a mount's options and its source are words of the day of the mount.
#[test]
fn a_word_of_a_mount_leads_to_no_disk() {
    if skip() {
        return;
    }
    let place = Place::new();
    let output = place.in_own_mounts(
        "mkdir -p a/lo a/up a/wk b/up b/lo x t; touch b/up/f; \
         (cd a && mount -t overlay ovl -o lowerdir=lo,upperdir=up,workdir=wk ../x) || { echo SKIPPED: no overlay; exit 0; }; \
         disk=$(findmnt -no SOURCE -T $PWD); mount -t tmpfs $disk t; \
         for m in x t; do dd if=/dev/zero of=$m/f bs=1M count=4 2>/dev/null; done; cd b; \
         for m in x t; do for at in ../$m/f ../$m; do \
         \"$1\" run ../job.fio --backend real --device $at --scheduler bfq --dry-run 2>&1 || true; done; done; umount ../x ../t",
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("switches /dev"), "{text}");
    if !text.contains("SKIPPED") {
        assert!(text.contains("it is on an overlay") && text.contains("no block device"), "{text}");
    }
}

/// A killed run's loop device is given another file: the next user gets what was there before the run, unless another
/// program has set it since.
#[test]
fn a_queue_that_outlives_its_disk_gets_its_settings_back() {
    if skip() {
        return;
    }
    for (meanwhile, left) in [(":", false), ("echo mq-deadline >$q/scheduler", true)] {
        let place = Place::new();
        let output = place.paced(&format!(
            "{RUN}{READS} kill -STOP $run; kill -KILL $(pgrep -P $run) $job $run; wait $run || true; sleep 1; \
             losetup -d $L; i=0; until losetup $L two 2>/dev/null || [ $i = 40 ]; do sleep 0.1; i=$((i + 1)); done; \
             cat $q/scheduler >before; {meanwhile}; \"$1\" restore >restored 2>&1 || true; cat $q/scheduler >after; \
             losetup -d $L"
        ));
        says(&output, 0, &[]);
        assert!(place.read("before").contains("[bfq]"), "{}", place.read("said"));
        let (restored, after) = (place.read("restored"), place.read("after"));
        assert_eq!(restored.contains("left as they are"), left, "{restored}");
        let now = if left { "[mq-deadline]" } else { "[kyber]" };
        assert!(after.contains(now), "{after}: {restored}");
        place.nothing_is_left();
    }
}

/// Detached during a run it goes when its last user is killed, and the guardian comes after that.
#[test]
fn a_loop_device_that_is_detached_during_a_run_gets_its_settings_back() {
    if skip() {
        return;
    }
    let place = Place::new();
    let output = place.paced(&format!(
        "{RUN}{READS} losetup -d $L; kill -KILL $run; wait $run || true; i=0; \
         until ! grep -q '\\[bfq\\]' $q/scheduler || [ $i = 200 ]; do sleep 0.1; i=$((i + 1)); done; cat $q/scheduler >after"
    ));
    says(&output, 0, &[]);
    assert!(place.read("after").contains("[kyber]"), "{}", place.read("after"));
    place.nothing_is_left();
}

/// None of these has the figures of the load that was asked for.
#[test]
fn a_load_that_is_stopped_ended_or_moved_is_no_result() {
    if skip() {
        return;
    }
    for (what, why) in [
        ("kill -TERM $job", "fio was ended by signal 15"),
        ("kill -STOP $job; sleep 1; kill -CONT $job", "(fio) was stopped during the run"),
        (
            "g=$(findmnt -nt cgroup2 -o TARGET | head -n 1)/iosched-test-$$; mkdir $g || { kill -TERM $run; exit 0; }; \
             echo $job >$g/cgroup.procs; sleep 1; echo $job >$g/../cgroup.procs; sleep 0.1; rmdir $g",
            "was moved to another control group",
        ),
    ] {
        let place = Place::new();
        let output = place.paced(&format!("{RUN}{READS} {what}; wait $run || true"));
        says(&output, 0, &[]);
        let record = place.read("out.json");
        if record.is_empty() && why.contains("moved") {
            println!("SKIPPED: no control groups v2");
            continue;
        }
        assert!(record.contains(why), "{what}: {record:.900} {}", place.read("said"));
        place.nothing_is_left();
    }
}

/// What is done to the disk below a loop device is part of the figures.
#[test]
fn a_disk_below_is_watched_and_kept_from_other_experiments() {
    if skip() {
        return;
    }
    let place = Place::new();
    let output = place.paced(&format!(
        "under=$L; p=$q; L=$(losetup -f --show $under); q=/sys/block/${{L#/dev/}}/queue; had2=$(cat $q/scheduler); \
         {RUN}{READS} \"$1\" run job.fio --backend real --device $under --scheduler none --runs 1 --no-store 2>second || \
         echo $? >code; echo none >$p/scheduler; wait $run || true; cat $p/scheduler >after; \
         losetup -d $L; echo $had2 | sed 's/.*\\[\\(.*\\)\\].*/\\1/' >$q/scheduler; L=$under; q=$p"
    ));
    says(&output, 0, &[]);
    let (second, record) = (place.read("second"), place.read("out.json"));
    assert!(place.read("code").trim() == "3" && second.contains("another iosched"), "{second}");
    assert!(record.contains("which lies below, was changed"), "{record:.900}");
    assert!(place.read("after").contains("[none]"), "it is not ours to put back");
    place.nothing_is_left();
}

/// Under `none` `nr_requests` is the depth of the driver's tags, which no later cell inherits.
#[test]
fn each_cell_has_the_tags_that_it_asks_for() {
    if skip() {
        return;
    }
    let place = Place::new();
    let args = ["run", "job.fio", "--device", "slow.toml", "--backend", "emulated", "--no-warm-up"];
    let more = ["--scheduler", "mq-deadline,none", "--queue", "nr_requests=4", "--queue"];
    let rest = [
        "nr_requests=6",
        "--runs",
        "2",
        "--no-store",
        "--allow-noise",
        "--quiet",
        "--format",
        "json",
    ];
    let output = place.iosched(&[&args[..], &more, &rest].concat()).output().unwrap();
    says(&output, 0, &[]);
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let records: Vec<&serde_json::Value> = all["experiments"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|e| e["records"].as_array().unwrap())
        .collect();
    assert_eq!(records.len(), 8);
    let found: Vec<(&str, &str, &str)> = records
        .iter()
        .map(|r| {
            let of = |key: &str| r["provenance"][key].as_str().unwrap_or("-");
            (of("scheduler"), of("queue.nr_requests"), of("queue.driver_tags"))
        })
        .collect();
    let driver = found.iter().find(|f| f.0 == "mq-deadline").unwrap().2;
    assert!(driver.parse::<u32>().unwrap() > 6, "{found:?}");
    for (scheduler, requests, tags) in &found {
        let expected = if *scheduler == "none" { requests } else { &driver };
        assert_eq!(tags, expected, "{found:?}");
    }
    place.nothing_is_left();
}

/// After a write the kernel never goes back to its own default.
#[test]
fn the_throttle_of_a_real_disk_is_left_alone() {
    if skip() {
        return;
    }
    let place = Place::new();
    let output = place.paced(
        "cat $q/wbt_lat_usec >before; \"$1\" run paced.fio --backend real --device $L --scheduler bfq \
         --queue wbt_lat_usec=777 --no-store 2>said || echo $? >code; cat $q/wbt_lat_usec >after",
    );
    says(&output, 0, &[]);
    let said = place.read("said");
    assert!(said.contains("wbt_lat_usec of a real disk could not be put back"), "{said}");
    assert_eq!((place.read("code").trim(), place.read("before")), ("2", place.read("after")));
    place.nothing_is_left();
}
