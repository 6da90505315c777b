//! The numbers inside the page, for its script and for programs: compact JSON that no text can break out of.

use iosched_results::stats::{Better, CiMethod};
use serde::Serialize;
use serde_json::{Value, json};

use super::input::Input;
use super::number::nine;
use super::view::{Cell, Test, View, method};

/// JSON for a `<script>` element: `<`, `>` and `&` are escaped, so neither `</script` nor `<!--` can occur.
pub(crate) fn inline<T: Serialize>(value: &T) -> String {
    // Strings, numbers and maps with string keys always serialise.
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".into());
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// A number with nine digits; whole numbers without a point.
fn number(x: f64) -> Value {
    let x = nine(x);
    if x.fract() == 0.0 && x.abs() < 9e15 { json!(x as i64) } else { json!(x) }
}

fn cell(c: &Cell) -> Value {
    let Some(s) = &c.summary else {
        return json!({ "why": c.missing.clone().unwrap_or_default() });
    };
    let mut out = serde_json::Map::new();
    let mut put = |k: &str, v: Option<Value>| {
        if let Some(v) = v {
            out.insert(k.into(), v);
        }
    };
    put("n", Some(json!(s.n)));
    put("v", s.centre().map(number));
    if s.n > 1 {
        put("lo", s.ci.map(|c| number(c.low)));
        put("hi", s.ci.map(|c| number(c.high)));
        put(
            "how",
            s.ci.map(|c| json!(method(c.method)))
                .filter(|_| s.ci.map(|c| c.method) != Some(CiMethod::Bca)),
        );
        // Where all samples are here, the script computes it.
        put("sd", s.sd.filter(|_| c.samples.len() < s.n).map(number));
    }
    if c.samples.len() > 1 {
        put("s", Some(c.samples.iter().map(|x| number(x.0)).collect()));
        let out: Vec<usize> = (0..c.samples.len()).filter(|i| c.samples[*i].1).collect();
        put("o", (!out.is_empty()).then(|| json!(out)));
    }
    put("t", c.trimmed.map(number));
    put("cens", (s.censored > 0).then(|| json!(s.censored)));
    put("noisy", c.noisy.then(|| json!(1)));
    let pairs: String = c.pairs.iter().collect();
    put("p", pairs.contains(|c| c != '.').then(|| json!(pairs)));
    Value::Object(out)
}

fn test(t: &Test) -> Value {
    let mut flags = String::new();
    for (on, c) in
        [(t.noisy, 'n'), (t.incomplete, 'i'), (t.little, 'l'), (t.notable, '*'), (t.head, 'h')]
    {
        if on {
            flags.push(c);
        }
    }
    json!({
        "w": t.workload,
        "m": t.measure,
        "t": t.title,
        "u": t.unit,
        "b": if t.better == Better::Higher { 1 } else { -1 },
        "c": t.class as u8,
        "f": flags,
        "k": t.condense,
        "q": t.spread.map(number),
        "v": t.cells.iter().map(cell).collect::<Vec<_>>(),
    })
}

/// Everything the script needs. Tests are written one after the other: there may be very many.
pub(crate) fn page(input: &Input, view: &View) -> String {
    let runs: Vec<Value> = view
        .runs
        .iter()
        .map(|r| {
            let f = &input.runs[r.from];
            json!({
                "n": r.name,
                "d": r.device,
                "s": r.scheduler,
                "kernel": f.kernel,
                "date": f.date(),
                "dur": number(f.elapsed as f64 / 1e9),
                "trials": f.trials,
            })
        })
        .collect();
    let workloads: Vec<Value> = input
        .workloads
        .iter()
        .map(|w| {
            let suites: Vec<usize> =
                (0..view.suites.len()).filter(|i| w.suites.contains(&view.suites[*i])).collect();
            json!({ "t": w.title, "a": w.arguments, "s": suites })
        })
        .collect();
    let head = json!({
        "title": input.options.title,
        "base": view.base,
        "devices": view.devices,
        "schedulers": view.schedulers,
        "suites": view.suites,
        "runs": runs,
        "workloads": workloads,
    });
    let mut out = inline(&head);
    // `{…}` becomes `{…,"tests":[…]}`.
    out.truncate(out.len() - 1);
    out.push_str(",\"tests\":[");
    for (i, t) in view.tests.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&inline(&test(t)));
    }
    out + "]}"
}

/// One field of CSV: quoted where needed; a leading `=`, `+`, `-` or `@` of a text is set off by an apostrophe, so
/// that no spreadsheet runs it as a formula.
fn field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.into() };
    if text.contains([',', '"', '\n', '\r', '\'']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// The summaries as CSV, one line per cell and chart.
pub(crate) fn csv(input: &Input, view: &View) -> String {
    let mut out = String::from(
        "device,scheduler,kernel,workload,measure,unit,better,n,mean,ci95_low,ci95_high,sd,min,max,status\n",
    );
    for t in view.tests.iter().filter(|t| t.head) {
        for (r, c) in view.runs.iter().zip(&t.cells) {
            let mut row = vec![
                field(&view.devices[r.device]),
                field(&view.schedulers[r.scheduler]),
                field(&input.runs[r.from].kernel),
                field(&input.workloads[t.workload].title),
                field(&t.measure),
                field(&t.unit),
                if t.better == Better::Higher { "higher".into() } else { "lower".into() },
            ];
            let n = |x: Option<f64>| x.map_or_else(String::new, |x| nine(x).to_string());
            match &c.summary {
                Some(s) => {
                    row.push(s.n.to_string());
                    row.extend([n(s.centre()), n(s.ci.map(|c| c.low)), n(s.ci.map(|c| c.high))]);
                    row.extend([n(s.sd), n(Some(s.min)), n(Some(s.max))]);
                    let word = if s.censored > 0 { "censored" } else { "complete" };
                    row.push(word.into());
                }
                None => {
                    row.extend((0..7).map(|i| if i == 0 { "0".into() } else { String::new() }));
                    row.push(field(c.missing.as_deref().unwrap_or("missing")));
                }
            }
            out.push_str(&row.join(","));
            out.push('\n');
        }
    }
    out
}

/// Text as a `data:` address.
pub(crate) fn data_address(mime: &str, text: &str) -> String {
    let mut out = format!("data:{mime};charset=utf-8,");
    for b in text.bytes() {
        match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b',' | b':' | b'/' => {
                out.push(b as char);
            }
            _ => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_breaks_out_of_the_script_element() {
        let out = inline(&json!({ "a": "</script><!--<script>&\u{2028}" }));
        assert!(!out.contains(['<', '>', '&', '\u{2028}']), "{out}");
        let back: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(back["a"], "</script><!--<script>&\u{2028}");
    }

    #[test]
    fn spreadsheets_run_nothing() {
        assert_eq!(field("=1+1"), "\"'=1+1\"");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("plain"), "plain");
    }

    #[test]
    fn addresses_hold_any_text() {
        assert_eq!(
            data_address("text/csv", "a b\n\"é"),
            "data:text/csv;charset=utf-8,a%20b%0A%22%C3%A9"
        );
    }
}
