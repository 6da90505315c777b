//! The same programs with real system calls and in the simulator: the same calls, the same answers.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests of what touches the machine"
)]

mod beside;
mod ends;
mod every;
mod random;
mod texts;
