//! fio's JSON output: one set of types that both writes and reads it.
//!
//! The structure, the units and the order of the fields are those of fio 3.33
//! (`--output-format=json+`), found by running it. Readers are lenient about absent fields, so
//! any 3.x file is read; writers emit every field.

mod forms;
mod read;
mod types;
mod write;

pub use forms::{settle, without_nan};
pub use read::from_fio;
pub use types::{
    Direction, DiskUtil, FioJob, FioOutput, LatencyStats, Ordered, SteadyState, SteadyStateData,
    Sync, Unread,
};
pub use write::{fio_json, fio_output};

#[cfg(test)]
mod tests;
