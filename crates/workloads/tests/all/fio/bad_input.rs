//! Bad job files: a diagnostic at the right place, never a panic, never a large allocation.

use iosched_types::Diagnostic;
use iosched_workloads::fio::{NoLookup, parse};

use super::support::{Machine, no_include, refused, try_parse};

fn first(text: &str) -> Diagnostic {
    try_parse(text).unwrap_err().remove(0)
}

#[test]
fn an_unknown_option_gets_line_column_caret_and_the_nearest_name() {
    let d = first("[global]\ndirect=1\n  iodpeth=32\n[a]\n");
    assert_eq!((d.line, d.column, d.width), (3, 3, 7));
    assert_eq!(d.message, "unknown option \"iodpeth\"");
    assert_eq!(d.help, "did you mean \"iodepth\"?");
    assert!(d.to_string().contains("^^^^^^^"));
}

#[test]
fn a_blank_instead_of_the_sign_and_a_byte_order_mark_are_explained() {
    let d = first("[a]\nbs 4k\n");
    assert_eq!((d.message.as_str(), d.help.as_str()), ("unknown option \"bs 4k\"", "write bs=4k"));
    let d = first("\u{feff}[a]\nsize=1m\n");
    assert_eq!((d.line, d.message.as_str()), (1, "the file begins with a byte order mark"));
}

#[test]
fn all_mistakes_are_reported_at_once_but_not_more_than_twenty() {
    let e = try_parse("[a]\niodepth=0\nbs=0\nfoo=1\n[b]\nrw=red\n").unwrap_err();
    let lines: Vec<_> = e.iter().map(|d| d.line).collect();
    assert_eq!(lines, [2, 3, 4, 6]);
    let many = format!("[a]\n{}", "nonsense=1\n".repeat(1000));
    assert_eq!(try_parse(&many).unwrap_err().len(), 20);
}

#[test]
fn zero_negative_overflow_and_not_a_number() {
    for lines in [
        "bs=0",
        "bs=-4k",
        "bs=nan",
        "bs=abc",
        "bs=99999999999999999999",
        "bs=9000000p",
        "bs=",
        "bs",
        "bs==4k",
        "bs=\"4k\"",
        "bs=4k 8k",
        "bs=4.5k",
        "bs=4k,4k,4k,4k",
        "bs=4k/8k",
        "size=-1",
        "size=101%",
        "size=0%",
        "size=4z",
        "size= 4k",
        "size=1k",
        "filesize=0",
        "filesize=2m-",
        "offset=-4k",
        "offset=nan%",
        "iodepth=0",
        "iodepth=-1",
        "iodepth=5000000000",
        "iodepth=1e3",
        "iodepth_batch=-1",
        "numjobs=0",
        "numjobs=-1",
        "numjobs=1000000000",
        "numjobs=4097",
        "nrfiles=0",
        "nrfiles=1000000000",
        "loops=0",
        "loops=-5",
        "runtime=-1",
        "runtime=nan",
        "runtime=1h30m",
        "runtime=1.5",
        "runtime=999999999d",
        "runtime=5 s x",
        "startdelay=-1",
        "startdelay=1-",
        "thinktime=-1",
        "time_based=2",
        "time_based",
        "time_based=yes",
        "thinktime=1\nthinktime_spin=2",
        "thinktime_blocks=0",
        "rate=-5",
        "rate=x",
        "rate=1,2,3,4",
        "rate_iops=99999999999",
        "rwmixread=101",
        "rwmixread=-1",
        "percentage_random=101",
        "rw=foo",
        "rw=rand",
        "rw= read",
        "rw=randrw:abc",
        "rw=randread:0",
        "rw=read:4q",
        "bsrange=4k",
        "bsrange=0-4k",
        "bssplit=4k/60:8k/60",
        "bssplit=4k/x",
        "bssplit=0/100",
        "bssplit=abc",
        "bssplit=4k/-5",
        "bssplit=4k/1000",
        "random_distribution=zipf:1.0",
        "random_distribution=zipf:-1",
        "random_distribution=zipf:nan",
        "random_distribution=zipf:inf",
        "random_distribution=zipf:1.2:2",
        "random_distribution=pareto:1",
        "random_distribution=pareto:0",
        "random_distribution=normal:150",
        "random_distribution=zoned:60/10",
        "random_distribution=zoned:60/60:40/60",
        "random_distribution=zoned",
        "random_distribution=zoned_abs=60/20G",
        "random_distribution=gauss:3",
        "random_distribution=random:1",
        "file_service_type=zipf:x",
        "file_service_type=random:0",
        "file_service_type=zipf:1",
        "prio=8",
        "prioclass=4",
        "nice=-21",
        "nice=20",
        "flow=1001",
        "flow=-1001",
        "cgroup_weight=500",
        "cgroup=a\ncgroup_weight=0",
        "cgroup=a\ncgroup_weight=5",
        "cgroup=a\ncgroup_weight=1001",
        "cgroup=a/../a",
        "cgroup=/",
        "cpus_allowed=x",
        "cpus_allowed=5000",
        "cpumask=0",
        "sync=2",
        "direct=yes",
        "direct",
        "kb_base=10",
        "replay_align=3",
        "replay_skip=foo",
        "percentile_list=101",
        "percentile_list=nan",
        "percentile_list=",
        "percentile_list=50,99",
        "randseed=abc",
        "randseed=-1",
        "filename=a::b",
        "filename=",
        "description=",
        "ioengine=foo",
        "ioengine=vsync\niodepth=2",
        "thread=2",
        "log_avg_msec=x",
        "uid=x",
        "bs=(4*1024)",
        "read_iolog=missing",
        "flow_sleep=9223372036854775807",
    ] {
        let d = refused(lines);
        assert!(!d.message.is_empty() && d.file == "job.fio" && d.line > 0, "{lines}: {d:?}");
        let _ = d.to_string();
    }
}

