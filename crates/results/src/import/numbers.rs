//! Numbers as programs print them, with a point or, by the locale, a comma before the decimals.

use iosched_types::Diagnostic;

use super::at;

/// What a comma in a text's numbers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commas {
    /// Nothing in the text says it.
    Unknown,
    /// It stands before the decimals.
    Decimal,
    /// It parts thousands: decimals stand behind a point.
    Thousands,
}

/// Bytes of a number.
fn numeric(b: u8) -> bool {
    b.is_ascii_digit() || b == b',' || b == b'.'
}

/// Whether a comma may part thousands: groups of three digits behind one to three, the first of which is not 0.
fn thousands(whole: &str) -> bool {
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    (1..=3).contains(&first.len()) && !first.starts_with('0') && groups.all(|g| g.len() == 3)
}

/// The words of a line that could be numbers, with the texts before and behind them.
fn words(line: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = line.as_bytes();
        let start = at + bytes.get(at..)?.iter().position(u8::is_ascii_digit)?;
        let end =
            start + bytes[start..].iter().position(|b| !numeric(*b)).unwrap_or(bytes.len() - start);
        at = end;
        Some((&line[..start], &line[start..end], &line[end..]))
    })
}

impl Commas {
    /// From the other numbers of a text: `0,26` has a decimal comma, `= 1.5` a decimal point. Where both are, neither is
    /// sure.
    pub(super) fn of(text: &str) -> Commas {
        let (mut decimal, mut point) = (false, false);
        for line in text.lines().filter(|l| !l.starts_with('#') && !l.contains("ersion")) {
            let table = line.bytes().all(|b| numeric(b) || b.is_ascii_whitespace());
            for (before, word, behind) in words(line) {
                let one = |sign: char| {
                    word.matches([',', '.']).count() == 1
                        && word.split_once(sign).is_some_and(|(_, part)| !part.is_empty())
                };
                let apart = before.is_empty() || before.ends_with([' ', '\t', '=', ':', '(']);
                let figure = before.trim_end().ends_with(['=', ':']);
                let bar = behind.trim_start().starts_with('|');
                decimal |= apart && one(',') && !thousands(word);
                point |= (figure || bar || table) && one('.');
            }
        }
        match (decimal, point) {
            (true, false) => Commas::Decimal,
            (false, true) => Commas::Thousands,
            _ => Commas::Unknown,
        }
    }

    /// A finite number. A comma that cannot part thousands stands before decimals.
    ///
    /// # Errors
    /// A diagnostic: no number, or one that can be read in two ways.
    pub(super) fn number(
        self,
        (file, n, line): (&str, usize, &str),
        word: &str,
    ) -> Result<f64, Diagnostic> {
        let bad = |message: String| at(file, n, line, word, message);
        let plain = self.plain(word).map_err(|(decimal, whole)| {
            let message =
                format!("\"{word}\" is {decimal} with a decimal comma and {whole} without");
            bad(message).with_help("write decimals behind a point, and thousands without a comma")
        })?;
        match plain.parse::<f64>() {
            Ok(v) if v.is_finite() => Ok(v),
            Ok(_) => Err(bad(format!("\"{word}\" is not a finite number"))),
            Err(_) => Err(bad(format!("\"{word}\" is not a number"))),
        }
    }

    /// A number with a point before its decimals and nothing between thousands, or the two that it could be. What is
    /// no number stays as it is.
    fn plain(self, word: &str) -> Result<String, (String, String)> {
        let digits = word.trim_start_matches(['-', '+']);
        let commas = digits.matches(',').count();
        let decimal = || word.replace('.', "").replace(',', ".");
        let whole = || word.replace(',', "");
        let bare = digits.starts_with(',') || digits.ends_with(',');
        if commas == 0 || bare || !digits.bytes().all(numeric) {
            return Ok(word.into());
        }
        Ok(match (digits.rfind('.'), digits.rfind(',')) {
            // 1,234.5
            (Some(point), Some(comma)) if point > comma => match thousands(&digits[..point]) {
                true => whole(),
                false => word.into(),
            },
            // 1.234,5
            (Some(_), Some(comma)) => {
                match commas == 1 && thousands(&digits[..comma].replace('.', ",")) {
                    true => decimal(),
                    false => word.into(),
                }
            }
            _ if commas > 1 => {
                if thousands(digits) {
                    whole()
                } else {
                    word.into()
                }
            }
            _ if !thousands(digits) || self == Commas::Decimal => decimal(),
            _ if self == Commas::Thousands => whole(),
            _ => return Err((decimal(), whole())),
        })
    }

