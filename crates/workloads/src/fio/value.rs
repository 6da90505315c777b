//! Values as fio 3.33 reads them: numbers with suffixes, times, percentages, ranges, lists.
//!
//! fio stops at the first character that it does not understand: it takes `1h30m` for one microsecond
//! and `4.5k` for four bytes. Here such a value is refused, and the message says what fio makes of it.

use super::option::{Kind, describe};

/// What is wrong with a value, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueError {
    pub(crate) message: String,
    pub(crate) help: String,
    /// Characters before the offending part.
    pub(crate) at: usize,
    /// Length of the offending part; 0 underlines the whole value.
    pub(crate) width: usize,
}

impl ValueError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        ValueError { message: message.into(), help: String::new(), at: 0, width: 0 }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// Moves the place behind `chars` characters, for a value that is part of a longer one.
    fn shift(mut self, chars: usize, part: &str) -> Self {
        if self.width == 0 {
            self.width = part.chars().count().max(1);
        }
        self.at += chars;
        self
    }
}

pub(crate) type Parsed<T> = Result<T, ValueError>;

/// The value of a flag: nothing means set.
pub(crate) fn flag(text: Option<&str>) -> Parsed<bool> {
    text.map_or(Ok(true), boolean)
}

/// 0 or 1.
pub(crate) fn boolean(text: &str) -> Parsed<bool> {
    match integer(text, 1024)? {
        0 => Ok(false),
        1 => Ok(true),
        n => Err(ValueError::new(format!("{n} is neither 0 nor 1"))),
    }
}

/// Splits a number from its suffix: (value, suffix, characters before the suffix).
fn digits(text: &str) -> Parsed<(u64, &str, usize)> {
    let shown = if text.trim().is_empty() { "the value is empty" } else { "this is not a number" };
    if text.trim_start().starts_with('(') {
        return Err(ValueError::new("arithmetic expressions are not accepted")
            .help("Debian's fio 3.33 refuses them as well; write the number"));
    }
    if text.trim_start().starts_with('-') {
        return Err(ValueError::new("the value must not be negative"));
    }
    let body = text.trim_start();
    let lead = text.len() - body.len();
    let hex = body.get(..2).is_some_and(|p| p.eq_ignore_ascii_case("0x"));
    let (digits, radix) = if hex { (&body[2..], 16) } else { (body, 10) };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 {
        return Err(ValueError::new(shown));
    }
    let value = u64::from_str_radix(&digits[..end], radix)
        .ok()
        .filter(|v| i64::try_from(*v).is_ok())
        .ok_or_else(|| ValueError::new("the number is too large (more than 63 bits)"))?;
    let suffix = &digits[end..];
    if hex && !suffix.trim().is_empty() {
        return Err(ValueError::new("a hexadecimal number takes no suffix")
            .help(format!("fio 3.33 reads this as {value}")));
    }
    Ok((value, suffix.trim_end(), lead + body.len() - suffix.len()))
}

fn bad_suffix(suffix: &str, at: usize, fio_reads: &str, valid: &str) -> ValueError {
    let mut e = ValueError::new(format!("\"{}\" is not a suffix", short(suffix)))
        .help(format!("fio 3.33 would silently read {fio_reads}; {valid}"));
    e.at = at;
    e.width = suffix.chars().count();
    e
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A number with a size suffix. `kb` is 1024 or 1000 (`kb_base`); `kib` means the other one, and `ki`
/// is the same as `k` (fio 3.33's behaviour, which differs from its manual).
pub(crate) fn integer(text: &str, kb: u64) -> Parsed<u64> {
    let (n, suffix, at) = digits(text)?;
    let lower = suffix.to_ascii_lowercase();
    let (letter, rest) = lower.split_at(lower.chars().next().map_or(0, char::len_utf8));
    let power = match letter {
        "" | "b" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => {
            return Err(bad_suffix(suffix, at, &n.to_string(), "valid are k, m, g, t, p, kb, kib"));
        }
    };
    let other = if kb == 1024 { 1000 } else { 1024 };
    let base: u64 = match (power, rest) {
        (0, "") => 1,
        (_, "" | "b" | "i") if power > 0 => kb,
        (_, "ib") if power > 0 => other,
        _ => {
            let reads = u128::from(n) * u128::from(kb).pow(power);
            return Err(bad_suffix(
                suffix,
                at,
                &reads.to_string(),
                "valid are k, m, g, t, p, kb, kib",
            ));
        }
    };
    if power > 0 && text.starts_with(char::is_whitespace) {
        return Err(ValueError::new("blank before a number with a suffix")
            .help(format!("fio 3.33 then drops the suffix and reads {n}; remove the blank")));
    }
    base.checked_pow(power)
        .and_then(|f| n.checked_mul(f))
        .filter(|v| i64::try_from(*v).is_ok())
        .ok_or_else(|| ValueError::new("the number is too large (more than 63 bits)"))
}

/// An integer within bounds.
pub(crate) fn bounded(text: &str, lo: i64, hi: i64, kb: u64) -> Parsed<i64> {
    let (negative, body) = match text.trim_start().strip_prefix('-') {
        Some(rest) if lo < 0 => (true, rest),
        _ => (false, text),
    };
    let n = integer(body, kb)?;
    let n = i64::try_from(n).map_err(|_| ValueError::new("the number is too large"))?;
    let n = if negative { -n } else { n };
    if n < lo || n > hi {
        let allowed = describe(Kind::Int(lo, hi));
        return Err(ValueError::new(format!("{n} is out of range ({allowed})")));
    }
    Ok(n)
}

/// An integer within bounds that fits into 32 bits.
pub(crate) fn small(text: &str, lo: u32, hi: u32, kb: u64) -> Parsed<u32> {
    let n = bounded(text, i64::from(lo), i64::from(hi), kb)?;
    u32::try_from(n).map_err(|_| ValueError::new("the number is too large (more than 32 bits)"))
}

/// A size of at least `min` bytes.
pub(crate) fn size(text: &str, min: u64, kb: u64) -> Parsed<u64> {
    let n = integer(text, kb)?;
    if n < min {
        return Err(ValueError::new(format!(
            "{n} is out of range ({})",
            describe(Kind::Size(min))
        )));
    }
    Ok(n)
}

/// A size or a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Bytes(u64),
    Percent(u32),
}

