//! Parameters of programs: names, units, defaults, bounds.

use std::fmt;
use std::sync::Arc;

use iosched_engine::fnv1a;
use iosched_types::nearest::did_you_mean;
use iosched_types::units::parse_bytes;
use iosched_types::{Bytes, Diagnostic, Nanos};

use super::{Descriptor, Mix};

/// A parameter.
#[derive(Debug)]
pub struct Param {
    /// Name.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub text: &'static str,
    /// The default, as one would write it.
    pub default: &'static str,
    /// What may stand there.
    pub kind: Kind,
}

/// What may stand in a parameter.
#[derive(Debug)]
pub enum Kind {
    /// One of these words.
    Word(&'static [&'static str]),
    /// The name of a file or directory below the program's.
    Name,
    /// A number of bytes, with suffixes `k`, `M`, `G`.
    Bytes(i64, i64),
    /// A number.
    Count(i64, i64),
    /// A text file, read with the experiment and checked by this; its default is a word that stands for no file.
    File(fn(&str, &str) -> Result<(), Diagnostic>),
    /// Readers and writers in the notation of [`Mix`].
    Load,
}

/// A value.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// A word or name.
    Text(Arc<str>),
    /// A number.
    Number(i64),
    /// A file: its name and what it holds.
    File(Arc<str>, Arc<str>),
}

impl fmt::Debug for Value {
    /// What results depend on; of a file a digest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => write!(f, "Text({text:?})"),
            Value::Number(n) => write!(f, "Number({n})"),
            Value::File(_, text) => write!(f, "File({:016x})", fnv1a(text.as_bytes())),
        }
    }
}

impl Param {
    /// The unit, for tables.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Word(_) => "word",
            Kind::Name => "name",
            Kind::Bytes(..) => "bytes",
            Kind::Count(..) => "number",
            Kind::File(_) => "file",
            Kind::Load => "load",
        }
    }

    /// The bounds, for tables.
    #[must_use]
    pub fn bounds(&self) -> String {
        match self.kind {
            Kind::Word(words) => words.join(", "),
            Kind::Name => "relative".into(),
            Kind::File(_) => format!("{} or a file", self.default),
            Kind::Load => Mix::USUAL.join(", "),
            Kind::Bytes(min, max) | Kind::Count(min, max) => format!("{min} to {max}"),
        }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let bad = |why: String| Err(format!("{}={text}: {why}", self.name));
        match self.kind {
            Kind::Word(words) if words.contains(&text) => Ok(Value::Text(text.into())),
            Kind::Word(words) => match did_you_mean(text, words.iter().copied()) {
                near if near.is_empty() => bad(format!("known are {}", words.join(", "))),
                near => bad(near),
            },
            Kind::Load if Mix::parse(text).is_some() => Ok(Value::Text(text.into())),
            Kind::Load if Mix::is_too_large(text) => bad(Mix::BOUNDS.into()),
            Kind::Load => match did_you_mean(text, Mix::USUAL) {
                near if near.is_empty() => {
                    bad(format!("readers and writers are expected: {}", Mix::USUAL.join(", ")))
                }
                near => bad(near),
            },
            Kind::Name => {
                let leaves = text.starts_with('/') || text.split('/').any(|p| p == "..");
                if leaves || text.is_empty() || text.len() > 255 {
                    return bad("a name below the program's directory is expected".into());
                }
                Ok(Value::Text(text.into()))
            }
            Kind::File(_) if text.is_empty() => bad("the name of a file is expected".into()),
            Kind::File(_) => Ok(Value::Text(text.into())),
            Kind::Bytes(min, max) => self.within(text, &signed_bytes, min, max),
            Kind::Count(min, max) => self.within(text, &|t| t.parse().ok(), min, max),
        }
    }

    /// A name as it stands in a command line: one below a mount (`/mnt/x/small`, `$M/small`) is one of the file system.
    pub(super) fn below_mount<'a>(&self, word: &'a str) -> &'a str {
        let mounted = word.strip_prefix("$M").or_else(|| {
            let rest = word.strip_prefix("/mnt/")?;
            Some(&rest[rest.find('/').unwrap_or(rest.len())..])
        });
        match (&self.kind, mounted.map(|m| m.trim_matches('/'))) {
            (Kind::Name, Some("")) => ".",
            (Kind::Name, Some(name)) => name,
            _ => word,
        }
    }

    /// A value as one would write it.
    fn show(&self, value: &Value) -> String {
        match (value, &self.kind) {
            (Value::Number(n), Kind::Bytes(..)) if *n > 0 => {
                let shift = (n.trailing_zeros() / 10).min(4) as usize;
                format!("{}{}", n >> (10 * shift), ["", "k", "M", "G", "T"][shift])
            }
            (Value::Number(n), _) => n.to_string(),
            (Value::Text(t) | Value::File(t, _), _) => t.to_string(),
        }
    }

    fn within(
        &self,
        text: &str,
        read: &dyn Fn(&str) -> Option<i64>,
        min: i64,
        max: i64,
    ) -> Result<Value, String> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let unit = unsigned.trim_start_matches(|c: char| c.is_ascii_digit());
        // A number of any length with a unit that there is.
        let number = || unit.len() < unsigned.len() && read(&format!("1{unit}")).is_some();
        match read(text) {
            Some(n) if (min..=max).contains(&n) => Ok(Value::Number(n)),
            None if !number() => {
                Err(format!("{}={text}: a number is expected, {min} to {max}", self.name))
            }
            _ => Err(format!("{}={text} is out of range: {min} to {max}", self.name)),
        }
    }
}

