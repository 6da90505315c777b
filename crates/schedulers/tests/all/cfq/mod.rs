//! CFQ alone, without a block layer: the worked scenarios, the guarantees, the golden files.
#![allow(clippy::unwrap_used, reason = "tests")]

mod driver;
mod examples;
mod golden;
mod guarantees;
mod trees;
mod walk;
