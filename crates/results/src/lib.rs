//! Results of trials: storing, judging, comparing, and exchanging them with other tools.
//!
//! * [`store`] keeps records in one SQLite file, a transaction per trial.
//! * [`stats`] turns samples into summaries, intervals, tests and verdicts.
//! * [`cells`] groups records and judges each scheduler against a base.
//! * [`compare`] compares a new result with a base and says what changed.
//! * [`model`] is the tool-neutral comparison (runs × tests × samples) that result viewers speak.
//! * [`import`] and [`export`] translate fio, PTS, CSV, iozone, pg_test_fsync and S results.
//! * [`viewer`] computes the reference viewer's figures; [`render`] prints.
//! * [`standing`] says how a scheduler that was chosen stands to the kernel's default and to the best of the others.
//! * [`trace`] packs whole block traces and writes them as text.
//! * [`published`] holds five published comparisons.

pub mod answer;
pub mod cells;
pub mod compare;
pub mod export;
pub mod fio;
pub mod grid;
pub mod hist;
pub mod import;
pub mod measure;
pub mod model;
pub mod pts;
pub mod published;
pub mod render;
pub mod replays;
pub mod standing;
pub mod stats;
pub mod store;
pub mod trace;
pub mod verdict;
pub mod viewer;

pub use fio::fio_json;
