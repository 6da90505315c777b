//! fio as the load of live runs.

pub mod child;
pub mod fio;
pub mod jobfile;
pub mod meter;
