//! From a data sheet to a device file: the few figures that makers print, and by which rule each parameter follows.
//!
//! The file that comes out is run against the sheet ([`Sheet::device_file`]): it says of each figure what the model
//! does, and names those that it misses by more than [`TOLERANCE`].

mod derive;

use iosched_types::Diagnostic;
use iosched_types::units::{parse_bytes, parse_nanos};
use toml::de::DeValue;

use crate::read::{Place, Source};

/// How far the model may be from the sheet, as a share.
pub const TOLERANCE: f64 = 0.10;

/// What a key of a data sheet counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    /// `sata`, `sas`, `nvme` or `usb`.
    Interface,
    /// Bytes; makers count in powers of ten.
    Size,
    /// 10^6 bytes a second.
    Rate,
    /// A time: a bare number in this many ns, or text with a unit.
    Time(u64),
    /// A number of anything.
    Number,
    Flag,
}

/// Every key: name, what it counts, smallest and largest value, meaning.
const KEYS: &[(&str, Kind, f64, f64, &str)] = &[
    ("name", Kind::Text, 0.0, 0.0, "maker and model"),
    ("interface", Kind::Interface, 0.0, 0.0, "sata, sas, nvme or usb"),
    ("capacity", Kind::Size, 1e6, 1e18, "\"1TB\" (10^12 bytes), \"1TiB\", or bytes"),
    ("cache", Kind::Size, 4096.0, 1e12, "buffer, such as \"64MiB\""),
    ("rpm", Kind::Number, 1000.0, 30_000.0, "turns a minute; makes it a disk"),
    ("seek_ms", Kind::Time(1_000_000), 1e4, 1e9, "average read seek"),
    ("track_to_track_ms", Kind::Time(1_000_000), 1e3, 1e9, "seek to the next track"),
    ("full_stroke_ms", Kind::Time(1_000_000), 1e4, 4e9, "longest seek"),
    ("latency_us", Kind::Time(1_000), 1e3, 1e9, "4 KiB random read, one at a time"),
    ("write_latency_us", Kind::Time(1_000), 1e3, 1e9, "4 KiB random write, one at a time"),
    ("sequential_read", Kind::Rate, 0.1, 1e6, "MB/s; of a disk at its rim"),
    ("sequential_write", Kind::Rate, 0.1, 1e6, "MB/s"),
    ("sequential_read_inner", Kind::Rate, 0.1, 1e6, "MB/s of a disk at its hub"),
    ("random_read_iops", Kind::Number, 1.0, 1e8, "4 KiB reads a second at depth"),
    ("random_write_iops", Kind::Number, 1.0, 1e8, "4 KiB writes a second at depth"),
    ("depth", Kind::Number, 1.0, 65_536.0, "commands in flight of the two figures before"),
    ("power_loss_protection", Kind::Flag, 0.0, 0.0, "true or false"),
];

/// How the host reaches the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Interface {
    #[default]
    Sata,
    Sas,
    Nvme,
    Usb,
}

const INTERFACES: [(&str, Interface); 4] = [
    ("sata", Interface::Sata),
    ("sas", Interface::Sas),
    ("nvme", Interface::Nvme),
    ("usb", Interface::Usb),
];

/// A data sheet as it was written: times in ns, rates in bytes a second, sizes in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    name: String,
    interface: Interface,
    interface_given: bool,
    /// Figures by the name of their key.
    figures: Vec<(&'static str, f64)>,
    power_loss_protection: Option<bool>,
}

/// A figure of the sheet beside what the model does.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// Its key.
    pub key: &'static str,
    /// Unit of both.
    pub unit: &'static str,
    /// As the sheet says.
    pub sheet: f64,
    /// As the model does.
    pub model: f64,
}

impl Agreement {
    /// Share by which the model is off: −0.1 is ten per cent less than the sheet.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.model / self.sheet - 1.0
    }

    /// Whether it is near enough.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.error().abs() <= TOLERANCE
    }
}

impl Sheet {
    /// Reads a data sheet: a TOML file of the keys, without tables.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place.
    pub fn from_toml(file: &str, text: &str) -> Result<Sheet, Vec<Diagnostic>> {
        let src = Source { file, text };
        let root = src.parse().map_err(|d| vec![d])?;
        let root = root.get_ref();
        let names: Vec<&str> = KEYS.iter().map(|k| k.0).collect();
        let mut errors = Vec::new();
        let mut sheet = Sheet::default();
        errors.extend(src.known(root, "the data sheet", &names).err());
        for key in KEYS {
            let read = root.get(key.0).map(|at| sheet.take(&src, at, key));
            errors.extend(read.and_then(Result::err));
        }
        if errors.is_empty() {
            errors.extend(sheet.lacks(file));
        }
        if errors.is_empty() { Ok(sheet) } else { Err(errors) }
    }

