//! The descriptor: one table per scheduler that feeds the parser, `list`, `show`, completions, man page
//! and documentation. No text is written twice.

use std::fmt;

use iosched_types::nearest::did_you_mean;

use iosched_types::Nanos;

use crate::api::{QueueFacts, Scheduler};
use crate::pair;

/// A kernel version such as 2.6.18 or 6.12, ordered numerically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion(pub u16, pub u16, pub u16);

impl KernelVersion {
    /// Parses `2.6.18`, `4.12`, `v6.12`, `6.12.0-rc3` (the part behind a dash is ignored).
    #[must_use]
    pub fn parse(text: &str) -> Option<KernelVersion> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split('-').next()?;
        let mut parts = text.split('.').map(|p| p.parse::<u16>().ok());
        let major = parts.next()??;
        let minor = parts.next()??;
        let patch = match parts.next() {
            None => 0,
            Some(p) => p?,
        };
        parts.next().is_none().then_some(KernelVersion(major, minor, patch))
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)?;
        if self.2 > 0 || self.0 < 3 {
            write!(f, ".{}", self.2)?;
        }
        Ok(())
    }
}

/// Which block layer a scheduler plugs into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPath {
    /// The single-queue path (until 4.20).
    Legacy,
    /// blk-mq (from 3.13).
    Mq,
}

/// A range of kernel versions in which a scheduler behaves the same.
#[derive(Clone, Copy, Debug)]
pub struct Generation {
    /// Index used by the implementation (position in [`Descriptor::generations`]).
    pub index: u8,
    /// Short name for people and for `family@name`: `A`, `2.6.18`, `v7r3`.
    pub name: &'static str,
    /// First kernel version.
    pub first: KernelVersion,
    /// Last kernel version; `None` is still current.
    pub last: Option<KernelVersion>,
    /// What differs from the generation before.
    pub summary: &'static str,
}

impl Generation {
    /// Whether a kernel version falls in the range. A last version covers its point releases.
    #[must_use]
    pub fn covers(&self, v: KernelVersion) -> bool {
        let below =
            self.last.is_none_or(|l| if l.0 < 3 { v <= l } else { (v.0, v.1) <= (l.0, l.1) });
        v >= self.first && below
    }

    /// `4.12-5.13`, `6.5+`.
    #[must_use]
    pub fn range(&self) -> String {
        match self.last {
            Some(l) if l == self.first => self.first.to_string(),
            Some(l) => format!("{}-{l}", self.first),
            None => format!("{}+", self.first),
        }
    }
}

/// What a default may depend on.
#[derive(Clone, Copy, Debug)]
pub struct DefaultFacts<'a> {
    /// Index of the generation.
    pub generation: u8,
    /// Facts of the queue (HZ, nr_requests, rotational …).
    pub queue: &'a QueueFacts,
}

/// One tunable, by its sysfs name and in its sysfs unit.
#[derive(Clone, Copy)]
pub struct Tunable {
    /// Name of the file below `queue/iosched/`.
    pub name: &'static str,
    /// Unit: `ms`, `us`, `ns`, `requests`, `count`, `0/1`, `KiB`, `sectors` …
    pub unit: &'static str,
    /// The default as documentation prints it.
    pub default_text: &'static str,
    /// The default in the sysfs unit.
    pub default: fn(&DefaultFacts<'_>) -> i64,
    /// Smallest value accepted.
    pub min: i64,
    /// Largest value accepted.
    pub max: i64,
    /// Generations (by index) that have it.
    pub generations: &'static [u8],
    /// One sentence.
    pub help: &'static str,
}

impl Tunable {
    /// A value as its file takes it.
    #[must_use]
    pub fn shown(&self, value: i64) -> String {
        if self.unit == pair::UNIT { pair::text(value) } else { value.to_string() }
    }

    /// The value of a text, as its file takes it.
    #[must_use]
    pub fn parse(&self, text: &str) -> Option<i64> {
        if self.unit == pair::UNIT { pair::parse(text) } else { text.trim().parse().ok() }
    }
}

impl fmt::Debug for Tunable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tunable({})", self.name)
    }
}

/// What is needed to build a scheduler.
#[derive(Debug)]
pub struct BuildArgs<'a> {
    /// Index of the generation.
    pub generation: u8,
    /// All tunables of the generation, defaults filled in.
    pub tunables: &'a TunableValues,
    /// Facts of the queue.
    pub queue: &'a QueueFacts,
    /// When it takes over; not 0 after a switch.
    pub now: Nanos,
}

