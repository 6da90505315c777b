//! Rules of udev: [`parse`] reads a file, [`run`] applies all files to an event of a device.

mod command;
mod eval;
mod parse;

pub(crate) use eval::{Branch, Device, Event, Hits, SETS_ID, run};
pub(crate) use parse::{File, Line, Op, Token, parse};
