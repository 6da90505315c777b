//! fio job files: what they mean, what is refused, and whether real fio agrees.
#![allow(clippy::disallowed_methods, reason = "these tests read files and run fio")]
#![allow(clippy::unwrap_used, clippy::too_many_lines, reason = "tests, and tables of cases")]

mod bad_input;
mod documents;
mod examples;
mod meaning;
mod posted;
mod properties;
mod real_fio;
mod sequence;
mod sequence_jobs;
mod support;
