//! The rules by which parameters follow from a data sheet, and the file that they make.

use std::fmt::Write as _;

use iosched_types::Op;

use super::{Agreement, Interface, Sheet};
use crate::describe::{LOADS, Load, measure, seek_times};
use crate::spec::{DeviceSpec, Model};

/// Bytes of the random commands of a sheet.
const SMALL: f64 = 4096.0;
/// Bytes of a sequential command.
const LARGE: f64 = 131_072.0;
/// Least bytes that one flash operation moves.
const STRIPE: f64 = 16_384.0;

/// Among how many of the oldest cached writes a disk chooses the next, where its sheet does not tell.
const WINDOW: u64 = 4;
const WINDOW_RULE: &str = "assumed: 9.4 ms for each of 64 scattered cached writes, measured on an ST2000DM006: as if among four";

/// A device file in the making.
#[derive(Default)]
struct Draft {
    model: Vec<(&'static str, String)>,
    derivation: Vec<(&'static str, String)>,
}

impl Draft {
    fn set(&mut self, key: &'static str, value: impl ToString, rule: impl Into<String>) {
        self.model.push((key, value.to_string()));
        let rule = rule.into();
        if !rule.is_empty() {
            self.derivation.push((key, rule));
        }
    }
}

fn ns(v: f64) -> u64 {
    v.max(0.0).round() as u64
}

impl Interface {
    /// Rate in bytes a second, and where it comes from.
    fn rate(self) -> Option<(f64, &'static str)> {
        match self {
            Interface::Sata => Some((550e6, "SATA 6 Gb/s less 8b/10b coding and framing")),
            Interface::Sas => Some((1_150e6, "SAS 12 Gb/s less coding and framing")),
            Interface::Usb => Some((430e6, "USB 5 Gb/s less 8b/10b coding and protocol")),
            Interface::Nvme => None,
        }
    }

    fn depth(self) -> u32 {
        match self {
            Interface::Sata => 32,
            Interface::Sas => 128,
            Interface::Nvme => 1023,
            Interface::Usb => 1,
        }
    }

    /// Work for a command on the way to it, in ns.
    fn overhead(self) -> f64 {
        match self {
            Interface::Nvme => 5_000.0,
            Interface::Sata | Interface::Sas => 15_000.0,
            Interface::Usb => 100_000.0,
        }
    }
}

impl Sheet {
    /// The device file that follows from the sheet, and how the model that it describes agrees with it. The text holds
    /// both: the rule of each parameter, and the agreement of each figure.
    ///
    /// # Errors
    /// The figures make no device: which parameter, and why.
    pub fn device_file(&self) -> Result<(String, Vec<Agreement>), String> {
        let disk = self.figure("rpm").is_some();
        let draft = if disk { self.disk()? } else { self.drive()? };
        let bare = self.text(&draft, &[]);
        let spec = DeviceSpec::from_toml("datasheet", &bare).map_err(|d| d.message)?;
        let agreement = self.agreement(&spec)?;
        Ok((self.text(&draft, &agreement), agreement))
    }

    /// What was assumed because the sheet does not say it, and matters.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        if self.interface_given || self.figure("rpm").is_some() {
            return None;
        }
        let depth = self.queue();
        let (rate, _) = self.interface.rate()?;
        let faster = self.figure("sequential_read").is_some_and(|r| r > rate);
        let faster = if faster { ", though SATA is slower than its sequential_read" } else { "" };
        Some(format!(
            "the sheet has no interface: taken as sata, {depth} commands at once{faster}; \
             add interface = \"nvme\" where it is that"
        ))
    }

    /// The depth of the figures at depth: as the sheet says, or all that the interface takes, but no more than 256.
    fn depth(&self) -> u32 {
        let usual = if self.figure("rpm").is_some() { 1 } else { self.interface.depth().min(256) };
        self.figure("depth").map_or(usual, |d| d as u32).min(self.queue())
    }

    /// Commands that the device takes.
    fn queue(&self) -> u32 {
        let asked = self.figure("depth").map_or(0, |d| d as u32);
        if self.interface == Interface::Nvme {
            return self.interface.depth().max(asked);
        }
        self.interface.depth()
    }

    /// Bytes of its buffer that take writes; `None` where writes go straight to the medium.
    fn write_cache(&self) -> Option<u64> {
        let cache = self.figure("cache").filter(|_| self.power_loss_protection != Some(true))?;
        Some((cache / 2.0) as u64 / 512 * 512)
    }

