//! The simulator: processes, block layer and device on one virtual clock.
//!
//! [`simulate`] is a pure function: the same trial and seed give the same bytes, on any machine.

mod cpu;
pub mod drive;
mod error;
mod ios;
mod record;
mod run;
pub mod scenario;
mod thin;
pub mod validate;

pub use error::SimError;
pub use run::{Progress, simulate, simulate_with};
