use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn merged_moments_are_those_of_the_joined_stream(
        a in proptest::collection::vec(-1e6f64..1e6, 0..40),
        b in proptest::collection::vec(-1e6f64..1e6, 0..40),
    ) {
        let of = |v: &[f64]| { let mut m = Moments::default(); v.iter().for_each(|x| m.add(*x)); m };
        let joined = of(&[a.clone(), b.clone()].concat());
        let mut merged = of(&a);
        merged.merge(&of(&b));
        prop_assert_eq!(merged.n, joined.n);
        prop_assert!((merged.mean - joined.mean).abs() < 1e-6);
        prop_assert!((merged.stddev() - joined.stddev()).abs() < 1e-3);
        prop_assert_eq!((merged.min, merged.max), (joined.min, joined.max));
    }
}

#[test]
fn a_task_that_only_waits_takes_no_part_in_shares() {
    let task = |ios: u64| {
        let calls = [(TASK_CALLS.to_string(), "7".to_string())];
        let moved =
            DirStats { ios, bytes: ios * 4096, runtime: 1_000_000_000, ..DirStats::default() };
        JobRecord { write: moved, options: calls.into(), ..JobRecord::default() }
    };
    assert_eq!(rates(&[task(0), task(5), task(5)]), [20_480.0, 20_480.0]);
    // A fio job that moved nothing was starved.
    let starved = JobRecord { options: Default::default(), ..task(0) };
    assert_eq!(rates(&[starved, task(5)]), [0.0, 20_480.0]);
}

#[test]
fn a_total_is_over_the_time_in_which_any_process_ran() {
    let job = |began: Nanos, seconds: u64, bytes| {
        let read =
            DirStats { ios: 1, bytes, runtime: seconds * 1_000_000_000, ..DirStats::default() };
        JobRecord { read, began: began * 1_000_000_000, ..JobRecord::default() }
    };
    let of = |jobs: &[JobRecord]| total(jobs.iter(), |j| [&j.read, &j.write]).bytes_per_second();
    assert_eq!(of(&[job(0, 1, 500), job(1, 1, 400)]), 450.0, "one after the other");
    assert_eq!(of(&[job(0, 2, 500), job(0, 2, 400)]), 450.0, "together");
    assert_eq!(of(&[job(0, 2, 500), job(1, 2, 400)]), 300.0, "in part");
    assert_eq!(of(&[job(0, 1, 500), job(9, 1, 400)]), 450.0, "nobody ran in between");
    assert_eq!(of(&[]), 0.0);
}

#[test]
fn who_only_trims_takes_no_share_of_what_is_moved() {
    let side =
        |ios| DirStats { ios, bytes: 4096 * ios, runtime: 1_000_000_000, ..DirStats::default() };
    let of = |read, trim| JobRecord { read: side(read), trim: side(trim), ..JobRecord::default() };
    assert_eq!(rates(&[of(2, 0), of(0, 500), of(1, 500)]), [8192.0, 4096.0]);
    assert_eq!(rates(&[of(2, 0), of(0, 0)]), [8192.0, 0.0], "who got nothing counts");
    assert_eq!(rates(&[of(0, 5), of(0, 4)]), [5.0, 4.0], "trims alone");
}

#[test]
fn jobs_behind_a_stonewall_begin_when_those_before_have_ended() {
    let job = |option: &str, value: &str, runtime| JobRecord {
        options: [(option.to_string(), value.to_string())].into(),
        runtime,
        ..JobRecord::default()
    };
    let mut jobs =
        [job("a", "1", 5), job("stonewall", "0", 7), job("stonewall", "", 2), job("a", "1", 1)];
    place_in_time(&mut jobs);
    assert_eq!(jobs.map(|j| (j.began, j.ended)), [(0, 5), (0, 7), (7, 9), (7, 8)]);
}

#[test]
fn a_record_survives_json() {
    let mut r = Record { schema: SCHEMA, ..Record::default() };
    r.jobs.push(JobRecord { name: "r".into(), ..JobRecord::default() });
    r.jobs[0].read.clat.record(12_345);
    r.status = Status::Invalid("cached".into());
    let text = serde_json::to_string(&r).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), r);
}

#[test]
fn measured_core_time_is_known_when_it_is_zero() {
    let read = DirStats { ios: 50, ..DirStats::default() };
    let job = JobRecord { read, ..JobRecord::default() };
    let mut r = Record { elapsed: 1_000_000, jobs: vec![job], ..Record::default() };
    r.note_core_time(CpuTime::default(), 4);
    let zero = r.core_time.clone().unwrap_or_default();
    assert_eq!((zero.utilisation, zero.per_io), (0.0, Some(0.0)));
    // In ns, as all times beside it.
    let used = CpuTime { user: 100_000, system: 100_000, ..CpuTime::default() };
    r.note_core_time(used, 4);
    assert_eq!(r.core_time.clone().and_then(|c| c.per_io), Some(4000.0));
    // Who only uses maps makes no I/O of its own: the disk's commands count.
    r.jobs.clear();
    r.device.commands = [10, 0, 0, 0];
    r.note_core_time(used, 4);
    assert_eq!(r.core_time.and_then(|c| c.per_io), Some(20_000.0));
}

/// The disk counts from the beginning of the run on; figures beside it are those of the measured part.
#[test]
fn counts_of_the_disk_are_those_of_the_measured_part() {
    let mut r = Record { elapsed: 102_000_000_000, ..Record::default() };
    assert_eq!(r.measured_share(8_670), 8_670);
    r.provenance.insert(crate::warm_up::UNMEASURED.into(), "100000000000".into());
    assert_eq!(r.measured_share(8_670), 170);
    assert_eq!(Record::default().measured_share(7), 7);
}
