//! The arguments of a call as strace prints them.

/// Splits at commas that stand outside of strings, brackets and comments.
pub(super) fn split(args: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut depth, mut from) = (0usize, 0);
    let bytes = args.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'"' => i = end_of_string(bytes, i),
            b'/' if bytes.get(i + 1) == Some(&b'*') => i = end_of_comment(bytes, i),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                out.push(args[from..i].trim());
                from = i + 1;
            }
            _ => {}
        }
        i += 1;
    }
    let last = args.get(from..).unwrap_or_default().trim();
    if !last.is_empty() || !out.is_empty() {
        out.push(last);
    }
    out
}

/// The closing quote, or the last byte.
fn end_of_string(bytes: &[u8], open: usize) -> usize {
    let mut i = open + 1;
    while i < bytes.len() && bytes[i] != b'"' {
        i += 1 + usize::from(bytes[i] == b'\\');
    }
    i.min(bytes.len() - 1)
}

fn end_of_comment(bytes: &[u8], open: usize) -> usize {
    let end = bytes[open + 2..].windows(2).position(|w| w == b"*/");
    end.map_or(bytes.len() - 1, |e| open + 2 + e + 1)
}

/// Where the arguments of a call end: the parenthesis that closes the one before `args`.
pub(super) fn closing(args: &str) -> Option<usize> {
    let bytes = args.as_bytes();
    let (mut depth, mut i) = (0usize, 0);
    while i < bytes.len() {
        match bytes[i] {
            b'"' => {
                let end = end_of_string(bytes, i);
                if bytes[end] != b'"' || end == i {
                    return None;
                }
                i = end;
            }
            b'/' if bytes.get(i + 1) == Some(&b'*') => i = end_of_comment(bytes, i),
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => return Some(i),
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        i += 1;
    }
    None
}

/// A string and whether it is whole; `None` where there is none.
pub(super) fn string(arg: &str) -> Option<(String, bool)> {
    let rest = arg.trim().strip_prefix('"')?;
    let mut out = String::new();
    let mut chars = rest.chars().peekable();
    loop {
        match chars.next()? {
            '"' => break,
            '\\' => out.push(escaped(&mut chars)?),
            c => out.push(c),
        }
    }
    let after: String = chars.collect();
    Some((out, !after.starts_with("...")))
}

/// What stands after a backslash: C's letters, octal and `\x` numbers. What no name can hold becomes `_`.
fn escaped(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<char> {
    let first = chars.next()?;
    let (radix, most, mut n, mut digits) = match first {
        'n' => return Some('\n'),
        't' => return Some('\t'),
        'r' => return Some('\r'),
        'v' | 'f' => return Some('_'),
        'x' => (16, 2, 0, 0),
        c if c.is_digit(8) => (8, 3, c.to_digit(8).unwrap_or(0), 1),
        c => return Some(c),
    };
    while digits < most {
        let Some(d) = chars.peek().and_then(|c| c.to_digit(radix)) else { break };
        n = n * radix + d;
        digits += 1;
        chars.next();
    }
    Some(if (32..127).contains(&n) { char::from(n as u8) } else { '_' })
}

/// A number: decimal, `0x` or with a `<name>` or a comment after it.
pub(super) fn number(arg: &str) -> Option<i64> {
    let arg = arg.trim();
    let (negative, digits) = match arg.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, arg),
    };
    let (digits, radix) = match digits.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (digits, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let after = digits[end..].trim_start();
    if end == 0 || !(after.is_empty() || after.starts_with(['<', '/'])) {
        return None;
    }
    let n = u64::from_str_radix(&digits[..end], radix).ok()?.cast_signed();
    Some(if negative { n.wrapping_neg() } else { n })
}

/// The number after `field=` in a structure.
pub(super) fn field(text: &str, field: &str) -> Option<i64> {
    let mut rest = text;
    loop {
        let at = rest.find(field)?;
        let own = at == 0
            || !rest.as_bytes()[at - 1].is_ascii_alphanumeric() && rest.as_bytes()[at - 1] != b'_';
        rest = &rest[at + field.len()..];
        if let Some(value) = rest.strip_prefix('=')
            && own
        {
            let end = value.find([',', '}', ' ', '*', '|']).unwrap_or(value.len());
            return number(&value[..end]);
        }
    }
}

/// Whether a word of flags is set: `O_RDWR|O_CREAT`.
pub(super) fn has(flags: &str, flag: &str) -> bool {
    flags.split('|').any(|f| f.trim() == flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_of_things_do_not_split() {
        let args = r#"3, [{a=1, b="x,)"}], "a\",b"..., O_RDWR|O_CREAT, 0644 /* a, b */"#;
        let parts = split(args);
        assert_eq!(parts.len(), 5);
        assert_eq!(parts[2], r#""a\",b"..."#);
        assert_eq!(split(""), Vec::<&str>::new());
        assert_eq!(closing(r#"3, "a)b", {x(1)}) = 4"#), Some(16));
        assert_eq!(closing(r#"3, "a)b"#), None, "it ends inside of a string");
        assert_eq!(closing("3, \""), None);
    }

    #[test]
    fn strings_are_unescaped() {
        assert_eq!(string(r#""a\tb\101\x41\"\\""#), Some(("a\tbAA\"\\".into(), true)));
        assert_eq!(string(r#""ab"..."#), Some(("ab".into(), false)));
        assert_eq!(string(r#""\303\244""#), Some(("__".into(), true)));
        assert_eq!(string("0x7ffe"), None);
        assert_eq!(string(r#""open"#), None);
    }

    #[test]
    fn numbers_have_several_forms() {
        assert_eq!(number("4096"), Some(4096));
        assert_eq!(number("-1"), Some(-1));
        assert_eq!(number("0xffffffffffffffff"), Some(-1));
        assert_eq!(number("5</tmp/a>"), Some(5));
        assert_eq!(number("AT_FDCWD"), None);
        assert_eq!(number("9223372036854775808"), Some(i64::MIN));
        let stat = "{st_dev=makedev(0xfe, 0), st_mode=S_IFREG|0644, st_size=1234, st_x=1}";
        assert_eq!(field(stat, "st_size"), Some(1234));
        assert_eq!(field(stat, "size"), None);
    }
}
