//! How fast a model is: found by running it on virtual time.

use iosched_devices::{Command, Completion, Device, DeviceSpec};
use iosched_types::{Bytes, Nanos, Op};

use crate::error::{Error, Result};

/// What a model can do, for comparison with what this machine can serve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelLimits {
    /// Median time of a 4 KiB random read, one at a time.
    pub read_latency: Nanos,
    /// 4 KiB random reads a second at the device's depth.
    pub random_iops: f64,
    /// Bytes a second of the largest sequential reads (1 MiB at most) at the device's depth.
    pub sequential_rate: f64,
}

/// Commands per measurement: enough to make start-up effects negligible.
const COMMANDS: u64 = 2000;

/// Measures a model on virtual time.
///
/// # Errors
/// [`Error::Input`] when the description is invalid.
pub fn model_limits(spec: &DeviceSpec) -> Result<ModelLimits> {
    let build =
        || spec.build().map_err(|e| Error::input(e.to_string(), "see: iosched show device"));
    let depth = u64::from(spec.queue_depth.max(1));
    let random =
        |i: u64, cap: Bytes| iosched_engine::fnv1a(&i.to_le_bytes()) % (cap / 4096).max(1) * 4096;
    let linear = |i: u64, cap: Bytes| (i % (cap >> 20).max(1)) << 20;
    let (mut one, _) = drive(build()?.as_mut(), 1, 4096, random);
    one.sort_unstable();
    let (_, span) = drive(build()?.as_mut(), depth, 4096, random);
    let large = (1 << 20).min(u64::from(spec.max_hw_sectors_kb) << 10).min(build()?.capacity());
    let (_, linear_span) = drive(build()?.as_mut(), depth, large, linear);
    let per_second = |n: f64, span: Nanos| n * 1e9 / span.max(1) as f64;
    Ok(ModelLimits {
        read_latency: one.get(one.len() / 2).copied().unwrap_or_default(),
        random_iops: per_second(COMMANDS as f64, span),
        sequential_rate: per_second((COMMANDS * large) as f64, linear_span),
    })
}

/// Keeps `depth` reads in flight until all have completed; their latencies and the whole time.
fn drive(
    device: &mut dyn Device,
    depth: u64,
    len: Bytes,
    offset: impl Fn(u64, Bytes) -> Bytes,
) -> (Vec<Nanos>, Nanos) {
    let cap = device.capacity();
    let mut arrived = vec![0; COMMANDS as usize];
    let mut latencies = Vec::with_capacity(COMMANDS as usize);
    let mut done: Vec<Completion> = Vec::new();
    let (mut sent, mut now) = (0, 0);
    loop {
        while sent < COMMANDS && (device.in_flight() as u64) < depth {
            let at = offset(sent, cap).min(cap.saturating_sub(len));
            arrived[sent as usize] = now;
            let id = sent as u32;
            device.submit(now, Command { id, op: Op::Read, offset: at, len, fua: false });
            sent += 1;
        }
        let Some(t) = device.next_wakeup() else { break };
        now = now.max(t);
        device.advance(now, &mut done);
        latencies.extend(done.drain(..).map(|c| c.t_done.saturating_sub(arrived[c.id as usize])));
    }
    (latencies, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_device_is_as_fast_as_its_figures() {
        let spec = DeviceSpec::from_toml(
            "t",
            "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"1GiB\"\nlat_ns=100000\npar=8\n[queue]\nqueue_depth=32\n",
        )
        .unwrap();
        let l = model_limits(&spec).unwrap();
        assert_eq!(l.read_latency, 100_000);
        assert!((l.random_iops - 80_000.0).abs() < 500.0, "{l:?}");
    }
}
