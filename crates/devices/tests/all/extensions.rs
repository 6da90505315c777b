//! What goes beyond the reference: write cache, zones, window, FUA, SLC cache, packing, rate limits.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use iosched_devices::params::{HddParams, Rotation};
use iosched_devices::{Command, Completion, Device, DeviceSpec, Model};
use iosched_types::Op;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn build(text: &str) -> Box<dyn Device> {
    DeviceSpec::from_toml("test.toml", text).unwrap().build().unwrap()
}

const DISK: &str = "[model]\nkind = \"hdd\"\ncap = \"64GiB\"\ndepth = 32\novh_ns = 100_000\n\
    seek_a = 500_000\nseek_b = 8_000_000\nseek_c = 6_000_000\nrot = \"angle\"\nspt = 2441\n\
    bw = 150_000_000\nsptf = true\nflush_ns = 1_000_000\n";

fn command(id: u32, op: Op, sector: u64, sectors: u64) -> Command {
    Command { id, op, offset: sector * 512, len: sectors * 512, fua: false }
}

fn finish(device: &mut dyn Device) -> Vec<Completion> {
    let mut done = Vec::new();
    device.advance(u64::MAX, &mut done);
    assert_eq!((device.in_flight(), device.next_wakeup()), (0, None));
    done
}

fn counter(device: &dyn Device, name: &str) -> u64 {
    device.counters().iter().find(|c| c.0 == name).unwrap().1
}

#[test]
fn a_cached_write_completes_at_once_and_a_flush_waits_for_the_medium() {
    let mut d = build(&format!("{DISK}wcache = \"1MiB\"\nbus_bw = 300_000_000\n"));
    for i in 0..8 {
        d.submit(0, command(i, Op::Write, 1_000_000 * u64::from(8 - i), 8));
    }
    d.submit(0, command(8, Op::Flush, 0, 0));
    let done = finish(&mut *d);
    assert!(done[..8].iter().all(|c| c.t_done < MS), "{done:?}");
    // Eight seeks and turns, then the flush's own millisecond.
    assert_eq!(done[8].id, 8);
    assert!((20 * MS..120 * MS).contains(&done[8].t_done), "{done:?}");
    assert_eq!((counter(&*d, "dirty_sectors"), counter(&*d, "destages")), (0, 8));
}

#[test]
fn a_cache_of_copies_has_rules_of_its_own() {
    let error = |lines: &str| {
        let text = format!("{DISK}{lines}");
        let spec = DeviceSpec::from_toml("test.toml", &text).map(|s| s.validate());
        spec.map_or_else(|e| e.to_string(), |e| e.unwrap_err().to_string())
    };
    for (lines, want) in [
        ("wc_bw = 300_000_000\n", "give wc_ns too"),
        ("wc_ns = 50_000\n", "give wcache too"),
        ("wc_ns = 50_000\nwcache = \"1MiB\"\nwcache_high = 60\n", "half full"),
        ("wc_ns = 50_000\nwcache = \"1MiB\"\ndestage_run = 2\n", "each turn"),
    ] {
        assert!(error(lines).contains(want), "{lines}: {}", error(lines));
    }
    let mut d = build(&format!("{DISK}wcache = \"64KiB\"\nwc_ns = 50_000\nwc_bw = 300_000_000\n"));
    d.submit(0, command(0, Op::Write, 1_000_000, 8));
    d.submit(0, command(1, Op::Flush, 0, 0));
    // The write was still on its way in when the flush came: the flush does not wait for it.
    let done = finish(&mut *d);
    assert_eq!(done.iter().map(|c| (c.id, c.t_done)).collect::<Vec<_>>(), [(0, 63_653), (1, MS)]);
    assert_eq!((counter(&*d, "dirty_sectors"), counter(&*d, "destages")), (0, 1));
    // A forced write bypasses the cache, and a read does not see it.
    d.submit(2_000 * MS, Command { fua: true, ..command(2, Op::Write, 9_000_000, 8) });
    d.submit(3_000 * MS, command(3, Op::Read, 9_000_000, 8));
    assert!(finish(&mut *d).iter().all(|c| c.t_done > c.t_start + MS / 10));
    assert_eq!((counter(&*d, "cached_writes"), counter(&*d, "served")), (1, 2));
}

