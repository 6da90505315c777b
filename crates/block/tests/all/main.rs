//! The block layer from outside: switching schedulers under load, the documentation of the kernel profiles,
//! and which of its files may use which.
//!
//! All tests of the crate are in this one program, so that they are linked once.

mod kernel_docs;
mod layers;
mod stack;
mod switching;
