//! Running experiments: on which backend, in which order, until when, and which results are stored so that a later
//! start goes on.
//!
//! [`run`] takes a planned experiment and gives its records. [`Watch`] hears how far the experiment is. [`Storing`]
//! keeps results. The command line uses nothing else to run experiments.
#![allow(
    clippy::disallowed_methods,
    reason = "experiments on a machine take time by the wall clock"
)]

mod budget;
mod certain;
mod error;
pub mod machine;
mod parallel;
mod purse;
pub mod reproduce;
mod run;
mod simulate;
mod storing;
mod warm_up;

pub use certain::certain;
pub use error::{Error, Result};
pub use parallel::in_order;
pub use run::{Job, Options, Watch, run};
pub use storing::{Storing, Tools};

/// What a trial counts on a progress bar.
pub const STEPS: u64 = 1000;