/// When the last of the commands is done, each submitted so long after the one before it was done.
fn one_after_another(lines: &str, pause: u64, commands: &[Command]) -> u64 {
    let mut d = build(&format!("{DISK}{lines}"));
    let mut now = 0;
    for c in commands {
        d.submit(now + pause, *c);
        now = finish(&mut *d).iter().map(|c| c.t_done).max().unwrap();
    }
    now
}

#[test]
fn a_write_that_comes_late_has_missed_its_sector() {
    const TURN: u64 = 8_333_333;
    let run = |op, lines: &str, pause, n: u32| {
        let all: Vec<Command> = (0..n).map(|i| command(i, op, 8 * u64::from(i + 1), 8)).collect();
        one_after_another(lines, pause, &all)
    };
    // Per command, without the first one, which seeks.
    let each = |op, lines: &str, pause| (run(op, lines, pause, 11) - run(op, lines, pause, 1)) / 10;
    let missed = "missed_rev = true\n";
    // Overhead and transfer are part of the turn that the next write waits for; the pause too.
    let own = 100_000 + 4096 * 1_000 / 150;
    for pause in [1, 20_000, TURN - 1] {
        assert_eq!(each(Op::Write, "", pause), pause + own, "the reference goes on at any time");
        assert_eq!(each(Op::Read, missed, pause), pause + own, "reads come from the buffer");
        assert_eq!(each(Op::Write, missed, pause), TURN + own);
    }
    assert_eq!(each(Op::Write, missed, TURN + 5), 2 * TURN + own);
    // Writes that wait in the queue, or in the cache, go on without a pause.
    for lines in ["", "wcache = \"1MiB\"\n"] {
        let mut d = build(&format!("{DISK}{missed}{lines}"));
        (0..20).for_each(|i| d.submit(0, command(i, Op::Write, 8 * u64::from(i + 1), 8)));
        d.submit(0, command(20, Op::Flush, 0, 0));
        let end = finish(&mut *d).iter().map(|c| c.t_done).max().unwrap();
        assert!(end < 3 * TURN, "{end}");
    }
}

#[test]
fn what_follows_a_write_is_not_in_the_buffer() {
    let [w, r] = [command(0, Op::Write, 8, 8), command(1, Op::Read, 16, 8)];
    let late = one_after_another("missed_rev = true\n", 5_000, &[w, r]);
    let at_once = one_after_another("", 5_000, &[w, r]);
    assert_eq!(late - at_once, 8_333_333 - 5_000);
    // Behind a cached write that is on the medium, too.
    let cached = |lines: &str| {
        let mut d = build(&format!("{DISK}wcache = \"1MiB\"\n{lines}"));
        let mut now = 0;
        for i in 1..3u32 {
            d.submit(now, command(i, Op::Write, 8 * u64::from(i), 8));
            d.submit(now, command(i + 2, Op::Flush, 0, 0));
            now = finish(&mut *d).iter().map(|c| c.t_done).max().unwrap();
        }
        now
    };
    let waited = cached("missed_rev = true\n") - cached("");
    assert!((5_000_000..=8_333_333).contains(&waited), "{waited}");
}

#[test]
fn forced_unit_access_goes_to_the_medium() {
    let mut d = build(&format!("{DISK}wcache = \"1MiB\"\n"));
    d.submit(0, Command { fua: true, ..command(0, Op::Write, 5_000_000, 8) });
    assert!(finish(&mut *d)[0].t_done > MS);
    assert_eq!(counter(&*d, "cached_writes"), 0);
}

#[test]
fn a_full_cache_makes_writes_wait() {
    let mut d = build(&format!("{DISK}wcache = \"32KiB\"\n"));
    for i in 0..32 {
        d.submit(0, command(i, Op::Write, 1_000_000 * u64::from(i + 1), 8));
    }
    let done = finish(&mut *d);
    // Eight fit; the rest follow at the pace of the arm.
    assert!(done[7].t_done < MS && done[8].t_done > MS, "{done:?}");
    assert!(done[31].t_done > 24 * MS);
}