    /// A disk. Among how many cached writes it chooses the next one follows from its random writes, where the sheet has
    /// them: nothing else makes them faster than random reads.
    fn disk(&self) -> Result<Draft, String> {
        const RULE: &str =
            "the power of two with which the model writes nearest to random_write_iops";
        let wanted = self.figure("random_write_iops").filter(|_| self.write_cache().is_some());
        let Some(wanted) = wanted else { return Ok(self.disk_of(WINDOW, WINDOW_RULE)) };
        let mut best: Option<(f64, Draft)> = None;
        for window in (0..=10).map(|i| 1 << i) {
            let d = self.disk_of(window, RULE);
            let spec =
                DeviceSpec::from_toml("datasheet", &self.text(&d, &[])).map_err(|e| e.message)?;
            let off = (random(&spec, Op::Write, self.depth())? / wanted).ln().abs();
            if best.as_ref().is_some_and(|(least, _)| off >= *least) {
                break;
            }
            best = Some((off, d));
        }
        best.map(|(_, d)| d).ok_or_else(|| "no disk gives the figures".into())
    }

    fn disk_of(&self, window: u64, window_rule: &str) -> Draft {
        let mut d = Draft::default();
        let rpm = self.figure("rpm").unwrap_or(7200.0);
        let (rev, overhead) = (60e9 / rpm, 10_000.0);
        d.set("kind", "\"hdd\"", "");
        self.common(&mut d);
        d.set("ovh_ns", ns(overhead), "assumed");
        let outer = self.figure("sequential_read").unwrap_or_default();
        let transfer = SMALL / outer * 1e9;
        let qd1 = self.figure("random_read_iops").filter(|_| self.depth() == 1);
        let measured = self.figure("latency_us").or(qd1.map(|i| 1e9 / i));
        let (mean, rule) = match (self.figure("seek_ms"), measured) {
            (Some(m), _) => (m, "the sheet's average seek m"),
            (None, Some(t)) => (
                (t - rev / 2.0 - overhead - transfer).max(100_000.0),
                "average seek m: a random read less half a turn, overhead and transfer",
            ),
            (None, None) => {
                ((62e9 / rpm).clamp(3.5e6, 12e6), "assumed: average seek m as usual at this speed")
            }
        };
        let track = self.figure("track_to_track_ms").unwrap_or((mean / 9.0).min(1e6)).min(mean);
        let full = self.figure("full_stroke_ms").unwrap_or(mean * 1.9).max(mean);
        // b must not be negative, or far seeks would be shorter than near ones.
        let full = full.min(track + 3.0 * (mean - track));
        let b = 5.0 * (mean - track) - 5.0 / 3.0 * (full - track);
        d.set("seek_a", ns(track), "track-to-track seek t; a ninth of m where the sheet has none");
        d.set("seek_b", ns(b), format!("b = 5 (m - t) - 5/3 (f - t); {rule}"));
        d.set(
            "seek_c",
            ns(full - track - b),
            "c = f - t - b; f = 1.9 m where the sheet has no full stroke",
        );
        d.set("rev_ns", ns(rev), format!("one turn at {rpm} rpm"));
        d.set("rot", "\"angle\"", "");
        d.set("bw", outer as u64, "sequential read at the rim");
        let inner = self.figure("sequential_read_inner");
        let rule = if inner.is_some() {
            "sequential read at the hub"
        } else {
            "assumed: 0.475 of the rim"
        };
        d.set("bw_inner", inner.unwrap_or(outer * 0.475) as u64, rule);
        if let Some((rate, rule)) = self.interface.rate() {
            d.set("bus_bw", rate as u64, rule);
        }
        d.set("sptf", "true", "assumed: chooses among its queue by position");
        d.set("age_ns", 500_000_000, "assumed: half a second at most");
        d.set("age_passes", 96, "assumed: three queues of 32");
        d.set("missed_rev", "true", "mechanics: a sector that has passed comes round a turn later");
        if let Some(cache) = self.write_cache() {
            d.set("wcache", cache, "assumed: half of the buffer takes writes");
            d.set("destage_window", window, window_rule);
            d.set("destage_run", 2, "assumed");
            d.set("flush_ns", 10_000_000, "assumed: beside writing the cache out");
        }
        d
    }

