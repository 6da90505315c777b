//! What a device is: model and parameters, what the block layer is told about it, and the figures.

use iosched_types::{Bytes, Diagnostic};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Device;
use crate::figure::{Figure, Price};
use crate::leftover::Writer;
use crate::models::{Array, CachedHdd, CopyingHdd, Fixed, Hdd, Ssd, Volume};
use crate::params::{
    ArrayParams, FixedParams, HddParams, Key, Raid, Rotation, SsdParams, VolumeParams,
};
use crate::stack::StackSpec;
use crate::state::{DeviceState, Fill};
use crate::truth::TruthDevice;

/// A device that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// A parameter is outside its bounds.
    #[error("{key} = {value} is out of range: {min} to {max}")]
    Range {
        /// The parameter.
        key: &'static str,
        /// The value.
        value: u64,
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// Parameters that do not go together.
    #[error("{message}")]
    Conflict {
        /// The parameter to look at.
        key: &'static str,
        /// What is wrong.
        message: String,
    },
    /// The text of a device is wrong.
    #[error("{0}")]
    Text(Box<Diagnostic>),
}

impl SpecError {
    /// The parameter to look at, if the error is about one.
    #[must_use]
    pub fn key(&self) -> Option<&'static str> {
        match self {
            SpecError::Range { key, .. } | SpecError::Conflict { key, .. } => Some(key),
            SpecError::Text(_) => None,
        }
    }
}

fn conflict(key: &'static str, message: impl Into<String>) -> SpecError {
    SpecError::Conflict { key, message: message.into() }
}

/// The kind of a device and its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Model {
    /// Constant service time.
    Fixed(FixedParams),
    /// A disk.
    Hdd(HddParams),
    /// A solid-state drive.
    Ssd(SsdParams),
    /// A network volume with rate limits.
    Volume(VolumeParams),
    /// Disks behind controllers with a cache.
    Array(ArrayParams),
}

impl Model {
    /// Whether such a device takes discards where nothing else is said: a disk does if it says how long a trim takes, as those that
    /// record in shingles.
    #[must_use]
    pub fn takes_trims(&self) -> bool {
        !matches!(self, Model::Hdd(p) if p.trim_ns == 0)
    }

    /// The kinds, as files name them.
    pub const KINDS: &'static [&'static str] = &["fixed", "hdd", "ssd", "volume", "array"];

    /// Name of the kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Model::Fixed(_) => "fixed",
            Model::Hdd(_) => "hdd",
            Model::Ssd(_) => "ssd",
            Model::Volume(_) => "volume",
            Model::Array(_) => "array",
        }
    }

    /// The parameters of a kind; `None` for an unknown kind.
    #[must_use]
    pub fn keys(kind: &str) -> Option<&'static [Key]> {
        match kind {
            "fixed" => Some(FixedParams::KEYS),
            "hdd" => Some(HddParams::KEYS),
            "ssd" => Some(SsdParams::KEYS),
            "volume" => Some(VolumeParams::KEYS),
            "array" => Some(ArrayParams::KEYS),
            _ => None,
        }
    }

    pub(crate) fn from_values(kind: &str, values: &[u64]) -> Option<Model> {
        match kind {
            "fixed" => Some(Model::Fixed(FixedParams::from_values(values))),
            "hdd" => Some(Model::Hdd(HddParams::from_values(values))),
            "ssd" => Some(Model::Ssd(SsdParams::from_values(values))),
            "volume" => Some(Model::Volume(VolumeParams::from_values(values))),
            "array" => Some(Model::Array(ArrayParams::from_values(values))),
            _ => None,
        }
    }

    /// Each parameter with its value.
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static Key, u64)> {
        let values = match self {
            Model::Fixed(p) => p.values(),
            Model::Hdd(p) => p.values(),
            Model::Ssd(p) => p.values(),
            Model::Volume(p) => p.values(),
            Model::Array(p) => p.values(),
        };
        Self::keys(self.kind()).unwrap_or_default().iter().zip(values).collect()
    }

    /// Size in bytes.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        match self {
            Model::Fixed(p) => p.cap,
            Model::Hdd(p) => p.cap,
            Model::Ssd(p) => p.cap,
            Model::Volume(p) => p.cap,
            Model::Array(p) => p.cap(),
        }
    }

    /// Refuses a device that has no meaning, would overflow, or would serve commands in no time. The last one would let
    /// a simulation run for ever at one instant.
    ///
    /// # Errors
    /// The first parameter that is wrong.
    pub fn validate(&self) -> Result<(), SpecError> {
        for (key, value) in self.parameters() {
            if value < key.min || value > key.max {
                let Key { name, min, max, .. } = *key;
                return Err(SpecError::Range { key: name, value, min, max });
            }
        }
        match self {
            Model::Fixed(_) => Ok(()),
            Model::Hdd(p) => check_hdd(p),
            Model::Ssd(p) => check_ssd(p),
            Model::Volume(p) => check_volume(p),
            Model::Array(p) => check_array(p),
        }
    }
}

