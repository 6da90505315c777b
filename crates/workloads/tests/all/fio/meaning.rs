//! What a job file means.

use iosched_types::{Op, PrioClass};
use iosched_workloads::fio::layout::{Files, lay_out};
use iosched_workloads::fio::on_files;
use iosched_workloads::fio::process::{Job, Ring, Step};
use iosched_workloads::fio::{
    Distribution, FileService, IoEngine, JobSpec, SplitEntry, check_files, parse,
};

use super::support::{Machine, job, jobs, no_include, try_parse};

#[test]
fn an_empty_section_has_fios_defaults() {
    let j = job("");
    let expected = JobSpec {
        name: "a".into(),
        place: "job.fio:1".into(),
        target: iosched_workloads::fio::Target {
            nrfiles: 1,
            service: FileService::RoundRobin(1),
            ..Default::default()
        },
        ..JobSpec::default()
    };
    assert_eq!(j, expected);
    assert_eq!((j.pattern.read, j.pattern.random, j.direct), (true, false, false));
    assert_eq!((j.engine, j.rwmixread, j.randrepeat, j.loops), (IoEngine::Psync, 50, true, 1));
}

#[test]
fn later_global_sections_add_to_earlier_ones() {
    let all = jobs("[global]\nbs=8k\n[a]\n[global]\niodepth=4\nioengine=libaio\n[b]\nbs=2k\n[c]\n");
    let seen: Vec<_> = all.iter().map(|j| (j.bs.range[0].0, j.iodepth)).collect();
    assert_eq!(seen, [(8192, 1), (2048, 4), (8192, 4)]);
}

#[test]
fn comments_and_blanks() {
    let j = job("  iodepth = 8 # deep\nioengine=libaio;x\n#bs=1\n;bs=2\n\tbs=8k#c\n \n");
    assert_eq!((j.iodepth, j.bs.range[0]), (8, (8192, 8192)));
    assert_eq!(jobs("[a] # x\r\nbs=1k\r\n")[0].bs.range[1], (1024, 1024));
}

#[test]
fn clones_threads_and_groups_as_fio_numbers_them() {
    let all = jobs(
        "[a]\nnumjobs=2\n[b]\n[c]\nnew_group\nnumjobs=2\n[d]\nstonewall\n[e]\nnew_group=0\n\
         stonewall=0\n[f]\nnew_group\nstonewall\nnumjobs=2\n",
    );
    let seen: Vec<_> = all.iter().map(|j| (j.name.as_str(), j.thread, j.subjob, j.group)).collect();
    assert_eq!(
        seen,
        [
            ("a", 1, 0, 0),
            ("a", 2, 1, 0),
            ("b", 3, 0, 0),
            ("c", 4, 0, 1),
            ("c", 5, 1, 1),
            ("d", 6, 0, 2),
            ("e", 7, 0, 2),
            ("f", 8, 0, 3),
            ("f", 9, 1, 3),
        ]
    );
    let walls: Vec<_> = all.iter().map(|j| j.wait.stonewall).collect();
    assert_eq!(walls, [false, false, false, false, false, true, false, true, false]);
    let all = jobs("[global]\nstonewall\nnew_group\n[a]\nnumjobs=2\nname=xx\n[b]\n");
    let seen: Vec<_> = all.iter().map(|j| (j.name.as_str(), j.group)).collect();
    assert_eq!(seen, [("xx", 0), ("a", 0), ("b", 1)]);
}

#[test]
fn patterns() {
    let j = job("rw=randrw:8\nrw_sequencer=identical");
    let p = j.pattern;
    assert!(p.read && p.write && !p.trim && p.random && p.identical);
    assert_eq!((p.ddir_seq_nr, p.stride), (8, 0));
    let p = job("rw_sequencer=identical\nreadwrite=write:4k").pattern;
    assert_eq!(
        (p.write, p.read, p.ddir_seq_nr, p.stride, p.identical),
        (true, false, 1, 4096, true)
    );
    assert_eq!(job("rw=read:-8k").pattern.stride, -8192);
    let p = job("rw=randtrimwrite").pattern;
    assert_eq!(
        (p.trim, p.write, p.read, p.random, p.trim_then_write),
        (true, true, false, true, true)
    );
}

