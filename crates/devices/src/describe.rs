//! What a device is and does, in words and figures: the text of `iosched show device NAME`.
//!
//! The behaviour table is computed by running the model, so it cannot disagree with what a simulation
//! does.

mod text;

use iosched_types::{Bytes, Nanos, Op};
use serde::Serialize;

use crate::figure::Figure;
use crate::math::mix;
use crate::spec::{DeviceSpec, Model, SpecError};
use crate::{Command, Completion, Device};

/// A closed loop of equal commands: a new one for each that completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Name in the table.
    pub name: &'static str,
    /// Read or write.
    pub op: Op,
    /// Bytes of a command.
    pub len: Bytes,
    /// At random places, or one after the other from the beginning of the device.
    pub random: bool,
    /// Commands in flight.
    pub depth: u32,
    /// Commands in all; the first half warms up and is not counted.
    pub commands: u32,
}

/// What a load yields.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The load.
    pub load: Load,
    /// Commands per second.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Mean latency in ns.
    pub mean_ns: f64,
    /// Longest latency in ns.
    pub max_ns: Nanos,
}

const fn load(name: &'static str, op: Op, len: Bytes, random: bool, depth: u32, n: u32) -> Load {
    Load { name, op, len, random, depth, commands: n }
}

/// The loads of the table.
pub const LOADS: [Load; 6] = [
    load("4 KiB random read, QD1", Op::Read, 4096, true, 1, 4000),
    load("4 KiB random read, QD32", Op::Read, 4096, true, 32, 16_000),
    load("4 KiB random write, QD1", Op::Write, 4096, true, 1, 20_000),
    load("4 KiB random write, QD32", Op::Write, 4096, true, 32, 20_000),
    load("128 KiB sequential read, QD8", Op::Read, 131_072, false, 8, 8000),
    load("128 KiB sequential write, QD8", Op::Write, 131_072, false, 8, 8000),
];

/// Scattered writes before the flush of the table.
pub const WRITES_BEFORE_FLUSH: u32 = 8;

fn offset(device: &dyn Device, l: &Load, i: u64) -> Bytes {
    let places = (device.capacity() / l.len).max(1);
    let place = if l.random {
        ((u128::from(mix(i)) * u128::from(places)) >> 64) as u64
    } else {
        i % places
    };
    place * l.len
}

/// Runs a load on a fresh device.
///
/// # Errors
/// The device cannot be built.
pub fn measure(spec: &DeviceSpec, l: Load) -> Result<Measured, SpecError> {
    let mut device = spec.build()?;
    let len = l.len.min(device.capacity());
    let l = Load { len, depth: l.depth.max(1), ..l };
    let mut arrived = vec![0; l.depth as usize];
    let (mut sent, mut done) = (0u32, Vec::new());
    let mut submit = |device: &mut dyn Device, now: Nanos, id: u32| {
        let offset = offset(device, &l, u64::from(sent));
        device.submit(now, Command { id, op: l.op, offset, len, fua: false });
        sent += 1;
    };
    for id in 0..l.depth {
        submit(&mut *device, 0, id);
    }
    let warm = l.commands / 2;
    let (mut count, mut begin, mut end, mut sum, mut max) = (0u32, 0, 0, 0u64, 0);
    while let Some(now) = device.next_wakeup().filter(|_| count < l.commands) {
        device.advance(now, &mut done);
        for c in done.drain(..) {
            count += 1;
            if count == warm {
                begin = now;
            } else if count > warm && count <= l.commands {
                let latency = now - arrived[c.id as usize];
                (sum, max, end) = (sum + latency, max.max(latency), now);
            }
            arrived[c.id as usize] = now;
            submit(&mut *device, now, c.id);
        }
    }
    let counted = f64::from((l.commands - warm).max(1));
    let seconds = ((end - begin) as f64 / 1e9).max(1e-9);
    Ok(Measured {
        load: l,
        iops: counted / seconds,
        mb_per_s: counted * len as f64 / seconds / 1e6,
        mean_ns: sum as f64 / counted,
        max_ns: max,
    })
}

/// How long a flush takes after that many 4 KiB writes at random places, one after the other.
///
/// # Errors
/// The device cannot be built.
pub fn flush_time(spec: &DeviceSpec, writes: u32) -> Result<Nanos, SpecError> {
    let mut device = spec.build()?;
    let l = Load { len: LOADS[0].len.min(device.capacity()), ..LOADS[0] };
    let (mut now, mut done): (Nanos, Vec<Completion>) = (0, Vec::new());
    let mut run = |device: &mut dyn Device, command: Command| {
        device.submit(now, command);
        while let Some(t) = device.next_wakeup() {
            device.advance(t, &mut done);
            if done.drain(..).any(|c| c.id == command.id) {
                let took = t - now;
                now = t;
                return took;
            }
        }
        0
    };
    for i in 0..writes {
        let offset = offset(&*device, &l, u64::from(i));
        let write = Command { id: i, op: Op::Write, offset, len: l.len, fua: false };
        run(&mut *device, write);
    }
    let flush = Command { id: writes, op: Op::Flush, offset: 0, len: 0, fua: false };
    Ok(run(&mut *device, flush))
}

