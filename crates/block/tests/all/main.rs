//! The block layer from outside: switching schedulers under load, and the documentation of the kernel profiles.
//!
//! All tests of the crate are in this one program, so that they are linked once.

mod kernel_docs;
mod switching;