/// `4g` or `50%`.
pub(crate) fn amount(text: &str, kb: u64) -> Parsed<Amount> {
    if let Some(number) = text.trim_end().strip_suffix('%') {
        let (n, suffix, at) = digits(number)?;
        if !suffix.is_empty() {
            return Err(bad_suffix(suffix, at, "something else", "write a whole percentage"));
        }
        return match u32::try_from(n) {
            Ok(p @ 1..=100) => Ok(Amount::Percent(p)),
            _ => Err(ValueError::new("a percentage is 1% to 100%")),
        };
    }
    if text.trim_end().ends_with(['z', 'Z']) {
        return Err(ValueError::new("zones as a unit need zonemode=zbd, which is not simulated"));
    }
    Ok(Amount::Bytes(integer(text, kb)?))
}

/// A time in nanoseconds; a bare number counts in `unit`.
pub(crate) fn time(text: &str, unit: u64) -> Parsed<u64> {
    if text.contains(['x', 'X']) {
        return Err(ValueError::new("this is not a time")
            .help("write a decimal number; fio 3.33 reads a hexadecimal one as microseconds"));
    }
    let (n, suffix, at) = digits(text)?;
    let factor = match suffix.to_ascii_lowercase().as_str() {
        "" => unit,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => {
            return Err(bad_suffix(
                suffix,
                at,
                &format!("{n} microseconds"),
                "valid are us, ms, s, m, h, d",
            ));
        }
    };
    n.checked_mul(factor)
        .filter(|v| i64::try_from(*v).is_ok())
        .ok_or_else(|| ValueError::new("the time is too long (292 years are the limit)"))
}

/// Splits a range at `-` or `:`.
fn halves(text: &str) -> (&str, Option<&str>) {
    text.split_once(['-', ':']).map_or((text, None), |(a, b)| (a, Some(b)))
}

/// A range (or one value twice, where `single` allows it); the halves are swapped into order.
pub(crate) fn range(
    text: &str,
    single: bool,
    parse: impl Fn(&str) -> Parsed<u64>,
) -> Parsed<(u64, u64)> {
    if text.trim_start().starts_with('-') {
        return Err(ValueError::new("the value must not be negative"));
    }
    let (a, b) = halves(text);
    let lo = parse(a).map_err(|e| e.shift(0, a))?;
    match b {
        None if single => Ok((lo, lo)),
        None => Err(ValueError::new("a range such as 4k-16k is expected")),
        Some(b) => {
            let hi = parse(b).map_err(|e| e.shift(a.chars().count() + 1, b))?;
            Ok((lo.min(hi), lo.max(hi)))
        }
    }
}

