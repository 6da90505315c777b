//! Parsers of the output of the kernel and of tools. They take any text and never panic. They leave out or report what
//! they cannot read.

pub mod diskstats;
pub mod mountinfo;
pub mod proc_stat;
pub mod psi;
pub mod scheduler;
pub mod tags;
pub mod trace;
pub mod version;
