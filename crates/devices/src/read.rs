//! Reading device files: TOML with the place of every value, so that an error can point at it.

use iosched_types::nearest::did_you_mean;
use iosched_types::units::{parse_bytes, parse_nanos};
use iosched_types::{Diagnostic, SECTOR};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::figure::{Confidence, Figure, FigureValue, Price};
use crate::params::{Key, Unit};
use crate::spec::{DeviceSpec, Model, SpecError};

/// A value and where it stands.
pub(crate) type Place<'a> = Spanned<DeValue<'a>>;

/// The file that is being read.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

type Read<T> = Result<T, Diagnostic>;
/// What is said of parameters, by name.
type Sentences = Vec<(String, String)>;

impl<'a> Source<'a> {
    pub(crate) fn parse(&self) -> Read<Spanned<DeTable<'a>>> {
        DeTable::parse(self.text).map_err(|e| match e.span() {
            Some(span) => Diagnostic::at_span(self.file, self.text, span, e.message()),
            None => Diagnostic::file(self.file, e.message()),
        })
    }

    pub(crate) fn error(&self, at: &Place, message: impl Into<String>) -> Diagnostic {
        Diagnostic::at_span(self.file, self.text, at.span(), message)
    }

    /// Refuses the first key that is not among `known`.
    pub(crate) fn known(&self, table: &DeTable, what: &str, known: &[&str]) -> Read<()> {
        let unknown = table.keys().filter(|k| !known.contains(&k.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|k| k.span().start) else { return Ok(()) };
        let word = key.get_ref().as_ref();
        let mut help = did_you_mean(word, known.iter().copied());
        if help.is_empty() {
            help = format!("known here: {}", known.join(", "));
        }
        let message = format!("unknown key \"{word}\" in {what}");
        Err(Diagnostic::at_span(self.file, self.text, key.span(), message).with_help(help))
    }

    fn wrong(&self, at: &Place, key: &str, want: &str) -> Diagnostic {
        let got = at.get_ref().type_str();
        self.error(at, format!("{key} must be {want}, not {got}"))
    }

    pub(crate) fn string(&self, at: &Place, key: &str) -> Read<String> {
        match at.get_ref().as_str() {
            Some(s) => Ok(s.to_string()),
            None => Err(self.wrong(at, key, "a string")),
        }
    }

    fn boolean(&self, at: &Place, key: &str) -> Read<bool> {
        match (at.get_ref().as_bool(), integer(at)) {
            (Some(b), _) => Ok(b),
            (None, Some(0)) => Ok(false),
            (None, Some(1)) => Ok(true),
            _ => Err(self.wrong(at, key, "true or false")),
        }
    }

    pub(crate) fn table<'t>(&self, at: &'t Place<'a>, key: &str) -> Read<&'t DeTable<'a>> {
        at.get_ref().as_table().ok_or_else(|| self.wrong(at, key, "a table"))
    }

    pub(crate) fn number(&self, at: &Place, key: &str) -> Read<f64> {
        let v = match at.get_ref() {
            DeValue::Integer(_) => integer(at).map(|i| i as f64),
            DeValue::Float(f) => f.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        let v: f64 = v.ok_or_else(|| self.wrong(at, key, "a number"))?;
        if !v.is_finite() {
            return Err(self.error(at, format!("{key} must be a finite number")));
        }
        Ok(v)
    }

    /// A whole number within bounds, in the key's unit.
    pub(crate) fn whole(&self, at: &Place, key: &Key) -> Read<u64> {
        let name = key.name;
        let value: i128 = match (key.unit, at.get_ref()) {
            (Unit::Flag, _) => i128::from(self.boolean(at, name)?),
            (Unit::Word(words), DeValue::String(s)) => match words.iter().position(|w| w == s) {
                Some(i) => i as i128,
                None => {
                    let help = format!("one of: {}", words.join(", "));
                    let message = format!("unknown {name} \"{s}\"");
                    return Err(self.error(at, message).with_help(help));
                }
            },
            (Unit::Word(_), _) => return Err(self.wrong(at, name, "a word")),
            (_, DeValue::Integer(_)) => integer(at)
                .ok_or_else(|| self.error(at, format!("{name} is out of the range of numbers")))?,
            (Unit::Bytes, DeValue::String(s)) => parse_bytes(s)
                .map(i128::from)
                .ok_or_else(|| self.wrong(at, name, "bytes, such as 4096 or \"64GiB\""))?,
            (Unit::Nanos, DeValue::String(s)) => parse_nanos(s, 1)
                .map(i128::from)
                .ok_or_else(|| self.wrong(at, name, "a time, such as 8333333 or \"8.33ms\""))?,
            (_, DeValue::Float(_)) => {
                return Err(self.wrong(at, name, &format!("a whole number{}", of(key.unit))));
            }
            _ => return Err(self.wrong(at, name, &format!("a number{}", of(key.unit)))),
        };
        if value < i128::from(key.min) || value > i128::from(key.max) {
            let (min, max) = (key.min, key.max);
            let message = format!("{name} = {value} is out of range: {min} to {max}");
            return Err(self.error(at, message).with_help(key.help));
        }
        Ok(value as u64)
    }
}

