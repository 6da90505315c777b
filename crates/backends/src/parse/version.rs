//! Version numbers out of what tools print: `fio-3.33`, `blktrace version 1.2.0`, `bpftrace v0.17.0`.

/// The first dotted number of a text, as written and as numbers for comparison.
#[must_use]
pub fn parse(text: &str) -> Option<(String, Vec<u32>)> {
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        if !bytes[i].is_ascii_digit() {
            i += 1;
            continue;
        }
        let end = i + bytes[i..]
            .iter()
            .position(|b| !b.is_ascii_digit() && *b != b'.')
            .unwrap_or(bytes.len() - i);
        let word = text[i..end].trim_end_matches('.');
        if word.contains('.') {
            let parts: Option<Vec<u32>> = word.split('.').map(|p| p.parse().ok()).collect();
            if let Some(parts) = parts {
                return Some((word.to_string(), parts));
            }
        }
        i = end.max(i + 1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn finds_the_number() {
        assert_eq!(parse("fio-3.33"), Some(("3.33".into(), vec![3, 33])));
        assert_eq!(parse("fio-3.36-19-gb4d4\n").unwrap().1, [3, 36]);
        assert_eq!(parse("losetup from util-linux 2.38.1").unwrap().1, [2, 38, 1]);
        assert_eq!(parse("version 7"), None);
        assert!(parse("fio-3.9").unwrap().1 < vec![3, 19]);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,60}") {
            let _ = parse(&text);
        }
    }
}
