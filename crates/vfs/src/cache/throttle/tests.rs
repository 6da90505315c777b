use super::*;

/// A kernel of 6.12 with 512 MiB, seen by its trace events: 50,375 pages a second.
#[test]
fn the_rate_of_a_writer_is_the_kernels() {
    let thresholds = Thresholds { background: 10225, dirty: 20451 };
    let memory = Memory { dirty: 15388, writeback: 0, thresholds };
    let device = OnDevice { dirty: 15392, writeback: 0, threshold: 20451 };
    let marks = Marks::new(thresholds, SlowLimit::new(20451));
    assert_eq!((marks.freerun, marks.limit, marks.setpoint), (15338, 20451, 17894));
    let ratio = position_ratio(&memory, &device, marks, 22689);
    assert_eq!(ratio, 2015);
    assert_eq!(25600 * ratio / PARTS, 50375);
    // 256 pages at that rate: a jiffy.
    assert_eq!(250 * 256 / 50375, 1);
}

#[test]
fn limits_are_percent_or_bytes() {
    let limits = DirtyLimits {
        background_percent: 10,
        dirty_percent: 20,
        background_bytes: 0,
        dirty_bytes: 0,
    };
    // 10 % in 4,096ths is 409: a little less.
    assert_eq!(limits.thresholds(100_000), Thresholds { background: 9985, dirty: 19995 });
    let bytes = DirtyLimits { background_bytes: 4 << 20, dirty_bytes: 40 << 20, ..limits };
    assert_eq!(bytes.thresholds(1), Thresholds { background: 1024, dirty: 10240 });
    let wrong = DirtyLimits { background_percent: 50, ..limits };
    assert_eq!(wrong.thresholds(100_000), Thresholds { background: 9997, dirty: 19995 });
}

/// One writer at memory speed beside a device of 20 MiB/s: it ends in balance, between free run and limit.
#[test]
fn a_fast_writer_comes_into_balance_with_the_device() {
    let (hz, device_rate) = (250_u64, 5120_u64);
    let thresholds = Thresholds { background: 10000, dirty: 20000 };
    let mut slow = SlowLimit::new(20000);
    let mut device = Bandwidth::new(hz);
    let mut task = Dirtier::default();
    let mut core = OnCore::new(20000, 1);
    let (mut dirty, mut carry, mut sleeps_until) = (0_u64, 0_u64, 0_u64);
    let mut dirtied_late = 0;
    for now in 0..250 * 120 {
        carry += device_rate;
        let written = (carry / hz).min(dirty);
        carry %= hz;
        if dirty > 0 {
            dirty -= written;
            device.written += written;
        }
        // A memory speed of 1 GB/s.
        let mut left = 1000;
        while now >= sleeps_until && left > 0 {
            left -= 1;
            dirty += 1;
            device.dirtied += 1;
            task.dirtied += 1;
            core.dirtied += 1;
            dirtied_late += u64::from(now > 250 * 60);
            if task.due(&device, &core) {
                core.dirtied = 0;
                let memory = Memory { dirty, writeback: 0, thresholds };
                let on = OnDevice { dirty, writeback: 0, threshold: thresholds.dirty };
                let verdict = balance(&mut task, &memory, &on, &mut device, &mut slow, now);
                if verdict.pause > 0 {
                    assert!(verdict.pause <= 50, "{} jiffies", verdict.pause);
                    sleeps_until = now + verdict.pause;
                }
            }
        }
        assert!(dirty <= 20000 + 1000, "{dirty} dirty pages at {now}");
    }
    let rate = dirtied_late / 60;
    assert!((4800..5500).contains(&rate), "{rate} pages a second beside a device of 5120");
    assert!((15000..20500).contains(&dirty), "{dirty} dirty pages");
    assert!((4600..5700).contains(&device.average), "{} believed", device.average);
}

#[test]
fn a_device_that_wrote_nothing_has_no_share() {
    let mut all = Completions::new(1);
    let mut one = Share::new(1);
    let mut other = Share::new(1);
    assert_eq!(one.of(1000, &mut all, 0), 0);
    one.add(&mut all, 7, 10);
    assert_eq!(one.of(1000, &mut all, 10), 0, "a batch of eight is not full");
    one.add(&mut all, 1, 20);
    assert_eq!(one.of(1000, &mut all, 20), 1000, "those of all devices come in larger batches");
    one.add(&mut all, 3991, 20);
    other.add(&mut all, 4000, 30);
    let half = one.of(1000, &mut all, 40);
    assert!((499..=500).contains(&half), "{half}");
    // Halved down for itself, up for all: gone after some periods.
    assert_eq!(one.of(1000, &mut all, 3000 * 20), 0);
}

/// Event logs of 6.12: 28 pages are written, then some at a time half a minute later. All that was dirtied meanwhile is below
/// the limit.
#[test]
fn a_device_that_paused_keeps_its_share() {
    let mut all = Completions::new(1);
    let mut one = Share::new(1);
    one.add(&mut all, 28, 5_200);
    for now in [10_600, 20_840, 36_200] {
        assert_eq!(one.of(1000, &mut all, now), 1000);
    }
    one.add(&mut all, 5, 36_200);
    assert_eq!(one.of(1000, &mut all, 41_300), 1000);
    one.add(&mut all, 36, 41_300);
    assert_eq!(
        one.of(1000, &mut all, 46_400),
        230,
        "its own count is known to be halved, that of all is not yet"
    );
}

/// The first look at a disk that has rested finds a page a second, as the event logs of 6.12 do. After a file's write-back the
/// estimate is renewed once, 200 ms later.
#[test]
fn an_estimate_is_renewed_by_itself() {
    let mut device = Bandwidth::new(250);
    device.written = 500;
    assert!(device.due(10));
    device.update(10);
    assert_eq!(device.average, 1);
    device.file_written(20);
    device.file_written(60);
    device.settle(70);
    assert!(device.due(70));
    device.settle(71);
    assert!(!device.due(121) && device.due(122));
}

/// A core's tasks look together, however seldom each of them would.
#[test]
fn a_core_looks_after_its_part_of_the_threshold() {
    let (device, task) = (Bandwidth::new(250), Dirtier { pause_at: 8192, ..Dirtier::default() });
    let mut core = OnCore::new(65536, 1);
    assert_eq!((core.limit, OnCore::new(65536, 4).limit, OnCore::new(0, 1).limit), (2048, 512, 16));
    assert_eq!(task.room(&device, &core), 2048);
    core.dirtied = 2048;
    assert!(task.due(&device, &core));
}

/// Event log of 6.12: 256 pages take a jiffy, which is too short to sleep for. The next 256 pay for both, though no time has
/// gone by.
#[test]
fn what_was_not_slept_for_is_owed() {
    let mut task = Dirtier { dirtied: 256, pause_at: 256, reference: 430 };
    assert_eq!(task.pause(430, 250, 61300, 50, 2, 200), 0);
    assert_eq!((task.dirtied, task.reference), (0, 431));
    task.dirtied = 256;
    assert_eq!(task.pause(430, 250, 59225, 50, 2, 200), 2);
    assert_eq!((task.dirtied, task.reference, task.pause_at), (0, 432, 200));
}
