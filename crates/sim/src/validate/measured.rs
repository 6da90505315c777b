//! Compares the simulator with fio's figures of a real machine: rows of `{setup, n, scheduler, iops, lat_mean_us, …}`
//! for random 4 KiB reads, as in `data/measured/`.

use serde::Deserialize;

use iosched_block::KernelProfile;
use iosched_devices::{DeviceSpec, catalogue};
use iosched_experiment::file::MAX_CPUS;
use iosched_experiment::{Record, Trial, TrialId, choose_scheduler, label};
use iosched_schedulers::registry::Registry;
use iosched_types::units::MS;
use iosched_types::{Diagnostic, Nanos};
use iosched_workloads::fio::{NoLookup, parse};

use super::{Row, plausible};

/// Simulated time of a row; the first part is not measured.
const RAMP: Nanos = 20 * MS;
const RUN: Nanos = 200 * MS;

/// Measurements of one machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Where they come from.
    pub source: String,
    /// The machine; names a device of the catalogue.
    pub machine: String,
    /// Kernel profile; 6.12 when it is left out.
    #[serde(default)]
    pub kernel: Option<String>,
    /// The figures.
    pub rows: Vec<MeasuredRow>,
    /// Rows that are strange, and why.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// One run of fio.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRow {
    /// `n processes at depth 1 on 10 cores`, `one process, one core, depth n` …
    pub setup: String,
    /// What `n` is.
    pub n: u32,
    /// Scheduler.
    pub scheduler: String,
    /// I/Os a second of all processes.
    pub iops: f64,
    /// Mean of fio's latency in µs.
    #[serde(default)]
    pub lat_mean_us: Option<f64>,
    /// The median.
    #[serde(default)]
    pub p50_us: Option<f64>,
    /// The 99th percentile.
    #[serde(default)]
    pub p99_us: Option<f64>,
    /// fio's user time, in percent of each process's run time.
    #[serde(default)]
    pub usr_pct: Option<f64>,
    /// The system time.
    #[serde(default)]
    pub sys_pct: Option<f64>,
}

/// What a setup says in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) processes: u32,
    pub(super) depth: u32,
    pub(super) cores: u16,
}

/// A number in digits, as a word, or `n`.
fn number(word: &str, n: u32) -> Option<u32> {
    match word {
        "one" => Some(1),
        "n" => Some(n),
        digits => digits.parse().ok(),
    }
}

/// Reads `4 processes at depth 128 on one core`: numbers stand before `process` and `core` and after `depth`.
pub(super) fn shape(setup: &str, n: u32) -> Result<Shape, String> {
    let words: Vec<&str> =
        setup.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let beside = |name: &str, offset: isize| {
        let i = words.iter().position(|w| w.starts_with(name))?.checked_add_signed(offset)?;
        number(words.get(i)?, n)
    };
    let processes = beside("process", -1);
    let (Some(processes), Some(depth), Some(cores)) =
        (processes, beside("depth", 1), beside("core", -1))
    else {
        return Err(format!(
            "setup \"{setup}\" is not of the form \"n processes at depth 1 on 10 cores\""
        ));
    };
    let cores = u16::try_from(cores).ok().filter(|n| *n <= MAX_CPUS);
    let cores = cores.ok_or_else(|| format!("more than {MAX_CPUS} cores are too many"))?;
    if processes == 0 || depth == 0 || cores == 0 || processes > 100_000 || depth > 65_536 {
        return Err(format!("{processes} processes, depth {depth}, {cores} cores: out of range"));
    }
    Ok(Shape { processes, depth, cores })
}

/// One row and how to simulate it.
#[derive(Debug)]
pub struct MeasuredCase {
    /// Device of the catalogue.
    pub device: String,
    /// The setup with its number.
    pub job: String,
    /// What was measured.
    pub row: MeasuredRow,
    /// Our trial, or why there is none.
    pub trial: Result<Trial, String>,
}

impl Measured {
    /// Parses a file.
    ///
    /// # Errors
    /// Where it is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Measured, Diagnostic> {
        let mut measured: Measured =
            serde_json::from_str(text).map_err(|e| super::json_error(file, text, &e).with_help(
            "expected {\"source\": …, \"machine\": …, \"rows\": [{\"setup\": \"n processes at depth 1 on 10 cores\", \
             \"n\": 4, \"scheduler\": \"none\", \"iops\": 60806, \"lat_mean_us\": …, \"p50_us\": …, \"p99_us\": …, \
             \"usr_pct\": …, \"sys_pct\": …}]}; what stands behind iops may be left out and is not compared then",
        ))?;
        measured.warnings = plausible::check(file, &measured.rows)?;
        measured.warnings.extend(plausible::left_out(&measured.rows));
        Ok(measured)
    }

    /// The device of the catalogue that the machine's description names.
    ///
    /// # Errors
    /// When there is none.
    pub fn device(&self) -> Result<DeviceSpec, String> {
        let model = |d: &DeviceSpec| d.title.split(',').next().unwrap_or_default().to_string();
        let named =
            catalogue::all().iter().map(|(_, d)| d).find(|d| self.machine.contains(&model(d)));
        named.cloned().ok_or_else(|| {
            let known: Vec<String> = catalogue::all().iter().map(|(_, d)| model(d)).collect();
            format!("\"machine\" names no device of the catalogue: {}", known.join("; "))
        })
    }

    /// A trial for each row.
    ///
    /// # Errors
    /// When device or kernel are not known.
    pub fn plan(&self) -> Result<Vec<MeasuredCase>, String> {
        let device = self.device()?;
        let kernel = KernelProfile::find(self.kernel.as_deref().unwrap_or("6.12"))
            .map_err(|e| e.to_string())?;
        Ok(self.rows.iter().map(|row| case(row, &device, &kernel)).collect())
    }
}

