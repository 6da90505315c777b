use super::*;
use crate::load::guard;
use iosched_workloads::fio::{NoLookup, parse, parse_live};

fn read(text: &str) -> JobSet {
    let none = |_: &str| Err("no includes here".to_string());
    parse("t", text, &NoLookup, &none, &[]).unwrap_or_else(|e| panic!("{text}\n{e:?}"))
}

const MIXED: &str = "[global]\nfilename=/dev/disk\ndirect=1\nruntime=3\ntime_based\n\
    [a]\nrw=randrw:4\nbssplit=4k/60:8k/40\nioengine=libaio\niodepth=8\nnumjobs=2\n\
    offset_increment=10m\nrwmixread=70\nrandom_distribution=zipf:1.1\nsize=64m\n\
    [b]\nstonewall\nrw=write\nbs=64k\nfdatasync=2\nthinktime=500\nrate=1m,2m\nprioclass=2\nprio=3\n";

#[test]
fn what_is_written_reads_back_as_the_same_jobs() {
    let set = read(MIXED);
    let text = render(&set, Path::new("/dev/loop9"), 1 << 30).unwrap().text;
    let again = read(&text);
    assert_eq!(again.jobs.len(), set.jobs.len(), "{text}");
    let places = lay_out(&set, 1 << 30).unwrap();
    assert_eq!(lay_out(&again, 1 << 30).unwrap(), places, "{text}");
    for (a, b) in set.jobs.iter().zip(&again.jobs) {
        assert_eq!((&a.name, a.thread, a.pattern), (&b.name, b.thread, b.pattern));
        assert_eq!((&a.bs.split, a.bs.range), (&b.bs.split, b.bs.range), "{text}");
        assert_eq!((a.engine, a.iodepth, a.runtime), (b.engine, b.iodepth, b.runtime));
        assert_eq!(
            (a.wait.stonewall, a.fdatasync, a.prio),
            (b.wait.stonewall, b.fdatasync, b.prio)
        );
        assert_eq!((a.think.time, a.rwmixread), (b.think.time, b.rwmixread));
        assert_eq!(a.rate.map(|r| r.bytes), b.rate.map(|r| r.bytes));
        assert_eq!(a.distribution, b.distribution, "{text}");
    }
}

#[test]
fn several_files_are_the_target_several_times() {
    let set = read("[a]\nrw=read\ndirect=1\nsize=8m\nnrfiles=2\nfile_service_type=sequential\n");
    let done = render(&set, Path::new("/t"), 1 << 30).unwrap();
    for line in ["filename=/t:/t", "size=8388608", "file_service_type=sequential"] {
        assert!(done.text.lines().any(|l| l == line), "{line}: {}", done.text);
    }
    assert_eq!(done.warnings[0].code, "one-region");
    guard::check(&done.text, guard::Bounds::Files(&["/t".into()])).unwrap();
}

#[test]
fn a_log_is_replayed_on_the_target_and_nowhere_else() {
    let log = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda wait 2000\n\
               /dev/sda write 4096 512\n/dev/sda datasync 0 0\n/dev/sda close\n";
    let none = |_: &str| Ok(log.to_string());
    let text = "[a]\nread_iolog=log\ndirect=1\nioengine=psync\n";
    let set = parse("t", text, &NoLookup, &none, &[]).unwrap();
    let done = render(&set, Path::new("/t"), 1 << 20).unwrap();
    guard::check(&done.text, guard::Bounds::Files(&["/t".into()])).unwrap();
    let (name, log) = &done.files[0];
    assert!(done.text.contains(&format!("read_iolog={name}\nreplay_redirect=/t\n")));
    assert_eq!(
        log,
        "fio version 2 iolog\n/t add\n/t open\n/t wait 2000\n/t write 4096 512\n/t sync 0 0\n/t close\n"
    );
    assert!(render(&set, Path::new("/t"), 4096).is_err(), "beyond the end");
}

#[test]
fn what_only_fio_can_do_is_handed_over() {
    let none = |_: &str| Err("no includes here".to_string());
    let live = |text: &str| parse_live("t", text, &NoLookup, &none, &[]);
    let text = "[global]\nfilename=/dev/disk\nsize=8m\nrw=write\nverify=crc32c\n[a]\nioengine=mmap\n\
                [b]\nioengine=libaio\nlatency_target=5ms\nlatency_window=1s\niodepth=16\n";
    let done = render(&live(text).unwrap(), Path::new("/t"), 1 << 30).unwrap().text;
    guard::check(&done, guard::Bounds::Files(&["/t".into()])).unwrap();
    let (a, b) = done.split_once("[b]").unwrap();
    assert!(a.contains("ioengine=mmap\n"), "{a}");
    assert!(a.contains("verify=crc32c\n") && a.contains("verify_state_save=0\n"), "{a}");
    assert!(!b.contains("mmap") && b.contains("latency_target=5ms\n"), "{b}");
    // The simulator refuses it by name, and says which backends accept it.
    let refused = parse("t", text, &NoLookup, &none, &[]).unwrap_err();
    let words: String = refused.iter().map(|d| d.message.clone()).collect();
    assert!(words.contains("verify is not supported") && words.contains("live only"), "{words}");
    for bad in [
        "verify_pattern='/etc/passwd'",
        "exec_prerun=rm x",
        "ioengine=external:/x.so",
        "verify=crc32c x",
    ] {
        let text = format!("[a]\nfilename=/dev/disk\nrw=write\ndirect=1\nsize=1m\n{bad}\n");
        assert!(live(&text).is_err(), "{bad}");
    }
}

#[test]
fn regions_beyond_the_end_are_refused() {
    let set = read("[a]\nfilename=/dev/disk\nrw=read\ndirect=1\nsize=8g\n");
    assert!(render(&set, Path::new("/dev/loop9"), 1 << 30).is_err());
}

#[test]
fn jobs_on_files_name_files_below_their_directory() {
    let set = read(
        "[global]\ndirect=0\n[a]\nrw=write\nsize=8m\nnrfiles=2\noffset=1m\nfallocate=none\nunlink=1\n\
         [b]\nrw=read\nsize=4m\nfilename=/x/data:y\ndirectory=/d\n",
    );
    let (done, above) = render_on_files(&set, "/proc/self/fd/7/.", true).unwrap();
    let text = &done.text;
    guard::check(text, guard::Bounds::Directory("/proc/self/fd/7/.")).unwrap();
    assert_eq!(above, ["d", "x"]);
    for line in [
        "directory=/proc/self/fd/7/.",
        "zero_buffers=1",
        "filename=a.0.0:a.0.1",
        "filename=x/data:d/y",
        "offset=1048576",
        "fallocate=none",
        "unlink=1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}:\n{text}");
    }
    let set = read("[a]\nrw=read\nsize=1m\ndirect=0\nfilename=/x/../../etc/passwd\n");
    assert!(render_on_files(&set, "/t", false).unwrap_err().to_string().contains("leads out"));
}