#[test]
fn block_sizes() {
    assert_eq!(job("bs=8k,32k").bs.range, [(8192, 8192), (32768, 32768), (32768, 32768)]);
    assert_eq!(job("bs=8k,32k,").bs.range[2], (4096, 4096));
    assert_eq!(job("bs=,8k").bs.range[0], (4096, 4096));
    assert_eq!(job("bsrange=4k-1k,2k:8k").bs.range, [(1024, 4096), (2048, 8192), (2048, 8192)]);
    assert_eq!(job("bsrange=4k-4k\nbs=16k").bs.range[0], (4096, 4096));
    assert!(job("ba=4k\nrw=randread").norandommap);
    assert_eq!(job("bs=16k").bs.align[0], 16384);
}

#[test]
fn splits_fill_up_to_100() {
    let split = |text: &str| -> Vec<(u64, u32)> {
        let j = job(&format!("bssplit={text}"));
        j.bs.split[0].iter().map(|SplitEntry { bs, percent }| (*bs, *percent)).collect()
    };
    assert_eq!(split("4k"), [(4096, 100)]);
    assert_eq!(split("8k/50"), [(8192, 100)]);
    assert_eq!(split("4k/10:64k/50:32k/40"), [(4096, 10), (32768, 40), (65536, 50)]);
    assert_eq!(split("4k/50:1k/:32k/"), [(1024, 25), (32768, 25), (4096, 50)]);
    assert_eq!(split("8k/30:4k/30:16k/10"), [(16384, 10), (8192, 30), (4096, 60)]);
    assert_eq!(split("4k/100:8k/0"), [(4096, 100)]);
    let j = job("bs=1m\nbssplit=2k/50:4k/50,4k/90:8k/10");
    assert_eq!(j.bs.range, [(2048, 4096), (4096, 8192), (4096, 8192)]);
    assert_eq!(j.bs.split[1].len(), 2);
}

#[test]
fn distributions() {
    let d = |text: &str| job(&format!("rw=randread\nrandom_distribution={text}")).distribution;
    assert_eq!(d("zipf")[0], Distribution::Zipf(1.1, None));
    assert_eq!(d("zipf:1.2:0.25")[2], Distribution::Zipf(1.2, Some(0.25)));
    assert_eq!(d("pareto")[0], Distribution::Pareto(0.2, None));
    assert_eq!(d("normal:20:0.5")[0], Distribution::Normal(20.0, Some(0.5)));
    assert_eq!(
        d("zoned:50/5:30/15:20/")[0],
        Distribution::Zoned(vec![(50, 5.0), (30, 15.0), (20, 80.0)])
    );
    assert_eq!(
        d("zoned:100/100,40/10:60/90")[1],
        Distribution::Zoned(vec![(40, 10.0), (60, 90.0)])
    );
    assert_eq!(
        d("zoned_abs:60/20G:40/100g")[0],
        Distribution::ZonedAbs(vec![(60, 20 << 30), (40, 100 << 30)])
    );
    assert!(job("rw=randread\nrandom_distribution=zipf").norandommap);
}

#[test]
fn depth_and_batches_are_capped() {
    let j = job("ioengine=libaio\niodepth=16\niodepth_batch=0\niodepth_batch_complete=4");
    assert_eq!((j.batch_submit, j.batch_complete_min, j.batch_complete_max), (16, 4, 4));
    assert_eq!(j.iodepth_low, 16);
    let j = job(
        "ioengine=io_uring\niodepth=4\niodepth_batch=9\niodepth_low=99\niodepth_batch_complete_max=99",
    );
    assert_eq!((j.batch_submit, j.batch_complete_max, j.iodepth_low), (4, 4, 4));
    assert_eq!(job("ioengine=linuxaio").engine, IoEngine::Libaio);
    let set = try_parse("[a]\niodepth=32\n").unwrap();
    assert_eq!(set.jobs[0].iodepth, 1);
    assert_eq!(
        set.warnings,
        ["job.fio:1: [a] iodepth=32 has no effect: ioengine=psync waits for each I/O"]
    );
}

#[test]
fn sizes_offsets_and_files() {
    let j = job("size=50%\nio_size=10g\noffset=25%\noffset_increment=1g\nnumjobs=2");
    assert_eq!((j.target.size, j.target.size_percent, j.io_size), (None, Some(50), Some(10 << 30)));
    assert_eq!((j.target.offset_percent, j.target.offset_increment), (Some(25), 1 << 30));
    assert_eq!(job("io_size=50%").target.io_size_percent, Some(50));
    let t = job("filename=/dev/a\\:b:/dev/c\nfile_service_type=random:8").target;
    assert_eq!(t.files, ["/dev/a:b", "/dev/c"]);
    assert_eq!((t.nrfiles, t.service), (2, FileService::Random(8)));
    assert_eq!(job("filesize=1m-2m").target.filesize, Some((1 << 20, 2 << 20)));
}