    fn drive(&self) -> Result<Draft, String> {
        let (depth, sequential) =
            (self.depth(), self.figure("sequential_read").unwrap_or_default());
        let reads = self.figure("random_read_iops");
        let writes = self.figure("random_write_iops");
        // 128 KiB take LARGE x + b on the bus and 4 KiB take SMALL x + b: two figures, two unknowns.
        let most = reads.unwrap_or(0.0).max(writes.unwrap_or(0.0));
        let (mut x, mut b) = (1e9 / sequential, 0.0);
        if most > 0.0 && most * LARGE > sequential && most * SMALL < sequential {
            x = (LARGE / sequential - 1.0 / most) * 1e9 / (LARGE - SMALL);
            b = (1e9 / most - SMALL * x).max(0.0);
        }
        let latency = self.figure("latency_us");
        let overhead = match self.figure("write_latency_us") {
            Some(w) => (w - SMALL * x - b).max(1000.0),
            None => self.interface.overhead(),
        };
        let overhead = overhead.min(latency.unwrap_or(f64::MAX) / 3.0);
        let read = match latency {
            Some(l) => (l - overhead - SMALL * x - b).max(1000.0),
            None => 60_000.0,
        };
        let floor = (sequential * read / 1e9 / STRIPE).ceil().max(1.0) as u64;
        let mut last = None;
        for units in unit_counts(floor) {
            let d = self.drive_of(units, [x, b, overhead, read]);
            let Some(wanted) = reads else { return Ok(d) };
            let spec =
                DeviceSpec::from_toml("datasheet", &self.text(&d, &[])).map_err(|e| e.message)?;
            let iops = random(&spec, Op::Read, depth)?;
            last = Some(d);
            if iops >= wanted * 0.97 {
                break;
            }
        }
        last.ok_or_else(|| "no number of flash units gives the figures".into())
    }

    fn drive_of(&self, units: u64, [x, b, overhead, read]: [f64; 4]) -> Draft {
        let mut d = Draft::default();
        d.set("kind", "\"ssd\"", "");
        self.common(&mut d);
        let at = format!(
            "the fewest with which the model reads as often as the sheet says at depth {}",
            self.depth()
        );
        d.set(
            "chans",
            units,
            if self.figure("random_read_iops").is_some() {
                &at
            } else {
                "enough for sequential_read"
            },
        );
        d.set(
            "stripe",
            self.stripe(),
            "16 KiB, or as much as a program must hold for both sequential_write and random_write_iops",
        );
        let rule = if self.figure("latency_us").is_some() {
            "latency_us less overhead and bus"
        } else {
            "assumed"
        };
        d.set("rd_ns", ns(read), rule);
        let sequential =
            self.figure("sequential_write").or(self.figure("sequential_read")).unwrap_or_default();
        let (write, rule) = match self.figure("random_write_iops") {
            Some(w) => (units as f64 / w * 1e9, "units / random_write_iops"),
            None => (units as f64 * STRIPE / sequential * 1e9, "units x stripe / sequential_write"),
        };
        d.set("wr_ns", ns(write).max(1), rule);
        d.set(
            "bus_bw",
            ns(1e18 / x / 1e9),
            "sequential_read, less the time of each 128 KiB command on the bus",
        );
        d.set("bus_cmd_ns", ns(b), "1 / the larger of the random figures, less the time of 4 KiB");
        d.set(
            "cmd_ns",
            ns(overhead),
            "write_latency_us less the bus, or assumed: typical of the interface",
        );
        d.set("cache", 4 << 20, "assumed: 4 MiB, full after a fraction of a second");
        d.set("drain_bw", sequential as u64, "sequential_write");
        d.set("rprio", "true", "assumed: reads go before programs");
        if self.power_loss_protection != Some(true) {
            d.set("vcache", "true", "");
            d.set("flush_ns", 3_000_000, "assumed: milliseconds without power-loss protection");
        }
        d
    }

    /// Bytes that one flash operation moves: programs of 4 KiB a piece and of whole stripes take the same time.
    fn stripe(&self) -> u64 {
        let figures = (self.figure("sequential_write"), self.figure("random_write_iops"));
        let least = if let (Some(s), Some(w)) = figures { s / w } else { 0.0 };
        (least.max(STRIPE) as u64).next_power_of_two().min(1 << 20)
    }

    fn common(&self, d: &mut Draft) {
        let cap = self.figure("capacity").unwrap_or_default() as u64 / 4096 * 4096;
        d.set("cap", cap, "capacity, whole blocks of 4 KiB");
        let depth = if self.interface == Interface::Nvme { 0 } else { self.queue() };
        d.set("depth", depth, "");
    }