fn of(unit: Unit) -> String {
    let symbol = unit.symbol();
    if symbol.is_empty() { String::new() } else { format!(" of {symbol}") }
}

fn integer(at: &Place) -> Option<i128> {
    let i = at.get_ref().as_integer()?;
    i128::from_str_radix(&i.as_str().replace('_', ""), i.radix()).ok()
}

const fn block_key(name: &'static str, unit: Unit, min: u64, max: u64) -> Key {
    Key { name, unit, default: None, min, max, help: "A property the block layer sees." }
}

/// What the block layer is told; the same keys in both kinds of file.
pub(crate) const BLOCK_KEYS: &[Key] = &[
    block_key("queue_depth", Unit::Count, 1, 65_536),
    block_key("at_once", Unit::Count, 0, 65_536),
    block_key("discard", Unit::Flag, 0, 1),
    block_key("hw_queues", Unit::Count, 1, 4096),
    block_key("rotational", Unit::Flag, 0, 1),
    block_key("write_cache", Unit::Flag, 0, 1),
    block_key("fua", Unit::Flag, 0, 1),
    block_key("max_hw_sectors_kb", Unit::Count, 4, 1 << 30),
    block_key("logical_block", Unit::Bytes, SECTOR, 65_536),
    block_key("budget", Unit::Flag, 0, 1),
];

/// Takes the block layer's keys of a table into `spec`.
pub(crate) fn block_facts(src: &Source, table: &DeTable, spec: &mut DeviceSpec) -> Read<()> {
    for key in BLOCK_KEYS {
        let Some(at) = table.get(key.name) else { continue };
        let v = src.whole(at, key)?;
        match key.name {
            "queue_depth" => spec.queue_depth = v as u32,
            "at_once" => spec.at_once = v as u32,
            "discard" => spec.discard = v != 0,
            "hw_queues" => spec.hw_queues = v as u32,
            "rotational" => spec.rotational = v != 0,
            "write_cache" => spec.write_cache = v != 0,
            "fua" => spec.fua = v != 0,
            "max_hw_sectors_kb" => spec.max_hw_sectors_kb = v as u32,
            "logical_block" => spec.logical_block = v as u32,
            _ => spec.budget = v != 0,
        }
    }
    Ok(())
}

