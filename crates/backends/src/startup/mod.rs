//! Responsiveness, measured as the S suite of BFQ's author does it: the cold start of a command from
//! the disk while others read and write on it.

mod measure;
mod mix;
mod stage;

pub use measure::{Options, Startup, idle_baseline, measure, to_record};
pub use mix::{Access, Mix};
pub use stage::{Stage, libraries};
