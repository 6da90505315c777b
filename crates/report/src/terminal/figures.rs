//! The figures of one trial that tables show.

use iosched_experiment::{
    DURABLE_AFTER, DURABLE_BW, DirStats, JobRecord, Record, TASK_CALLS, rates, together, total,
};
use iosched_results::stats::jain;
use iosched_types::LatencyHistogram;

/// How many I/Os resolve a percentile. Of fewer, the longest wait stands in.
pub(super) const RESOLVES_P99: u64 = 100;
pub(super) const RESOLVES_P999: u64 = 1_000;

/// Figures over all processes and directions of a trial, or over the processes of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Bytes read and written a second, as everywhere over the time in which any of the processes ran.
    pub bandwidth: f64,
    /// Bytes that the disk read and wrote a second, where the page cache let the processes move others or move them faster;
    /// else NaN.
    pub disk: f64,
    /// Where writes stay in memory: bytes a second until all is on the medium, and the seconds until then; else NaN.
    pub durable: (f64, f64),
    /// Reads and writes a second.
    pub iops: f64,
    /// Trims a second: they move no data.
    pub trims: f64,
    /// Whether the latencies are fio's `lat`, submission and completion. Else they are completion latencies, `clat`.
    pub total: bool,
    /// I/Os with a latency: 100 resolve a 99th percentile, 1000 a 99.9th.
    pub count: u64,
    /// Mean latency in ns; NaN when nothing completed, as for the percentiles: none is no figure.
    pub mean: f64,
    /// Median latency in ns.
    pub p50: f64,
    /// 99th percentile in ns.
    pub p99: f64,
    /// 99.9th percentile in ns.
    pub p999: f64,
    /// Mean and 99th percentile of fsync in ns; NaN when nothing was synced, and for a percentile of fewer than 100.
    pub sync: (f64, f64),
    /// Share of the time with commands at the device, 0 to 1; NaN where the disk's side is not known, as for merges.
    pub busy: f64,
    /// Share of the time the scheduler held the device idle; NaN outside the simulator.
    pub idled: f64,
    /// Bios merged into requests.
    pub merges: f64,
    /// Commands that did not start where the one before ended; NaN where they were not seen.
    pub seeks: f64,
    /// Jain's index of the processes' throughput; NaN for a single process.
    pub fairness: f64,
    /// Share of the machine's CPUs that the trial took, 0 to 1, and core time of an I/O in ns; NaN where not known.
    pub core_time: (f64, f64),
}

/// Reads, writes and trims.
pub(super) fn sides(j: &JobRecord) -> [&DirStats; 3] {
    [&j.read, &j.write, &j.trim]
}

/// What the disk moved a second, where the processes moved at least a hundredth more: that went to the page cache or came
/// from it. Of imported results the disk's side is not known.
fn disk(r: &Record, rate: f64) -> Option<f64> {
    let moved: u64 = r.jobs.iter().map(|j| j.read.bytes + j.write.bytes).sum();
    // The disk's bytes are those of the whole run, the processes' those of the measured part.
    let disk = r.measured_share(r.device.bytes[0] + r.device.bytes[1]);
    // A simulated machine with a page cache has its memory noted, also where nothing has reached the disk.
    let known = disk > 0 || r.provenance.contains_key("memory");
    let cached = known && (moved > disk + disk / 100 || memory_was_faster(r, rate, disk));
    (cached && r.measured() > 0 && r.backend.traits().ours)
        .then(|| disk as f64 / (r.measured() as f64 / 1e9))
}

/// Whether calls returned at least a tenth faster than the disk moved the same bytes: a copy that ends with an fsync writes
/// at the speed of memory, and waits then. Time before the first process and between two is not the cache's. When fio ends
/// live is no time of the disk.
fn memory_was_faster(r: &Record, rate: f64, disk: u64) -> bool {
    let jobs = || r.jobs.iter().filter(|j| j.read.ios + j.write.ios > 0);
    let known = |j: &JobRecord| {
        j.ended > 0 && (r.backend.is_simulated() || j.options.contains_key(TASK_CALLS))
    };
    let last = jobs().map(|j| j.ended).max().unwrap_or(0);
    let span = total(jobs(), |j| [&j.read, &j.write]).span + r.elapsed.saturating_sub(last);
    span > 0 && jobs().all(known) && rate > 1.1 * disk as f64 / (span as f64 / 1e9)
}

