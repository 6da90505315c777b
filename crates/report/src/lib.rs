//! Reports: tables for the terminal, and one self-contained HTML page, and a
//! small web server over the stored results.

pub mod calls;
pub mod html;
pub mod serve;
mod steps;
pub mod svg;
pub mod terminal;
mod trace;

pub use html::{Input, Options, html};
pub use serve::{Server, serve};
pub use steps::{Lane, Step, steps};
pub use trace::trace_page;