fn laid_out(text: &str) -> Vec<Files> {
    lay_out(&try_parse(text).unwrap(), 1 << 40).unwrap()
}

#[test]
fn a_file_that_several_jobs_use_lies_in_one_place() {
    let files = laid_out(
        "[global]\nfilename=data\n[a]\nsize=1m\n[x]\nfilename=other\nsize=1m\n[b]\nsize=2m\noffset=1m\n",
    );
    assert_eq!(files[0][0].origin, files[2][0].origin);
    assert_eq!((files[2][0].start, files[2][0].len), (1 << 20, 2 << 20));
    assert!(files[1][0].start >= 3 << 20, "room for the larger of the two");
    // The same name in another directory is another file.
    let files = laid_out("[a]\nfilename=d\nsize=1m\n[b]\nfilename=d\ndirectory=/x\nsize=1m\n");
    assert_ne!(files[0][0].origin, files[1][0].origin);
}

#[test]
fn direct_io_needs_whole_sectors() {
    let why = |lines: &str| {
        let set = try_parse(&format!("[a]\nsize=1m\n{lines}\n")).unwrap();
        lay_out(&set, 1 << 40).err().map(|d| d.message)
    };
    for (lines, part) in [
        ("bs=1000", "a block size of 1000"),
        ("bssplit=512/50:700/50", "a block size of 700"),
        ("bsrange=512-4k\nbs_unaligned", "what bs_unaligned draws"),
        ("rw=randread\nblockalign=100", "blockalign=100"),
        ("offset=100", "offset=100"),
        ("rw=read:100", "the number behind rw=100"),
    ] {
        let got = why(&format!("direct=1\n{lines}")).unwrap_or_default();
        assert!(got.contains(part) && got.contains("multiple of 512"), "{lines}: {got}");
        assert_eq!(why(lines), None, "buffered: {lines}");
    }
    assert_eq!(why("direct=1\nbs=512,1000\nrw=read"), None, "nothing is written");
}

#[test]
fn a_start_delay_of_a_range_is_drawn_for_each_job() {
    let jobs = jobs("[a]\nstartdelay=1-9\nnumjobs=8\n[b]\nstartdelay=2\n");
    let delays: Vec<u64> = jobs.iter().map(JobSpec::start_delay).collect();
    assert!(delays[..8].iter().all(|d| (1_000_000_000..=9_000_000_000).contains(d)), "{delays:?}");
    assert!(delays[..8].windows(2).any(|w| w[0] != w[1]), "{delays:?}");
    assert_eq!(delays[8], 2_000_000_000);
}

#[test]
fn logs_need_no_file_name_and_must_fit_the_device() {
    let log = "fio version 3 iolog\n0 a add\n0 b add\n0 a open\n0 b open\n5 a read 1048576 4096\n9 b write 0 4096\n";
    let read = |_: &str| Ok(log.to_string());
    let parsed = |text: &str| parse("j.fio", text, &Machine, &read, &[]).unwrap();
    let set = parsed("[r]\nread_iolog=log\n");
    let files = lay_out(&set, 1 << 30).unwrap();
    assert_eq!(files[0].len(), 2);
    assert!(files[0][1].origin >= (1 << 20) + 4096, "beyond what the log needs of the first");
    let e = lay_out(&set, 1 << 20).unwrap_err();
    assert!(e.message.contains("beyond the device's end"), "{}", e.message);
    let e = lay_out(&parsed("[r]\nread_iolog=log\nfilename=/dev/sda\n"), 1 << 20).unwrap_err();
    assert!(e.message.contains("beyond the device's end"), "{}", e.message);
}

#[test]
fn kb_base_counts_wherever_it_stands() {
    let j = job("bs=1k\nsize=1m\nkb_base=1000");
    assert_eq!((j.bs.range[0].0, j.target.size), (1000, Some(1_000_000)));
    assert_eq!(jobs("[global]\nkb_base=1000\n[a]\nbs=4kib\n")[0].bs.range[0].0, 4096);
}

