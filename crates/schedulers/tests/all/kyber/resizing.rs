//! Depth by latency: the worked scenarios of both measures.

use super::*;

/// A completion with a given latency, at `now`, total and device alike.
fn complete(b: &mut Bench, now: u64, r: Request, latency: u64) {
    let id = insert_at(b, now - latency, r);
    assert_eq!(dispatch(b, now - latency, 0), Some(id));
    b.complete(now, id);
}

fn depths(b: &Bench, names: &[&str]) -> Vec<u64> {
    names.iter().map(|n| counter(b, &format!("{n}_depth"))).collect()
}

/// Fires the timer, if one is armed, and tells when.
fn fire(b: &mut Bench) -> Option<u64> {
    let at = b.out.timer.take().flatten()?;
    b.with(at, |s, c| s.timer(c));
    Some(at)
}

mod means {
    use super::*;

    const NAMES: [&str; 3] = ["read", "sync_write", "other"];

    /// Opens a window and runs `n` windows with these latencies in ms; the depths after each.
    fn windows(write_ms: u64, n: usize) -> Vec<Vec<u64>> {
        let mut b = bench("kyber@4.12");
        let mut now = 10 * MS;
        complete(&mut b, now, request(Op::Read, 0, true), 5 * MS);
        let mut all = Vec::new();
        for _ in 0..n {
            now += MS;
            complete(&mut b, now, request(Op::Read, 0, true), 5 * MS);
            complete(&mut b, now, request(Op::Write, 0, true), write_ms * MS);
            complete(&mut b, now, request(Op::Write, 0, false), MS);
            now = fire(&mut b).expect("a window");
            all.push(depths(&b, &NAMES));
        }
        all
    }

    /// KA-2.
    #[test]
    fn awful_reads_halve_great_writes() {
        let all = windows(1, 8);
        assert_eq!(all[0], [256, 64, 64]);
        let writes: Vec<u64> = all.iter().map(|d| d[1]).collect();
        assert_eq!(writes, [64, 32, 16, 8, 4, 2, 1, 1]);
        assert!(all.iter().all(|d| d[0] == 256 && d[2] == 64));
    }

    /// KA-3.
    #[test]
    fn awful_reads_cost_good_writes_a_quarter() {
        let writes: Vec<u64> = windows(6, 5).iter().map(|d| d[1]).collect();
        assert_eq!(writes, [96, 72, 54, 41, 31]);
    }

    /// KA-5: both fine with samples changes nothing; without samples of the other, one more per window.
    #[test]
    fn recovery_needs_windows_in_which_the_other_is_silent() {
        let mut b = bench("kyber@4.12");
        let mut now = 10 * MS;
        complete(&mut b, now, request(Op::Read, 0, true), 5 * MS);
        for _ in 0..8 {
            complete(&mut b, now + MS, request(Op::Read, 0, true), 5 * MS);
            complete(&mut b, now + MS, request(Op::Write, 0, true), MS);
            now = fire(&mut b).unwrap();
        }
        assert_eq!(depths(&b, &NAMES), [256, 1, 64]);
        // Both great: nothing, and the windows stop.
        complete(&mut b, now + MS, request(Op::Read, 0, true), MS / 2);
        complete(&mut b, now + MS, request(Op::Write, 0, true), MS);
        now = fire(&mut b).unwrap();
        assert_eq!((depths(&b, &NAMES)[1], fire(&mut b)), (1, None));
        // Slow writes alone: one more per window.
        complete(&mut b, now + 50 * MS, request(Op::Write, 0, true), 11 * MS);
        for more in 1..4 {
            complete(&mut b, now + 51 * MS, request(Op::Write, 0, true), 11 * MS);
            now = fire(&mut b).unwrap();
            assert_eq!(depths(&b, &NAMES)[1], 1 + more);
        }
    }

