//! Recordings of a loop device: whole files, counts, and nothing that is left.

use super::*;

/// A loop device `$L` of our own under mq-deadline, with what it had before at the end.
const LOOP: &str = "truncate -s 64M one; L=$(losetup -f --show one); q=/sys/block/${L#/dev/}/queue; \
                    had=$(sed 's/.*\\[\\(.*\\)\\].*/\\1/' $q/scheduler); echo mq-deadline >$q/scheduler; \
                    trap 'losetup -d $L 2>/dev/null || true; echo $had >$q/scheduler' EXIT; \
                    fio=\"fio --filename=$L --direct=1 --bs=4k --output=/dev/null\"; ";

/// Instances of a process.
fn instances(pid: u32) -> usize {
    let dir = std::fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
    let ours = format!("iosched-{pid}-");
    dir.filter(|e| e.file_name().to_string_lossy().starts_with(&ours)).count()
}

fn skip_record() -> bool {
    let tracefs = Path::new("/sys/kernel/tracing/events/block/block_bio_queue").is_dir();
    if !tracefs {
        println!("SKIPPED: no tracefs with block events");
    }
    !tracefs || skip()
}

impl Place {
    fn info(&self, file: &str) -> serde_json::Value {
        let output = self.iosched(&["trace", "info", file, "--format", "json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// 300 reads and 200 writes of rt/2, in each form of the file.
#[test]
fn a_recording_has_what_was_done() {
    if skip_record() {
        return;
    }
    let place = Place::new();
    let output = place.in_own_mounts(&format!(
        "{LOOP} for f in a.csv a.csv.gz a.blkparse; do \"$1\" record $L --for 1m -o $f --top >top.$f & r=$!; \
         until ls /sys/kernel/tracing/instances | grep -q iosched-$r-; do sleep 0.05; done; sleep 1; \
         $fio --name=r --rw=randread --io_size=1200k; \
         $fio --name=w --rw=randwrite --io_size=800k --prioclass=1 --prio=2; sleep 1.2; \
         kill -TERM $r; wait $r; done; \
         code=0; \"$1\" record $L --for 1s -o a.csv || code=$?; echo again $code >&2"
    ));
    // Another recording does not take the place of the first.
    let words =
        ["500 I/Os in a.csv", "500 I/Os in a.csv.gz", "by a signal", "a.csv is there", "again 2"];
    says(&output, 0, &words);
    for file in ["a.csv", "a.csv.gz", "a.blkparse"] {
        let info = place.info(file);
        let of = |op: usize, key: &str| info["operations"][op][key].as_u64().unwrap();
        assert_eq!((of(0, "ios"), of(0, "bytes")), (300, 300 << 12), "{file}");
        assert_eq!((of(1, "ios"), of(1, "bytes")), (200, 200 << 12), "{file}");
        assert_eq!(info["operations"][0]["latency"]["count"], 300, "{file}");
        assert_eq!(info["tasks"][0]["task"], "fio", "{file}");
        let top = std::fs::read_to_string(place.path(&format!("top.{file}"))).unwrap();
        assert!(top.contains("fio("), "{top}");
    }
    let text = std::fs::read_to_string(place.path("a.csv")).unwrap();
    assert_eq!(text.lines().filter(|l| l.contains(",rt/2,")).count(), 200);
    for said in
        ["# scheduler: mq-deadline", "# lost_events: 0", "# ended: after", "# nr_requests: "]
    {
        assert!(text.contains(said), "{said}");
    }
    assert!(place.info("a.csv")["wall_clock_ns"].as_i64().unwrap() > 1_700_000_000_000_000_000);
    place.nothing_is_left();
}

#[test]
fn a_recording_ends_at_a_size_and_on_a_full_disk_with_a_good_file() {
    if skip_record() {
        return;
    }
    let place = Place::new();
    let output = place.in_own_mounts(&format!(
        "{LOOP} mkdir t; mount -t tmpfs -o size=18M t t; \"$1\" record $L --size 200k -o a.csv & r=$!; \
         sleep 1; $fio --name=r --rw=randread --io_size=40m; wait $r; \
         code=0; \"$1\" record $L --for 1m -o t/b.csv & r=$!; sleep 1; dd if=/dev/zero of=t/fill bs=1k count=2000 2>/dev/null || true; \
         $fio --name=r --rw=randread --io_size=40m; wait $r || code=$?; cp t/b.csv b.csv; echo code $code; umount t"
    ));
    let words =
        ["as large as asked", "no more room for the file", "the file has what was recorded before"];
    says(&output, 0, &words);
    assert!(String::from_utf8_lossy(&output.stdout).contains("code 4"));
    let large = place.path("a.csv").metadata().unwrap().len();
    assert!((200_000..400_000).contains(&large), "{large}");
    for file in ["a.csv", "b.csv"] {
        let info = place.info(file);
        assert!(info["ios"].as_u64().unwrap() > 300, "{file}");
        let dropped = info["oddities"].as_array().unwrap();
        assert!(!dropped.iter().any(|o| o["what"].as_str().unwrap().contains("not used")));
    }
    place.nothing_is_left();
}

/// Wherever it is killed: no instance, no state, and no file of the name that was asked for.
#[test]
fn a_killed_recording_leaves_nothing_that_reads_as_whole() {
    if skip_record() {
        return;
    }
    let place = Place::new();
    let disk = place.path("disk.img");
    std::fs::write(&disk, vec![0; 1 << 20]).unwrap();
    let clock = || std::fs::read_to_string("/sys/kernel/tracing/trace_clock").unwrap();
    let before = clock();
    for (i, after) in [0u64, 3, 10, 30, 45, 60, 80, 120, 300, 900].into_iter().enumerate() {
        let name = format!("k{i}.csv");
        let mut child = place
            .iosched(&["record", "/", "--for", "20s", "-o", &name])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(after));
        signal(&child, "-KILL");
        child.wait().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while instances(child.id()) > 0 {
            assert!(Instant::now() < deadline, "an instance is left");
            std::thread::sleep(Duration::from_millis(20));
        }
        place.nothing_is_left();
        assert!(!place.path(&name).exists());
    }
    assert_eq!(clock(), before);
}

/// Without a guardian the next start of `iosched restore` takes the instance away.
#[test]
fn a_recording_killed_with_its_guardian_is_put_back_by_restore() {
    if skip_record() {
        return;
    }
    let place = Place::new();
    let mut child = place
        .iosched(&["record", "/", "--for", "20s", "-o", "a.csv"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while instances(child.id()) == 0 {
        assert!(Instant::now() < deadline, "no instance");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(works("pkill", &["-KILL", "-P", &child.id().to_string()]), "no guardian");
    signal(&child, "-KILL");
    child.wait().unwrap();
    assert_eq!(instances(child.id()), 1);
    let restored = place.iosched(&["restore"]).output().unwrap();
    let text = String::from_utf8_lossy(&restored.stdout).into_owned();
    assert!(text.contains("removed trace instance iosched-"), "{text}");
    assert_eq!(instances(child.id()), 0);
    // What was recorded says that it did not end.
    let part = std::fs::read_dir(place.dir.path()).unwrap().flatten();
    let part = part.map(|e| e.file_name().into_string().unwrap()).find(|n| n.ends_with(".part"));
    let text = std::fs::read_to_string(place.path(&part.unwrap())).unwrap();
    assert!(text.is_empty() || text.contains("# ended: no "), "{text}");
    place.nothing_is_left();
}
