//! Writing results: our JSON document, CSV, fio JSON, PTS, Markdown.

use iosched_experiment::record::Record;

pub use crate::fio::fio_json;
pub use crate::import::to_csv;
pub use crate::pts::to_pts;

use crate::cells::{analyse, usual_base};
use crate::fio::fio_output;
use crate::model::Comparison;
use crate::stats::VerdictOptions;
use crate::store::Document;

/// A format that can be exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our document (`docs/schema/results.schema.json`): loses nothing.
    Json,
    /// One row per measure.
    Csv,
    /// `fio --output-format=json+`.
    FioJson,
    /// PTS `composite.xml`.
    Pts,
    /// Tables for people.
    Markdown,
}

impl Format {
    /// All of them with their names on the command line.
    pub const ALL: [(&'static str, Format); 5] = [
        ("json", Format::Json),
        ("csv", Format::Csv),
        ("fio-json", Format::FioJson),
        ("pts", Format::Pts),
        ("markdown", Format::Markdown),
    ];
}

/// The records in a format.
///
/// # Errors
/// A number that JSON cannot hold.
pub fn export(
    title: &str,
    records: &[Record],
    format: Format,
) -> Result<String, serde_json::Error> {
    Ok(match format {
        Format::Json => serde_json::to_string(&Document::of(title, records.to_vec()))?,
        Format::Csv => to_csv(records),
        Format::FioJson => serde_json::to_string_pretty(&fio_output(records))?,
        Format::Pts => to_pts(&Comparison::from_records(title, records)),
        Format::Markdown => {
            // By order of the records: the alphabet prefers nobody.
            let base = usual_base(records.iter().map(|r| r.trial.scheduler.as_str()));
            crate::render::markdown(title, &analyse(records, base, VerdictOptions::default()))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published;

    #[test]
    fn every_format_holds_every_test() {
        let records = published::records("iozone-san").unwrap();
        for (name, format) in Format::ALL {
            let text = export("iozone-san", &records, format).unwrap();
            // fio's form has no place for metrics, only for jobs.
            assert!(
                format == Format::FioJson || text.contains("462901.5") || text.contains("462902"),
                "{name}"
            );
        }
    }

    #[test]
    fn a_comparison_of_records_survives_pts() {
        for name in published::names() {
            let c = Comparison::from_records(name, &published::records(name).unwrap());
            assert_eq!(crate::import::from_pts("c.xml", &to_pts(&c)).unwrap(), c, "{name}");
        }
    }
}
