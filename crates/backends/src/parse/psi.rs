//! `/proc/pressure/*`: how much of the time tasks waited for CPU, I/O or memory.

/// One resource's pressure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Psi {
    /// `some avg10` in percent.
    pub some_avg10: f64,
    /// Total time some task waited, in µs.
    pub some_total: u64,
    /// Total time all tasks waited, in µs.
    pub full_total: u64,
}

/// Reads a pressure file; `None` without a `some` line.
#[must_use]
pub fn parse(text: &str) -> Option<Psi> {
    let mut psi = Psi::default();
    let mut seen = false;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let kind = words.next();
        for word in words {
            match (kind, word.split_once('=')) {
                (Some("some"), Some(("avg10", v))) => {
                    psi.some_avg10 = v.parse().ok().filter(|x: &f64| x.is_finite())?;
                }
                (Some("some"), Some(("total", v))) => {
                    psi.some_total = v.parse().ok()?;
                    seen = true;
                }
                (Some("full"), Some(("total", v))) => psi.full_total = v.parse().ok()?,
                _ => {}
            }
        }
    }
    seen.then_some(psi)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_a_real_file() {
        let p = parse(
            "some avg10=0.34 avg60=1.26 avg300=0.97 total=13584479\n\
             full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
        )
        .unwrap();
        assert_eq!((p.some_avg10, p.some_total, p.full_total), (0.34, 13_584_479, 7));
        assert_eq!(parse("nothing"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(some|full|x)( (avg10|total)=.{0,10}){0,4}") {
            let _ = parse(&text);
        }
    }
}
