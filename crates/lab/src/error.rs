use iosched_results::store::StoreError;

/// What stops an experiment.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A signal, something missing, or what the machine refuses.
    #[error(transparent)]
    Machine(#[from] iosched_backends::Error),
    /// A result that cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Threads that cannot be started.
    #[error("no threads: {0}")]
    Threads(String),
    /// A signal, while trials were simulated.
    #[error("interrupted by {signal}: {kept} of {planned} trials are stored{}", more(*stored))]
    Interrupted {
        /// The name.
        signal: String,
        /// Trials that are done.
        kept: usize,
        /// Trials in all.
        planned: usize,
        /// Whether they are in a results file.
        stored: bool,
    },
}

fn more(stored: bool) -> &'static str {
    if stored { "; the same command goes on from there" } else { " nowhere (--no-store)" }
}

/// Shorthand.
pub type Result<T> = std::result::Result<T, Error>;