/// The slowest rate accepted. A command of 32 MiB takes nine hours at this rate.
const MIN_RATE: u64 = 1024;
/// From here on a sector of 512 bytes takes no time.
const NO_TIME: u64 = 512_000_000_000;

fn rate(key: &'static str, value: u64) -> Result<(), SpecError> {
    if value != 0 && value < MIN_RATE {
        return Err(conflict(key, format!("{key} = {value} B/s: at least {MIN_RATE} B/s")));
    }
    Ok(())
}

fn check_hdd(p: &HddParams) -> Result<(), SpecError> {
    rate("bw", p.bw)?;
    rate("bw_inner", p.bw_inner)?;
    rate("bus_bw", p.bus_bw)?;
    let media = p.bw != 0 && p.bw <= NO_TIME;
    if p.ovh_ns == 0 && !media {
        return Err(conflict(
            "ovh_ns",
            "neither ovh_ns (command overhead) nor bw (media rate) is given: sequential commands would take no time",
        ));
    }
    if p.bw_inner > p.bw {
        return Err(conflict("bw_inner", "the innermost zone is faster than the outermost (bw)"));
    }
    if p.ctl_ns > 0 && (p.wcache == 0 || p.wc_ns > 0) {
        return Err(conflict(
            "ctl_ns",
            "ctl_ns is the time before a cache of extents; give wcache and not wc_ns",
        ));
    }
    if p.wcache > 0 && p.ovh_ns == 0 && p.ctl_ns == 0 {
        return Err(conflict(
            "ovh_ns",
            "with a write cache the command overhead is at least 1 ns, or ctl_ns is given",
        ));
    }
    check_copies(p)?;
    if p.bw_inner > 0 && p.rot == Rotation::Angle {
        let sectors = u128::from(p.bw_inner) * u128::from(p.rev_ns) / (1_000_000_000 * 512);
        let most = u128::from(p.bw) * u128::from(p.rev_ns) / (1_000_000_000 * 512);
        if sectors == 0 || most > 1 << 31 {
            return Err(conflict("bw_inner", "a track would hold no sector or too many"));
        }
    }
    Ok(())
}

/// A cache of copies has rules of its own.
fn check_copies(p: &HddParams) -> Result<(), SpecError> {
    rate("wc_bw", p.wc_bw)?;
    if p.wc_ns == 0 {
        let lone = "wc_bw is the rate into a cache of copies; give wc_ns too";
        return if p.wc_bw == 0 { Ok(()) } else { Err(conflict("wc_bw", lone)) };
    }
    let default =
        |key: &str| HddParams::KEYS.iter().find(|k| k.name == key).and_then(|k| k.default);
    for (key, wrong, why) in [
        ("wc_ns", p.wcache == 0, "wc_ns is the time of a write into the cache; give wcache too"),
        (
            "wc_ns",
            !p.sptf,
            "wc_ns: copies and commands compete by positioning time; give sptf = true",
        ),
        (
            "wcache_high",
            Some(p.wcache_high) != default("wcache_high"),
            "with wc_ns, copies compete with commands once the cache is half full",
        ),
        (
            "destage_window",
            p.destage_window != 0,
            "with wc_ns, the nearest of all copies is written",
        ),
        (
            "destage_run",
            p.destage_run != 0,
            "with wc_ns, copies and commands compete for each turn",
        ),
    ] {
        if wrong {
            return Err(conflict(key, why));
        }
    }
    Ok(())
}