    /// The number that a text begins with, behind `=` or `:` and before a unit.
    ///
    /// # Errors
    /// As of [`Self::number`].
    pub(super) fn first(self, place: (&str, usize, &str), text: &str) -> Result<f64, Diagnostic> {
        let text = text.trim_start_matches([' ', '\t', '=', ':']);
        // A blank that does not break may part thousands.
        let word = text.split([' ', '\t']).next().unwrap_or_default();
        let bytes = word.as_bytes();
        let sign = usize::from(word.starts_with(['-', '+']));
        let mut end = sign + bytes[sign..].iter().take_while(|b| numeric(**b)).count();
        // 1.5e-05
        let exponent = &word[end..];
        if let Some(rest) = exponent.strip_prefix(['e', 'E']) {
            let sign = usize::from(rest.starts_with(['-', '+']));
            let digits = rest.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
            end += if digits > 0 { 1 + sign + digits } else { 0 };
        }
        let unit = &word[end..];
        let ends = unit.is_empty()
            || unit.starts_with(|c: char| c.is_ascii_alphabetic() || "%()/;µ".contains(c));
        // `100.5,` in a list.
        let figure = if ends { word[..end].trim_end_matches([',', '.']) } else { word };
        self.number(place, figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(commas: Commas, word: &str) -> Result<f64, String> {
        commas.number(("f", 1, word), word).map_err(|e| format!("{} {}", e.message, e.help))
    }

    #[test]
    fn a_comma_is_never_cut_off() {
        for (word, value) in [
            ("0,26", 0.26),
            ("-0,5", -0.5),
            ("0,260", 0.26),
            ("1168,712345", 1168.712345),
            ("1168,712", 1168.712),
            ("1,234.5", 1234.5),
            ("1.234,5", 1234.5),
            ("1,234,567", 1_234_567.0),
            ("1.5e-05", 1.5e-5),
            ("8.556", 8.556),
        ] {
            assert_eq!(read(Commas::Unknown, word), Ok(value), "{word}");
        }
        for word in ["1,23,4", "1,2.3,4", "12,34.5", "1.2,3,4", ",", "1,", "8,5x"] {
            let read = read(Commas::Unknown, word);
            assert!(read.as_ref().is_err_and(|e| e.contains("not a number")), "{word}: {read:?}");
        }
        let e = read(Commas::Unknown, "8,556").unwrap_err();
        assert!(e.contains("8.556") && e.contains("8556") && e.contains("point"), "{e}");
        assert_eq!(read(Commas::Decimal, "8,556"), Ok(8.556));
        assert_eq!(read(Commas::Thousands, "8,556"), Ok(8556.0));
        assert_eq!(read(Commas::Thousands, "0,26"), Ok(0.26));
    }

    #[test]
    fn a_text_says_what_its_commas_are() {
        for (text, commas) in [
            ("latency = 8,556 ms\ntps = 1168,712345 (x)\n", Commas::Decimal),
            ("latency = 8,556 ms\ntps = 1168.71\n", Commas::Thousands),
            ("latency = 8,556 ms\n", Commas::Unknown),
            ("tool (X) 16.1\nlatency = 8,556 ms\n", Commas::Unknown),
            ("version: 1.5\nlatency = 8,556 ms\n", Commas::Unknown),
            ("a = 0,5\nb = 0.5\n", Commas::Unknown),
            ("a .. 341.70 |===\n", Commas::Thousands),
            ("1.2 2.4\n", Commas::Thousands),
        ] {
            assert_eq!(Commas::of(text), commas, "{text}");
        }
    }

    #[test]
    fn a_number_ends_before_its_unit() {
        let first = |t: &str| Commas::Unknown.first(("f", 1, t), t);
        for (text, value) in [
            ("= 8.5 ms", 8.5),
            ("15.613Mb/sec)", 15.613),
            ("0,02ms", 0.02),
            ("3e-05s", 3e-5),
            ("5events", 5.0),
            ("100.5, 7", 100.5),
            (": 0 (0.000%)", 0.0),
        ] {
            assert_eq!(first(text).unwrap(), value, "{text}");
        }
        for text in ["1'168.7 ms", "1\u{a0}168,71 ms", "1\u{202f}168,71", "1_000", "ms", ""] {
            assert!(first(text).is_err(), "{text}: {:?}", first(text));
        }
    }
}
