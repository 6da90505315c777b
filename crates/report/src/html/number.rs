//! Numbers as people read them. The page's script has the same rules, so that both write the same text.

/// Four significant digits, thousands grouped, for figures laid beside other programs': `341.7`, `12,346`.
pub(crate) fn plain(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return if x == 0.0 { "0".into() } else { "–".into() };
    }
    let digits = (3.0 - x.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    let text = fixed(x, digits);
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let rest = rest.trim_end_matches('0');
    let point = if rest.is_empty() { "" } else { "." };
    format!("{}{point}{rest}", group(whole))
}

/// Three significant digits, thousands grouped: `8.59`, `317`, `94,935`.
pub(crate) fn sig(x: f64) -> String {
    finer(x, 0)
}

/// As [`sig`], with some digits more.
pub(crate) fn finer(x: f64, more: usize) -> String {
    if x == 0.0 || !x.is_finite() {
        return if x == 0.0 { "0".into() } else { "–".into() };
    }
    let a = x.abs();
    let digits = match a {
        _ if a >= 99.95 => 0,
        _ if a >= 9.995 => 1,
        _ if a >= 0.9995 => 2,
        _ if a >= 0.0995 => 3,
        _ => (2.0 - a.log10().floor()).min(9.0) as usize,
    };
    decimals(x, digits + more)
}

/// Two numbers with the digits that tell one from the other, up to six more than `show` gives with none.
pub(crate) fn apart(low: f64, high: f64, show: impl Fn(f64, usize) -> String) -> [String; 2] {
    let of = |more: usize| [low, high].map(|x| show(x, more));
    (0..=6).map(of).find(|e| e[0] != e[1]).unwrap_or_else(|| of(0))
}

/// So many decimals, thousands grouped; a minus is U+2212.
pub(crate) fn decimals(x: f64, digits: usize) -> String {
    let text = fixed(x, digits);
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let point = if rest.is_empty() { "" } else { "." };
    format!("{}{point}{rest}", group(whole)).replace('-', "−")
}

/// `digits` decimals; exact halves away from zero, as scripts round (Rust rounds them to even).
fn fixed(x: f64, digits: usize) -> String {
    let long = format!("{x:.60}");
    let rest = long.split_once('.').and_then(|(_, d)| d.get(digits..)).unwrap_or_default();
    let half = rest.starts_with('5') && rest[1..].bytes().all(|b| b == b'0');
    let x = if half { x * (1.0 + 4.0 * f64::EPSILON) } else { x };
    format!("{x:.digits$}")
}

fn group(whole: &str) -> String {
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |d| ("-", d));
    let mut out = String::from(sign);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

const TIMES: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
const MICROS: [(f64, &str); 4] = [(1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns")];
const RATES: [(f64, &str); 4] =
    [(1_073_741_824.0, "GiB/s"), (1_048_576.0, "MiB/s"), (1024.0, "KiB/s"), (1.0, "B/s")];

fn table(unit: &str) -> Option<&'static [(f64, &'static str); 4]> {
    match unit {
        "ns" => Some(&TIMES),
        "us" => Some(&MICROS),
        "B/s" => Some(&RATES),
        _ => None,
    }
}

/// A unit that other programs spell out, as it stands behind a number.
fn word(unit: &str) -> &str {
    match unit {
        "Seconds" | "seconds" => "s",
        "Milliseconds" | "milliseconds" => "ms",
        "Microseconds" | "microseconds" => "µs",
        other => other,
    }
}

/// The factor and word for values of a unit as large as `largest`.
pub(crate) fn scale(largest: f64, unit: &str) -> (f64, String) {
    let Some(table) = table(unit) else { return (1.0, word(unit).into()) };
    let (by, word) =
        table.iter().find(|(by, _)| largest.abs() >= *by * 0.9995).unwrap_or(&table[3]);
    (*by, (*word).into())
}

/// One unit for several values: the largest value is at least 1 in it and the smallest at least 0.1; `None` where each
/// value needs its own.
pub(crate) fn shared(values: &[f64], unit: &str) -> Option<(f64, String)> {
    let Some(table) = table(unit) else { return Some((1.0, word(unit).into())) };
    let high = values.iter().copied().fold(0.0, f64::max);
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let fits = |(by, _): &&(f64, &str)| high >= *by && low >= by * 0.1;
    table.iter().find(fits).map(|(by, word)| (*by, (*word).into()))
}

