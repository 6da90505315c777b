//! How much time this machine adds to an emulated disk, and the fastest disk that it can emulate.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use iosched_types::Nanos;
use nix::libc;

use super::limits::ModelLimits;
use crate::error::{Error, Result};
use crate::sys::Urgent;
use crate::sys::memory::Area;
use crate::sys::ring::Ring;

/// What the self-check found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SelfCheck {
    /// Median time added to a 4 KiB read, one at a time, in ns.
    pub added: Nanos,
    /// What each MiB of data adds to that, in ns. The data is copied on the way.
    pub per_mib: Nanos,
    /// Lower and upper quartile of `added`.
    pub spread: (Nanos, Nanos),
    /// Whether the added time is steady enough, and so is subtracted from the model's service time.
    pub compensated: bool,
    /// 4 KiB reads a second that can be served.
    pub max_iops: f64,
    /// Bytes a second that can be served.
    pub max_rate: f64,
}

/// Service time of the device against which the added time is measured. It is long enough to use the timer, as real
/// models do.
pub(crate) const PROBE_LATENCY: Nanos = 1_000_000;
const SAMPLES: usize = 150;
const ATTEMPTS: usize = 5;
const RATE_TIME: Duration = Duration::from_millis(300);
/// How often a rate below the model's need is measured again.
const RATE_ATTEMPTS: u32 = 10;
/// Reads at once: what a SATA disk takes.
const RATE_DEPTH: u32 = 32;
/// Share of the measured rate that a model may need, because other work goes on while it is served.
const HEADROOM: f64 = 0.8;

impl SelfCheck {
    /// The verdict on a model.
    ///
    /// # Errors
    /// [`Error::TooFast`] naming the limit.
    pub(crate) fn admit(&self, device: &str, model: &ModelLimits) -> Result<()> {
        let refuse = |why: String| Err(Error::TooFast { device: device.into(), why });
        let us = |ns: Nanos| ns as f64 / 1e3;
        if model.read_latency < self.added {
            return refuse(format!(
                "it answers a read in {:.0} µs, this machine adds {:.0} µs",
                us(model.read_latency),
                us(self.added)
            ));
        }
        if model.random_iops > self.max_iops * HEADROOM {
            return refuse(format!(
                "it does {:.0} reads/s, this machine can serve {:.0} (and {:.0} % of that is the limit)",
                model.random_iops,
                self.max_iops,
                HEADROOM * 100.0
            ));
        }
        if model.sequential_rate > self.max_rate * HEADROOM {
            return refuse(format!(
                "it reads {:.0} MB/s, this machine can serve {:.0}",
                model.sequential_rate / 1e6,
                self.max_rate / 1e6
            ));
        }
        Ok(())
    }

    /// The rates that a model asks of the machine: reads and bytes a second.
    pub(crate) fn wants(model: &ModelLimits) -> (f64, f64) {
        (model.random_iops / HEADROOM, model.sequential_rate / HEADROOM)
    }

    /// One line for people.
    #[must_use]
    pub fn render(&self) -> String {
        format!(
            "adds {:.0} µs per I/O ({:.0} to {:.0}) and {:.2} µs per KiB, {}; serves {:.0} IOPS, {:.0} MB/s",
            self.added as f64 / 1e3,
            self.spread.0 as f64 / 1e3,
            self.spread.1 as f64 / 1e3,
            self.per_mib as f64 / 1024e3,
            if self.compensated { "compensated" } else { "not compensated" },
            self.max_iops,
            self.max_rate / 1e6
        )
    }
}

/// Time added to one read of `len` bytes at a time: median and quartiles beyond the probe's latency.
fn added_latency(
    node: &Path,
    bytes: u64,
    len: u64,
    check: &dyn Fn() -> Result<()>,
) -> Result<(Nanos, (Nanos, Nanos))> {
    let file = open_direct(node)?;
    let mut buf = Aligned::new(len as usize);
    let mut times = Vec::with_capacity(SAMPLES);
    for i in 0..SAMPLES as u64 {
        check()?;
        let started = Instant::now();
        read(&file, &mut buf, offset(i, bytes, len), node)?;
        times.push(u64::try_from(started.elapsed().as_nanos()).unwrap_or(Nanos::MAX));
    }
    times.sort_unstable();
    let at = |p: usize| times[times.len() * p / 100].saturating_sub(PROBE_LATENCY);
    Ok((at(50), (at(25), at(75))))
}

