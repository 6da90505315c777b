//! The shape of fio's JSON output.

use std::fmt;
use std::marker::PhantomData;

use iosched_experiment::record::Record;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A JSON object that keeps its order (fio lists percentiles and bins in numeric order) and refuses
/// a name given twice with two values. fio 2 fills its list of percentiles with `"0.00" : 0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordered<V>(pub Vec<(String, V)>);

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Ordered(Vec::new())
    }
}

impl<V> Ordered<V> {
    /// Whether there is no member (fio leaves such objects out).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The member of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&V> {
        self.0.iter().find(|(k, _)| k == name).map(|(_, v)| v)
    }
}

impl<V: Serialize> Serialize for Ordered<V> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(self.0.len()))?;
        for (k, v) in &self.0 {
            map.serialize_entry(k, v)?;
        }
        map.end()
    }
}

impl<'de, V: Deserialize<'de> + PartialEq> Deserialize<'de> for Ordered<V> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Members<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de> + PartialEq> Visitor<'de> for Members<V> {
            type Value = Ordered<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered<V>, A::Error> {
                let mut members: Vec<(String, V)> = Vec::new();
                let mut places = std::collections::BTreeMap::new();
                while let Some((k, v)) = map.next_entry::<String, V>()? {
                    let at = *places.entry(k.clone()).or_insert(members.len());
                    match members.get(at) {
                        Some(old) if old.1 == v => {}
                        Some(_) => return Err(A::Error::custom(format!("\"{k}\" is given twice"))),
                        None => members.push((k, v)),
                    }
                }
                Ok(Ordered(members))
            }
        }
        d.deserialize_map(Members(PhantomData))
    }
}

/// Options. fio prints each as often as it was given; the last one counts.
fn options<'de, D: Deserializer<'de>>(d: D) -> Result<Ordered<String>, D::Error> {
    struct Options;
    impl<'de> Visitor<'de> for Options {
        type Value = Ordered<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered<String>, A::Error> {
            let mut members: Vec<(String, String)> = Vec::new();
            let mut places = std::collections::BTreeMap::new();
            while let Some((k, v)) = map.next_entry::<String, String>()? {
                let at = *places.entry(k.clone()).or_insert(members.len());
                match members.get_mut(at) {
                    Some(old) => old.1 = v,
                    None => members.push((k, v)),
                }
            }
            Ok(Ordered(members))
        }
    }
    d.deserialize_map(Options)
}

impl FioJob {
    /// Reads, writes, trims, and what fio reported of all as one.
    pub fn sides(&self) -> impl Iterator<Item = &Direction> {
        [&self.read, &self.write, &self.trim].into_iter().chain(self.mixed.as_deref())
    }
}

/// The whole output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FioOutput {
    /// `fio-3.33`; empty where the line was cut away.
    #[serde(rename = "fio version", default)]
    pub version: String,
    /// Seconds since the epoch.
    #[serde(default)]
    pub timestamp: u64,
    /// Milliseconds since the epoch.
    #[serde(default)]
    pub timestamp_ms: u64,
    /// The same for people.
    #[serde(default)]
    pub time: String,
    /// Options of the `[global]` sections and of the command line.
    #[serde(
        rename = "global options",
        default,
        skip_serializing_if = "Ordered::is_empty",
        deserialize_with = "options"
    )]
    pub global: Ordered<String>,
    /// One per job, or per group under `group_reporting`.
    #[serde(default)]
    pub jobs: Vec<FioJob>,
    /// The same of a client: one per job and host, and their sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_stats: Vec<FioJob>,
    /// Statistics of the disks involved.
    #[serde(default)]
    pub disk_util: Vec<DiskUtil>,
    /// The trial that we wrote this for, without its pictures: fio's form rounds times and has no place for a
    /// scheduler. Other programs pass over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iosched: Option<Box<Record>>,
    /// What no field here takes.
    #[serde(flatten, skip_serializing)]
    pub other: Unread,
}

/// Members that nothing here reads.
pub type Unread = std::collections::BTreeMap<String, IgnoredAny>;

/// One job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FioJob {
    /// Section name.
    pub jobname: String,
    /// Reporting group.
    #[serde(default)]
    pub groupid: u32,
    /// errno, 0 when fine.
    #[serde(default)]
    pub error: i64,
    /// Seconds left.
    #[serde(default)]
    pub eta: u64,
    /// Seconds since the start of fio.
    #[serde(default)]
    pub elapsed: u64,
    /// Options of the section.
    #[serde(rename = "job options", default, deserialize_with = "options")]
    pub options: Ordered<String>,
    /// Reads.
    #[serde(default)]
    pub read: Direction,
    /// Writes.
    #[serde(default)]
    pub write: Direction,
    /// Trims.
    #[serde(default)]
    pub trim: Direction,
    /// fsync and friends.
    #[serde(default)]
    pub sync: Sync,
    /// Milliseconds.
    #[serde(default)]
    pub job_runtime: u64,
    /// CPU in user mode, percent.
    #[serde(default)]
    pub usr_cpu: f64,
    /// CPU in the kernel, percent.
    #[serde(default)]
    pub sys_cpu: f64,
    /// Context switches.
    #[serde(default)]
    pub ctx: u64,
    /// Major page faults.
    #[serde(default)]
    pub majf: u64,
    /// Minor page faults.
    #[serde(default)]
    pub minf: u64,
    /// Percent of the I/Os by depth.
    #[serde(default)]
    pub iodepth_level: Ordered<f64>,
    /// Percent of the submit calls by number submitted.
    #[serde(default)]
    pub iodepth_submit: Ordered<f64>,
    /// Percent of the completion calls by number completed.
    #[serde(default)]
    pub iodepth_complete: Ordered<f64>,
    /// Percent of the I/Os below each limit in ns.
    #[serde(default)]
    pub latency_ns: Ordered<f64>,
    /// Percent of the I/Os below each limit in µs.
    #[serde(default)]
    pub latency_us: Ordered<f64>,
    /// Percent of the I/Os below each limit in ms.
    #[serde(default)]
    pub latency_ms: Ordered<f64>,
    /// Depth reached under `latency_target`.
    #[serde(default)]
    pub latency_depth: u64,
    /// Latency target in µs.
    #[serde(default)]
    pub latency_target: u64,
    /// Percent of I/Os that must meet the target.
    #[serde(default)]
    pub latency_percentile: f64,
    /// Window of the target in µs.
    #[serde(default)]
    pub latency_window: u64,
    /// Steady-state detection, when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steadystate: Option<SteadyState>,
    /// Reads, writes and trims as one (`unified_rw_reporting`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixed: Option<Box<Direction>>,
    /// The host, in a client's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// What no field here takes.
    #[serde(flatten, skip_serializing)]
    pub other: Unread,
}

