//! The backends from outside: discovery, who uses a disk, the protocol, programs, outputs of tools.
//!
//! These tests are in one program, so that they are linked once. Apart, with a process of their own, are those that
//! would disturb others: `live` kills and cuts what outlives its limit, `transport` sends signals to itself and
//! ends the process when a disk does not answer, `timing` measures by the wall clock.

mod backends;
mod discover;
mod files;
mod inspect;
mod programs;
mod tool_outputs;