fn signed_bytes(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(rest) => parse_bytes(rest)?.try_into().ok().map(|n: i64| -n),
        None => parse_bytes(text)?.try_into().ok(),
    }
}

/// The parameters of one run; every one has a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    values: Arc<[(&'static str, Value)]>,
    /// The seed was set, so it is that of every repetition.
    seeded: bool,
}

/// The parameter that a program's random numbers begin with.
const SEED: &str = "seed";

impl Params {
    /// The values that are set, and defaults for the others.
    ///
    /// # Errors
    /// An unknown name (with the nearest), one that comes twice, a value that does not fit.
    pub fn of(d: &Descriptor, set: &[(String, String)]) -> Result<Params, String> {
        for (i, (name, _)) in set.iter().enumerate() {
            if !d.params.iter().any(|p| p.name == name) {
                let names = || d.params.iter().map(|p| p.name);
                let near = did_you_mean(name, names());
                let all: Vec<&str> = names().collect();
                let help =
                    if near.is_empty() { format!("known are {}", all.join(", ")) } else { near };
                return Err(format!("{} has no parameter \"{name}\"; {help}", d.name));
            }
            if set[..i].iter().any(|(n, _)| n == name) {
                return Err(format!("{name} is set twice"));
            }
        }
        let value = |p: &Param| {
            let own = set.iter().find(|(n, _)| n == p.name).map(|(_, v)| v.as_str());
            p.read(own.unwrap_or(p.default)).map(|v| (p.name, v))
        };
        let values = d.params.iter().map(value).collect::<Result<_, _>>()?;
        let params = Params { values, seeded: set.iter().any(|(n, _)| n == SEED) };
        (d.fits)(&params)?;
        Ok(params)
    }

    /// The same with the files that are named read by `read`.
    ///
    /// # Errors
    /// A file that cannot be read, or that is not what the program expects.
    pub fn with_files(
        self,
        d: &Descriptor,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Params, Diagnostic> {
        let mut values = self.values.to_vec();
        for (p, (_, value)) in d.params.iter().zip(&mut values) {
            let (Kind::File(check), Value::Text(name)) = (&p.kind, &*value) else { continue };
            if **name == *p.default {
                continue;
            }
            let text = read(name).map_err(|x| {
                let message = format!("{}: cannot read \"{name}\": {x}", p.name);
                let help = format!("without the parameter it is \"{}\"", p.default);
                Diagnostic::file(&**name, message).with_help(help)
            })?;
            check(name, &text)?;
            *value = Value::File(name.clone(), text.into());
        }
        Ok(Params { values: values.into(), ..self })
    }

    /// The same in the repetition that comes so many after the first: it draws other numbers, unless the seed was set. A
    /// lead that one draw gives must hold in others.
    #[must_use]
    pub fn repeated(&self, after: u64) -> Params {
        let mut values = self.values.to_vec();
        for (_, value) in values.iter_mut().filter(|(n, _)| *n == SEED && !self.seeded) {
            if let Value::Number(n) = value {
                *n = (n.wrapping_add(after as i64)) & i64::from(u32::MAX);
            }
        }
        Params { values: values.into(), ..self.clone() }
    }

    /// What a file holds, if one was named.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<Arc<str>> {
        match self.get(name) {
            Some(Value::File(_, text)) => Some(text.clone()),
            _ => None,
        }
    }

    /// All values, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.values.iter().map(|(n, v)| match v {
            Value::Text(t) => (*n, t.to_string()),
            Value::Number(i) => (*n, i.to_string()),
            Value::File(name, text) => (*n, format!("{name} ({:016x})", fnv1a(text.as_bytes()))),
        })
    }

    /// The parameters that set how long the program takes and that differ from the published run: value and default.
    #[must_use]
    pub fn lengths(&self, d: &Descriptor) -> Vec<String> {
        let names: Vec<&str> = d.quick.iter().map(|(name, _)| *name).collect();
        self.differing(d, &names)
    }

    /// Those of these parameters that do not have their defaults, in words.
    #[must_use]
    pub fn differing(&self, d: &Descriptor, names: &[&str]) -> Vec<String> {
        let differs = |name: &&str| {
            let p = d.params.iter().find(|p| p.name == *name)?;
            let own = self.get(name)?;
            let default = p.read(p.default).ok()?;
            let (own, usual) = (p.show(own), p.show(&default));
            (own != usual).then(|| format!("{name}={own} instead of {usual}"))
        };
        names.iter().filter_map(differs).collect()
    }

    /// A number.
    #[must_use]
    pub fn number(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(Value::Number(n)) => *n,
            _ => 0,
        }
    }

    /// A number that is not negative.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        self.number(name).try_into().unwrap_or(0)
    }

    /// A number of bytes.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Bytes {
        self.count(name)
    }

    /// A number of microseconds.
    #[must_use]
    pub fn micros(&self, name: &str) -> Nanos {
        self.count(name).saturating_mul(1000)
    }

    /// A word or name.
    #[must_use]
    pub fn word(&self, name: &str) -> Arc<str> {
        match self.get(name) {
            Some(Value::Text(t)) => t.clone(),
            _ => "".into(),
        }
    }

    /// Readers and writers.
    #[must_use]
    pub fn load(&self, name: &str) -> Mix {
        Mix::parse(&self.word(name)).unwrap_or_default()
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }
}