#[test]
fn times() {
    let j = job(
        "runtime=1m\ntime_based\nramp_time=5\nstartdelay=3-1s\nthinktime=3000\nthinktime_spin=1ms\nthinktime_iotime=2\nthinktime_blocks=4\nthinktime_blocks_type=issue",
    );
    assert_eq!((j.runtime, j.ramp_time), (Some(60_000_000_000), 5_000_000_000));
    assert_eq!((j.wait.delay, j.wait.delay_max), (1_000_000_000, 3_000_000_000));
    let t = &j.think;
    assert_eq!((t.time, t.spin, t.iotime), (3_000_000, 1_000_000, 2_000_000_000));
    assert_eq!((t.blocks, t.issue), (4, true));
    assert_eq!(job("runtime=0").runtime, None);
}

#[test]
fn rates() {
    let j = job("rate=1m,500k,\nrate_iops=100\nrate_min=,5k\nrate_process=poisson");
    let bytes: Vec<_> = j.rate.iter().map(|r| (r.bytes, r.iops, r.min_bytes)).collect();
    assert_eq!(bytes, [(1 << 20, 100, 0), (500 << 10, 100, 5120), (0, 100, 5120)]);
    assert!(j.rate.iter().all(|r| r.poisson));
}

#[test]
fn priorities_as_ionice_shows_them_for_real_fio() {
    for (lines, class, level) in [
        ("", PrioClass::None, 0),
        ("prio=3", PrioClass::Be, 3),
        ("prio=0", PrioClass::Be, 0),
        ("prioclass=2", PrioClass::Be, 0),
        ("prioclass=1", PrioClass::Rt, 0),
        ("prioclass=2\nprio=5", PrioClass::Be, 5),
        ("prioclass=3", PrioClass::Idle, 0),
        ("nice=5", PrioClass::None, 0),
    ] {
        let j = job(lines);
        assert_eq!((j.prio.class, j.prio.level), (class, level), "{lines}");
    }
    assert_eq!(job("nice=-20").nice, -20);
}

#[test]
fn processes() {
    let all = jobs(
        "[a]\nnumjobs=3\ncpus_allowed=1,4-5\ncpus_allowed_policy=split\ncgroup=x\ncgroup_weight=500\nflow=3\nflow_id=2\nflow_sleep=50\n",
    );
    let cpus: Vec<_> = all.iter().map(|j| j.cpus.clone()).collect();
    assert_eq!(cpus, [[1], [4], [5]]);
    assert_eq!(all[0].cgroup, Some(("x".into(), Some(500))));
    assert_eq!((all[0].flow, all[0].flow_id, all[0].flow_sleep), (3, 2, 50_000));
    assert_eq!(job("cpumask=34").cpus, [1, 5]);
}

#[test]
fn variables_and_keywords() {
    let j = job("size=${SIZE}\nbs=2*$pagesize\nnumjobs=$ncpus");
    assert_eq!((j.target.size, j.bs.range[0].0), (Some(64 << 20), 8192));
}

#[test]
fn percentiles_are_sorted_and_each_job_has_its_own() {
    let jobs = jobs("[a]\npercentile_list=99.9:50:99\n[b]\n");
    assert_eq!(jobs[0].percentiles, [50.0, 99.0, 99.9]);
    assert!(jobs[1].percentiles.is_empty(), "fio's own list");
}

#[test]
fn includes_belong_to_the_section_and_are_found_beside_their_includer() {
    let include = |path: &str| match path {
        "dir/i1.fio" => Ok("rwmixread=10\ninclude i2.fio\n".to_string()),
        "dir/i2.fio" => Ok("bs=2k # two\n".to_string()),
        other => Err(format!("no {other}")),
    };
    let set = parse("job.fio", "[a]\nbs=1k\ninclude dir/i1.fio\n[b]\n", &Machine, &include, &[]);
    let set = set.unwrap();
    assert_eq!((set.jobs[0].rwmixread, set.jobs[0].bs.range[0].0), (10, 2048));
    assert_eq!(set.jobs[1].bs.range[0].0, 4096);
}

