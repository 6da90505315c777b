//! I/Os in forms that other tools read: one file and one line of [`FORMS`] each.

mod blkparse;
mod csv;
mod iolog;
#[cfg(feature = "parquet")]
mod parquet;

use std::io::{self, Write};

use crate::event::Io;
use crate::trace::Tables;

/// A form.
pub struct Form {
    /// Its name on the command line.
    pub name: &'static str,
    /// The form in words.
    pub about: &'static str,
    /// The ending of files that have it.
    pub ending: &'static str,
    /// Whether lines that begin with `#` may stand in it.
    pub comments: bool,
    /// Begins a file.
    pub begin: Begin,
}

/// Begins a file.
pub type Begin = for<'a> fn(Box<dyn Write + Send + 'a>) -> io::Result<Box<dyn Sink + 'a>>;

/// All forms.
pub static FORMS: &[&Form] = &[
    &csv::FORM,
    &iolog::V3,
    &iolog::V2,
    &blkparse::FORM,
    #[cfg(feature = "parquet")]
    &parquet::FORM,
];

impl std::fmt::Debug for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Form({})", self.name)
    }
}

/// Takes I/Os in order of arrival.
pub trait Sink {
    /// Writes an I/O.
    ///
    /// # Errors
    /// Those of writing.
    fn io(&mut self, io: &Io, tables: &Tables) -> io::Result<()>;

    /// Writes what belongs behind the last.
    ///
    /// # Errors
    /// Those of writing.
    fn end(&mut self, tables: &Tables) -> io::Result<()>;

    /// What the form cannot hold and the trace had, in words; empty when nothing.
    fn lost(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The form of a name.
///
/// # Errors
/// The sentence to show, with the nearest name.
pub fn by_name(name: &str) -> Result<&'static Form, String> {
    FORMS.iter().find(|f| f.name == name).copied().ok_or_else(|| {
        let all: Vec<&str> = FORMS.iter().map(|f| f.name).collect();
        let near = iosched_types::nearest::did_you_mean(name, all.clone());
        format!("unknown form \"{name}\" ({}) {near}", all.join(", "))
    })
}

/// The form of a file with this name; `.gz` behind the ending says that it is packed.
#[must_use]
pub fn of_file(name: &str) -> Option<&'static Form> {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    FORMS.iter().find(|f| name.ends_with(f.ending)).copied()
}
