//! What processes do: fio job files, traces and named benchmarks, as streams of steps.
//!
//! The crate is pure: it takes text, and knows neither the block layer nor a clock.

pub mod fio;
pub mod programs;
pub mod replay;
pub mod strace;