    /// What the model does, beside every figure that a load can show.
    fn agreement(&self, spec: &DeviceSpec) -> Result<Vec<Agreement>, String> {
        let mut out = Vec::new();
        let disk = self.figure("rpm").is_some();
        for (key, sheet) in &self.figures {
            let of = |l: Load| measure(spec, l).map_err(|e| e.to_string());
            let (unit, scale, model) = match *key {
                "latency_us" => ("us", 1e3, of(LOADS[0])?.mean_ns),
                "write_latency_us" if !disk => {
                    ("us", 1e3, of(Load { commands: 2000, ..LOADS[2] })?.mean_ns)
                }
                "sequential_read" => ("MB/s", 1e6, of(LOADS[4])?.mb_per_s * 1e6),
                "sequential_write" => ("MB/s", 1e6, of(LOADS[5])?.mb_per_s * 1e6),
                "random_read_iops" => ("IOPS", 1.0, random(spec, Op::Read, self.depth())?),
                "random_write_iops" => ("IOPS", 1.0, random(spec, Op::Write, self.depth())?),
                "seek_ms" => ("ms", 1e6, seek_times(&spec.model).unwrap_or_default().0),
                "full_stroke_ms" => ("ms", 1e6, seek_times(&spec.model).unwrap_or_default().1),
                "rpm" => match &spec.model {
                    Model::Hdd(p) => ("rpm", 1.0, 60e9 / p.rev_ns as f64),
                    _ => continue,
                },
                _ => continue,
            };
            out.push(Agreement { key, unit, sheet: sheet / scale, model: model / scale });
        }
        Ok(out)
    }

    fn text(&self, d: &Draft, agreement: &[Agreement]) -> String {
        let disk = self.figure("rpm").is_some();
        let mut out = String::new();
        let quoted = |s: &str| toml::Value::from(s).to_string();
        let title = if self.name.is_empty() { "Device from a data sheet" } else { &self.name };
        let _ = writeln!(out, "title = {}", quoted(title));
        let _ = writeln!(
            out,
            "summary = \"Derived from its data sheet; each parameter has its rule below.\"\n"
        );
        for a in agreement {
            let word = if a.holds() { "" } else { "  MISSED" };
            let error = a.error() * 100.0;
            let _ = writeln!(
                out,
                "# {}: sheet {:.6}, model {:.6} {}, {error:+.1} %{word}",
                a.key,
                Short(a.sheet),
                Short(a.model),
                a.unit
            );
        }
        out.push_str("\n[model]\n");
        d.model.iter().for_each(|(k, v)| out.push_str(&format!("{k} = {v}\n")));
        let nvme = self.interface == Interface::Nvme;
        let protected = self.power_loss_protection == Some(true);
        let cached = !protected && (!disk || self.figure("cache").is_some());
        let _ = write!(
            out,
            "\n[queue]\nqueue_depth = {}\nhw_queues = {}\nrotational = {disk}\nwrite_cache = {cached}\n\
             fua = {}\nmax_hw_sectors_kb = {}\nlogical_block = 512\nbudget = {}\n\n[derivation]\n",
            self.queue(),
            if nvme { 8 } else { 1 },
            nvme && cached,
            if nvme { 2048 } else { 32_767 },
            !nvme
        );
        d.derivation.iter().for_each(|(k, v)| out.push_str(&format!("{k} = {}\n", quoted(v))));
        for a in agreement {
            let _ = write!(
                out,
                "\n[figure.{}]\nvalue = {}\nunit = \"{}\"\nsource = \"data sheet\"\nconfidence = \"medium\"\n",
                a.key,
                Short(a.sheet),
                a.unit
            );
            if !a.holds() {
                let _ = writeln!(
                    out,
                    "reason = \"the model does {}: its parts cannot have all figures of the sheet\"",
                    Short(a.model)
                );
            }
        }
        out
    }
}

/// A number as people write it: whole from a thousand on.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let v = self.0;
        if v >= 1000.0 { write!(f, "{v:.0}") } else { write!(f, "{}", (v * 100.0).round() / 100.0) }
    }
}

/// Numbers of flash units to try: each at first, then in steps of a sixteenth.
fn unit_counts(least: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(least), |n| Some(n + (n / 16).max(1))).take_while(|n| *n <= 4096)
}

/// I/Os a second of random 4 KiB commands, when the write cache is full.
fn random(spec: &DeviceSpec, op: Op, depth: u32) -> Result<f64, String> {
    let commands = match (op, &spec.model) {
        (Op::Write, Model::Hdd(p)) => {
            // The first half fills the cache and is not counted.
            let pieces = u32::try_from(p.wcache / SMALL as u64).unwrap_or(MOST_PIECES);
            4000 + 2 * pieces.min(MOST_PIECES)
        }
        (_, Model::Hdd(_)) => 4000,
        (Op::Write, _) => 80_000,
        _ => 12_000,
    };
    measure(spec, Load { op, depth, commands, ..LOADS[0] })
        .map(|m| m.iops)
        .map_err(|e| e.to_string())
}

/// Writes that a larger cache is filled with; one of that size takes minutes to fill.
const MOST_PIECES: u32 = 65_536;