    /// KA-5: a shrunken "other" recovers by two per window even when nothing happens.
    #[test]
    fn other_recovers_in_an_idle_queue_within_32_windows() {
        let mut b = bench("kyber@4.12");
        let mut now = 10 * MS;
        complete(&mut b, now, request(Op::Read, 0, true), 5 * MS);
        while depths(&b, &NAMES)[2] > 1 {
            complete(&mut b, now + MS, request(Op::Read, 0, true), 5 * MS);
            complete(&mut b, now + MS, request(Op::Write, 0, false), MS);
            now = fire(&mut b).unwrap();
        }
        let mut windows = 0;
        while let Some(at) = fire(&mut b) {
            assert_eq!(at - now, 100 * MS);
            now = at;
            windows += 1;
        }
        assert_eq!((windows, depths(&b, &NAMES)[2]), (32, 64));
    }

    /// KA-6.
    #[test]
    fn a_window_opens_above_the_target_not_at_it() {
        let mut b = bench("kyber@4.12");
        complete(&mut b, 5 * MS, request(Op::Read, 0, true), 2 * MS);
        complete(&mut b, 5 * MS, request(Op::Write, 0, true), 10 * MS / 2);
        complete(&mut b, 50 * MS, request(Op::Write, 0, false), 40 * MS);
        assert_eq!(b.out.timer, None);
        complete(&mut b, 60 * MS, request(Op::Read, 0, true), 2 * MS + 1);
        assert_eq!(b.out.timer, Some(Some(70 * MS)));
    }

    #[test]
    fn windows_end_with_a_tick_of_the_kernel_clock() {
        let queue = QueueFacts { hz: 250, ..QueueFacts::default() };
        let mut b = Bench::on("kyber@4.12", &[], queue);
        complete(&mut b, 17 * MS, request(Op::Read, 0, true), 5 * MS);
        // 10 ms are three ticks of 4 ms, counted from the tick at 16 ms.
        assert_eq!(b.out.timer, Some(Some(28 * MS)));
    }
}

mod histograms {
    use super::*;

    /// Completes `n` reads or writes with a latency that falls into `bucket`.
    fn sample(b: &mut Bench, now: u64, op: Op, n: usize, bucket: u64) {
        let quarter = if op == Op::Read { MS / 2 } else { 5 * MS / 2 };
        (0..n).for_each(|_| complete(b, now, request(op, 0, true), bucket * quarter + 1));
    }

    fn depth(b: &Bench, name: &str) -> u64 {
        counter(b, &format!("{name}_depth"))
    }

    /// One evaluation with reads suffering and 500 writes in `bucket`; the writes' depth after it.
    fn squeeze(b: &mut Bench, now: &mut u64, bucket: u64) -> u64 {
        sample(b, *now, Op::Read, 500, 5);
        sample(b, *now, Op::Write, 500, bucket);
        *now = fire(b).unwrap() + 20 * MS;
        depth(b, "write")
    }

    /// KB-4: what one evaluation makes of a full depth, and repeated ones of bucket 0.
    #[test]
    fn depth_is_scaled_by_the_p99_bucket_while_somebody_suffers() {
        for name in NEW {
            for (bucket, want) in [(0, 32), (1, 64), (2, 96), (3, 128), (4, 128), (7, 128)] {
                let mut b = bench(name);
                assert_eq!(squeeze(&mut b, &mut (100 * MS), bucket), want, "{name}, {bucket}");
                assert_eq!(depth(&b, "read"), 256, "reads are at their most");
            }
            let (mut b, mut now) = (bench(name), 100 * MS);
            let steps: Vec<u64> = (0..5).map(|_| squeeze(&mut b, &mut now, 0)).collect();
            assert_eq!(steps, [32, 8, 2, 1, 1]);
            let steps: Vec<u64> = [6, 5, 4, 7, 7, 7, 7, 7, 7, 7, 7]
                .iter()
                .map(|&bucket| squeeze(&mut b, &mut now, bucket))
                .collect();
            assert_eq!(steps, [1, 1, 1, 2, 4, 8, 16, 32, 64, 128, 128]);
        }
    }