/// A parameter of the model as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// Name.
    pub name: &'static str,
    /// Value with unit.
    pub value: String,
    /// Meaning.
    pub help: &'static str,
    /// How the parameter follows from the figures; empty where the device file does not say.
    pub derivation: String,
}

/// Everything that `show device` says about a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// Name by which it is chosen.
    pub name: String,
    /// Maker and model.
    pub title: String,
    /// One sentence.
    pub summary: String,
    /// The model in words, a sentence each.
    pub model: Vec<String>,
    /// What the block layer sees: sysfs name, value.
    pub queue: Vec<(&'static str, String)>,
    /// Parameters that differ from "off".
    pub parameters: Vec<Parameter>,
    /// Facts with their sources.
    pub figures: Vec<Figure>,
    /// What it does under the [`LOADS`].
    pub behaviour: Vec<Measured>,
    /// Time of a flush; `None` where the kernel sends none.
    pub flush_ns: Option<Nanos>,
}

impl Description {
    /// Describes a device and runs it.
    ///
    /// # Errors
    /// The device cannot be built.
    pub fn of(spec: &DeviceSpec) -> Result<Description, SpecError> {
        let most = spec.queue_depth.saturating_mul(spec.hw_queues);
        let mut loads: Vec<Load> =
            LOADS.iter().map(|l| Load { depth: l.depth.min(most), ..*l }).collect();
        // A device that takes one command at a time has one row; the others have two.
        loads.dedup_by_key(|l| (l.op, l.random, l.depth));
        // Of a stack the behaviour of its first leg: there is no device above the queues.
        let whole = spec;
        let leg = spec.legs().swap_remove(0);
        let spec = &leg;
        let behaviour = loads.into_iter().map(|l| measure(spec, l));
        Ok(Description {
            name: whole.name.clone(),
            title: whole.title.clone(),
            summary: whole.summary.clone(),
            model: match &whole.stack {
                Some(stack) => stack.words(),
                None => text::words(&whole.model),
            },
            queue: queue(whole),
            parameters: parameters(whole),
            figures: whole.figures.clone(),
            behaviour: behaviour.collect::<Result<_, _>>()?,
            flush_ns: spec
                .write_cache
                .then(|| flush_time(spec, WRITES_BEFORE_FLUSH))
                .transpose()?,
        })
    }
}

fn queue(spec: &DeviceSpec) -> Vec<(&'static str, String)> {
    let flag = |b: bool| u8::from(b).to_string();
    let at_once = match spec.at_once {
        0 => spec.queue_depth,
        n => n,
    };
    vec![
        ("queue depth", spec.queue_depth.to_string()),
        ("at the device at once", at_once.to_string()),
        ("hardware queues", spec.hw_queues.to_string()),
        ("rotational", flag(spec.rotational)),
        ("write_cache", if spec.write_cache { "write back" } else { "write through" }.into()),
        ("fua", flag(spec.fua)),
        ("discard", flag(spec.discard)),
        ("max_hw_sectors_kb", spec.max_hw_sectors_kb.to_string()),
        ("logical_block_size", spec.logical_block.to_string()),
    ]
}

fn parameters(spec: &DeviceSpec) -> Vec<Parameter> {
    let off = |key: &crate::params::Key, value| value == 0 && key.default == Some(0);
    let all = match &spec.stack {
        Some(stack) => stack.parameters(),
        None => spec.model.parameters(),
    };
    let shown = all.into_iter().filter(|(key, value)| !off(key, *value));
    let each = shown.map(|(key, value)| Parameter {
        name: key.name,
        value: text::value(key.unit, value),
        help: key.help,
        derivation: spec
            .derivation
            .iter()
            .find(|d| d.0 == key.name)
            .map_or_else(String::new, |d| d.1.clone()),
    });
    each.collect()
}

/// Mean and longest seek of a disk in ns, from the curve: over random pairs of places the mean of
/// sqrt(d/C) is 8/15 and that of d/C is 1/3.
#[must_use]
pub fn seek_times(model: &Model) -> Option<(f64, f64)> {
    let Model::Hdd(p) = model else { return None };
    let (a, b, c) = (p.seek_a as f64, p.seek_b as f64, p.seek_c as f64);
    Some((a + b * 8.0 / 15.0 + c / 3.0, a + b + c))
}