fn case(row: &MeasuredRow, device: &DeviceSpec, kernel: &KernelProfile) -> MeasuredCase {
    MeasuredCase {
        device: device.name.clone(),
        job: format!("{} (n={})", row.setup, row.n),
        row: row.clone(),
        trial: shape(&row.setup, row.n).and_then(|shape| trial(row, shape, device, kernel)),
    }
}

fn trial(
    row: &MeasuredRow,
    shape: Shape,
    device: &DeviceSpec,
    kernel: &KernelProfile,
) -> Result<Trial, String> {
    let Shape { processes, depth, cores } = shape;
    let text = format!(
        "[reads]\nfilename=/dev/disk\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth={depth}\n\
         numjobs={processes}\ntime_based\nramp_time={}us\nruntime={}us\nnorandommap\n",
        RAMP / 1000,
        RUN / 1000,
    );
    let none = |name: &str| Err(format!("{name}: no includes"));
    let first = |d: Vec<Diagnostic>| d.first().map_or_else(String::new, |d| d.message.clone());
    let jobs = parse("measured.fio", &text, &NoLookup, &none, &[]).map_err(first)?;
    let scheduler = choose_scheduler(&row.scheduler, &[], kernel, Registry::builtin())
        .map_err(|e| e.to_string())?;
    Ok(Trial {
        id: TrialId {
            experiment: "validate".into(),
            device: device.name.clone(),
            scheduler: label(&scheduler),
            kernel: kernel.version.clone(),
            workload: row.setup.clone(),
            repetition: 1,
            seed: 1,
        },
        settings: vec![("wbt_lat_usec".to_string(), 0)],
        cpus: cores,
        first_run_late: false,
        ..Trial::new(device.clone(), scheduler, kernel.clone(), jobs)
    })
}

/// Our figures beside the measured ones.
#[must_use]
pub fn beside(case: &MeasuredCase, record: &Record) -> Vec<Row> {
    let m = &case.row;
    let iops: f64 = record.jobs.iter().map(|j| j.read.iops()).sum();
    let mut lat = iosched_types::LatencyHistogram::default();
    record.jobs.iter().for_each(|j| lat.merge(j.read.latency()));
    // fio's rows are percentiles of the total latency.
    let percentile = |p: f64| lat.percentile(p) as f64 / 1e3;
    let run: Nanos = record.jobs.iter().map(|j| j.runtime).sum();
    let cpu = record.cpu().total() as f64 * 100.0 / run.max(1) as f64;
    let measured_cpu = m.usr_pct.zip(m.sys_pct).map(|(user, system)| user + system);
    let figures = [
        ("iops", Some(m.iops), iops),
        ("lat_mean", m.lat_mean_us, lat.mean() / 1e3),
        ("lat_p50", m.p50_us, percentile(50.0)),
        ("lat_p99", m.p99_us, percentile(99.0)),
        ("cpu", measured_cpu, cpu),
    ];
    figures
        .into_iter()
        // Nothing can be said of a share of CPU that was too small to be measured.
        .filter_map(|(metric, measured, ours)| Some((metric, measured.filter(|m| *m > 0.0)?, ours)))
        .map(|(metric, kernel, ours)| Row {
            device: case.device.clone(),
            job: case.job.clone(),
            fs: String::new(),
            set: String::new(),
            section: "*".into(),
            op: "read",
            scheduler: m.scheduler.clone(),
            metric,
            kernel,
            ours,
            error: ours / kernel - 1.0,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setups_are_read() {
        let all = [
            ("n processes at depth 1 on 10 cores", (7, 1, 10)),
            ("n processes at depth 1 on one core", (7, 1, 1)),
            ("n processes at depth 128 on 10 cores", (7, 128, 10)),
            ("one process, one core, depth n", (1, 7, 1)),
            ("4 processes, depth n, 2 cores", (4, 7, 2)),
        ];
        for (setup, (processes, depth, cores)) in all {
            assert_eq!(shape(setup, 7), Ok(Shape { processes, depth, cores }), "{setup}");
        }
        assert!(shape("n processes at depth 1 on 5000 cores", 1).is_err());
        for bad in
            ["", "n processes", "no process, one core, depth n", "n processes at depth 0 on 1 core"]
        {
            assert!(shape(bad, 7).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_machine_names_the_device() {
        let text = r#"{"source": "s", "machine": "Samsung 980 PRO 1 TB, 10 cores", "rows": []}"#;
        let measured = Measured::parse("m.json", text).unwrap();
        assert_eq!(measured.device().unwrap().name, "samsung-980-pro");
        let other = Measured { machine: "a toaster".into(), ..measured };
        assert!(other.plan().unwrap_err().contains("Samsung 980 PRO"));
    }
}
