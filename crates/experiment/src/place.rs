//! Where something of an experiment was written: in a file or on the command line.

use std::ops::Range;

use iosched_types::Diagnostic;

/// A place to which errors found later still point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(Diagnostic);

impl Place {
    /// A byte range of a file.
    #[must_use]
    pub fn span(file: &str, text: &str, span: Range<usize>) -> Place {
        Place(Diagnostic::at_span(file, text, span, ""))
    }

    /// A file as a whole.
    #[must_use]
    pub fn file(file: &str) -> Place {
        Place(Diagnostic::file(file, ""))
    }

    /// A command-line option and the part of its value that is meant.
    #[must_use]
    pub fn option(option: &str, value: &str, part: &str) -> Place {
        let start = value.find(part).unwrap_or(0);
        let span = start..start + part.len().min(value.len() - start);
        Place::span(option, value, span)
    }

    /// An error at this place.
    #[must_use]
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic { message: message.into(), ..self.0.clone() }
    }
}

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// The place.
    pub place: Place,
}

impl<T> Placed<T> {
    /// Puts both together.
    #[must_use]
    pub fn new(value: T, place: Place) -> Placed<T> {
        Placed { value, place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_points_at_the_part_that_is_wrong() {
        let d = Place::option("--device", "hdd-7200,sdd", "sdd").error("unknown device");
        assert_eq!((d.file.as_str(), d.line, d.column, d.width), ("--device", 1, 10, 3));
        assert_eq!(Place::option("--device", "x", "absent").error("e").column, 1);
    }
}
