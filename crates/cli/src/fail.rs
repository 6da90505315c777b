//! What ends the program early: one message, one exit code.

use std::fmt::Display;

use iosched_types::Diagnostic;

/// Exit codes.
pub(crate) mod code {
    /// A comparison found a regression.
    pub(crate) const REGRESSION: u8 = 1;
    /// Usage or bad input.
    pub(crate) const INPUT: u8 = 2;
    /// The machine lacks something.
    pub(crate) const MISSING: u8 = 3;
    /// A trial failed.
    pub(crate) const FAILED: u8 = 4;
    /// A comparison cannot tell whether there is a regression.
    pub(crate) const CANNOT_TELL: u8 = 5;
}

/// An exit code and the messages before it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    /// Messages, each printed after `error: `; none when all messages are out already.
    pub(crate) messages: Vec<String>,
}

/// What every command returns.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: u8, message: impl Display) -> Failure {
        Failure { code, messages: vec![message.to_string()] }
    }

    /// Bad input.
    pub(crate) fn input(message: impl Display) -> Failure {
        Failure::new(code::INPUT, message)
    }

    /// Bad input with advice.
    pub(crate) fn with_help(message: impl Display, help: impl Display) -> Failure {
        let help = help.to_string();
        if help.is_empty() {
            return Failure::input(message);
        }
        Failure::input(format!("{message}\n  = help: {help}"))
    }

    /// A problem with the machine.
    fn of_machine(e: &iosched_backends::Error, help: &str) -> Failure {
        let message =
            if help.is_empty() { e.to_string() } else { format!("{e}\n  = help: {help}") };
        Failure::new(e.class() as u8, message)
    }

    /// An exit code without a message.
    pub(crate) fn silent(code: u8) -> Failure {
        Failure { code, messages: Vec::new() }
    }
}

/// What ended an experiment.
pub(crate) enum End {
    /// A run.
    Run(iosched_lab::Error),
    /// What is done with a record.
    Other(Failure),
}

impl From<iosched_lab::Error> for End {
    fn from(e: iosched_lab::Error) -> End {
        End::Run(e)
    }
}

impl End {
    /// The same for the user; finished runs may be `stored`.
    pub(crate) fn told(self, stored: bool) -> Failure {
        match self {
            End::Run(iosched_lab::Error::Machine(e)) if stored => {
                Failure::of_machine(&e, &e.help_to_go_on())
            }
            End::Run(e) => e.into(),
            End::Other(e) => e,
        }
    }
}

impl From<Diagnostic> for Failure {
    fn from(d: Diagnostic) -> Failure {
        Failure::input(d)
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(list: Vec<Diagnostic>) -> Failure {
        Failure { code: code::INPUT, messages: list.iter().map(ToString::to_string).collect() }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(e: anyhow::Error) -> Failure {
        Failure::input(format!("{e:#}"))
    }
}

impl From<iosched_backends::Error> for Failure {
    fn from(e: iosched_backends::Error) -> Failure {
        Failure::of_machine(&e, &e.help())
    }
}

impl From<iosched_results::store::StoreError> for Failure {
    fn from(e: iosched_results::store::StoreError) -> Failure {
        use iosched_results::store::StoreError;
        match e {
            StoreError::Full(_) => Failure::new(code::FAILED, e),
            _ => Failure::input(e),
        }
    }
}

impl From<iosched_lab::Error> for Failure {
    fn from(e: iosched_lab::Error) -> Failure {
        use iosched_lab::Error;
        match e {
            Error::Machine(e) => e.into(),
            Error::Store(e) => e.into(),
            Error::Threads(_) => Failure::new(code::MISSING, e),
            Error::Interrupted { .. } => Failure::new(code::FAILED, e),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(e: serde_json::Error) -> Failure {
        Failure::input(format!("the results cannot be written as JSON: {e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_runs_are_kept_where_they_are_stored() {
        let told = |stored| {
            let gone = iosched_backends::Error::Interrupted { signal: "SIGINT".into() };
            End::Run(iosched_lab::Error::Machine(gone)).told(stored).messages.join("")
        };
        assert!(told(true).contains("finished runs are kept"));
        assert_eq!(told(false), "interrupted by SIGINT");
    }
}
