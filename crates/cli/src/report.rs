//! `iosched report` and `iosched serve`: pages about results.

use anyhow::Context;
use iosched_report::{Input, Options, html};
use iosched_results::published;
use iosched_types::nearest::did_you_mean;

use crate::args::{ReportArgs, ServeArgs};
use crate::fail::{Failure, Outcome};
use crate::files::{note, writable, write};
use crate::store::{open_read_only, path};

fn options(title: String, base: Option<&String>) -> Options {
    let mut options = Options { title, ..Options::default() };
    options.base = base.cloned();
    options
}

fn of_published(name: &str, args: &ReportArgs) -> Outcome<Input> {
    let comparison = published::load(name).map_err(Failure::input)?;
    let mut options = options(comparison.title.clone(), args.base.as_ref());
    options.description.clone_from(&comparison.description);
    Ok(Input::from_records(options, &comparison.to_records()))
}

fn of_stored(args: &ReportArgs) -> Outcome<Input> {
    let store = open_read_only(&args.db)?;
    let id = match &args.experiment {
        Some(name) => crate::results::one(&store, name)?,
        None => {
            let newest = store.list()?.into_iter().map(|e| e.id).max();
            newest.ok_or_else(|| {
                Failure::with_help("no experiment is stored", "`iosched run` stores one")
            })?
        }
    };
    let name = store.list()?.into_iter().find(|e| e.id == id).map_or_else(String::new, |e| e.name);
    Ok(Input::from_store(options(name, args.base.as_ref()), &store, id)?)
}

/// The base is a scheduler of the page, or begins the name of one.
fn known_base(base: &str, input: &Input) -> Outcome {
    let names = input.schedulers();
    if names.iter().any(|n| n.starts_with(base)) {
        return Ok(());
    }
    let families = names.iter().map(|n| n.split(['@', ' ']).next().unwrap_or(n));
    let near = did_you_mean(base, families);
    let help = if near.is_empty() { format!("there are {}", names.join(", ")) } else { near };
    Err(Failure::with_help(format!("--base {base}: no scheduler of the page is called so"), help))
}

/// Writes the page.
pub(crate) fn report(args: &ReportArgs) -> Outcome {
    writable(&args.html)?;
    let input = match &args.published {
        Some(name) => of_published(name, args)?,
        None => of_stored(args)?,
    };
    if let Some(base) = &args.base {
        known_base(base, &input)?;
    }
    let page = html(&input);
    write(&args.html, &page)?;
    note(&format!("{}: {} KiB", args.html.display(), page.len().div_ceil(1024)));
    Ok(())
}

/// Serves the pages until it is interrupted.
pub(crate) fn serve(args: &ServeArgs) -> Outcome {
    // Opened once here for a clear word about a missing or old file.
    drop(open_read_only(&args.db)?);
    let file = path(&args.db)?;
    iosched_report::serve(&file, args.port, |address| {
        note(&format!("serving {} on http://{address} (Ctrl-C ends it)", file.display()));
    })
    .context("serving the results")?;
    Ok(())
}
