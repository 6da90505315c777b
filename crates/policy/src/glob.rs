//! Shell patterns as udev takes them: `*`, `?`, `[a-z]`, `[!0-9]`, and alternatives behind `|`.

/// Whether a text matches one of the alternatives of a pattern.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    pattern.split('|').any(|p| one(&p.chars().collect::<Vec<_>>(), &text))
}

fn one(pattern: &[char], text: &[char]) -> bool {
    // The place behind the last `*`, and where in the text it was tried last.
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => class(&pattern[p..], text[t]),
            Some('\\') if pattern.get(p + 1) == Some(&text[t]) => Some(2),
            Some(c) if *c == text[t] => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(n), _) => (p, t) = (p + n, t + 1),
            (None, Some((behind, at))) => {
                (p, t) = (behind, at + 1);
                star = Some((behind, at + 1));
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// A set of characters and its name.
type Named = (&'static str, fn(&char) -> bool);

/// Sets of characters by name.
const NAMED: [Named; 6] = [
    ("[:alpha:]", char::is_ascii_alphabetic),
    ("[:digit:]", char::is_ascii_digit),
    ("[:alnum:]", char::is_ascii_alphanumeric),
    ("[:lower:]", char::is_ascii_lowercase),
    ("[:upper:]", char::is_ascii_uppercase),
    ("[:xdigit:]", char::is_ascii_hexdigit),
];

/// The length of a bracket expression that a character is in. One without an end is the character `[`.
fn class(pattern: &[char], c: char) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = if negated { 2 } else { 1 };
    // The end of `[:alpha:]` is none of the set.
    let is_end = |i: &usize| pattern[*i] == ']' && pattern[*i - 1] != ':';
    let Some(end) = (first + 1..pattern.len()).find(is_end) else {
        return (c == '[').then_some(1);
    };
    let set = &pattern[first..end];
    let mut i = 0;
    let mut found = false;
    while i < set.len() {
        let rest: String = set[i..].iter().collect();
        if let Some((name, is)) = NAMED.iter().find(|(name, _)| rest.starts_with(name)) {
            found |= is(&c);
            i += name.len();
        } else if i + 2 < set.len() && set[i + 1] == '-' {
            found |= (set[i]..=set[i + 2]).contains(&c);
            i += 3;
        } else {
            found |= set[i] == c;
            i += 1;
        }
    }
    (found != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn names_of_disks() {
        for (pattern, yes, no) in [
            ("sd[a-z]", "sda", "sdaa"),
            ("sd*[!0-9]", "sdaa", "sda1"),
            ("nvme[0-9]n[0-9]", "nvme0n1", "nvme10n1"),
            ("mmcblk*[0-9]|sr*", "sr0", "vda"),
            ("mmcblk[0-9]p[0-9]", "mmcblk0p1", "mmcblk0"),
            ("*bfq*", "[none] mq-deadline bfq", "[none] kyber"),
            // Brackets are a set of characters, so this never is the first word of the file.
            ("[none]*", "none", "[none] mq-deadline"),
            ("a*b*c", "aXbYbZc", "aXc"),
            ("\\[none\\]*", "[none] bfq", "none"),
            ("x[", "x[", "x"),
            ("sd[[:alpha:]]", "sda", "sd1"),
            ("sd*[![:digit:]]", "sdaa", "sda1"),
        ] {
            assert!(matches(pattern, yes), "{pattern} {yes}");
            assert!(!matches(pattern, no), "{pattern} {no}");
        }
        assert!(matches("?*", "x") && !matches("?*", ""));
        assert!(matches("|x", ""), "an empty alternative");
    }
}
