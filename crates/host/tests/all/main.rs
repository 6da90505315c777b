//! The host from outside: programs and their calls, file systems, texts of benchmarks, bodies of the fuzz targets.
//!
//! All tests but that of allocations are in this one program, so that they are linked once.

#[path = "../rig/mod.rs"]
mod rig;

mod full;
mod mounted;
mod programs;
mod random;
mod texts;
