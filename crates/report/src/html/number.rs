//! Numbers as people read them. The page's script has the same rules, so that both write the same text.

/// Four significant digits, thousands grouped: `0.001234`, `341.7`, `12,346`.
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
const RATES: [(f64, &str); 4] = [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")];

/// The factor and word for values of a unit as large as `largest`.
pub(crate) fn scale(largest: f64, unit: &str) -> (f64, String) {
    let table = match unit {
        "ns" => &TIMES,
        "B/s" => &RATES,
        _ => return (1.0, unit.into()),
    };
    let (by, word) = table.iter().find(|(by, _)| largest.abs() >= *by).unwrap_or(&table[3]);
    (*by, (*word).into())
}

/// A value with its unit: `12.35 MB/s`.
pub(crate) fn value(x: f64, unit: &str) -> String {
    let (by, word) = scale(x, unit);
    let separator = if word.is_empty() { "" } else { " " };
    format!("{}{separator}{word}", plain(x / by))
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

/// A percentage of change: `+12 %`, `-3.4 %`.
pub(crate) fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent.abs() >= 1000.0 {
        return format!("×{}", plain(ratio));
    }
    let digits = if percent.abs() >= 9.95 { 0 } else { 1 };
    if percent.abs() < 0.05 {
        return "±0 %".into();
    }
    let sign = if percent < 0.0 { "−" } else { "+" };
    format!("{sign}{} %", fixed(percent.abs(), digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_and_units() {
        assert_eq!((plain(448.25), plain(448.15)), ("448.3".into(), "448.1".into()));
        assert_eq!(change(0.999_9), "±0 %");
        assert_eq!(plain(341.7), "341.7");
        assert_eq!(plain(12_345.6), "12,346");
        assert_eq!(plain(0.001_234), "0.001234");
        assert_eq!(plain(-1_000.0), "-1,000");
        assert_eq!(value(1.5e6, "ns"), "1.5 ms");
        assert_eq!(value(123.4e6, "B/s"), "123.4 MB/s");
        assert_eq!(value(39.62, "Seconds"), "39.62 Seconds");
        assert_eq!(value(0.5, ""), "0.5");
        assert_eq!(change(0.9), "−10 %");
        assert_eq!(change(1.012), "+1.2 %");
        assert_eq!(nine(1.0 / 3.0), 0.333_333_333);
    }
}
