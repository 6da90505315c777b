//! fio as the load of live runs.

pub mod child;
pub mod fio;
pub(crate) mod guard;
pub mod jobfile;
pub mod meter;
pub(crate) mod probe;