#[test]
fn an_old_read_goes_ahead_of_a_full_cache() {
    let mut d = build(&format!("{DISK}wcache = \"1MiB\"\nage_ns = 500_000_000\n"));
    let (mut next, mut done) = (0, Vec::new());
    let mut write = |d: &mut dyn Device, now: u64| {
        d.submit(now, command(next, Op::Write, 1024 * u64::from(next), 1024));
        next += 1;
    };
    // Four writes are always under way, so that the cache is never below its threshold.
    (0..4).for_each(|_| write(&mut *d, 0));
    let mut asked = None;
    let waited = loop {
        let now = d.next_wakeup().unwrap();
        assert!(now < 1000 * MS, "the read starves");
        done.clear();
        d.advance(now, &mut done);
        if done.iter().any(|c| c.id == u32::MAX) {
            break now - asked.unwrap();
        }
        done.iter().for_each(|_| write(&mut *d, now));
        if asked.is_none() && now > 100 * MS {
            asked = Some(now);
            d.submit(now, command(u32::MAX, Op::Read, 100_000_000, 8));
        }
    };
    assert!((500 * MS..540 * MS).contains(&waited), "{waited}");
}

#[test]
fn dirty_data_is_read_from_the_cache_and_adjacent_writes_join() {
    let mut d = build(&format!("{DISK}wcache = \"4MiB\"\n"));
    // The arm is kept busy far away, so that the writes gather.
    d.submit(0, command(0, Op::Read, 100_000_000, 8));
    for i in 0..16 {
        d.submit(0, command(1 + i, Op::Write, 50_000 + 8 * u64::from(i), 8));
    }
    let mut done = Vec::new();
    d.advance(2 * MS, &mut done);
    d.submit(2 * MS, command(40, Op::Read, 50_016, 24));
    done.extend(finish(&mut *d));
    assert_eq!((counter(&*d, "cache_hits"), counter(&*d, "destages")), (1, 1));
    assert!(done.iter().find(|c| c.id == 40).unwrap().t_done < 3 * MS);
}

#[test]
fn inner_zones_are_slower() {
    let mut d = build(&format!("{DISK}bw_inner = 75_000_000\n"));
    let read = |d: &mut dyn Device, now: u64, sector: u64| {
        d.submit(now, command(0, Op::Read, sector, 8));
        let start = finish(d)[0].t_done;
        d.submit(start, command(1, Op::Read, sector + 8, 2048));
        let end = finish(d)[0].t_done;
        (end, end - start)
    };
    let (now, outer) = read(&mut *d, 0, 0);
    let (_, inner) = read(&mut *d, now, (64 << 30) / 512 - 4096);
    assert_eq!(outer, 100_000 + (1u64 << 20) * 1000 / 150);
    assert_eq!(inner, 100_000 + (1u64 << 20) * 1000 / 75);
}

#[test]
fn a_window_of_one_is_first_come_first_served() {
    let far_and_near = |extra: &str| {
        let mut d = build(&format!("{DISK}{extra}"));
        for (i, sector) in [1_000_000, 100_000_000, 1_000_100, 90_000_000].into_iter().enumerate() {
            d.submit(0, command(i as u32, Op::Read, sector, 8));
        }
        finish(&mut *d).iter().map(|c| c.id).collect::<Vec<_>>()
    };
    assert_eq!(far_and_near("window = 1\n"), [0, 1, 2, 3]);
    assert_eq!(far_and_near("")[..2], [0, 2]);
}

const DRIVE: &str = "[model]\nkind = \"ssd\"\ncap = \"64GiB\"\nchans = 4\nstripe = \"16KiB\"\n\
    rd_ns = 50_000\nwr_ns = 500_000\nbus_bw = 500_000_000\ncmd_ns = 10_000\n";

#[test]
fn a_volatile_ssd_cache_programs_forced_writes_before_it_completes_them() {
    let latency = |extra: &str| {
        let mut d = build(&format!("{DRIVE}cache = \"1MiB\"\n{extra}"));
        d.submit(0, Command { fua: true, ..command(0, Op::Write, 8, 8) });
        finish(&mut *d)[0].t_done
    };
    assert_eq!(latency(""), 10_000 + 8_192);
    assert_eq!(latency("vcache = true\n"), 10_000 + 8_192 + 500_000);
}

#[test]
fn packing_programs_full_stripes() {
    let programs = |extra: &str| {
        let mut d = build(&format!("{DRIVE}cache = \"1MiB\"\ndrain_bw = 100_000_000\n{extra}"));
        for i in 0..64 {
            d.submit(0, command(i, Op::Write, 1_000_000 * u64::from(i), 8));
        }
        finish(&mut *d);
        counter(&*d, "programs")
    };
    assert_eq!(programs(""), 64);
    assert!((16..24).contains(&programs("log = true\n")), "{}", programs("log = true\n"));
    // Commands that come more slowly than the cache drains.
    let slow = "log = true\nctl_ns = 50_000\n";
    let (at_once, gathered) = (programs(slow), programs(&format!("{slow}gather = true\n")));
    assert!(at_once > 60 && gathered < 40, "{at_once} {gathered}");
}

