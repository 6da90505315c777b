//! Parsers of what the kernel and tools print. They take any text and never panic; what they cannot
//! read they leave out or report.

pub mod diskstats;
pub mod mountinfo;
pub mod proc_stat;
pub mod psi;
pub mod scheduler;
pub mod tags;
pub mod trace;
pub mod version;