#[test]
fn overrides_come_last_in_every_job() {
    let set = [("runtime".to_string(), "7".to_string()), ("time_based".into(), String::new())];
    let text = "[global]\nruntime=1\n[a]\nruntime=2\n[b]\n";
    let set = parse("job.fio", text, &Machine, &no_include, &set).unwrap();
    assert!(set.jobs.iter().all(|j| j.runtime == Some(7_000_000_000) && j.time_based));
    let bad = [("runtme".to_string(), "7".to_string())];
    let e = parse("job.fio", text, &Machine, &no_include, &bad).unwrap_err();
    assert_eq!((e[0].file.as_str(), e[0].help.as_str()), ("--set", "did you mean \"runtime\"?"));
    assert_eq!(e.len(), 1);
}

#[test]
fn options_without_effect_are_named_once_with_their_place() {
    let set = try_parse("[global]\nzero_buffers=1\n[a]\nwrite_bw_log\n[b]\n").unwrap();
    assert_eq!(
        set.warnings,
        [
            "job.fio:2: zero_buffers has no effect on timing: the simulator moves no data, and no modelled device looks at it",
            "job.fio:4: write_bw_log has no effect on timing: it only changes what fio reports or logs",
        ]
    );
}

#[test]
fn jobs_on_files_and_on_the_device_do_not_go_together() {
    let set = try_parse("[x]\nsize=1m\n[y]\nrw=write\nfilename=/dev/sda\nnumjobs=2\n").unwrap();
    let e = check_files(&set).unwrap_err();
    assert_eq!(e.len(), 1);
    assert_eq!(e[0].message, "job \"x\" works on files, and another one on the device");
    assert_eq!((e[0].file.as_str(), e[0].line), ("job.fio", 1));
    let set = try_parse("[x]\nsize=1m\n[t]\nrw=trim\nsize=1m\n").unwrap();
    assert!(check_files(&set).unwrap_err()[0].message.contains("\"t\" trims"));
}

#[test]
fn buffered_jobs_jobs_in_directories_and_durable_writes_to_paths_need_files() {
    for (text, files) in [
        ("[x]\n", true),
        ("[x]\ndirect=1\n", false),
        ("[x]\nbuffered=0\n", false),
        ("[x]\ndirect=1\ndirectory=/mnt\n", true),
        ("[t]\nrw=trim\n", false),
        ("[s]\nfilename=/mnt/f\ndirect=1\nrw=write\nsize=1m\nsync=dsync\n", true),
        ("[s]\nfilename=/mnt/f\ndirect=1\nrw=write\nsize=1m\nfsync=4\n", true),
        ("[s]\nfilename=/mnt/f\ndirect=1\nrw=write\nsize=1m\n", false),
        ("[s]\nfilename=/mnt/f\ndirect=1\nsize=1m\nsync=1\n", false),
        ("[s]\nfilename=/dev/sda\ndirect=1\nrw=write\nsync=1\n", false),
        ("[s]\nfilename=f\ndirect=1\nrw=write\nsize=1m\nsync=1\n", false),
    ] {
        let set = try_parse(text).unwrap();
        assert_eq!(on_files::needed(&set), files, "{text}");
        assert_eq!(check_files(&set), Ok(()), "{text}");
    }
}

#[test]
fn logs_are_replayed_with_their_options() {
    const LOG: &str = "fio version 2 iolog\n/d add\n/d open\n/d read 12288 4096\n/d wait 1000 0\n/d write 40000 512\n/d sync 0 0\n";
    let include = |path: &str| match path {
        "one" => Ok(LOG.to_string()),
        "two" => Ok(LOG.replace("12288", "0")),
        _ => Err("no such file".to_string()),
    };
    let run = |lines: &str| {
        let text = format!("[a]\nread_iolog=one:two\nwrite_iolog=x\n{lines}\n");
        parse("job.fio", &text, &Machine, &include, &[]).unwrap().jobs
    };
    let all = run("numjobs=3");
    let first: Vec<_> = all.iter().map(|j| j.replay.as_ref().unwrap().entries[0].offset).collect();
    assert_eq!(first, [12288, 0, 12288]);
    assert_eq!(all[0].write_iolog, None);
    let log = run(
        "replay_scale=2\nreplay_align=4k\nreplay_time_scale=200\nreplay_skip=sync\nreplay_redirect=/dev/z",
    );
    let log = log[0].replay.as_ref().unwrap();
    let seen: Vec<_> = log.entries.iter().map(|e| (e.op, e.offset, e.at)).collect();
    assert_eq!(seen, [(Op::Read, 4096, 0), (Op::Write, 16384, 500_000)]);
    assert_eq!(log.files, ["/dev/z"]);
    assert!(run("replay_no_stall=1")[0].replay.as_ref().unwrap().entries.iter().all(|e| e.at == 0));
}

