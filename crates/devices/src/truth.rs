//! The flat form of `data/truth/devices.toml`: a table per device, model and queue side by side.

use iosched_types::Diagnostic;
use toml::de::DeTable;

use crate::params::{Key, Unit};
use crate::read::{BLOCK_KEYS, Source, block_facts, model};
use crate::spec::Model;
use crate::spec::{DeviceSpec, SpecError};

/// A device of a truth folder and how the jobs were run on it.
#[derive(Clone, Debug, PartialEq)]
pub struct TruthDevice {
    /// The device.
    pub spec: DeviceSpec,
    /// `queue/nr_requests` with a scheduler; without one it equals the queue depth.
    pub nr_requests: u32,
    /// Run time of the jobs in seconds.
    pub runtime_s: f64,
}

const NR_REQUESTS: Key = Key {
    name: "nr_requests",
    unit: Unit::Count,
    default: None,
    min: 1,
    max: 1 << 20,
    help: "Requests with a scheduler.",
};

/// What the device announces of its cache, in short.
const CACHE: Key = Key {
    name: "wc",
    unit: Unit::Count,
    default: None,
    min: 0,
    max: 2,
    help: "0 write through, 1 write back, 2 write back with FUA.",
};

fn section(src: &Source, name: &str, table: &DeTable) -> Result<TruthDevice, Diagnostic> {
    let mut also = vec![NR_REQUESTS.name, "runtime_s", CACHE.name];
    also.extend(BLOCK_KEYS.iter().map(|k| k.name));
    let mut spec = DeviceSpec::new(name, model(src, table, &format!("[{name}]"), &also)?);
    // The reference disks take discards, and know nothing of what a flush leaves to do.
    spec.discard = true;
    if let Model::Ssd(ssd) = &mut spec.model {
        ssd.plain_sync = true;
    }
    block_facts(src, table, &mut spec)?;
    if let Some(at) = table.get(CACHE.name) {
        let announced = src.whole(at, &CACHE)?;
        (spec.write_cache, spec.fua) = (announced > 0, announced > 1);
    }
    if let (true, Model::Ssd(ssd)) = (spec.write_cache && spec.fua, &mut spec.model) {
        // A forced write passes the cache by.
        ssd.vcache = true;
    }
    let mut nr_requests = 2 * spec.queue_depth;
    if let Some(at) = table.get(NR_REQUESTS.name) {
        nr_requests = src.whole(at, &NR_REQUESTS)? as u32;
    }
    let mut runtime_s = 1.0;
    if let Some(at) = table.get("runtime_s") {
        runtime_s = src.number(at, "runtime_s")?;
        if runtime_s <= 0.0 || runtime_s > 1e6 {
            return Err(src.error(at, "runtime_s must be between 0 and 1000000 s"));
        }
    }
    if let Err(e) = spec.validate() {
        let at = e.key().and_then(|k| table.get(k));
        return Err(at.map_or_else(
            || Diagnostic::file(src.file, format!("[{name}]: {e}")),
            |at| src.error(at, e.to_string()),
        ));
    }
    Ok(TruthDevice { spec, nr_requests, runtime_s })
}

/// Reads a file of such tables, in the order in which they stand there.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn parse(file: &str, text: &str) -> Result<Vec<TruthDevice>, Diagnostic> {
    let src = Source { file, text };
    let root = src.parse()?;
    each(&src, root.get_ref()).map(|(_, device)| device).collect()
}

/// The same, each with its name, so that one that is not known does not hide the others.
///
/// # Errors
/// The file is no TOML.
pub fn parse_each(file: &str, text: &str) -> Result<Vec<NamedDevice>, Diagnostic> {
    let src = Source { file, text };
    let root = src.parse()?;
    Ok(each(&src, root.get_ref()).collect())
}

/// A device by name, or what is wrong with it.
pub type NamedDevice = (String, Result<TruthDevice, Diagnostic>);

fn each(src: &Source, root: &DeTable) -> impl Iterator<Item = NamedDevice> {
    let mut in_order: Vec<_> = root.iter().collect();
    in_order.sort_by_key(|(key, _)| key.span().start);
    in_order.into_iter().map(move |(key, at)| {
        let name = key.get_ref();
        let device = src.table(at, name).and_then(|table| section(src, name, table));
        (name.to_string(), device)
    })
}

/// One table that was parsed elsewhere.
pub(crate) fn from_table(name: &str, table: &toml::Table) -> Result<TruthDevice, SpecError> {
    let text = table.to_string();
    let src = Source { file: name, text: &text };
    src.parse()
        .and_then(|root| section(&src, name, root.get_ref()))
        .map_err(|d| SpecError::Text(Box::new(d)))
}
