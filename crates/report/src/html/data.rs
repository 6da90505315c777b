//! The numbers inside the page, for its script and for programs: compact JSON that no text can break out of.

use iosched_results::stats::{Better, CiMethod};
use serde::Serialize;
use serde_json::{Value, json};

use super::input::{Input, WorkloadFacts};
use super::number::{nine, six};
use super::panels::Panel;
use super::view::{Name, Pair, Run, Test, View, method};

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

/// How intervals are made, by the number the script knows it by.
const HOW: [CiMethod; 5] =
    [CiMethod::Bca, CiMethod::Abc, CiMethod::T, CiMethod::Exact, CiMethod::Published];

/// A number with nine digits; whole numbers without a point.
fn number(x: f64) -> Value {
    let x = nine(x);
    if x.fract() == 0.0 && x.abs() < 9e15 { json!(x as i64) } else { json!(x) }
}

fn cell(t: &Test, at: usize) -> Value {
    let c = &t.cells[at];
    let Some(s) = &c.summary else {
        return json!({ "why": c.missing.clone().unwrap_or_default() });
    };
    // The same figures as an earlier run's are written once.
    if let Some(first) = t.cells[..at].iter().position(|o| {
        o.samples.len() > 1
            && o.samples == c.samples
            && o.summary == c.summary
            && o.pairs == c.pairs
    }) {
        return json!(first);
    }
    let mut out = serde_json::Map::new();
    let mut put = |k: &str, v: Option<Value>| {
        if let Some(v) = v {
            out.insert(k.into(), v);
        }
    };
    put("n", Some(json!(s.n)));
    put("v", s.centre().map(number));
    let equal = s.n > 1 && s.min == s.max && s.censored == 0;
    if equal {
        // All rounds are this one value; the script makes them again.
        put("x", Some(json!(1)));
    } else if s.n > 1 {
        put("lo", s.ci.map(|c| number(c.low)));
        put("hi", s.ci.map(|c| number(c.high)));
        put(
            "how",
            s.ci.map(|c| json!(HOW.iter().position(|m| *m == c.method))).filter(|h| *h != 0),
        );
        let all = c.samples.len() == s.n;
        // Where all samples are here, the script computes these.
        put("sd", s.sd.filter(|_| !all).map(number));
        put("mn", (!all).then(|| number(s.min)));
        put("mx", (!all).then(|| number(s.max)));
    }
    if c.samples.len() > 1 {
        put("s", (!equal).then(|| c.samples.iter().map(|x| number(x.0)).collect()));
        let out: Vec<usize> = (0..c.samples.len()).filter(|i| c.samples[*i].1).collect();
        put("o", (!out.is_empty()).then(|| json!(out)));
        put("r", (!c.rounds.is_empty()).then(|| json!(c.rounds)));
    }
    put("t", c.trimmed.map(|x| number(six(x))));
    put("cens", (s.censored > 0).then(|| json!(s.censored)));
    put("starved", (c.starved > 0).then(|| json!(c.starved)));
    put("noisy", c.noisy.then(|| json!(1)));
    // By run; behind the last that was judged there is nothing.
    let judged = c.pairs.iter().rposition(|p| p.letter != '.').map_or(0, |i| i + 1);
    let pairs: String = c.pairs[..judged].iter().map(|p| p.letter).collect();
    let first = pairs.find(|c| c != '.').unwrap_or(0);
    if judged > 0 {
        put("p", Some(json!(pairs)));
        let ratio = |p: &Pair| p.ratio.map_or(json!(0), number);
        put("q", Some(c.pairs[first..judged].iter().map(ratio).collect()));
    }
    Value::Object(out)
}

fn test(t: &Test) -> Value {
    let mut flags = String::new();
    for (on, c) in [
        (t.noisy, 'n'),
        (t.incomplete, 'i'),
        (t.little, 'l'),
        (t.notable, '*'),
        (t.head, 'h'),
        (t.twin, '2'),
    ] {
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
        "v": (0..t.cells.len()).map(|i| cell(t, i)).collect::<Vec<_>>(),
    })
}

/// The runs: a scheduler on a device.
fn runs(input: &Input, view: &View) -> Vec<Value> {
    let one = |r: &Run| {
        let f = &input.runs[r.from];
        // Where the page calls it otherwise than it was measured: its kernel behind it, a name that somebody gave.
        let own = input.own(&f.scheduler);
        let own = (own != view.schedulers[r.scheduler]).then_some(own);
        json!({
            "n": r.name,
            "own": own,
            "d": r.device,
            "s": r.scheduler,
            "kernel": f.kernel,
            "date": f.date(),
            "dur": number(f.elapsed as f64 / 1e9),
            "trials": f.trials,
            "cores": f.cores(),
            "ghz": f.clock(),
        })
    };
    view.runs.iter().map(one).collect()
}

fn workloads(input: &Input, view: &View) -> Vec<Value> {
    let one = |(i, w): (usize, &WorkloadFacts)| {
        let suites: Vec<usize> =
            (0..view.suites.len()).filter(|i| w.suites.contains(&view.suites[*i])).collect();
        let mut facts = json!({ "t": w.title, "a": w.arguments, "s": suites });
        if let Some(length) = length(input, i) {
            facts["d"] = json!(length);
        }
        facts
    };
    input.workloads.iter().enumerate().map(one).collect()
}

/// What the schedulers are called.
fn names(input: &Input, view: &View) -> Vec<Value> {
    let one = |(n, s): (&Name, &String)| {
        let (own, until) = (input.own.get(s), n.meaning.until().unwrap_or_default());
        json!({ "n": n.short, "now": u8::from(n.now()), "until": until, "own": own })
    };
    view.names.iter().zip(&view.schedulers).map(one).collect()
}

fn panel(p: &Panel) -> Value {
    let rows: Vec<Value> = p
        .rows
        .iter()
        .map(|r| match r.line == r.title {
            true => json!([r.test, r.id, r.title, r.sub]),
            false => json!([r.test, r.id, r.title, r.sub, r.line]),
        })
        .collect();
    json!({ "id": p.id, "t": p.title, "sub": p.sub, "w": p.workloads, "rows": rows })
}

/// Everything the script needs. Tests are written one after the other: there may be very many.
pub(crate) fn page(input: &Input, view: &View, panels: &[Panel]) -> String {
    let head = json!({
        "title": input.options.title,
        "stored": input.options.stored,
        "base": view.base,
        "devices": view.devices,
        "schedulers": view.schedulers,
        "suites": view.suites,
        "how": HOW.map(method),
        "names": names(input, view),
        "panels": panels.iter().map(panel).collect::<Vec<_>>(),
        "runs": runs(input, view),
        "workloads": workloads(input, view),
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

/// Seconds that a trial of a workload takes, where that was recorded.
fn length(input: &Input, workload: usize) -> Option<f64> {
    let of = input.details.iter().filter(|((_, w), d)| *w == workload && d.elapsed > 0);
    let (elapsed, trials) =
        of.fold((0u64, 0u32), |(e, n), (_, d)| (e.saturating_add(d.elapsed), n + d.summed));
    (trials > 0).then(|| (elapsed as f64 / 1e6 / f64::from(trials)).round() / 1e3)
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
