use iosched_results::store::StoreError;

/// What stops an experiment.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A signal, something missing, or what the machine refuses.
    #[error(transparent)]
    Machine(#[from] crate::machine::Error),
    /// A result that cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Threads that cannot be started.
    #[error("no threads: {0}")]
    Threads(String),
    /// A signal, while trials were simulated.
    #[error("interrupted by {signal}: {kept} of {planned} trials {}", more(*stored))]
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
    if stored {
        "are stored; the same command goes on from there"
    } else {
        "were run, and none is stored"
    }
}

/// Shorthand.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Not every command that stores nothing was told so.
    #[test]
    fn what_is_not_stored_names_no_option() {
        let of = |stored| {
            let signal = "SIGINT".into();
            Error::Interrupted { signal, kept: 2, planned: 8, stored }.to_string()
        };
        assert_eq!(of(false), "interrupted by SIGINT: 2 of 8 trials were run, and none is stored");
        assert!(of(true).contains("2 of 8 trials are stored; the same command goes on"));
    }
}
