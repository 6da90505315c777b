//! Pages from outside: what is in them, the server, and both in a real browser.
//!
//! All tests of the crate are in this one program, so that they are linked once.

mod browser;
mod drawn;
mod page;
mod saved;
mod serve;
mod synthetic;