#[test]
fn the_caret_is_under_the_part_of_the_value_that_is_wrong() {
    let d = refused("bs=4k,8q");
    assert_eq!((d.line, d.column, d.width), (2, 8, 1));
    let d = refused("percentile_list=50:nan");
    assert_eq!((d.column, d.width), (20, 3));
    let d = refused("bs=${NOT_SET}");
    assert_eq!(d.help, "not set in the environment: NOT_SET");
}

#[test]
fn options_that_are_not_simulated_say_why_and_what_is_accepted() {
    let d = refused("verify=md5");
    assert_eq!(
        d.message,
        "verify is not supported: the reads of a verification are not simulated \
         (live only: --backend emulated and real take it)"
    );
    assert_eq!(d.help, "accepted is 0");
    assert!(try_parse("[a]\nverify=0\nzonemode=none\nexitall=0\n").is_ok());
    let d = refused("ioengine=null");
    assert_eq!(d.message, "ioengine null is not simulated: it does no I/O");
    assert_eq!(refused("ioengine=libiao").message, "ioengine: \"libiao\" is unknown");
    let d = refused("ioengine=spdk_bdev");
    assert!(d.message.contains("ioengine spdk_bdev is not simulated: SPDK drives"), "{d}");
    assert!(refused("ioengine=xnvme").message.contains("xnvme is not simulated"));
    let d = refused("num_range=8");
    assert_eq!(d.message, "option \"num_range\" is of a fio newer than 3.33");
    // fio 3.33 shows `bs=(R) 4096B-4096B, (W) 512KiB-512KiB`.
    let d = refused("bs=4k-512k");
    assert!(d.help.contains("bsrange=4k-512k; fio 3.33 reads this as bs=4k,512k"), "{d}");
    let d = refused("exec_prerun=mount /dev/sda /mnt");
    assert!(d.message.contains("must not run commands") && d.help.contains("drop_caches"), "{d}");
    assert_eq!(refused("ioengine=libiao").help, "did you mean \"libaio\"?");
}

#[test]
fn sections() {
    for (text, message) in [
        ("", "there is no job in the file"),
        ("# only a comment\n\n", "there is no job in the file"),
        ("[global]\nbs=4k\n", "there is no job in the file"),
        ("bs=4k\n[a]\n", "an option outside of a section"),
        ("[a\n", "the section's name has no end"),
        ("[]\n", "the section has no name"),
        ("[ ]\n", "the section has no name"),
        ("[a]x\n", "text behind the section's name"),
        ("\u{feff}[a]\n", "the file begins with a byte order mark"),
        ("[a]\ninclude\n", "include needs a file name"),
        ("[a]\ninclude nowhere.fio\n", "cannot include \"nowhere.fio\": no such file: nowhere.fio"),
        ("[a]\ninclude=x\n", "unknown option \"include\""),
    ] {
        assert_eq!(first(text).message, message, "{text:?}");
    }
}

#[test]
fn binary_and_huge_files() {
    for bytes in [&b"\x7fELF\x02\x01\x01\0\0\0"[..], b"[a]\nbs=\x01\n", b"\0\0\0"] {
        let d = first(std::str::from_utf8(bytes).unwrap());
        assert_eq!(d.message, "a control character: this is not a job file");
    }
    let long = format!("[a]\n{}", "x".repeat(1 << 20));
    let d = first(&long);
    assert_eq!(d.message, "the line has 1048576 bytes; 64 KiB are the limit");
    assert!(d.text.len() < 1000 && d.to_string().len() < 2000);
    let d = first(&"x".repeat(16 << 20));
    assert_eq!(d.message, "16777216 bytes of job file; 4 MiB are the limit");
    let large = format!("[a]\n{}", "#\n".repeat(4 << 20));
    assert!(first(&large).message.ends_with("4 MiB are the limit"));
}

