//! Other tools' results.
//!
//! Every importer takes text and returns data or a [`Diagnostic`] with line and column; none panics, and none
//! reads more than [`MAX_BYTES`] or a line longer than [`MAX_LINE`].

mod bonnie;
mod csv;
mod detect;
mod files;
mod files_made;
mod fio;
mod fio_terse;
mod fio_text;
mod hosts;
mod iozone;
mod numbers;
mod page;
mod pg_test_fsync;
mod s_suite;
mod strangers;
mod text;
mod tools;

use iosched_types::Diagnostic;

pub use crate::pts::from_pts;
pub use bonnie::from_bonnie;
pub use csv::{from_csv, to_csv};
pub use detect::{Context, Format, detect, document, import};
pub use files::{fio_plot, large_document, read_file};
pub use files::{has_s_files, s_folder};
pub use files_made::{from_fs_mark, from_postmark};
pub use fio::from_fio_json;
pub use iozone::from_iozone;
pub use page::from_page;
pub use pg_test_fsync::from_pg_test_fsync;
pub use s_suite::from_s_suite;
pub use text::from_text;
pub use tools::{from_dbench, from_pgbench, from_sysbench};

/// Largest file that is read.
pub const MAX_BYTES: u64 = 256 << 20;
/// Longest line of a line-oriented format, in bytes.
pub const MAX_LINE: usize = 1 << 20;

/// The numbered lines of a text. None is longer than the limit.
fn lines<'a>(
    file: &'a str,
    text: &'a str,
) -> impl Iterator<Item = Result<(usize, &'a str), Diagnostic>> + 'a {
    text.lines().zip(1..).map(move |(line, number)| {
        if line.len() > MAX_LINE {
            return Err(at(
                file,
                number,
                line,
                "",
                format!("a line of {} bytes; {MAX_LINE} is the limit", line.len()),
            ));
        }
        Ok((number, line))
    })
}

/// A problem with `word` in a line (the whole line when the word is empty or elsewhere).
fn at(file: &str, number: usize, line: &str, word: &str, message: String) -> Diagnostic {
    let start = if word.is_empty() { 0 } else { line.find(word).unwrap_or(0) };
    let mut d = Diagnostic::file(file, message);
    d.line = number;
    d.column = line[..start].chars().count() + 1;
    d.width = word.chars().count().max(1);
    d.text = line.chars().take(240).collect();
    d
}

/// Whether a text is a log of strace.
fn strace(text: &str) -> bool {
    iosched_experiment::TraceRef::is_log_of("", &|_| Ok(text.to_string()))
}

#[cfg(test)]
mod tests;
