//! Units: nanoseconds, 512-byte sectors, bytes; how they are read and printed.

/// Virtual time or a span of it, in nanoseconds.
pub type Nanos = u64;
/// A position or length in 512-byte sectors.
pub type Sector = u64;
/// A position or length in bytes.
pub type Bytes = u64;

/// Bytes in a sector.
pub const SECTOR: Bytes = 512;
/// Nanoseconds in a microsecond.
pub const US: Nanos = 1_000;
/// Nanoseconds in a millisecond.
pub const MS: Nanos = 1_000_000;
/// Nanoseconds in a second.
pub const SEC: Nanos = 1_000_000_000;

/// Milliseconds as nanoseconds; `None` when not finite, negative or beyond the clock's range.
#[must_use]
pub fn nanos_from_ms(ms: f64) -> Option<Nanos> {
    let ns = ms * 1e6;
    (ns.is_finite() && (0.0..9.2e18).contains(&ns)).then(|| ns.round() as Nanos)
}

/// Parses a byte count with an optional binary suffix: `4096`, `4k`, `1M`, `16GiB`, `2T`
/// (K/M/G/T/P = 2^10..2^50, upper or lower case, optional `i`, optional `B`).
#[must_use]
pub fn parse_bytes(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (num, suffix) = text.split_at(split);
    let num: u64 = num.parse().ok()?;
    let suffix = suffix.to_ascii_lowercase();
    let suffix = suffix.strip_suffix('b').unwrap_or(&suffix);
    let suffix = suffix.strip_suffix('i').unwrap_or(suffix);
    let shift = match suffix {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        _ => return None,
    };
    num.checked_mul(1 << shift)
}

/// Parses a time with a unit: `10ns`, `5us`, `3ms`, `2s`, `1m`, `1h`; a bare number is `default_unit`.
#[must_use]
pub fn parse_nanos(text: &str, default_unit: Nanos) -> Option<Nanos> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (num, unit) = text.split_at(split);
    let unit = match unit {
        "" => default_unit,
        "ns" => 1,
        "us" | "µs" => US,
        "ms" => MS,
        "s" => SEC,
        "m" | "min" => 60 * SEC,
        "h" => 3600 * SEC,
        _ => return None,
    };
    if let Ok(n) = num.parse::<u64>() {
        return n.checked_mul(unit);
    }
    nanos_from_ms(num.parse::<f64>().ok()? * unit as f64 / 1e6)
}

/// A time in the unit people would use, three significant digits: `812 ns`, `12.3 µs`, `8.33 ms`, `2.00 s`.
#[must_use]
pub fn show_nanos(ns: f64) -> String {
    let (v, unit) = if ns < 1e3 {
        (ns, "ns")
    } else if ns < 1e6 {
        (ns / 1e3, "µs")
    } else if ns < 1e9 {
        (ns / 1e6, "ms")
    } else {
        (ns / 1e9, "s")
    };
    format!("{} {unit}", three_digits(v))
}

/// Bytes with a binary prefix, three significant digits: `4.00 KiB`.
#[must_use]
pub fn show_bytes(bytes: f64) -> String {
    let mut v = bytes;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if v < 1024.0 {
            break;
        }
        v /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", three_digits(v))
}

/// A count with a decimal prefix, three significant digits: `512`, `12.3k`, `1.20M`.
#[must_use]
pub fn show_count(n: f64) -> String {
    if n < 1e3 {
        return if n.fract() == 0.0 { format!("{n:.0}") } else { three_digits(n) };
    }
    let (v, unit) = if n < 1e6 {
        (n / 1e3, "k")
    } else if n < 1e9 {
        (n / 1e6, "M")
    } else {
        (n / 1e9, "G")
    };
    format!("{}{unit}", three_digits(v))
}

/// Three significant digits without an exponent; three decimals below a tenth, and what is smaller by its first digit.
#[must_use]
pub fn three_digits(v: f64) -> String {
    let a = v.abs();
    if a == 0.0 {
        "0".into()
    } else if a < 0.0995 {
        let first = if a < 9.5e-4 { (-a.log10().floor()).min(9.0) as usize } else { 3 };
        format!("{v:.first$}")
    } else if a < 9.995 {
        format!("{v:.2}")
    } else if a < 99.95 {
        format!("{v:.1}")
    } else {
        format!("{v:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_binary_suffixes_and_refuse_nonsense() {
        assert_eq!(parse_bytes("4k"), Some(4096));
        assert_eq!(parse_bytes("64GiB"), Some(64 << 30));
        assert_eq!(parse_bytes("1MB"), Some(1 << 20));
        assert_eq!(parse_bytes("17"), Some(17));
        for bad in ["", "k", "-1", "4x", "99999999999999999999", "20000000000T", "nan"] {
            assert_eq!(parse_bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_take_units_and_refuse_nonsense() {
        assert_eq!(parse_nanos("3ms", 1), Some(3 * MS));
        assert_eq!(parse_nanos("1.5ms", 1), Some(1_500_000));
        assert_eq!(parse_nanos("7", US), Some(7 * US));
        for bad in ["", "ms", "-3ms", "1e400", "nan", "3parsec", "99999999999999999999s"] {
            assert_eq!(parse_nanos(bad, 1), None, "{bad}");
        }
    }

    #[test]
    fn people_read_three_digits() {
        assert_eq!(show_nanos(8_333_333.0), "8.33 ms");
        assert_eq!(show_bytes(4096.0), "4.00 KiB");
        assert_eq!(show_count(12_345.0), "12.3k");
        let small = [0.0, 0.12, 0.0693, 0.00123, 0.000_691, 0.000_042].map(three_digits);
        assert_eq!(small, ["0", "0.12", "0.069", "0.001", "0.0007", "0.00004"]);
    }
}
