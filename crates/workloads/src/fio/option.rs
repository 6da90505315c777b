//! The option table: every option that fio 3.33 knows, its kind of value, and how iosched treats it.
//!
//! One table feeds the parser, the nearest-name search and the documentation.

use iosched_types::nearest::did_you_mean;

use super::{table, table_engines, table_other};

/// What an option's value looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Present without a value, or 0 or 1.
    Flag,
    /// 0 or 1.
    Bool,
    /// Integer within bounds; size suffixes multiply, as for any integer of fio.
    Int(i64, i64),
    /// Bytes with a suffix, at least the given number.
    Size(u64),
    /// Bytes with a suffix or a percentage.
    SizeOrPercent,
    /// Time; a bare number counts in this many nanoseconds.
    Time(u64),
    /// One or two times separated by `-` or `:`; a bare number counts in this many nanoseconds.
    TimeRange(u64),
    /// Up to three values for reads, writes and trims.
    Three(&'static Kind),
    /// Smallest and largest size, separated by `-` or `:`; or one size where the flag allows it.
    SizeRange(bool),
    /// Floating-point numbers from 0 to the given bound, separated by colons.
    Floats(f64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words, perhaps followed by a colon and more.
    WordAnd(&'static [&'static str]),
    /// CPU numbers and ranges, separated by commas.
    Cpus,
    /// Free text.
    Text,
    /// Its own syntax, as described.
    Own(&'static str),
}

/// What iosched does with an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// It shapes the simulated job.
    Simulated,
    /// Accepted with a warning; the sentence says why it cannot change the timing.
    NoEffect(&'static str),
    /// Accepted with a warning, although it changes figures in fio; the sentence says what is simulated instead.
    Unmodelled(&'static str),
    /// Refused unless the value is one of `harmless` (usually fio's default).
    Refused {
        /// Why a job with this option would not mean the same.
        reason: &'static str,
        /// Values with which the option does nothing in fio either.
        harmless: &'static [&'static str],
    },
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptionDef {
    /// fio's name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The value.
    pub kind: Kind,
    /// What becomes of it.
    pub effect: Effect,
    /// One sentence.
    pub help: &'static str,
}

impl OptionDef {
    /// A simulated option.
    pub(crate) const fn sim(
        name: &'static str,
        aliases: &'static [&'static str],
        kind: Kind,
        help: &'static str,
    ) -> Self {
        OptionDef { name, aliases, kind, effect: Effect::Simulated, help }
    }

    /// An option that cannot change the timing.
    pub(crate) const fn noop(
        name: &'static str,
        aliases: &'static [&'static str],
        kind: Kind,
        why: &'static str,
        help: &'static str,
    ) -> Self {
        OptionDef { name, aliases, kind, effect: Effect::NoEffect(why), help }
    }

    /// An option whose effect is not modelled.
    pub(crate) const fn unmodelled(
        name: &'static str,
        kind: Kind,
        instead: &'static str,
        help: &'static str,
    ) -> Self {
        OptionDef { name, aliases: &[], kind, effect: Effect::Unmodelled(instead), help }
    }

    /// A refused option.
    pub(crate) const fn refuse(
        name: &'static str,
        kind: Kind,
        harmless: &'static [&'static str],
        reason: &'static str,
        help: &'static str,
    ) -> Self {
        OptionDef { name, aliases: &[], kind, effect: Effect::Refused { reason, harmless }, help }
    }

    /// The same row with other names.
    pub(crate) const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }
}

/// All options, by how iosched treats them: simulated, without effect, refused.
pub fn options() -> impl Iterator<Item = &'static OptionDef> {
    table::SIMULATED
        .iter()
        .chain(table_other::NO_EFFECT)
        .chain(table_other::REFUSED)
        .chain(table_engines::ENGINE_OPTIONS)
}

/// The option of this name or alias.
#[must_use]
pub fn find_option(name: &str) -> Option<&'static OptionDef> {
    options().find(|o| o.name == name || o.aliases.contains(&name))
}

/// `did you mean "x"?`, or nothing when no option comes near.
#[must_use]
pub fn nearest_option(name: &str) -> String {
    let name = name.trim_start_matches('-');
    let mut words = name.split_whitespace();
    if let (Some(option), Some(value), None) = (words.next(), words.next(), words.next())
        && find_option(option).is_some()
    {
        return format!("write {option}={value}");
    }
    did_you_mean(
        name,
        options().flat_map(|o| std::iter::once(o.name).chain(o.aliases.iter().copied())),
    )
}

/// A short description of a kind, for help texts and tables.
#[must_use]
pub fn describe(kind: Kind) -> String {
    match kind {
        Kind::Flag => "flag: no value, 0 or 1".into(),
        Kind::Bool => "0 or 1".into(),
        Kind::Int(lo, i64::MAX) => format!("integer from {lo}"),
        Kind::Int(lo, hi) => format!("integer {lo} to {hi}"),
        Kind::Size(0) => "size".into(),
        Kind::Size(lo) => format!("size from {lo}"),
        Kind::SizeOrPercent => "size, or 1% to 100%".into(),
        Kind::Time(unit) => format!("time, bare in {}", unit_name(unit)),
        Kind::TimeRange(unit) => format!("time or range of times, bare in {}", unit_name(unit)),
        Kind::Three(k) => format!("{}; up to three for reads, writes, trims", describe(*k)),
        Kind::SizeRange(true) => "size or range of sizes".into(),
        Kind::SizeRange(false) => "range of sizes".into(),
        Kind::Floats(max) => format!("numbers 0 to {max}, separated by `:`"),
        Kind::Word(words) | Kind::WordAnd(words) => words.join(", "),
        Kind::Cpus => "CPUs such as `0,5,8-15`".into(),
        Kind::Text => "text".into(),
        Kind::Own(text) => text.into(),
    }
}

fn unit_name(unit: u64) -> &'static str {
    match unit {
        1_000 => "microseconds",
        1_000_000 => "milliseconds",
        _ => "seconds",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_name_stands_for_two_options() {
        let mut seen = BTreeSet::new();
        for o in options() {
            for n in std::iter::once(o.name).chain(o.aliases.iter().copied()) {
                assert!(seen.insert(n), "{n} is listed twice");
            }
            assert!(o.help.ends_with('.'), "{}: help is a sentence", o.name);
        }
    }

    #[test]
    fn nearest_names() {
        assert_eq!(nearest_option("iodpeth"), "did you mean \"iodepth\"?");
        assert_eq!(nearest_option("--bs"), "did you mean \"bs\"?");
    }
}
