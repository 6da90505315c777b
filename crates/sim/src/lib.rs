//! The simulator: what a trial needs, put on a machine, and the record of its run.
//!
//! [`simulate`] is a pure function: the same trial and seed give the same bytes, on any machine.

pub mod drift;
mod durable;
mod error;
mod files;
mod ignored;
mod mount;
mod one_tag;
mod programs;
mod quick_syncs;
mod record;
mod replay;
mod run;
pub mod scenario;
mod stack;
mod taped;
pub mod validate;
pub mod window;

pub use error::SimError;
pub use mount::room_for_users;
pub use programs::{calls, into_record, real_program};
pub use run::{Progress, simulate, simulate_with};
