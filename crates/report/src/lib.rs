//! Reports: tables for the terminal, and one self-contained HTML page, and a
//! small web server over the stored results.

pub mod calls;
pub mod html;
pub mod serve;
pub mod svg;
pub mod terminal;

pub use html::{Input, Options, html};
pub use serve::{Server, serve};
