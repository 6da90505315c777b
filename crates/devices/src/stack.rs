//! Several disks as one device: md mirrors and devices that follow each other.
//!
//! A device file has `[stack]` in place of `[model]`, with the names of catalogue devices as legs. Each leg has a queue
//! and a scheduler of its own; the whole has none.

use iosched_types::nearest::did_you_mean;
use iosched_types::{Bytes, Diagnostic, SECTOR};
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};

use crate::catalogue;
use crate::params::{Key, Unit};
use crate::read::{Place, Source};
use crate::spec::DeviceSpec;

/// How the legs make one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StackKind {
    /// Mirrors (md RAID1).
    Raid1,
    /// One behind the other (md linear, LVM).
    Linear,
}

impl StackKind {
    /// The kinds, as files name them.
    pub const WORDS: &'static [&'static str] = &["raid1", "linear"];

    /// As files name it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            StackKind::Raid1 => "raid1",
            StackKind::Linear => "linear",
        }
    }
}

/// Several disks as one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackSpec {
    /// How the legs make one device.
    pub kind: StackKind,
    /// The disks.
    pub legs: Vec<DeviceSpec>,
    /// Bytes before the data on each leg.
    pub data_offset: Bytes,
    /// Bytes that a bit of the write-intent bitmap stands for; 0 without a bitmap.
    pub bitmap_chunk: Bytes,
    /// `queue/optimal_io_size` of the legs; 0 where they report none.
    pub optimal_io: Bytes,
    /// Legs that are read only if there is no other.
    pub write_mostly: Vec<usize>,
}

const fn key(name: &'static str, default: u64, max: u64, help: &'static str) -> Key {
    Key { name, unit: Unit::Bytes, default: Some(default), min: 0, max, help }
}

/// The parameters of a stack.
pub(crate) const KEYS: &[Key] = &[
    key("data_offset", 0, 1 << 40, "Bytes before the data on each leg."),
    key("bitmap_chunk", 0, 1 << 40, "Bytes for which a bit of the bitmap stands; 0: no bitmap."),
    key(
        "optimal_io",
        0,
        1 << 30,
        "optimal_io_size of the legs: a read that goes on so far may leave its leg.",
    ),
];
const OTHER: &[&str] = &["kind", "legs", "write_mostly"];
/// Legs of a stack.
const MOST: usize = 16;

impl StackSpec {
    /// Each parameter with its value.
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static Key, u64)> {
        let values = [self.data_offset, self.bitmap_chunk, self.optimal_io];
        KEYS.iter().zip(values).collect()
    }

    /// Size in bytes.
    #[must_use]
    pub fn capacity(&self) -> Bytes {
        let data = self.legs.iter().map(|l| l.model.capacity().saturating_sub(self.data_offset));
        match self.kind {
            StackKind::Raid1 => data.min().unwrap_or(0),
            StackKind::Linear => data.sum(),
        }
    }

    /// What it is, a sentence each.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let n = self.legs.len();
        let names: Vec<&str> = self.legs.iter().map(|l| l.name.as_str()).collect();
        let mut all = match self.kind {
            StackKind::Raid1 => vec![
                format!("A mirror (md RAID1) of {n} disks: {}.", names.join(", ")),
                "A read goes to one leg, by the rule of the kernel; a write goes to all and takes as \
                 long as the slowest."
                    .into(),
            ],
            StackKind::Linear => {
                vec![format!("{n} disks, one behind the other: {}.", names.join(", "))]
            }
        };
        all.push(
            "Each leg has a queue with a scheduler of its own; the whole has no scheduler.".into(),
        );
        if self.kind == StackKind::Raid1 {
            all.push("It is marked dirty before the first write and clean 0.2 s after the last one: a flush, \
                 a sector and a flush on every leg each time."
                .into());
        }
        if self.bitmap_chunk > 0 {
            all.push(format!(
                "A bitmap says which {} MiB may differ: the first write there waits for it.",
                self.bitmap_chunk >> 20
            ));
        }
        all.push("The table below is that of its first leg alone.".into());
        all
    }
}

