//! A tunable of two numbers, a base and a slope, as the one number that tunables are: the base, then eight digits of slope.

/// The unit of such a tunable.
pub const UNIT: &str = "ns ns/KiB";
/// The largest value.
pub const MAX: i64 = 90_000_000_000 * STEP + (STEP - 1);
const STEP: i64 = 100_000_000;

/// Both numbers as one.
#[must_use]
pub fn of(base: u64, slope: u64) -> i64 {
    let part = |n: u64, most: i64| i64::try_from(n).unwrap_or(most).min(most);
    part(base, MAX / STEP) * STEP + part(slope, STEP - 1)
}

/// The base and the slope.
#[must_use]
pub fn parts(value: i64) -> (u64, u64) {
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    (part(value / STEP), part(value % STEP))
}

/// The value of `9000000 7000`.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    let mut words = text.split_whitespace().map(|w| w.parse::<u64>().ok());
    let (base, slope) = (words.next()??, words.next()??);
    let fits = base <= (MAX / STEP) as u64 && slope < STEP as u64;
    (words.next().is_none() && fits).then(|| of(base, slope))
}

/// As the file takes it.
#[must_use]
pub fn text(value: i64) -> String {
    let (base, slope) = parts(value);
    format!("{base} {slope}")
}
