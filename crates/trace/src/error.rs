//! What ends the reading of a trace.

use std::io;

use iosched_types::Diagnostic;

/// Why a trace cannot be read, or not further.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The content is no trace, or one of another tool's own form.
    #[error(transparent)]
    Bad(Box<Diagnostic>),
    /// The file cannot be read, or its compression is broken.
    #[error("{file}: {error}")]
    Read {
        /// The file, as the user named it.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// The result cannot be written.
    #[error("cannot write the trace: {0}")]
    Write(io::Error),
}

impl From<Diagnostic> for Error {
    fn from(d: Diagnostic) -> Error {
        Error::Bad(Box::new(d))
    }
}
