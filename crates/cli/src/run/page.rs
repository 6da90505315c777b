//! `iosched run --html`: a page about what was run.

use iosched_experiment::Record;
use iosched_report::{Input, Options, html};

use crate::args::RunArgs;
use crate::fail::{Failure, Outcome};
use crate::files::{note, same_file, writable};
use crate::store;

/// Before anything runs: whether the page can be written there.
pub(super) fn check(args: &RunArgs) -> Outcome {
    let Some(path) = &args.html else { return Ok(()) };
    writable(path)?;
    super::not_an_input(path, &args.files)?;
    if args.output.as_deref().is_some_and(|output| same_file(output, path)) {
        let help = "give each a file of its own";
        return Err(Failure::with_help("--html and --output name the same file", help));
    }
    Ok(())
}

/// The page, if one is wanted: of what was stored, which has the tools' own words and the command to run it again, else
/// of the records.
pub(super) fn of(
    args: &RunArgs,
    title: &str,
    stored: Option<&Vec<i64>>,
    records: &[Record],
) -> Outcome<Option<String>> {
    if args.html.is_none() {
        return Ok(None);
    }
    let options = Options { title: title.into(), ..Options::default() };
    let input = match stored.map(Vec::as_slice) {
        None => Input::from_records(options, records),
        Some(&[id]) => Input::from_store(options, &store::open_read_only(&args.db)?, id)?,
        Some(ids) => {
            let store = store::open_read_only(&args.db)?;
            let mut input = Input::from_records(options, []);
            for id in ids {
                input.add_stored(&store, *id, "")?;
            }
            input
        }
    };
    Ok(Some(html(&input)))
}

/// Writes it.
pub(super) fn write(args: &RunArgs, page: Option<&str>) -> Outcome {
    let (Some(path), Some(page)) = (&args.html, page) else { return Ok(()) };
    crate::files::write(path, page)?;
    if !args.quiet {
        note(&format!("{}: {} KiB", path.display(), page.len().div_ceil(1024)));
    }
    Ok(())
}
