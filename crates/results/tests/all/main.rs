//! Results from outside: the store, formats that come back, statistics against references.
//!
//! All tests of the crate are in this one program, so that they are linked once.

mod commas;
mod concurrent;
mod files_made;
mod fio_forms;
mod fio_plot;
mod imports;
mod kill;
mod many_trials;
mod power;
mod round_trip;
mod schema;
mod scipy_agreement;