impl Figures {
    /// What runs are compared by, and more is better: the bandwidth, until all is durable where that is known, or trims a
    /// second where nothing was read or written.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.durable.0.is_finite() {
            return self.durable.0;
        }
        if self.iops > 0.0 || self.bandwidth > 0.0 { self.bandwidth } else { self.trims }
    }

    /// Fewer I/Os than resolve a percentile.
    #[must_use]
    pub fn few(&self, least: u64) -> bool {
        (1..least).contains(&self.count)
    }

    /// Of a whole trial.
    #[must_use]
    pub fn of(r: &Record) -> Figures {
        let mut f = Figures::of_jobs(r.jobs.iter());
        f.take_percentiles(r);
        f.disk = disk(r, f.bandwidth).unwrap_or(f64::NAN);
        let of = |name| r.metrics.iter().find(|m| m.name == name).map_or(f64::NAN, |m| m.value);
        f.durable = (of(DURABLE_BW), of(DURABLE_AFTER));
        let share = |t: u64| if r.elapsed == 0 { 0.0 } else { t as f64 / r.elapsed as f64 };
        let told = |known: bool, v: f64| if known { v } else { f64::NAN };
        f.busy = told(r.counts_commands(), share(r.device.busy).min(1.0));
        f.idled = told(r.sees_idling(), share(r.scheduler.idled).min(1.0));
        let count = |all: u64| r.measured_share(all) as f64;
        f.merges = told(r.counts_commands(), count(r.device.merges.iter().sum()));
        f.seeks = told(r.sees_commands(), count(r.device.seeks));
        let core = r.core_time.as_ref();
        let per_io = core.and_then(|c| c.per_io);
        f.core_time = (core.map_or(f64::NAN, |c| c.utilisation), per_io.unwrap_or(f64::NAN));
        let rates = rates(&r.jobs);
        let shared = rates.len() > 1 && together(&r.jobs);
        f.fairness = Some(&rates).filter(|_| shared).and_then(|r| jain(r)).unwrap_or(f64::NAN);
        f
    }

    /// fio's output without bins has means and percentiles, which are metrics here: of total latencies where it was asked
    /// for these, else of completion latencies. The mean of several directions is that of their I/Os; percentiles of several
    /// are unknown.
    fn take_percentiles(&mut self, r: &Record) {
        let find = |name: &str| r.metrics.iter().find(|m| m.name == name).map(|m| m.value);
        let several = r.jobs.len() > 1;
        let mut tables: Vec<(String, u64)> = r
            .jobs
            .iter()
            .flat_map(|j| {
                let prefix = if several { format!("job/{}/", j.name) } else { String::new() };
                let of = |(d, side): (&str, &DirStats)| (format!("{prefix}{d}"), side.ios);
                ["read", "write", "trim"].into_iter().zip(sides(j)).map(of).collect::<Vec<_>>()
            })
            .filter(|(_, ios)| *ios > 0)
            .collect();
        let known = |d: &DirStats| d.ios == 0 || !d.latency().is_empty();
        if tables.is_empty() {
            // `unified_rw_reporting`: reads and writes have the same figures.
            let Some((bandwidth, iops)) = find("mixed.bw").zip(find("mixed.iops")) else { return };
            (self.bandwidth, self.iops) = (bandwidth, iops);
            tables.push(("mixed".into(), 1));
        } else if r.jobs.iter().flat_map(sides).all(known) {
            return;
        }
        let mean = |kind: &str| -> Option<f64> {
            let ios: u64 = tables.iter().map(|(_, n)| n).sum();
            let part =
                |(t, n): &(String, u64)| Some(find(&format!("{t}.{kind}.mean"))? * *n as f64);
            tables.iter().map(part).sum::<Option<f64>>().map(|sum| sum / ios as f64)
        };
        let total = mean("lat");
        self.total = total.is_some();
        self.mean = total.or_else(|| mean("clat")).unwrap_or(f64::NAN);
        let kind = if self.total { "lat" } else { "clat" };
        let only = if let [(table, _)] = &tables[..] { Some(table) } else { None };
        let of = |p: &str| only.and_then(|t| find(&format!("{t}.{kind}.{p}"))).unwrap_or(f64::NAN);
        (self.p50, self.p99, self.p999) = (of("p50"), of("p99"), of("p99.9"));
    }

    /// Of some processes: rates, latencies.
    pub fn of_jobs<'a>(jobs: impl Iterator<Item = &'a JobRecord>) -> Figures {
        let nan = f64::NAN;
        let mut f = Figures { fairness: nan, disk: nan, durable: (nan, nan), ..Figures::default() };
        let (mut all, mut sync) = (DirStats::default(), LatencyHistogram::default());
        let jobs: Vec<&JobRecord> = jobs.collect();
        let moved = total(jobs.iter().copied(), |j| [&j.read, &j.write]);
        (f.bandwidth, f.iops) = (moved.bytes_per_second(), moved.iops());
        f.trims = total(jobs.iter().copied(), |j| [&j.trim]).iops();
        for j in jobs {
            sync.merge(j.sync.latency());
            sides(j).iter().for_each(|d| all.merge(d));
        }
        f.sync = match sync.count() {
            0 => (f64::NAN, f64::NAN),
            n if n < RESOLVES_P99 => (sync.mean(), f64::NAN),
            _ => (sync.mean(), sync.percentile(99.0) as f64),
        };
        let latency = all.latency();
        f.total = all.has_total();
        f.count = latency.count();
        if !latency.is_empty() {
            f.mean = latency.mean();
            f.p50 = latency.percentile(50.0) as f64;
            let or_longest = |p, least| {
                if f.few(least) { latency.max() } else { latency.percentile(p) }
            };
            (f.p99, f.p999) =
                (or_longest(99.0, RESOLVES_P99) as f64, or_longest(99.9, RESOLVES_P999) as f64);
        } else {
            (f.mean, f.p50, f.p99, f.p999) = (f64::NAN, f64::NAN, f64::NAN, f64::NAN);
        }
        f
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_experiment::Metric;

    fn imported(ios: u64, metrics: &[(&str, f64)]) -> Record {
        let read =
            DirStats { ios, bytes: ios * 4096, runtime: 1_000_000_000, ..DirStats::default() };
        let metric = |(name, value): &(&str, f64)| Metric {
            name: (*name).into(),
            value: *value,
            ..Metric::default()
        };
        let jobs = vec![JobRecord { name: "a".into(), read, ..JobRecord::default() }];
        Record { jobs, metrics: metrics.iter().map(metric).collect(), ..Record::default() }
    }

    #[test]
    fn reads_and_writes_that_fio_told_as_one_are_the_throughput() {
        let all = [
            ("mixed.iops", 500.0),
            ("mixed.bw", 2_048_000.0),
            ("mixed.clat.mean", 5.0),
            ("mixed.clat.p99", 9.0),
        ];
        let f = Figures::of(&imported(0, &all));
        assert_eq!((f.iops, f.bandwidth, f.rate()), (500.0, 2_048_000.0, 2_048_000.0));
        assert_eq!((f.mean, f.p99, f.p999.is_nan(), f.total), (5.0, 9.0, true, false));
    }

    /// `lat_percentiles=1`: completion latencies have a mean only.
    #[test]
    fn percentiles_of_total_latency_come_first() {
        let all = [("read.clat.mean", 5.0), ("read.lat.mean", 6.0), ("read.lat.p99", 9.0)];
        let f = Figures::of(&imported(500, &all));
        assert_eq!((f.mean, f.p99, f.total), (6.0, 9.0, true));
        let f = Figures::of(&imported(500, &all[..1]));
        assert_eq!((f.mean, f.p99.is_nan(), f.total), (5.0, true, false));
    }
}