    fn take(
        &mut self,
        src: &Source<'_>,
        at: &Place<'_>,
        key: &(&'static str, Kind, f64, f64, &'static str),
    ) -> Result<(), Diagnostic> {
        let (name, kind, min, max, help) = *key;
        let wrong = |want: &str| {
            src.error(at, format!("{name} must be {want}, not {}", at.get_ref().type_str()))
                .with_help(format!("{name}: {help}"))
        };
        let value = match kind {
            Kind::Text => {
                self.name = src.string(at, name)?;
                return Ok(());
            }
            Kind::Interface => {
                let word = src.string(at, name)?;
                let found = INTERFACES.iter().find(|(n, _)| *n == word.to_lowercase());
                let words = INTERFACES.map(|(n, _)| n).join(", ");
                let unknown = || {
                    src.error(at, format!("unknown interface \"{word}\""))
                        .with_help(format!("one of: {words}"))
                };
                self.interface = found.ok_or_else(unknown)?.1;
                self.interface_given = true;
                return Ok(());
            }
            Kind::Flag => {
                let flag = at.get_ref().as_bool().ok_or_else(|| wrong("true or false"))?;
                self.power_loss_protection = Some(flag);
                return Ok(());
            }
            Kind::Size => match at.get_ref() {
                DeValue::String(s) => {
                    size(s).ok_or_else(|| wrong("a size, such as \"1TB\" or \"64MiB\""))?
                }
                _ => src.number(at, name)?,
            },
            Kind::Time(unit) => match at.get_ref() {
                DeValue::String(s) => parse_nanos(s, unit)
                    .map(|ns| ns as f64)
                    .ok_or_else(|| wrong("a time, such as 8.5 or \"8.5ms\""))?,
                _ => src.number(at, name)? * unit as f64,
            },
            Kind::Rate => match at.get_ref() {
                DeValue::String(s) => {
                    rate(s).ok_or_else(|| wrong("a rate in MB/s, such as 190 or \"190MB/s\""))?
                }
                _ => src.number(at, name)?,
            },
            Kind::Number => {
                let help = || bare(at, name).unwrap_or_else(|| format!("{name}: {help}"));
                src.number(at, name).map_err(|d| d.with_help(help()))?
            }
        };
        if !(min..=max).contains(&value) {
            let message = format!("{name} is out of range: {min} to {max}{}", unit(kind));
            return Err(src.error(at, message).with_help(format!("{name}: {help}")));
        }
        let scale = if kind == Kind::Rate { 1e6 } else { 1.0 };
        self.figures.push((name, value * scale));
        Ok(())
    }

    /// The key without which nothing can be made of the sheet.
    fn lacks(&self, file: &str) -> Option<Diagnostic> {
        let needs = |key: &str, help: &str| {
            Some(Diagnostic::file(file, format!("the data sheet has no {key}")).with_help(help))
        };
        if self.figure("capacity").is_none() {
            return needs("capacity", "add a line such as capacity = \"1TB\"");
        }
        if self.figure("sequential_read").is_none() {
            return needs("sequential_read", "add a line such as sequential_read = 550 (MB/s)");
        }
        let disk = self.figure("rpm").is_some();
        let speed = ["latency_us", "random_read_iops"].iter().any(|k| self.figure(k).is_some());
        if !disk && !speed {
            let help = "a drive needs one of them; a disk has rpm = 7200";
            return needs("latency_us and no random_read_iops", help);
        }
        None
    }

    fn figure(&self, key: &str) -> Option<f64> {
        self.figures.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
    }
}

fn unit(kind: Kind) -> &'static str {
    match kind {
        Kind::Size => " bytes",
        Kind::Rate => " MB/s",
        Kind::Time(_) => " ns",
        _ => "",
    }
}

/// 10^6 bytes a second of `190MB/s`, `3.5 GB/s` or `190 MBps`.
fn rate(text: &str) -> Option<f64> {
    let flat = text.trim();
    let bytes = flat.strip_suffix("/s").or_else(|| flat.strip_suffix("ps"))?;
    size(bytes).map(|b| b / 1e6)
}

/// Bytes of `1TB`, `500 GB` (powers of ten) or of what [`parse_bytes`] takes.
fn size(text: &str) -> Option<f64> {
    let flat: String = text.split_whitespace().collect();
    let decimal = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3), ("kB", 1e3)];
    for (suffix, factor) in decimal {
        if let Some(number) = flat.strip_suffix(suffix) {
            return number.parse::<f64>().ok().map(|n| n * factor).filter(|n| n.is_finite());
        }
    }
    parse_bytes(&flat).map(|b| b as f64)
}

/// How to write a number that stands there with a unit or a prefix: `"75K"` is 75000.
fn bare(at: &Place<'_>, name: &str) -> Option<String> {
    let text = at.get_ref().as_str()?.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.trim().parse().ok()?;
    let times = match unit {
        "k" | "K" => 1e3,
        "M" => 1e6,
        _ => 1.0,
    };
    Some(format!("write it as a bare number: {name} = {}", number * times))
}