#[test]
fn a_full_slc_cache_slows_programs_until_the_drive_was_idle() {
    let mut d = build(&format!(
        "{DRIVE}slc = \"1MiB\"\nslc_full_wr_ns = 5_000_000\nslc_fold_bw = 1_048_576\n"
    ));
    let mut write = |now: u64, id: u32| {
        d.submit(now, command(id, Op::Write, u64::from(id) * 1024, 1024));
        finish(&mut *d)[0].t_done - now
    };
    let fast = (write(0, 0), write(10 * MS, 1));
    let slow = write(20 * MS, 2);
    assert!(fast.0 < 10 * MS && fast.1 < 10 * MS && slow > 30 * MS, "{fast:?} {slow}");
    assert!(write(4_000 * MS, 3) < 10 * MS, "two seconds of idleness make room again");
}

#[test]
fn a_volume_grants_its_burst_and_then_its_rate() {
    let mut d = build(
        "[model]\nkind = \"volume\"\ncap = \"1TiB\"\nrd_ns = 500_000\nwr_ns = 500_000\n\
         iops = 1000\niops_burst = 50\nio_unit = \"256KiB\"\nbw = 100_000_000\n\
         bw_burst = \"16MiB\"\n",
    );
    for i in 0..250 {
        d.submit(0, command(i, Op::Read, 8 * u64::from(i), 8));
    }
    let done = finish(&mut *d);
    assert!(done[..50].iter().all(|c| c.t_done == 500_000));
    assert_eq!(done[249].t_start, 200 * MS, "200 beyond the burst at 1000/s");
    // Bytes: a full bucket of 16 MiB, the rest at 100 MB/s.
    let now = 10_000 * MS;
    for i in 0..32 {
        d.submit(now, command(i, Op::Write, 2048 * u64::from(i), 2048));
    }
    let last = finish(&mut *d)[31].t_start - now;
    assert_eq!(last, (16u64 << 20) * 10);
}

fn any_commands() -> impl Strategy<Value = Vec<(u64, Command)>> {
    let one = (0u64..200_000, 0u32..8, 0u64..8000, 0u64..64, any::<bool>());
    proptest::collection::vec(one, 1..150).prop_map(|all| {
        let mut now = 0;
        let each = all.into_iter().enumerate().map(|(i, (pause, op, sector, sectors, fua))| {
            now += pause;
            let op = match op {
                0..3 => Op::Read,
                3..6 => Op::Write,
                6 => Op::Flush,
                _ => Op::Discard,
            };
            let sectors = if op == Op::Flush { 0 } else { sectors };
            (now, Command { fua, ..command(i as u32, op, sector, sectors) })
        });
        each.collect()
    })
}

/// Every command completes once, not before its arrival, in the order of completion times; after all
/// completed writes a flush leaves nothing dirty.
fn conserves(model: Model, commands: &[(u64, Command)]) {
    let mut d = DeviceSpec::new("random", model).build().unwrap();
    let mut done = Vec::new();
    for (now, c) in commands {
        d.advance(*now, &mut done);
        d.submit(*now, *c);
        assert!(d.next_wakeup().is_some());
    }
    done.extend(finish(&mut *d));
    assert!(done.windows(2).all(|w| w[0].t_done <= w[1].t_done));
    let mut ids: Vec<u32> = done.iter().map(|c| c.id).collect();
    ids.sort_unstable();
    assert!(ids.iter().enumerate().all(|(i, id)| i as u32 == *id), "{ids:?}");
    assert_eq!(ids.len(), commands.len());
    for c in &done {
        assert!(c.t_start <= c.t_done && commands[c.id as usize].0 <= c.t_start);
    }
}

fn model(kind: &str, values: &[(&str, u64)]) -> Model {
    let mut text = format!("[model]\nkind = \"{kind}\"\ncap = 8388608\n");
    for (key, value) in values {
        text += &format!("{key} = {value}\n");
    }
    DeviceSpec::from_toml("random", &text).unwrap().model
}