/// Size by which the time for copying is found: the usual read-ahead, and the largest requests of most loads.
const LARGE: u64 = 128 << 10;

/// What the way to the disk and back takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Added {
    /// Median for 4 KiB.
    pub(crate) small: Nanos,
    /// Quartiles of it.
    pub(crate) spread: (Nanos, Nanos),
    /// What each MiB adds.
    pub(crate) per_mib: Nanos,
    /// Median and quartiles for large reads.
    large: Nanos,
    large_spread: (Nanos, Nanos),
}

impl Added {
    /// The middle half of the samples lies within the median's own size, for both sizes.
    pub(crate) fn is_steady(&self) -> bool {
        let width = |(low, high): (Nanos, Nanos)| high.saturating_sub(low);
        width(self.spread) <= self.small && width(self.large_spread) <= self.large
    }
}

/// Measures until the times are steady, because other programs may be busy for a moment.
///
/// # Errors
/// What `check` says, between reads; the kernel's.
pub(crate) fn added(node: &Path, bytes: u64, check: &dyn Fn() -> Result<()>) -> Result<Added> {
    // As the loads will have it.
    let _urgent = Urgent::here();
    let mut attempts = 0;
    loop {
        let (small, spread) = added_latency(node, bytes, 4096, check)?;
        let (large, large_spread) = added_latency(node, bytes, LARGE, check)?;
        let per_mib = large.saturating_sub(small) * (1 << 20) / (LARGE - 4096);
        let added = Added { small, spread, per_mib, large, large_spread };
        attempts += 1;
        if added.is_steady() || attempts == ATTEMPTS {
            return Ok(added);
        }
    }
}

/// Measures a rate until it is high enough, a few times at most. The best counts: it is what the machine can do when
/// others are not busy for a moment. Each run is judged by how it was served itself.
///
/// # Errors
/// What `measure` says.
pub(crate) fn most(wanted: f64, mut measure: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut best: f64 = 0.0;
    for _ in 0..RATE_ATTEMPTS {
        best = best.max(measure()?);
        if best >= wanted {
            break;
        }
    }
    Ok(best)
}

/// Reads a second of one size, many at once: by io_uring, which leaves most of the CPUs to the disk, or
/// by as many threads.
pub(crate) fn rate(
    node: &Path,
    bytes: u64,
    len: usize,
    check: &dyn Fn() -> Result<()>,
) -> Result<f64> {
    rate_of(&open_direct(node)?, node, bytes, len, check).map(|(rate, _)| rate)
}

/// The same of an open file, and the seconds that it took.
pub(super) fn rate_of(
    file: &File,
    node: &Path,
    bytes: u64,
    len: usize,
    check: &dyn Fn() -> Result<()>,
) -> Result<(f64, f64)> {
    // As the loads will have it.
    let _urgent = Urgent::here();
    let area = Area::zeros(len * RATE_DEPTH as usize).map_err(|e| Error::io("reading", node, e))?;
    match Ring::new(RATE_DEPTH, RATE_DEPTH, area) {
        Ok(ring) => rate_by_ring(ring, file, node, bytes, len, check),
        Err(_) => rate_by_threads(file, node, bytes, len, check),
    }
}

fn rate_by_ring(
    mut ring: Ring,
    file: &File,
    node: &Path,
    bytes: u64,
    len: usize,
    check: &dyn Fn() -> Result<()>,
) -> Result<(f64, f64)> {
    let io = |e| Error::io("reading", node, e);
    let (mut sent, mut done, mut in_flight) = (0u64, 0u64, 0u32);
    let started = Instant::now();
    let mut slots: Vec<u64> = (0..u64::from(RATE_DEPTH)).collect();
    while started.elapsed() < RATE_TIME || in_flight > 0 {
        if started.elapsed() < RATE_TIME && check().is_ok() {
            for slot in slots.drain(..) {
                let start = slot as usize * len;
                let at = offset(sent, bytes, len as u64);
                ring.read(file.as_fd(), start..start + len, at, slot).map_err(io)?;
                (sent, in_flight) = (sent + 1, in_flight + 1);
            }
        }
        if in_flight == 0 {
            break;
        }
        ring.wait(None).map_err(io)?;
        while let Some((slot, result)) = ring.take() {
            in_flight -= 1;
            if result != len as i32 {
                return Err(io(std::io::Error::from_raw_os_error((-result).max(0))));
            }
            done += 1;
            slots.push(slot);
        }
    }
    check()?;
    let seconds = started.elapsed().as_secs_f64();
    Ok((done as f64 / seconds, seconds))
}