#[test]
fn includes_that_never_end() {
    let include = |path: &str| match path {
        "a.fio" => Ok("include b.fio\n".to_string()),
        "b.fio" => Ok("bs=4k\ninclude a.fio\n".to_string()),
        _ => Err("no such file".to_string()),
    };
    let e = parse("a.fio", "[x]\ninclude b.fio\n", &NoLookup, &include, &[]).unwrap_err();
    assert_eq!(e[0].message, "circular include: a.fio → b.fio → a.fio");
    assert_eq!((e[0].file.as_str(), e[0].line, e[0].column), ("b.fio", 2, 9));

    let deeper = |path: &str| Ok(format!("include {path}x\n"));
    let e = parse("j", "[x]\ninclude y\n", &NoLookup, &deeper, &[]).unwrap_err();
    assert!(e[0].message.starts_with("includes are nested too deeply: j → y → yx → "));

    let wide = |path: &str| match path.len() {
        n if n < 12 => Ok(format!("include {path}a\ninclude {path}b\n")),
        _ => Ok(String::new()),
    };
    let e = parse("j", "[x]\ninclude y\n", &NoLookup, &wide, &[]).unwrap_err();
    assert_eq!(e[0].message, "more than 1000 includes");

    let large = |_: &str| Ok("#".repeat(60_000));
    let text = format!("[x]\n{}", "include y\n".repeat(100));
    let e = parse("j", &text, &NoLookup, &large, &[]).unwrap_err();
    assert!(e[0].message.ends_with("4 MiB are the limit"));

    let section = |_: &str| Ok("[z]\nbs=1k\n".to_string());
    let e = parse("j", "[x]\ninclude y\n", &NoLookup, &section, &[]).unwrap_err();
    assert_eq!(e[0].message, "an included file may not hold sections");
    assert_eq!(e[0].file, "y");
}

#[test]
fn the_number_of_jobs_and_of_replayed_ios_is_bounded() {
    let text = "[a]\nnumjobs=3000\n[b]\nnumjobs=2000\n";
    assert_eq!(first(text).message, "5000 jobs; fio's limit of 4096 applies");
    let log = |_: &str| {
        let mut t = "fio version 2 iolog\n/d add\n/d open\n".to_string();
        t.push_str(&"/d read 0 512\n".repeat(10_000));
        Ok(t)
    };
    let text = "[a]\nnumjobs=4096\nread_iolog=x\n";
    let e = parse("j", text, &Machine, &log, &[]).unwrap_err();
    assert!(e[0].message.contains("I/Os to replay"));
    let bad = |_: &str| Ok("fio version 3 iolog\n0 /d add\nx\n".to_string());
    let e = parse("j", "[a]\nread_iolog=log\n", &Machine, &bad, &[]).unwrap_err();
    assert_eq!((e[0].file.as_str(), e[0].line), ("log", 3));
}

#[test]
fn a_hostile_environment_does_not_blow_up() {
    struct Long;
    impl iosched_workloads::fio::Lookup for Long {
        fn variable(&self, _: &str) -> Option<String> {
            Some("9".repeat(1000))
        }
        fn keyword(&self, _: &str) -> Option<u64> {
            Some(u64::MAX)
        }
    }
    let many = "${X}".repeat(10_000);
    for line in [format!("filename={many}"), "size=8*$pagesize".into(), "bs=$ncpus".into()] {
        assert!(parse("j", &format!("[a]\n{line}\n"), &Long, &no_include, &[]).is_err());
    }
}

/// Jobs as they are posted: accepted with the reason why a figure may differ, not refused.
#[test]
fn what_is_not_modelled_is_told_of() {
    let text = "[global]\nioengine=io_uring\nsqthread_poll=1\nregisterfiles=1\nfixedbufs=1\nhipri=1\nthread=1\n\
                direct=1\nrw=randread\nfilename=/dev/nvme0n1\nsqthread_poll_cpu=15\n[job0]\nsize=0\nio_size=0\n\
                random_generator=lfsr\n";
    let set = try_parse(text).unwrap();
    for name in ["sqthread_poll", "hipri", "sqthread_poll_cpu", "random_generator"] {
        let warned = |w: &String| w.contains(&format!(": {name} is not modelled: "));
        assert!(set.warnings.iter().any(warned), "{name}: {:?}", set.warnings);
    }
    assert_eq!((set.jobs[0].target.size, set.jobs[0].io_size), (None, None));
    let quiet = try_parse("[a]\nhipri=0\nrandom_generator=tausworthe64\n").unwrap();
    assert_eq!(quiet.warnings, Vec::<String>::new());
    let alone = try_parse("[a]\nexit_what=all\n").unwrap();
    assert!(alone.warnings[0].contains("exit_what has no effect without exitall"));
}