fn check_ssd(p: &SsdParams) -> Result<(), SpecError> {
    rate("bus_bw", p.bus_bw)?;
    rate("drain_bw", p.drain_bw)?;
    rate("slc_fold_bw", p.slc_fold_bw)?;
    let bus = p.bus_bw != 0 && p.bus_bw <= NO_TIME;
    if p.cmd_ns == 0 && p.rd_ns == 0 && !bus {
        return Err(conflict("rd_ns", "a read would take no time (cmd_ns, rd_ns and bus_bw)"));
    }
    if p.cmd_ns == 0 && !bus && (p.cache > 0 || p.wr_ns == 0) {
        return Err(conflict("cmd_ns", "a write would take no time (cmd_ns, wr_ns and bus_bw)"));
    }
    if p.gather && !p.log {
        return Err(conflict(
            "gather",
            "stripes are gathered by a log-structured drive; give log = true",
        ));
    }
    if p.rd_spread_ns > p.rd_ns {
        return Err(conflict(
            "rd_spread_ns",
            "the fastest pages would be read before they are asked for (rd_ns)",
        ));
    }
    if p.slc > 0 && p.slc_full_wr_ns < p.wr_ns {
        return Err(conflict(
            "slc_full_wr_ns",
            "programs beside a full SLC cache are not faster than those in it (wr_ns)",
        ));
    }
    Ok(())
}

fn check_array(p: &ArrayParams) -> Result<(), SpecError> {
    let least = match p.raid {
        Raid::Raid0 => 1,
        Raid::Raid5 => 3,
        Raid::Raid10 => 2,
    };
    if p.legs < least {
        let message = format!("legs = {}: this layout (raid) needs {least} at least", p.legs);
        return Err(conflict("legs", message));
    }
    if p.raid == Raid::Raid10 && !p.legs.is_multiple_of(2) {
        return Err(conflict("legs", format!("legs = {}: mirrors come in pairs", p.legs)));
    }
    if !p.el.is_multiple_of(4096) {
        return Err(conflict("el", format!("el = {}: whole pages of 4096 bytes", p.el)));
    }
    if p.lo > p.hi {
        return Err(conflict(
            "lo",
            "the cache would be written out down to more than it begins at (hi)",
        ));
    }
    if p.cache > 0 && p.cache < p.el * p.legs {
        return Err(conflict("cache", "the write cache holds less than a row (el and legs)"));
    }
    rate("mirror_bw", p.mirror_bw)?;
    if p.leg_cap < p.el {
        return Err(conflict("leg_cap", "a leg is smaller than what stands together on it (el)"));
    }
    if u128::from(p.leg_cap) * u128::from(p.legs) >= 1 << 62 {
        return Err(conflict("leg_cap", "the array is larger than 4 EiB"));
    }
    check_hdd(&p.leg())
}

fn check_volume(p: &VolumeParams) -> Result<(), SpecError> {
    rate("link_bw", p.link_bw)?;
    rate("bw", p.bw)?;
    let link = p.link_bw != 0 && p.link_bw <= NO_TIME;
    for (key, latency) in [("rd_ns", p.rd_ns), ("wr_ns", p.wr_ns)] {
        if latency == 0 && !link {
            return Err(conflict(key, format!("a command would take no time ({key} and link_bw)")));
        }
    }
    if p.iops_burst > 1 && p.iops == 0 {
        return Err(conflict("iops_burst", "iops_burst has no meaning without iops"));
    }
    if p.bw_burst > 0 && p.bw == 0 {
        return Err(conflict("bw_burst", "bw_burst has no meaning without bw"));
    }
    Ok(())
}

