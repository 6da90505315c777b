//! Trials on the running kernel: on an emulated disk and on a real disk, as backends of `iosched-lab`.
//!
//! This is the only crate that touches the machine. It writes down every change first, and puts it back after success,
//! failure, SIGINT and SIGTERM. After SIGKILL a guardian process does that. If the guardian was killed, too,
//! `iosched restore` does.
#![allow(
    clippy::disallowed_methods,
    reason = "backends read clocks, files and devices: that is what they are for"
)]

pub mod apart;
pub mod backend;
mod benchmark;
mod cgroup;
pub mod discover;
pub mod doctor;
pub mod emulate;
mod filesystem;
pub mod ground;
pub mod guardian;
pub mod inspect;
mod instance;
pub mod kernel_fs;
pub mod load;
pub mod made;
mod mounts;
pub mod parse;
pub mod program;
pub mod record;
pub mod restore;
pub mod root;
pub mod startup;
pub mod state;
pub mod switch;
pub mod target;
pub mod timing;
pub mod trace;
pub mod validate;
pub mod validity;

mod sys;

/// What the machine refuses, in the words that runners of experiments know.
pub mod error {
    pub use iosched_lab::machine::{Error, ExitClass, Result};
}

pub use backend::Machine;
pub use benchmark::tree::{TREE, own_tree};
pub use benchmark::{figures_in, real_programs};
pub use error::{Error, ExitClass, Result};
pub use root::SysRoot;