/// Up to three values for reads, writes and trims. An empty part leaves that direction alone; the
/// last part stands for the directions after it, unless a comma ends the list.
pub(crate) fn three<T: Copy>(
    text: &str,
    parse: impl Fn(&str) -> Parsed<T>,
) -> Parsed<[Option<T>; 3]> {
    let parts: Vec<&str> = text.split(',').collect();
    let extra = parts.len() > 4 || parts.len() == 4 && !parts[3].trim().is_empty();
    if extra {
        return Err(ValueError::new("at most three values: for reads, writes and trims"));
    }
    let mut out = [None; 3];
    let mut before = 0;
    for (i, part) in parts.iter().enumerate().take(3) {
        if !part.trim().is_empty() {
            let v = parse(part).map_err(|e| e.shift(before, part))?;
            out[i] = Some(v);
            if i + 1 == parts.len() {
                out[i..].fill(Some(v));
            }
        }
        before += part.chars().count() + 1;
    }
    if out.iter().all(Option::is_none) {
        return Err(ValueError::new("the value is empty"));
    }
    Ok(out)
}

/// A finite number.
pub(crate) fn float(text: &str) -> Parsed<f64> {
    text.trim()
        .parse::<f64>()
        .ok()
        .filter(|v| v.is_finite())
        .ok_or_else(|| ValueError::new(format!("\"{}\" is not a finite number", short(text))))
}

/// At most 20 numbers from 0 to `max`, separated by colons.
pub(crate) fn floats(text: &str, max: f64) -> Parsed<Vec<f64>> {
    let mut out = Vec::new();
    let mut before = 0;
    for part in text.split(':') {
        if out.len() == MAX_FLOATS {
            return Err(ValueError::new("more than 20 numbers"));
        }
        let v = float(part).map_err(|e| e.shift(before, part))?;
        if !(0.0..=max).contains(&v) {
            let e = ValueError::new(format!("{v} is out of range (0 to {max})"));
            return Err(e.shift(before, part));
        }
        out.push(v);
        before += part.chars().count() + 1;
    }
    Ok(out)
}

/// fio's limit for lists of numbers.
const MAX_FLOATS: usize = 20;

/// The largest CPU number accepted.
const MAX_CPU: u64 = 4095;

/// `0,5,8-15`.
pub(crate) fn cpus(text: &str) -> Parsed<Vec<u16>> {
    let mut out = std::collections::BTreeSet::new();
    let mut before = 0;
    for part in text.split(',') {
        let one = |t: &str| match integer(t, 1024)? {
            n if n > MAX_CPU => Err(ValueError::new(format!("CPU {n} is beyond {MAX_CPU}"))),
            n => Ok(n),
        };
        let (first, last) = halves(part);
        let (lo, hi) = range(part, true, one).map_err(|e| e.shift(before, part))?;
        if last.is_some() && one(first)? > lo {
            let empty = ValueError::new(format!("no CPU is in the range {part}"));
            return Err(empty.help(format!("{lo}-{hi} are those between")).shift(before, part));
        }
        out.extend((lo..=hi).map(|c| c as u16));
        before += part.chars().count() + 1;
    }
    Ok(out.into_iter().collect())
}

/// Position of a word in a list of valid words.
pub(crate) fn word(text: &str, words: &[&str]) -> Parsed<usize> {
    words.iter().position(|w| *w == text).ok_or_else(|| {
        let near = iosched_types::nearest::did_you_mean(text, words.iter().copied());
        let help = if text.trim() != text && words.contains(&text.trim()) {
            "fio does not skip the blank behind the equals sign".to_string()
        } else if near.is_empty() {
            format!("valid are {}", words.join(", "))
        } else {
            near
        };
        ValueError::new(format!("\"{}\" is not a valid value", short(text))).help(help)
    })
}

/// Checks a value by kind only: for options that are accepted without effect.
pub(crate) fn check(kind: Kind, value: Option<&str>, kb: u64) -> Parsed<()> {
    if kind == Kind::Flag {
        return flag(value).map(drop);
    }
    let Some(text) = value else {
        return Err(ValueError::new("the option needs a value").help(describe(kind)));
    };
    match kind {
        Kind::Flag | Kind::Bool => boolean(text).map(drop),
        Kind::Int(lo, hi) => bounded(text, lo, hi, kb).map(drop),
        Kind::Size(min) => size(text, min, kb).map(drop),
        Kind::SizeOrPercent => amount(text, kb).map(drop),
        Kind::Time(unit) => time(text, unit).map(drop),
        Kind::TimeRange(unit) => range(text, true, |t| time(t, unit)).map(drop),
        Kind::Three(k) => three(text, |t| check(*k, Some(t), kb)).map(drop),
        Kind::SizeRange(single) => range(text, single, |t| size(t, 1, kb)).map(drop),
        Kind::Floats(max) => floats(text, max).map(drop),
        Kind::Word(words) => word(text, words).map(drop),
        Kind::WordAnd(words) => word(text.split(':').next().unwrap_or(text), words).map(drop),
        Kind::Cpus => cpus(text).map(drop),
        Kind::Text | Kind::Own(_) if text.is_empty() => Err(ValueError::new("the value is empty")),
        Kind::Text | Kind::Own(_) => Ok(()),
    }
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