/// Everything needed to build a device and to describe it to the block layer and to people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSpec {
    /// Name by which it is chosen.
    pub name: String,
    /// Maker and model.
    pub title: String,
    /// One sentence.
    pub summary: String,
    /// Kind and parameters.
    pub model: Model,
    /// Driver tags of a hardware queue.
    pub queue_depth: u32,
    /// Requests that the driver has at the device at a time, where that is fewer than it has tags (MMC: one under way and one
    /// prepared of 64); 0: as many.
    #[serde(default)]
    pub at_once: u32,
    /// Hardware queues.
    pub hw_queues: u32,
    /// `queue/rotational`.
    pub rotational: bool,
    /// Volatile write cache: flushes are sent (`queue/write_cache` = `write back`).
    pub write_cache: bool,
    /// `queue/fua`.
    pub fua: bool,
    /// Takes discards (`queue/discard_max_bytes` is not 0). Others answer `EOPNOTSUPP`.
    #[serde(default = "yes")]
    pub discard: bool,
    /// `queue/max_hw_sectors_kb`.
    pub max_hw_sectors_kb: u32,
    /// `queue/logical_block_size` in bytes.
    pub logical_block: u32,
    /// The driver asks for a budget before it pulls a request (SCSI, so SATA too); NVMe and virtio do not.
    pub budget: bool,
    /// The disks below, where it is more than one. The model is then the first leg's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<Box<StackSpec>>,
    /// What it is like when a run begins.
    #[serde(default)]
    pub state: DeviceState,
    /// How the parameters follow from the figures: parameter, derivation.
    pub derivation: Vec<(String, String)>,
    /// Facts with their sources.
    pub figures: Vec<Figure>,
    /// Price.
    pub price: Option<Price>,
}

fn yes() -> bool {
    true
}

impl DeviceSpec {
    /// A description with the defaults of a single-queue device without a write cache.
    #[must_use]
    pub fn new(name: impl Into<String>, model: Model) -> Self {
        let name = name.into();
        let hdd = matches!(model, Model::Hdd(_));
        let discard = model.takes_trims();
        DeviceSpec {
            title: name.clone(),
            name,
            summary: String::new(),
            model,
            queue_depth: 32,
            at_once: 0,
            discard,
            hw_queues: 1,
            rotational: hdd,
            write_cache: false,
            fua: false,
            max_hw_sectors_kb: 512,
            logical_block: 512,
            budget: false,
            stack: None,
            state: DeviceState::default(),
            derivation: Vec::new(),
            figures: Vec::new(),
            price: None,
        }
    }

    /// Reads a device file: `[model]` with kind and parameters, and optionally `[queue]`, `title`,
    /// `summary`, `[derivation]`, `[figure.NAME]` and `[price]` (see `docs/devices.md`).
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn from_toml(file: &str, text: &str) -> Result<DeviceSpec, Diagnostic> {
        crate::read::device(file, text)
    }