proptest! {
    #[test]
    fn cached_disks_conserve_commands(
        (wcache, high, depth, window) in (1u64..65_536, 1u64..=100, 0u64..10, 0u64..5),
        (bus, inner, commands) in (0u64..3, 0u64..2, any_commands()),
    ) {
        let m = model("hdd", &[
            ("ovh_ns", 1000), ("seek_a", 10_000), ("seek_b", 90_000), ("rev_ns", 83_333),
            ("bw", 150_000_000), ("bw_inner", inner * 70_000_000), ("bus_bw", bus * 100_000_000),
            ("wcache", wcache), ("wcache_high", high), ("depth", depth), ("window", window),
            ("sptf", 1), ("flush_ns", 1000),
        ]);

        conserves(by_angle(m), &commands);
    }

    #[test]
    fn drives_with_every_extension_conserve_commands(
        (cache, slc, drain, log) in (0u64..3, 0u64..3, 0u64..2, 0u64..2),
        (vcache, depth, commands) in (0u64..2, 0u64..10, any_commands()),
    ) {
        let m = model("ssd", &[
            ("chans", 3), ("stripe", 4096), ("rd_ns", 20_000), ("wr_ns", 70_000),
            ("cmd_ns", 1000), ("bus_bw", 500_000_000), ("cache", cache * 16_384),
            ("drain_bw", drain * 50_000_000), ("log", log), ("slc", slc * 65_536),
            ("slc_full_wr_ns", 700_000), ("slc_fold_bw", 1_000_000), ("vcache", vcache),
            ("depth", depth), ("rprio", log), ("flush_ns", 5000),
        ]);
        conserves(m, &commands);
    }

    #[test]
    fn volumes_conserve_commands(
        (iops, bw, link, burst) in (0u64..3, 0u64..3, 0u64..2, 0u64..3),
        (depth, commands) in (0u64..10, any_commands()),
    ) {
        let bw_burst = if bw == 0 { 0 } else { burst * 10_000 };
        let iops_burst = if iops == 0 { 1 } else { 1 + burst * 7 };
        let m = model("volume", &[
            ("rd_ns", 50_000), ("wr_ns", 70_000), ("iops", iops * 3000), ("bw", bw * 10_000_000),
            ("iops_burst", iops_burst), ("bw_burst", bw_burst), ("link_bw", link * 100_000_000),
            ("io_unit", burst * 8192), ("depth", depth),
        ]);
        conserves(m, &commands);
    }
}

/// The disk by angle.
fn by_angle(m: Model) -> Model {
    match m {
        Model::Hdd(p) => Model::Hdd(HddParams { rot: Rotation::Angle, ..p }),
        other => other,
    }
}

#[test]
fn extensions_are_off_by_default() {
    let off = |kind: &str, key: &str| {
        Model::keys(kind).unwrap().iter().find(|k| k.name == key).unwrap().default
    };
    for key in ["wcache", "bw_inner", "bus_bw", "window"] {
        assert_eq!(off("hdd", key), Some(0), "{key}");
    }
    for key in ["log", "slc", "vcache"] {
        assert_eq!(off("ssd", key), Some(0), "{key}");
    }
}

/// Eight sequential commands: the controller's time for each counts where it is longer than the rest.
#[test]
fn a_controller_takes_one_command_after_the_other() {
    let last = |lines: &str, op, sectors: u64| {
        let mut d = build(&format!("{DISK}wcache = \"64KiB\"\n{lines}"));
        for i in 0..8 {
            d.submit(0, command(i, op, u64::from(i) * sectors, sectors));
        }
        finish(&mut *d).iter().map(|c| c.t_done).max().unwrap()
    };
    let slow = "ctl_ns = 3_000_000\n";
    for op in [Op::Read, Op::Write] {
        let small = last(slow, op, 8);
        assert!((24 * MS..26 * MS).contains(&small), "{op:?}: {small}");
    }
    let (with, without) = (last("ctl_ns = 1_000\n", Op::Read, 8), last("", Op::Read, 8));
    assert!(
        with.abs_diff(without) <= 1_000,
        "a short time hides behind the medium: {with} {without}"
    );
    let text = format!("{DISK}ctl_ns = 5\n");
    let error = DeviceSpec::from_toml("test.toml", &text).unwrap_err();
    assert!(error.to_string().contains("give wcache"), "{error}");
}