/// The constructor of a scheduler. It may keep something of its own, such as a scheduler written in another language.
pub type Build = dyn Fn(&BuildArgs<'_>) -> Box<dyn Scheduler> + Send + Sync;

/// Everything about a scheduler that is not its algorithm.
pub struct Descriptor {
    /// Family name: `mq-deadline`.
    pub name: &'static str,
    /// Other names people use.
    pub aliases: &'static [&'static str],
    /// One sentence.
    pub summary: &'static str,
    /// Which block layer it plugs into.
    pub path: BlockPath,
    /// What the block layer does otherwise under it.
    pub facts: Facts,
    /// Generations in kernel order.
    pub generations: &'static [Generation],
    /// Tunables.
    pub tunables: &'static [Tunable],
    /// The constructor.
    pub build: &'static Build,
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Descriptor({})", self.name)
    }
}

/// How the block layer treats this scheduler differently. So the block layer need not know schedulers by name.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// This is no scheduler at all: requests bypass it, with the driver's tags only and without hooks.
    pub bypass: bool,
    /// The writeback throttle is off under this scheduler, unless its target was set by hand.
    pub throttle_off: bool,
    /// The scheduler limits a process to the first tags of the map. So results depend on where the kernel begins to
    /// search the map.
    pub first_tags: bool,
    /// Default of `queue/async_depth` in percent of `nr_requests` (7.1 and later).
    pub async_percent: u32,
    /// Until `queue/async_depth` or `nr_requests` is changed, the value that the scheduler before it left is in force.
    pub async_lags: bool,
    /// Generations (by index) that were never in mainline, and where they come from instead.
    pub out_of_tree: &'static [(u8, &'static str)],
    /// Generations (by index) that keep no merge hash where the kernel leaves that to schedulers (2.6.18).
    pub without_merge_hash: &'static [u8],
}

impl Facts {
    /// Nothing is done otherwise.
    pub const USUAL: Facts = Facts {
        bypass: false,
        throttle_off: false,
        first_tags: false,
        async_percent: 100,
        async_lags: false,
        out_of_tree: &[],
        without_merge_hash: &[],
    };
}

/// A tunable that cannot be set. Every variant says what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TunableError {
    /// No scheduler tunable of that name here.
    #[error("{scheduler} has no tunable \"{name}\"; {}", unknown_help(near, owners, known))]
    Unknown {
        /// Scheduler name.
        scheduler: String,
        /// What was asked for.
        name: String,
        /// The nearest name that there is, in words; may be empty.
        near: String,
        /// Generations and families that have one of this name.
        owners: Vec<String>,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// The value is outside the bounds.
    #[error("{name}={value} is out of range: {scheduler} takes {}", bounds(*min, *max, unit))]
    OutOfRange {
        /// Scheduler name.
        scheduler: String,
        /// Tunable.
        name: String,
        /// Refused value.
        value: i64,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
        /// Unit.
        unit: &'static str,
    },
}

/// What a tunable takes, in words. Switches and factors are plain numbers.
fn bounds(min: i64, max: i64, unit: &str) -> String {
    match unit {
        "0/1" => "0 or 1".into(),
        "factor" => format!("{min} to {max}"),
        _ => format!("{min} to {max} {unit}"),
    }
}

/// Tunables by name, in descriptor order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunableValues(Vec<(&'static str, i64)>);

impl TunableValues {
    /// The value of a tunable that the descriptor declares for this generation; 0 for any other name.
    #[must_use]
    pub fn get(&self, name: &str) -> i64 {
        self.0.iter().find(|(n, _)| *n == name).map_or(0, |(_, v)| *v)
    }

    /// All (name, value) pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        self.0.iter().copied()
    }
}

impl Descriptor {
    /// The block layer a generation plugs into.
    #[must_use]
    pub fn path_of(&self, generation: &Generation) -> BlockPath {
        // `v7r3` patched kernels that had only the single-queue path.
        if generation.name.starts_with('v') {
            return BlockPath::Legacy;
        }
        self.path
    }

    /// Where a generation comes from that was never in mainline: `not in mainline; shipped by CachyOS`.
    #[must_use]
    pub fn origin(&self, generation: &Generation) -> Option<String> {
        let from = self.facts.out_of_tree.iter().find(|(g, _)| *g == generation.index);
        from.map(|(_, from)| format!("not in mainline; {from}"))
    }

