//! Block traces: everybody's formats, paired into I/Os.
//!
//! [`open`] finds the format by content and gives a [`Trace`]: I/Os in order of arrival, in constant memory. Only a
//! Parquet file, whose index is at its end, is in memory as a whole; one of more than 4 GiB is refused. On the way
//! nothing is dropped silently: [`Tally`] has what was skipped, lost, out of order or never completed.
//!
//! ```text
//! bytes → unpack → formats::find → Reader → Item → Sorter → Pairer → Io
//! ```
//!
//! [`Live`] does the same with the pages of a recording that is being made.
//!
//! The crate is pure: it reads from and writes to what it is given.

mod error;
mod event;
pub mod formats;
mod lines;
mod live;
mod merge;
mod names;
pub mod pages;
mod pair;
pub mod select;
mod sort;
pub mod summary;
mod tally;
mod trace;
pub mod unpack;
mod words;
pub mod write;

pub use error::Error;
pub use event::{Action, Event, Io, Item};
pub use formats::Format;
pub use live::Live;
pub use merge::Merge;
pub use names::{Name, Names};
pub use tally::{Reason, Skipped, Tally};
pub use trace::{Input, Tables, Trace, in_words, open};
pub use words::OPERATIONS;
