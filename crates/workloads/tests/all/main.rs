//! Workloads from outside: fio's jobs, programs, logs of strace.
//!
//! All tests of the crate are in this one program, so that they are linked once.

mod fio;
mod programs;
mod strace;