    /// A table of the flat form that truth folders use; [`crate::truth::parse`] reads a whole file.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn from_truth(name: &str, table: &toml::Table) -> Result<TruthDevice, SpecError> {
        crate::truth::from_table(name, table)
    }

    /// Size in bytes.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        self.stack.as_ref().map_or_else(|| self.model.capacity(), |s| s.capacity())
    }

    /// The disks that it consists of, each in the state of the whole. Of a single disk that disk.
    #[must_use]
    pub fn legs(&self) -> Vec<DeviceSpec> {
        let Some(stack) = &self.stack else { return vec![self.clone()] };
        let mut legs = stack.legs.clone();
        for leg in &mut legs {
            leg.state = self.state;
        }
        legs
    }

    /// Checks parameters and block-layer facts.
    ///
    /// # Errors
    /// The first value that is wrong.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.model.validate()?;
        let bounds = [
            ("queue_depth", self.queue_depth, 1, 65_536),
            ("at_once", self.at_once, 0, self.queue_depth),
            ("hw_queues", self.hw_queues, 1, 4096),
            ("max_hw_sectors_kb", self.max_hw_sectors_kb, 4, 1 << 30),
            ("logical_block", self.logical_block, 512, 65_536),
        ];
        for (key, value, min, max) in bounds {
            if value < min || value > max {
                let (value, min, max) = (value.into(), min.into(), max.into());
                return Err(SpecError::Range { key, value, min, max });
            }
        }
        if !self.logical_block.is_power_of_two() {
            return Err(conflict("logical_block", "logical_block is a power of two"));
        }
        if self.capacity() < u64::from(self.logical_block) {
            return Err(conflict("cap", "the device is smaller than one logical block"));
        }
        Ok(())
    }

    /// Whether it has a write cache, and an SLC cache.
    fn caches(&self) -> (bool, bool) {
        match &self.model {
            Model::Hdd(p) => (p.wcache > 0, false),
            Model::Ssd(p) => (p.cache > 0, p.slc > 0),
            // The cache of an array has a battery, and a full one is written out at once.
            Model::Fixed(_) | Model::Volume(_) | Model::Array(_) => (false, false),
        }
    }

    /// The caches that its state fills and that it does not have, as [`DeviceState::KEYS`].
    #[must_use]
    pub fn lacking(&self) -> Vec<&'static str> {
        let (write_cache, slc) = self.caches();
        let all =
            [("write_cache", self.state.write_cache, write_cache), ("slc", self.state.slc, slc)];
        all.into_iter().filter(|(_, fill, has)| *fill == Fill::Full && !has).map(|x| x.0).collect()
    }

    /// The state in which all caches of the device are full. `None` where the given state is that already, or where the
    /// device has no caches.
    #[must_use]
    pub fn all_full(&self) -> Option<DeviceState> {
        let (write_cache, slc) = self.caches();
        let fill = |has, now| if has { Fill::Full } else { now };
        let full = DeviceState {
            write_cache: fill(write_cache, self.state.write_cache),
            slc: fill(slc, self.state.slc),
        };
        (full != self.state).then_some(full)
    }

    /// Builds the device, in its state.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn build(&self) -> Result<Box<dyn Device>, SpecError> {
        self.build_after(&[])
    }

    /// The same; a disk's full write cache holds what these writers leave.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn build_after(&self, writers: &[Writer]) -> Result<Box<dyn Device>, SpecError> {
        self.validate()?;
        if let Some(stack) = &self.stack {
            let (n, kind) = (stack.legs.len(), stack.kind.word());
            let message = format!("{} is {n} disks ({kind}), not one device", self.name);
            return Err(conflict("stack", message));
        }
        Ok(match &self.model {
            Model::Fixed(p) => Box::new(Fixed::new(p.clone())),
            Model::Hdd(p) if p.wc_ns > 0 => {
                let mut hdd = CopyingHdd::new(p.clone());
                if self.state.write_cache == Fill::Full {
                    hdd.fill_cache(writers);
                }
                Box::new(hdd)
            }
            Model::Hdd(p) if p.wcache > 0 => {
                let mut hdd = CachedHdd::new(p.clone());
                if self.state.write_cache == Fill::Full {
                    hdd.fill_cache(writers);
                }
                Box::new(hdd)
            }
            Model::Hdd(p) => Box::new(Hdd::new(p)),
            Model::Volume(p) => Box::new(Volume::new(p.clone())),
            Model::Array(p) => Box::new(Array::new(p.clone())),
            Model::Ssd(p) => {
                let mut ssd = Ssd::new(p.clone());
                if self.state.write_cache == Fill::Full {
                    ssd.fill_cache();
                }
                if self.state.slc == Fill::Full {
                    ssd.fill_slc();
                }
                Box::new(ssd)
            }
        })
    }
}
