//! Responsiveness, measured as the S suite of BFQ's author does it: the cold start of a command from
//! the disk while others read and write on it.

mod measure;
mod stage;
mod surroundings;

pub use measure::{How, Start, idle_baseline, measure, metrics};
pub use stage::{Stage, find_program, libraries};
