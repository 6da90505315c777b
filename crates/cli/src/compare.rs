//! `iosched compare`.

use iosched_experiment::Record;
use iosched_results::compare::{Answer, CompareOptions, Comparison, compare as judge};
use iosched_results::render;
use serde::Serialize;

use crate::args::CompareArgs;
use crate::fail::{Failure, Outcome, code};
use crate::files::print_json;
use crate::results::{documents_of, one};
use crate::store::open_read_only;
use crate::tables::{columns, print_fitted};

pub(crate) fn compare(args: &CompareArgs) -> Outcome {
    if !(args.threshold.is_finite() && args.threshold >= 0.0) {
        return Err(Failure::input("--threshold takes a percentage from 0 up"));
    }
    let (base, new) = (side(args, &args.base)?, side(args, &args.new)?);
    let options = CompareOptions {
        threshold: args.threshold / 100.0,
        force: args.force,
        vary: args.vary.clone(),
        families: args.matching.as_deref() == Some("family"),
        measures: args.measure.clone(),
        ..CompareOptions::default()
    };
    let result = judge(&base, &new, &options).map_err(Failure::input)?;
    if args.json {
        print_json(&Told {
            answer: result.answer(),
            words: render::answer_words(&result),
            comparison: &result,
        })?
    } else {
        print_fitted(&render::comparison(&result, args.all, columns()))?
    }
    match result.answer() {
        Answer::Regression => Err(Failure::silent(code::REGRESSION)),
        Answer::CannotTell if !args.allow_inconclusive => Err(Failure::silent(code::CANNOT_TELL)),
        Answer::CannotTell | Answer::NoRegression => Ok(()),
    }
}

/// A comparison with its answer, as JSON has it.
#[derive(Serialize)]
struct Told<'a> {
    answer: Answer,
    words: String,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// An experiment of the results file, or a file of results.
fn side(args: &CompareArgs, name: &str) -> Outcome<Vec<Record>> {
    if std::path::Path::new(name).is_file() {
        let documents = documents_of(name, None, None)?;
        // Pooled, one side would be neither of them.
        if let [_, _, ..] = &documents[..] {
            let names: Vec<&str> = documents.iter().map(|d| d.name.as_str()).collect();
            return Err(Failure::with_help(
                format!("{name} holds {} experiments: {}", names.len(), names.join(", ")),
                format!("iosched results import {name}, and compare them by name"),
            ));
        }
        return Ok(documents.into_iter().flat_map(|d| d.records).collect());
    }
    let store = open_read_only(&args.db)?;
    Ok(store.records(one(&store, name)?)?)
}