/// The longest unit that stands behind each value; a longer one stands in the heading.
const SHORT: usize = 5;

/// A unit as it stands behind a value.
pub(crate) fn behind(word: &str) -> &str {
    if word.chars().count() > SHORT { "" } else { word }
}

/// A value with its unit: `12.3 MiB/s`.
pub(crate) fn value(x: f64, unit: &str) -> String {
    let (by, word) = scale(x, unit);
    let separator = if word.is_empty() { "" } else { " " };
    format!("{}{separator}{word}", sig(x / by))
}

/// Nine significant digits: enough for a figure in the data, without the noise of binary fractions.
pub(crate) fn nine(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    format!("{x:.8e}").parse().unwrap_or(x)
}

/// Six significant digits: for figures computed from the samples, which nobody computes with again.
pub(crate) fn six(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    format!("{x:.5e}").parse().unwrap_or(x)
}

/// A ratio: `0.50`, `7.74`, `44.8`, `168`; three decimals below a tenth.
pub(crate) fn ratio(q: f64) -> String {
    if q == f64::INFINITY {
        return "∞".into();
    }
    let digits = match q {
        _ if q >= 99.95 => 0,
        _ if q >= 9.995 => 1,
        _ if q >= 0.0995 => 2,
        // Of very small ones the first digit.
        _ if q > 0.0 && q < 1e-3 => (-q.log10().floor()).min(9.0) as usize,
        _ => 3,
    };
    decimals(q, digits)
}

/// A place in per cent of a width: one decimal at most.
pub(crate) fn place(x: f64) -> String {
    let t = format!("{x:.1}");
    t.strip_suffix(".0").unwrap_or(&t).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_units() {
        assert_eq!((plain(448.25), plain(448.15)), ("448.3".into(), "448.1".into()));
        assert_eq!([8.585, 316.7, 0.2544, 94_935.0].map(sig), ["8.59", "317", "0.254", "94,935"]);
        assert_eq!(sig(0.000_012_34), "0.0000123");
        assert_eq!((sig(-1_000.0), sig(0.0)), ("−1,000".into(), "0".into()));
        assert_eq!(value(8.585e6, "ns"), "8.59 ms");
        assert_eq!(value(1.2e6, "B/s"), "1.14 MiB/s");
        assert_eq!(value(954_000.0, "ns"), "954 µs");
        assert_eq!(value(999_700.0, "ns"), "1.00 ms");
        assert_eq!([90_800.0, 0.25].map(|us| value(us, "us")), ["90.8 ms", "250 ns"]);
        assert_eq!(value(39.62, "Seconds"), "39.6 s");
        assert_eq!(value(0.5, ""), "0.500");
    }

    #[test]
    fn ends_are_told_apart() {
        assert_eq!(apart(3.101, 3.104, finer), ["3.101", "3.104"]);
        assert_eq!(apart(312.1, 312.4, finer), ["312.1", "312.4"]);
        assert_eq!(apart(1.0, 2.0, finer), ["1.00", "2.00"]);
        assert_eq!(apart(1.0, 1.0, finer), ["1.00", "1.00"]);
    }

    #[test]
    fn changes_and_ratios() {
        assert_eq!(
            [0.5, 7.74, 44.8, 168.2, 0.0521].map(ratio),
            ["0.50", "7.74", "44.8", "168", "0.052"]
        );
        assert_eq!(nine(1.0 / 3.0), 0.333_333_333);
        assert_eq!([place(12.04), place(3.26)], ["12", "3.3"]);
    }

    #[test]
    fn a_chart_has_one_unit_where_it_can() {
        assert_eq!(shared(&[282e6, 863e6], "ns"), Some((1e6, "ms".into())));
        assert_eq!(shared(&[0.3e6, 2e6], "ns"), Some((1e6, "ms".into())));
        assert_eq!(shared(&[27.1e3, 46.4e6], "ns"), Some((1e3, "µs".into())));
        assert_eq!(value(338.0, "Seconds"), "338 s");
        assert_eq!(shared(&[1.0, 20.0], "MB/s"), Some((1.0, "MB/s".into())));
    }
}
