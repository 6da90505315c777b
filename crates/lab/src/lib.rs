//! Running experiments: on which backend, in which order, until when, and what of it is stored and gone on with later.
//!
//! [`run`] takes a planned experiment and gives its records. Whoever watches is told how far it is ([`Watch`]); where results are
//! kept is [`Storing`]. The command line uses nothing else to run things.
#![allow(
    clippy::disallowed_methods,
    reason = "experiments on a machine take time by the wall clock"
)]

mod certain;
mod error;
mod machine;
mod parallel;
mod run;
mod simulate;
mod storing;

pub use certain::certain;
pub use error::{Error, Result};
pub use machine::Machine;
pub use parallel::in_order;
pub use run::{Job, Options, Watch, run};
pub use storing::Storing;

/// What a trial counts on a progress bar.
pub const STEPS: u64 = 1000;