/// One direction of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Direction {
    /// Bytes.
    pub io_bytes: u64,
    /// KiB.
    pub io_kbytes: u64,
    /// Bytes a second.
    pub bw_bytes: u64,
    /// KiB a second.
    pub bw: u64,
    /// I/Os a second.
    pub iops: f64,
    /// Milliseconds.
    pub runtime: u64,
    /// I/Os.
    pub total_ios: u64,
    /// I/Os that transferred less than asked.
    pub short_ios: u64,
    /// I/Os dropped.
    pub drop_ios: u64,
    /// Submission latency.
    pub slat_ns: LatencyStats,
    /// Completion latency.
    pub clat_ns: LatencyStats,
    /// Total latency.
    pub lat_ns: LatencyStats,
    /// Smallest bandwidth sample in KiB/s.
    pub bw_min: u64,
    /// Largest bandwidth sample in KiB/s.
    pub bw_max: u64,
    /// Share of the group's bandwidth in percent.
    pub bw_agg: f64,
    /// Mean of the bandwidth samples in KiB/s.
    pub bw_mean: f64,
    /// Their standard deviation.
    pub bw_dev: f64,
    /// Their number.
    pub bw_samples: u64,
    /// Smallest IOPS sample.
    pub iops_min: u64,
    /// Largest IOPS sample.
    pub iops_max: u64,
    /// Mean of the IOPS samples.
    pub iops_mean: f64,
    /// Their standard deviation.
    pub iops_stddev: f64,
    /// Their number.
    pub iops_samples: u64,
    /// fio 2: submission latency in microseconds.
    #[serde(skip_serializing)]
    pub slat: Option<LatencyStats>,
    /// fio 2: completion latency in microseconds.
    #[serde(skip_serializing)]
    pub clat: Option<LatencyStats>,
    /// fio 2: total latency in microseconds.
    #[serde(skip_serializing)]
    pub lat: Option<LatencyStats>,
    /// What no field here takes.
    #[serde(flatten, skip_serializing)]
    pub other: Unread,
}

/// A latency distribution in ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyStats {
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation.
    pub stddev: f64,
    /// Number.
    #[serde(rename = "N")]
    pub n: u64,
    /// `"99.000000"` to ns.
    #[serde(skip_serializing_if = "Ordered::is_empty")]
    pub percentile: Ordered<u64>,
    /// Value in ns to count (`json+` only).
    #[serde(skip_serializing_if = "Ordered::is_empty")]
    pub bins: Ordered<u64>,
}

/// Synchronisation calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sync {
    /// Calls.
    pub total_ios: u64,
    /// Their latency.
    pub lat_ns: LatencyStats,
}

/// Steady-state detection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SteadyState {
    /// The criterion asked for: `iops:20.000000%`.
    pub ss: String,
    /// Window in seconds.
    pub duration: u64,
    /// 1 when attained.
    pub attained: u32,
    /// The value that was compared with the limit.
    pub criterion: String,
    /// Largest deviation from the mean in the window.
    pub max_deviation: f64,
    /// Slope of the regression line.
    pub slope: f64,
    /// The window's samples.
    pub data: SteadyStateData,
}

/// Samples of the steady-state window, one a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SteadyStateData {
    /// Mean bandwidth in B/s.
    pub bw_mean: u64,
    /// Mean IOPS.
    pub iops_mean: u64,
    /// IOPS per second.
    pub iops: Vec<f64>,
    /// B/s per second.
    pub bw: Vec<f64>,
}

/// One disk, from `/proc/diskstats`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskUtil {
    /// Kernel name.
    pub name: String,
    /// Reads.
    pub read_ios: u64,
    /// Writes.
    pub write_ios: u64,
    /// Reads merged.
    pub read_merges: u64,
    /// Writes merged.
    pub write_merges: u64,
    /// Milliseconds of reads.
    pub read_ticks: u64,
    /// Milliseconds of writes.
    pub write_ticks: u64,
    /// Weighted milliseconds in the queue.
    pub in_queue: u64,
    /// Percent of the time busy.
    pub util: f64,
}
