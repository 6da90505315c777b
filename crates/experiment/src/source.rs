//! Reading TOML with the place of every value at hand.

use std::ops::RangeInclusive;

use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::place::Place;

/// A value and where it stands.
pub type At<'a> = Spanned<DeValue<'a>>;

/// The file that is being read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The name, for messages.
    pub file: &'a str,
    /// What is in it.
    pub text: &'a str,
}

/// A value, or what is wrong with it and where.
pub type Read<T> = Result<T, Diagnostic>;

impl<'a> Source<'a> {
    /// The whole file.
    ///
    /// # Errors
    /// The first place that is no TOML.
    pub fn parse(&self) -> Read<Spanned<DeTable<'a>>> {
        DeTable::parse(self.text).map_err(|e| match e.span() {
            Some(span) => Diagnostic::at_span(self.file, self.text, span, e.message()),
            None => Diagnostic::file(self.file, e.message()),
        })
    }

    /// A byte range as a place to which later errors point.
    #[must_use]
    pub fn place(&self, span: std::ops::Range<usize>) -> Place {
        Place::span(self.file, self.text, span)
    }

    /// An error at a value.
    pub fn error(&self, at: &At, message: impl Into<String>) -> Diagnostic {
        Diagnostic::at_span(self.file, self.text, at.span(), message)
    }

    /// Refuses the first key that is not among `known`.
    ///
    /// # Errors
    /// That key, with the nearest known one.
    pub fn known(&self, table: &DeTable, what: &str, known: &[&str]) -> Read<()> {
        self.unknown(table, what, known).into_iter().next().map_or(Ok(()), Err)
    }

    /// The keys that are not among `known`, in their order, each with the nearest known one.
    #[must_use]
    pub fn unknown(&self, table: &DeTable, what: &str, known: &[&str]) -> Vec<Diagnostic> {
        let mut keys: Vec<_> =
            table.keys().filter(|k| !known.contains(&k.get_ref().as_ref())).collect();
        keys.sort_by_key(|k| k.span().start);
        keys.into_iter().map(|k| self.unknown_key(k, what, known)).collect()
    }

    fn unknown_key(
        &self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        what: &str,
        known: &[&str],
    ) -> Diagnostic {
        let word: &str = key.get_ref();
        let mut help = did_you_mean(word, known.iter().copied());
        if help.is_empty() {
            help = format!("known here: {}", known.join(", "));
        }
        let message = format!("unknown key \"{word}\" in {what}");
        self.place(key.span()).error(message).with_help(help)
    }

    fn wrong(&self, at: &At, key: &str, want: &str) -> Diagnostic {
        self.error(at, format!("{key} must be {want}, not {}", at.get_ref().type_str()))
    }

    /// A string with something in it.
    ///
    /// # Errors
    /// Another type, or nothing in it.
    pub fn string(&self, at: &At, key: &str) -> Read<String> {
        let s = at.get_ref().as_str().ok_or_else(|| self.wrong(at, key, "a string"))?;
        if s.trim().is_empty() {
            return Err(self.error(at, format!("{key} is empty")));
        }
        Ok(s.to_string())
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// Another type.
    pub fn boolean(&self, at: &At, key: &str) -> Read<bool> {
        at.get_ref().as_bool().ok_or_else(|| self.wrong(at, key, "true or false"))
    }

    /// A table.
    ///
    /// # Errors
    /// Another type.
    pub fn table<'t>(&self, at: &'t At<'a>, key: &str) -> Read<&'t DeTable<'a>> {
        at.get_ref().as_table().ok_or_else(|| self.wrong(at, key, "a table"))
    }

    /// The elements of a list; a single value counts as a list of one.
    #[must_use]
    pub fn list<'t>(&self, at: &'t At<'a>) -> Vec<&'t At<'a>> {
        match at.get_ref() {
            DeValue::Array(a) => a.iter().collect(),
            _ => vec![at],
        }
    }

    /// A whole number, or 0/1 for a boolean.
    ///
    /// # Errors
    /// Another type, or a number too large.
    pub fn integer(&self, at: &At, key: &str) -> Read<i64> {
        if let Some(b) = at.get_ref().as_bool() {
            return Ok(i64::from(b));
        }
        let i = at.get_ref().as_integer().ok_or_else(|| self.wrong(at, key, "a whole number"))?;
        i64::from_str_radix(&i.as_str().replace('_', ""), i.radix())
            .map_err(|_| self.error(at, format!("{key} is out of the range of numbers")))
    }

    /// A whole number within bounds.
    ///
    /// # Errors
    /// Another type, or a number outside.
    pub fn within(&self, at: &At, key: &str, range: RangeInclusive<i64>) -> Read<i64> {
        let v = self.integer(at, key)?;
        if !range.contains(&v) {
            let (min, max) = (range.start(), range.end());
            return Err(self.error(at, format!("{key} = {v} is out of range: {min} to {max}")));
        }
        Ok(v)
    }

    /// A finite number, whole or not.
    ///
    /// # Errors
    /// Another type, or infinity or NaN.
    pub fn number(&self, at: &At, key: &str) -> Read<f64> {
        let v = match at.get_ref() {
            DeValue::Integer(_) => self.integer(at, key)? as f64,
            DeValue::Float(f) => f.as_str().replace('_', "").parse().unwrap_or(f64::NAN),
            _ => return Err(self.wrong(at, key, "a number")),
        };
        if !v.is_finite() {
            return Err(self.error(at, format!("{key} must be a finite number")));
        }
        Ok(v)
    }

    /// A value as fio expects it: `5`, `4k`, `1`.
    ///
    /// # Errors
    /// A list, a table, or a number that is not finite.
    pub fn fio_value(&self, at: &At, key: &str) -> Read<String> {
        match at.get_ref() {
            DeValue::String(s) => Ok(s.to_string()),
            DeValue::Boolean(b) => Ok(u8::from(*b).to_string()),
            DeValue::Integer(_) => Ok(self.integer(at, key)?.to_string()),
            DeValue::Float(f) => {
                let v: f64 = f.as_str().replace('_', "").parse().unwrap_or(f64::NAN);
                if !v.is_finite() {
                    return Err(self.error(at, format!("{key} must be a finite number")));
                }
                Ok(v.to_string())
            }
            _ => Err(self.wrong(at, key, "a number or a string")),
        }
    }
}