    /// KB-4: from 128 of 256, and from 3.
    #[test]
    fn growth_goes_by_quarters() {
        // Reads squeezed to 128 by suffering writes, then growing on their own p99.
        for (bucket, want) in [(4, 160), (5, 192), (6, 224), (7, 256)] {
            let (mut b, mut now) = (bench("kyber"), 200 * MS);
            sample(&mut b, now, Op::Write, 500, 5);
            sample(&mut b, now, Op::Read, 500, 1);
            now = fire(&mut b).unwrap() + 200 * MS;
            assert_eq!(depth(&b, "read"), 128);
            b.out.why.as_mut().unwrap().notes.clear();
            sample(&mut b, now, Op::Read, 500, bucket);
            fire(&mut b);
            assert_eq!(depth(&b, "read"), want);
            let notes = &b.out.why.as_ref().unwrap().notes;
            let last = &notes.last().unwrap().1;
            assert!(last.starts_with(&format!("READ p99 bucket {bucket}")), "{last}");
            assert!(last.ends_with(&format!("depth 128 → {want}")), "{last}");
        }
    }

    /// KB-8.
    #[test]
    fn nothing_changes_while_nobody_suffers() {
        for name in NEW {
            let (mut b, mut now) = (bench(name), 100 * MS);
            squeeze(&mut b, &mut now, 0);
            assert_eq!(depth(&b, "write"), 32);
            for _ in 0..20 {
                sample(&mut b, now, Op::Read, 500, 0);
                sample(&mut b, now, Op::Write, 500, 3);
                now = fire(&mut b).unwrap() + 20 * MS;
            }
            assert_eq!((depth(&b, "read"), depth(&b, "write")), (256, 32));
        }
    }

    /// What a domain did in a calm time is used when somebody suffers later, once.
    #[test]
    fn a_calm_p99_is_remembered_for_the_next_congestion_and_then_forgotten() {
        let (mut b, mut now) = (bench("kyber"), 100 * MS);
        sample(&mut b, now, Op::Write, 500, 0);
        now = fire(&mut b).unwrap() + 20 * MS;
        assert_eq!(depth(&b, "write"), 128);
        for _ in 0..3 {
            sample(&mut b, now, Op::Read, 500, 5);
            now = fire(&mut b).unwrap() + 20 * MS;
            assert_eq!(depth(&b, "write"), 32);
        }
    }

    #[test]
    fn the_timer_is_armed_by_the_first_sample_and_not_put_off_by_later_ones() {
        let mut b = bench("kyber");
        assert_eq!(b.out.timer, None);
        sample(&mut b, 50 * MS, Op::Read, 1, 0);
        assert_eq!(b.out.timer, Some(Some(150 * MS)));
        sample(&mut b, 90 * MS, Op::Read, 1, 0);
        assert_eq!(b.out.timer, Some(Some(150 * MS)));
        assert_eq!(fire(&mut b), Some(150 * MS));
        assert_eq!(fire(&mut b), None, "no samples, no timer");
        complete(&mut b, 200 * MS, request(Op::Flush, 0, false), MS);
        assert_eq!(b.out.timer, None, "other is not measured");
    }

    #[test]
    fn targets_are_tunables_and_change_while_running() {
        let mut b = Bench::new("kyber", &[("read_lat_nsec", 4_000_000)]);
        assert_eq!(b.scheduler.tunable("read_lat_nsec"), Some(4_000_000));
        assert_eq!(b.scheduler.tunable("write_lat_nsec"), Some(10_000_000));
        assert_eq!(b.scheduler.tunable("async_depth"), None);
        b.with(0, |s, c| s.set_tunable(c, "write_lat_nsec", 4_000_000));
        // 5 ms are above the target now: writes suffer, reads (at 1 ms of 4) make room.
        for _ in 0..500 {
            complete(&mut b, 100 * MS, request(Op::Write, 0, true), 5 * MS);
            complete(&mut b, 100 * MS, request(Op::Read, 0, true), MS);
        }
        fire(&mut b);
        assert_eq!((depth(&b, "read"), depth(&b, "write")), (64, 128));
    }
}
