//! `${VARIABLE}` and the keywords `$pagesize`, `$mb_memory`, `$ncpus` in values.

use super::value::{Parsed, ValueError};

/// Where variables and keywords come from; the caller decides, since this crate reads no environment.
pub trait Lookup {
    /// The environment variable of this name.
    fn variable(&self, name: &str) -> Option<String>;

    /// The value of `pagesize`, `mb_memory` or `ncpus`.
    fn keyword(&self, name: &str) -> Option<u64>;
}

/// Knows nothing: for files that use neither.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLookup;

impl Lookup for NoLookup {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn keyword(&self, _: &str) -> Option<u64> {
        None
    }
}

const KEYWORDS: [&str; 3] = ["pagesize", "mb_memory", "ncpus"];
/// Longest value after expansion, in bytes.
const MAX_VALUE: usize = 64 << 10;

/// The value with everything replaced. An unset variable is an empty text, as in fio. `missing` keeps its name, for a
/// better message when the value makes no sense without it.
pub(crate) fn expand(text: &str, env: &dyn Lookup, missing: &mut Vec<String>) -> Parsed<String> {
    let text = variables(text, env, missing)?;
    if KEYWORDS.iter().any(|k| text.contains(&format!("${k}"))) {
        keywords(&text, env)
    } else {
        Ok(text)
    }
}

fn variables(text: &str, env: &dyn Lookup, missing: &mut Vec<String>) -> Parsed<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}') else { break };
        let name = &rest[at + 2..at + end];
        out.push_str(&rest[..at]);
        match env.variable(name) {
            Some(v) => out.push_str(&v),
            None => missing.push(name.to_string()),
        }
        if out.len() > MAX_VALUE {
            return Err(ValueError::new("the value is longer than 64 KiB after expansion"));
        }
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Replaces keywords; where the value is a product or sum around one, computes it (fio hands such a
/// value to a calculator).
fn keywords(text: &str, env: &dyn Lookup) -> Parsed<String> {
    let mut out = text.to_string();
    for k in KEYWORDS {
        let word = format!("${k}");
        if out.contains(&word) {
            let v = env
                .keyword(k)
                .ok_or_else(|| ValueError::new(format!("the value of {word} is not known here")))?;
            out = out.replace(&word, &v.to_string());
        }
    }
    let arithmetic = out.contains(['*', '+', '/', '-'])
        && out.chars().all(|c| c.is_ascii_digit() || " */+-".contains(c));
    if !arithmetic {
        return Ok(out);
    }
    compute(&out)
        .map(|v| v.to_string())
        .ok_or_else(|| ValueError::new(format!("\"{out}\" cannot be computed")))
}

/// Sums and products of whole numbers, products first.
fn compute(text: &str) -> Option<u64> {
    let mut total: i128 = 0;
    let mut term: Option<i128> = None;
    let (mut sum, mut product) = ('+', '*');
    let mut rest = text.trim_start();
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let n: i128 = rest[..end].parse().ok()?;
        term = match (term, product) {
            (None, _) => Some(n),
            (Some(t), '/') => t.checked_div(n),
            (Some(t), _) => t.checked_mul(n),
        };
        term?;
        rest = rest[end..].trim_start();
        let op = rest.chars().next();
        if matches!(op, None | Some('+' | '-')) {
            let t = term.take()?;
            total = if sum == '-' { total.checked_sub(t)? } else { total.checked_add(t)? };
        }
        match op {
            None => return u64::try_from(total).ok(),
            Some(c @ ('+' | '-')) => sum = c,
            Some(c) => product = c,
        }
        rest = rest[1..].trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Lookup for Fixed {
        fn variable(&self, name: &str) -> Option<String> {
            (name == "SIZE").then(|| "7k".to_string())
        }

        fn keyword(&self, name: &str) -> Option<u64> {
            match name {
                "pagesize" => Some(4096),
                "ncpus" => Some(2),
                _ => None,
            }
        }
    }

    fn ex(text: &str) -> Result<String, String> {
        expand(text, &Fixed, &mut Vec::new()).map_err(|e| e.message)
    }

    #[test]
    fn variables_and_keywords_as_fio_replaces_them() {
        assert_eq!(ex("${SIZE}"), Ok("7k".into()));
        assert_eq!(ex("1${SIZE}"), Ok("17k".into()));
        assert_eq!(ex("x ${NOPE} y ${"), Ok("x  y ${".into()));
        assert_eq!(ex("8*$pagesize"), Ok("32768".into()));
        assert_eq!(ex("$ncpus"), Ok("2".into()));
        assert_eq!(ex("a$ncpus b"), Ok("a2 b".into()));
        assert_eq!(ex("1+2*$ncpus"), Ok("5".into()));
        assert_eq!(ex("$SIZE"), Ok("$SIZE".into()));
    }

    #[test]
    fn impossible_sums_are_errors() {
        for text in ["8*$mb_memory", "$ncpus/0", "$ncpus-9", "$ncpus**2", "*$ncpus", "$ncpus*"] {
            assert!(ex(text).is_err(), "{text}");
        }
        let mut missing = Vec::new();
        assert_eq!(expand("${A}${B}", &NoLookup, &mut missing), Ok(String::new()));
        assert_eq!(missing, ["A", "B"]);
    }
}
