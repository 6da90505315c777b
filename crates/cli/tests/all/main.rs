//! The program from outside: its commands and its help.
//!
//! Apart, with processes of their own, are the tests that start disks: `emulate`, `environment` and `safety`. A busy
//! machine disturbs them, and a watchdog may have to end their process.

mod command;
mod help_page;