    /// What a generation does, for lists: behind where it comes from, if it was never in mainline.
    #[must_use]
    pub fn told(&self, generation: &Generation) -> String {
        match self.origin(generation) {
            Some(origin) => format!("({origin}) {}", generation.summary),
            None => generation.summary.into(),
        }
    }

    /// The tunables one generation has.
    pub fn tunables_of(&self, generation: u8) -> impl Iterator<Item = &'static Tunable> {
        self.tunables.iter().filter(move |t| t.generations.contains(&generation))
    }

    /// Defaults of a generation with `set` applied on top.
    ///
    /// # Errors
    /// Unknown names (with the nearest valid one) and values out of bounds.
    pub fn resolve_tunables(
        &self,
        generation: u8,
        queue: &QueueFacts,
        set: &[(String, i64)],
    ) -> Result<TunableValues, TunableError> {
        let facts = DefaultFacts { generation, queue };
        let mut values = TunableValues(
            self.tunables_of(generation).map(|t| (t.name, (t.default)(&facts))).collect(),
        );
        for (name, value) in set {
            self.check_tunable(generation, name, *value)?;
            if let Some(slot) = values.0.iter_mut().find(|(n, _)| n == name) {
                slot.1 = *value;
            }
        }
        Ok(values)
    }

    /// Checks one name and value.
    ///
    /// # Errors
    /// See [`resolve_tunables`](Self::resolve_tunables).
    pub fn check_tunable(
        &self,
        generation: u8,
        name: &str,
        value: i64,
    ) -> Result<(), TunableError> {
        let Some(t) = self.tunables_of(generation).find(|t| t.name == name) else {
            let known: Vec<&'static str> = self.tunables_of(generation).map(|t| t.name).collect();
            return Err(TunableError::Unknown {
                scheduler: self.name.into(),
                name: name.into(),
                near: did_you_mean(name, known.iter().copied()),
                owners: self.generations_with(name),
                known,
            });
        };
        if value < t.min || value > t.max {
            return Err(TunableError::OutOfRange {
                scheduler: self.name.into(),
                name: name.into(),
                value,
                min: t.min,
                max: t.max,
                unit: t.unit,
            });
        }
        Ok(())
    }

    /// The generations that know a tunable.
    fn generations_with(&self, name: &str) -> Vec<String> {
        let own = self.tunables.iter().filter(|t| t.name == name).flat_map(|t| t.generations);
        let named = own.filter_map(|g| self.generations.iter().find(|o| o.index == *g));
        named.map(|g| format!("{}@{}", self.name, g.name)).collect()
    }
}

/// What to do about a name that is no tunable (the fields of [`TunableError::Unknown`]).
#[must_use]
pub fn unknown_help(near: &str, owners: &[String], known: &[&str]) -> String {
    let has = match owners {
        _ if !near.is_empty() => return near.into(),
        _ if known.is_empty() => return "it has no tunables at all".into(),
        [] => String::new(),
        [one] => format!("{one} has one; "),
        [most @ .., last] => format!("{} and {last} have one; ", most.join(", ")),
    };
    format!("{has}it has {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_and_factors_have_no_unit() {
        let texts =
            [("0/1", 0, 1), ("factor", 1, 9), ("ms", 0, 9)].map(|(u, a, b)| bounds(a, b, u));
        assert_eq!(texts, ["0 or 1", "1 to 9", "0 to 9 ms"]);
    }

    #[test]
    fn versions_parse_order_and_print() {
        let v = |s| KernelVersion::parse(s).unwrap();
        assert!(v("2.6.18") < v("2.6.32") && v("2.6.39") < v("3.12") && v("4.9") < v("4.12"));
        assert_eq!(v("v6.12-rc1").to_string(), "6.12");
        assert_eq!(v("2.6.18").to_string(), "2.6.18");
        for bad in ["", "6", "six", "6.x", "1.2.3.4"] {
            assert_eq!(KernelVersion::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_generation_covers_point_releases_of_its_last_version() {
        let g = Generation {
            index: 0,
            name: "A",
            first: KernelVersion(4, 12, 0),
            last: Some(KernelVersion(5, 13, 0)),
            summary: "",
        };
        assert!(g.covers(KernelVersion(5, 13, 19)) && !g.covers(KernelVersion(5, 14, 0)));
        assert_eq!(g.range(), "4.12-5.13");
    }
}