fn rate_by_threads(
    file: &File,
    node: &Path,
    bytes: u64,
    len: usize,
    check: &dyn Fn() -> Result<()>,
) -> Result<(f64, f64)> {
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let started = Instant::now();
    let outcome: Result<()> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..u64::from(RATE_DEPTH))
            .map(|t| {
                let (stop, count) = (&stop, &count);
                scope.spawn(move || -> Result<()> {
                    let _urgent = Urgent::here();
                    let mut buf = Aligned::new(len);
                    let mut i = t;
                    while !stop.load(Ordering::Relaxed) {
                        read(file, &mut buf, offset(i, bytes, len as u64), node)?;
                        count.fetch_add(1, Ordering::Relaxed);
                        i += u64::from(RATE_DEPTH);
                    }
                    Ok(())
                })
            })
            .collect();
        while started.elapsed() < RATE_TIME && check().is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        workers.into_iter().try_for_each(|w| {
            w.join().unwrap_or_else(|_| {
                Err(Error::Trial { message: "a self-check thread panicked".into() })
            })
        })
    });
    outcome?;
    check()?;
    let seconds = started.elapsed().as_secs_f64();
    Ok((count.load(Ordering::Relaxed) as f64 / seconds, seconds))
}

pub(super) fn offset(i: u64, bytes: u64, len: u64) -> u64 {
    iosched_engine::fnv1a(&i.to_le_bytes()) % (bytes / len).max(1) * len
}

pub(super) fn open_direct(node: &Path) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(node)
        .map_err(|e| Error::io("opening", node, e))
}

fn read(file: &File, buf: &mut Aligned, offset: u64, node: &Path) -> Result<()> {
    file.read_exact_at(buf.bytes(), offset).map_err(|e| Error::io("reading", node, e))
}

/// A buffer at a page boundary, as direct I/O wants it.
pub(super) struct Aligned {
    store: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    pub(super) fn new(len: usize) -> Self {
        let store = vec![0u8; len + 4096];
        let start = store.as_ptr().align_offset(4096).min(4096);
        Aligned { store, start, len }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.store[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check() -> SelfCheck {
        SelfCheck { added: 50_000, max_iops: 60_000.0, max_rate: 2e9, ..SelfCheck::default() }
    }

    #[test]
    fn steady_is_what_varies_less_than_it_lasts() {
        let steady = Added {
            small: 100,
            spread: (80, 170),
            per_mib: 0,
            large: 200,
            large_spread: (150, 340),
        };
        assert!(steady.is_steady());
        assert!(!Added { spread: (80, 190), ..steady }.is_steady());
        assert!(!Added { large_spread: (100, 340), ..steady }.is_steady());
    }

    #[test]
    fn the_best_of_some_rates_counts_and_no_more_than_needed_are_taken() {
        let rates = [50.0, 120.0, 70.0, 130.0];
        let mut taken = 0;
        let mut next = || {
            taken += 1;
            Ok(rates[(taken - 1) % 4])
        };
        assert_eq!(most(100.0, &mut next).unwrap(), 120.0);
        assert_eq!(most(1000.0, &mut next).unwrap(), 130.0);
        assert_eq!(taken, 2 + RATE_ATTEMPTS as usize);
        let e = most(1.0, || Err(Error::Trial { message: "x".into() })).unwrap_err();
        assert!(e.to_string().contains('x'));
        let model = ModelLimits { random_iops: 80.0, sequential_rate: 8.0, read_latency: 1 };
        assert_eq!(SelfCheck::wants(&model), (100.0, 10.0));
    }

    #[test]
    fn names_the_limit_that_a_model_breaks() {
        let slow =
            ModelLimits { read_latency: 8_000_000, random_iops: 120.0, sequential_rate: 2e8 };
        assert!(check().admit("hdd", &slow).is_ok());
        for (model, word) in [
            (ModelLimits { read_latency: 10_000, ..slow }, "answers a read in 10 µs"),
            (ModelLimits { random_iops: 1e6, ..slow }, "1000000 reads/s"),
            (ModelLimits { sequential_rate: 7e9, ..slow }, "7000 MB/s"),
        ] {
            let e = check().admit("x", &model).unwrap_err();
            assert!(e.to_string().contains(word), "{e}");
            assert_eq!(e.class(), crate::ExitClass::Missing);
        }
    }
}