/// Reads kind and parameters; others read the keys in `also`.
pub(crate) fn model(src: &Source, table: &DeTable, what: &str, also: &[&str]) -> Read<Model> {
    let line = |message: String| match table.keys().min_by_key(|k| k.span().start) {
        Some(k) => Diagnostic::at_span(src.file, src.text, k.span(), message),
        None => Diagnostic::file(src.file, message),
    };
    let Some(at) = table.get("kind") else {
        let kinds = Model::KINDS.join(", ");
        return Err(line(format!("{what} has no kind")).with_help(format!("one of: {kinds}")));
    };
    let kind = src.string(at, "kind")?;
    let Some(keys) = Model::keys(&kind) else {
        let mut help = did_you_mean(&kind, Model::KINDS.iter().copied());
        if help.is_empty() {
            help = format!("one of: {}", Model::KINDS.join(", "));
        }
        return Err(src.error(at, format!("unknown kind \"{kind}\"")).with_help(help));
    };
    let mut known = vec!["kind"];
    known.extend(keys.iter().map(|k| k.name));
    known.extend(also);
    src.known(table, &format!("{what} of kind \"{kind}\""), &known)?;
    let mut values = Vec::new();
    for key in keys {
        values.push(match (table.get(key.name), key.default) {
            (Some(at), _) => src.whole(at, key)?,
            (None, Some(default)) if default >= key.min => default,
            (None, _) => {
                let d = src.error(at, format!("{what} lacks \"{}\"", key.name));
                return Err(d.with_help(key.help));
            }
        });
    }
    let model = Model::from_values(&kind, &values)
        .ok_or_else(|| src.error(at, format!("unknown kind \"{kind}\"")))?;
    model.validate().map_err(|e| spec_error(src, table, at, &e))?;
    Ok(model)
}

/// An error of the whole specification, pointed at the parameter that it names.
fn spec_error(src: &Source, table: &DeTable, fallback: &Place, e: &SpecError) -> Diagnostic {
    src.error(e.key().and_then(|k| table.get(k)).unwrap_or(fallback), e.to_string())
}

fn derivation(src: &Source, table: &DeTable, model: &Model) -> Read<Sentences> {
    let keys = Model::keys(model.kind()).unwrap_or_default().iter().map(|k| k.name).collect();
    named_texts(src, table, keys)
}

/// Sentences by the names of parameters.
fn named_texts(src: &Source, table: &DeTable, keys: Vec<&str>) -> Read<Sentences> {
    src.known(table, "[derivation]", &keys)?;
    let mut all = Vec::new();
    for key in keys {
        if let Some(at) = table.get(key) {
            all.push((key.to_string(), src.string(at, key)?));
        }
    }
    Ok(all)
}

fn figure_value(src: &Source, at: &Place) -> Read<FigureValue> {
    match at.get_ref() {
        DeValue::String(s) => Ok(FigureValue::Text(s.to_string())),
        DeValue::Array(a) if a.len() == 2 => {
            let mut ends = a.iter().map(|v| src.number(v, "value"));
            match (ends.next(), ends.next()) {
                (Some(from), Some(to)) => Ok(FigureValue::Range(from?, to?)),
                _ => Err(src.wrong(at, "value", "a number, two numbers or a string")),
            }
        }
        DeValue::Array(_) => Err(src.wrong(at, "value", "a number, two numbers or a string")),
        _ => Ok(FigureValue::Number(src.number(at, "value")?)),
    }
}

fn figure(src: &Source, name: &str, at: &Place<'_>) -> Read<Figure> {
    let what = format!("[figure.{name}]");
    let t = src.table(at, &what)?;
    src.known(t, &what, &["value", "unit", "source", "confidence", "note", "reason", "with_host"])?;
    let need =
        |key: &str| t.get(key).ok_or_else(|| src.error(at, format!("{what} lacks \"{key}\"")));
    let text = |key: &str| t.get(key).map_or(Ok(String::new()), |v| src.string(v, key));
    let confidence = need("confidence")?;
    let word = src.string(confidence, "confidence")?;
    let source = need("source")?;
    let figure = Figure {
        name: name.to_string(),
        value: figure_value(src, need("value")?)?,
        unit: text("unit")?,
        source: src.string(source, "source")?,
        confidence: Confidence::from_word(&word).ok_or_else(|| {
            let help = format!("one of: {}", Confidence::WORDS.join(", "));
            src.error(confidence, format!("unknown confidence \"{word}\"")).with_help(help)
        })?,
        note: text("note")?,
        reason: text("reason")?,
        with_host: t.get("with_host").map_or(Ok(false), |v| src.boolean(v, "with_host"))?,
    };
    if figure.source.trim().is_empty() {
        return Err(src.error(source, format!("{what} has an empty source")));
    }
    Ok(figure)
}