/// fio 3.33 with files (its `null` engine has none): sizes are drawn whatever `size` is, and no more is moved than files have.
#[test]
fn files_are_as_large_as_filesize_says() {
    let moved = |lines: &str| {
        let set = try_parse(&format!("[a]\nbs=4k\nrw=read\n{lines}\n")).unwrap();
        let files = lay_out(&set, 1 << 40).unwrap();
        let (mut job, mut ring) = (Job::new(&set.jobs[0], &files[0]), Ring::with_capacity(1));
        let mut bytes = 0;
        loop {
            match job.step(0, &mut ring) {
                Step::Submit(io) => {
                    bytes += io.len;
                    ring.push(io.unit);
                }
                Step::Exit => {
                    return (files[0].iter().map(|f| f.size).collect::<Vec<_>>(), bytes >> 12);
                }
                _ => {}
            }
        }
    };
    let drawn = moved("filesize=64k-256k\nnrfiles=4");
    assert_eq!(drawn.1, 140);
    assert_eq!(moved("filesize=64k-256k\nnrfiles=4\nsize=1m"), drawn);
    assert_eq!(moved("filesize=64k-256k\nnrfiles=8\nsize=2m").1, 292);
    assert_eq!(moved("filesize=64k-256k\nnrfiles=8\nsize=400k").1, 100);
    assert_eq!(moved("filesize=64k-256k\nsize=256k"), (vec![90112], 22));
    assert_eq!(moved("filesize=1m\nsize=3m\nrw=rw").1, 256);
    assert_eq!(moved("filesize=1m\nsize=3m\nrw=randread\nnorandommap").1, 256);
    assert_eq!(moved("filesize=1m\nsize=3m\nio_size=3m").1, 768);
}

/// fio 3.33 makes such files and ends well.
#[test]
fn files_too_small_for_a_block_are_a_warning() {
    let set = try_parse("[a]\nrw=write\nbs=16k\nsize=64k\nnrfiles=5\n").unwrap();
    assert_eq!(set.warnings.len(), 1);
    assert!(set.warnings[0].contains("does no I/O") && set.warnings[0].contains("13107 bytes"));
    let files = lay_out(&set, 1 << 40).unwrap();
    assert_eq!((files[0].len(), files[0][0].size), (5, 13107));
    let (mut job, mut ring) = (Job::new(&set.jobs[0], &files[0]), Ring::with_capacity(1));
    loop {
        match job.step(0, &mut ring) {
            Step::Submit(io) => panic!("{io:?}"),
            Step::Exit => break,
            _ => {}
        }
    }
    let set = try_parse("[a]\nrw=write\nbs=16k\nsize=64k\nnrfiles=5\nfilename=/dev/x\n").unwrap();
    assert!(set.warnings.is_empty());
}

/// "mmap options dictate a minimum block size of 4096 bytes", "can't append/extent with IO engine mmap".
#[test]
fn what_a_map_cannot_do_is_refused() {
    let why = |lines: &str| {
        let text = format!("[a]\nioengine=mmap\nrw=write\nsize=256k\n{lines}\n");
        try_parse(&text).err().map(|e| e[0].message.clone()).unwrap_or_default()
    };
    for lines in [
        "bs=6k\nfsync=1",
        "bs=2k\nfdatasync=4",
        "bs=2k\ndirect=1",
        "bsrange=2k-8k\nfsync=2",
        "bs=2k,4k\nfsync=2",
    ] {
        assert!(why(lines).contains("whole pages"), "{lines}: {}", why(lines));
    }
    for lines in
        ["bs=6k", "bs=8k\nfsync=1", "bs=2k\nend_fsync=1", "bs=2k\nsync=1", "bsrange=4k-6k\nfsync=2"]
    {
        assert_eq!(why(lines), "", "{lines}");
    }
    assert!(why("file_append=1").contains("file_append"));
}

#[test]
fn engines_of_names_are_named_where_another_is_refused() {
    let e = try_parse("[a]\nioengine=splice\nsize=1m\n").unwrap_err();
    assert!(e[0].to_string().contains("filecreate, filestat, filedelete"), "{}", e[0]);
    let set =
        try_parse("[a]\nioengine=filestat\nstat_type=lstat\nfilesize=4k\nnrfiles=3\n").unwrap();
    assert!(set.jobs[0].file_options.lstat);
}