/// Reads `[stack]` into a device: what the block layer sees of the whole, and the legs.
pub(crate) fn read(src: &Source<'_>, name: &str, at: &Place<'_>) -> Result<DeviceSpec, Diagnostic> {
    let table = src.table(at, "[stack]")?;
    let known: Vec<&str> = OTHER.iter().copied().chain(KEYS.iter().map(|k| k.name)).collect();
    src.known(table, "[stack]", &known)?;
    let need =
        |key: &str| table.get(key).ok_or_else(|| src.error(at, format!("[stack] lacks \"{key}\"")));
    let kind_at = need("kind")?;
    let word = src.string(kind_at, "kind")?;
    let kind = match word.as_str() {
        "raid1" => StackKind::Raid1,
        "linear" => StackKind::Linear,
        _ => {
            let mut help = did_you_mean(&word, StackKind::WORDS.iter().copied());
            if help.is_empty() {
                help = format!("one of: {}", StackKind::WORDS.join(", "));
            }
            return Err(src.error(kind_at, format!("unknown kind \"{word}\"")).with_help(help));
        }
    };
    let legs = legs(src, kind, need("legs")?)?;
    let mut values = [0; 3];
    for (value, key) in values.iter_mut().zip(KEYS) {
        if let Some(at) = table.get(key.name) {
            *value = src.whole(at, key)?;
            let unit = if key.name == "bitmap_chunk" { 1 << 12 } else { SECTOR };
            if !value.is_multiple_of(unit) {
                let message = format!("{} = {value}: a multiple of {unit} bytes", key.name);
                return Err(src.error(at, message).with_help(key.help));
            }
        }
    }
    let write_mostly = write_mostly(src, table, &legs)?;
    let [data_offset, bitmap_chunk, optimal_io] = values;
    let smallest = legs.iter().map(|l| l.model.capacity()).min().unwrap_or(0);
    if data_offset >= smallest {
        return Err(src.error(at, "data_offset lies beyond the end of a leg"));
    }
    let stack = StackSpec { kind, legs, data_offset, bitmap_chunk, optimal_io, write_mostly };
    Ok(whole(name, stack))
}

/// The legs by name.
fn legs(src: &Source<'_>, kind: StackKind, at: &Place<'_>) -> Result<Vec<DeviceSpec>, Diagnostic> {
    let least = if kind == StackKind::Raid1 { 2 } else { 1 };
    let list = at.get_ref().as_array().map(|a| a.iter().collect::<Vec<_>>()).unwrap_or_default();
    if list.len() < least || list.len() > MOST {
        let message = format!("legs must be a list of {least} to {MOST} devices");
        return Err(src.error(at, message).with_help("legs = [\"hdd-7200\", \"hdd-7200\"]"));
    }
    let mut all = Vec::with_capacity(list.len());
    for at in list {
        let name = src.string(at, "a leg")?;
        let text = catalogue::text(&name)
            .map_err(|e| src.error(at, format!("unknown device \"{name}\"")).with_help(e.help))?;
        if text.lines().any(|l| l.trim() == "[stack]") {
            return Err(src.error(at, format!("{name} is a stack itself: legs are single disks")));
        }
        all.push(DeviceSpec::from_toml(&name, text)?);
    }
    Ok(all)
}

fn write_mostly(
    src: &Source<'_>,
    table: &DeTable<'_>,
    legs: &[DeviceSpec],
) -> Result<Vec<usize>, Diagnostic> {
    const LEG: Key = Key {
        name: "write_mostly",
        unit: Unit::Count,
        default: None,
        min: 0,
        max: MOST as u64,
        help: "The numbers of legs, from 0.",
    };
    let Some(at) = table.get("write_mostly") else { return Ok(Vec::new()) };
    let DeValue::Array(list) = at.get_ref() else {
        return Err(src.error(at, "write_mostly must be a list of legs").with_help(LEG.help));
    };
    let mut all = Vec::new();
    for at in list.iter() {
        let leg = src.whole(at, &LEG)? as usize;
        if leg >= legs.len() {
            let message = format!("there is no leg {leg}: they are 0 to {}", legs.len() - 1);
            return Err(src.error(at, message));
        }
        all.push(leg);
    }
    Ok(all)
}

/// What the block layer sees of the whole. The model is the first leg's.
fn whole(name: &str, stack: StackSpec) -> DeviceSpec {
    let legs = &stack.legs;
    let mut spec = DeviceSpec::new(name, legs[0].model.clone());
    let (any, all) = (
        |f: fn(&DeviceSpec) -> bool| legs.iter().any(f),
        |f: fn(&DeviceSpec) -> bool| legs.iter().all(f),
    );
    spec.queue_depth = legs[0].queue_depth;
    spec.hw_queues = legs[0].hw_queues;
    spec.rotational = any(|l| l.rotational);
    spec.write_cache = any(|l| l.write_cache);
    // md takes such writes for legs that do not: they write, then flush.
    spec.fua = stack.kind == StackKind::Raid1 || all(|l| l.fua);
    spec.max_hw_sectors_kb = legs.iter().map(|l| l.max_hw_sectors_kb).min().unwrap_or(512);
    spec.logical_block = legs.iter().map(|l| l.logical_block).max().unwrap_or(512);
    spec.budget = legs[0].budget;
    spec.at_once = legs[0].at_once;
    // A discard of the whole goes to every leg that takes it.
    spec.discard = any(|l| l.discard);
    spec.stack = Some(Box::new(stack));
    spec
}