fn figures(src: &Source, table: &DeTable<'_>) -> Read<Vec<Figure>> {
    let mut in_order: Vec<_> = table.iter().collect();
    in_order.sort_by_key(|(key, _)| key.span().start);
    in_order.into_iter().map(|(key, at)| figure(src, key.get_ref(), at)).collect()
}

fn price(src: &Source, at: &Place<'_>) -> Read<Price> {
    let t = src.table(at, "[price]")?;
    src.known(t, "[price]", &["value", "unit", "source"])?;
    let need =
        |key: &str| t.get(key).ok_or_else(|| src.error(at, format!("[price] lacks \"{key}\"")));
    Ok(Price {
        value: src.number(need("value")?, "value")?,
        unit: src.string(need("unit")?, "unit")?,
        source: src.string(need("source")?, "source")?,
    })
}

const TOP: &[&str] =
    &["name", "title", "summary", "model", "stack", "queue", "derivation", "figure", "price"];

/// File name without folders and `.toml`: the name of a device if its file does not give one.
fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".toml").unwrap_or(name)
}

/// Reads a device file.
pub(crate) fn device(file: &str, text: &str) -> Result<DeviceSpec, Diagnostic> {
    let src = Source { file, text };
    let root = src.parse()?;
    let root = root.get_ref();
    src.known(root, "a device file", TOP)?;
    if let Some(at) = root.get("stack") {
        if let Some(other) = root.get("model").or_else(|| root.get("queue")) {
            let d = src.error(other, "a stack has the models and queues of its legs");
            return Err(d.with_help("leave this table out"));
        }
        let mut spec = crate::stack::read(&src, stem(file), at)?;
        facts(&src, root, &mut spec, &|table| {
            named_texts(&src, table, crate::stack::KEYS.iter().map(|k| k.name).collect())
        })?;
        spec.validate().map_err(|e| src.error(at, e.to_string()))?;
        return Ok(spec);
    }
    let Some(at) = root.get("model") else {
        let d = Diagnostic::file(file, "a device file has a [model] table, or [stack]");
        return Err(
            d.with_help("start with [model], kind = \"hdd\", cap = \"1TiB\" and bw = 150_000_000")
        );
    };
    let model = model(&src, src.table(at, "model")?, "[model]", &[])?;
    let mut spec = DeviceSpec::new(stem(file), model.clone());
    facts(&src, root, &mut spec, &|table| derivation(&src, table, &model))?;
    spec.validate().map_err(|e| spec_error(&src, root, at, &e))?;
    Ok(spec)
}

/// Everything but the model.
fn facts(
    src: &Source,
    root: &DeTable<'_>,
    spec: &mut DeviceSpec,
    derivation: &dyn Fn(&DeTable<'_>) -> Read<Sentences>,
) -> Read<()> {
    for (key, field) in [("name", 0), ("title", 1), ("summary", 2)] {
        let Some(at) = root.get(key) else { continue };
        let text = src.string(at, key)?;
        match field {
            0 => spec.name = text,
            1 => spec.title = text,
            _ => spec.summary = text,
        }
    }
    if let Some(at) = root.get("queue") {
        let table = src.table(at, "queue")?;
        let known: Vec<&str> = BLOCK_KEYS.iter().map(|k| k.name).collect();
        src.known(table, "[queue]", &known)?;
        block_facts(src, table, spec)?;
        spec.validate().map_err(|e| spec_error(src, table, at, &e))?;
    }
    if let Some(at) = root.get("derivation") {
        spec.derivation = derivation(src.table(at, "derivation")?)?;
    }
    if let Some(at) = root.get("figure") {
        spec.figures = figures(src, src.table(at, "figure")?)?;
    }
    spec.price = root.get("price").map(|at| price(src, at)).transpose()?;
    Ok(())
}
