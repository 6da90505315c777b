//! What this machine is and has: for people before a run, and for reports after it.

mod json;
mod report;
mod tools;
mod who;

pub use report::{Report, examine};
pub use tools::{Tool, find_tools};
pub use who::{Setter, Setting, who_set_it};
