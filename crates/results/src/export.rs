//! Writing results: our JSON document, CSV, fio JSON, PTS, Markdown.

use iosched_experiment::record::Record;

pub use crate::fio::fio_json;
pub use crate::import::to_csv;
pub use crate::pts::to_pts;

use crate::cells::{analyse, usual_base};
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
        Format::Json => {
            let document = Document::of(title, records.to_vec());
            serde_json::to_string(&Document::answered(document.experiments))?
        }
        Format::Csv => to_csv(records),
        Format::FioJson => fio_json(records)?,
        Format::Pts => to_pts(&Comparison::from_records(title, records)),
        Format::Markdown => {
            // By order of the records, not by the alphabet.
            let base = usual_base(records.iter().map(|r| r.trial.scheduler.as_str()));
            let (answers, _) = crate::answer::answers_of(records);
            let analysis = analyse(records, base, VerdictOptions::default());
            crate::render::markdown(title, &answers, &analysis)
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
    fn trials_that_were_exported_to_pts_are_the_same_cells_again() {
        use crate::compare::{Answer, CompareOptions, compare};
        use iosched_experiment::record::{BackendKind, DirStats, JobRecord, TrialId};
        let record = |scheduler: &str, workload: &str, repetition: u32| {
            let mut read = DirStats {
                ios: 200,
                bytes: 819_200,
                runtime: 1_000_000_000,
                ..DirStats::default()
            };
            (0..200).for_each(|i| read.clat.record(1_000 * (i + u64::from(repetition))));
            let trial = TrialId {
                device: "hdd".into(),
                workload: workload.into(),
                scheduler: scheduler.into(),
                kernel: "6.12".into(),
                repetition,
                ..TrialId::default()
            };
            let provenance =
                [("tool".to_string(), "iosched 1".to_string()), ("cpus".into(), "4".into())];
            let mut provenance: std::collections::BTreeMap<String, String> = provenance.into();
            // Conditions of a trial, not of all that its scheduler ran.
            match workload {
                "randread, 4 k" => provenance.insert("raw".into(), "yes".into()),
                _ => provenance.insert("filesystem".into(), "ext4".into()),
            };
            let mut r =
                Record { trial, backend: BackendKind::Sim, provenance, ..Record::default() };
            r.scheduler.tunables.insert("fifo_batch".into(), 16);
            r.jobs.push(JobRecord { name: "a".into(), read, ..JobRecord::default() });
            r
        };
        let records: Vec<Record> = [
            ("none", "randread, 4 k"),
            ("bfq", "randread, 4 k"),
            ("none", "mail"),
            ("bfq", "mail"),
        ]
        .iter()
        .flat_map(|(s, w)| (1..=3).map(move |i| record(s, w, i)))
        .collect();
        let back = |records: &[Record]| {
            let xml = export("e", records, Format::Pts).unwrap();
            crate::import::from_pts("c.xml", &xml).unwrap().to_records()
        };
        let again = back(&records);
        assert_eq!(again.len(), records.len());
        assert_eq!(again[0].scheduler.tunables, records[0].scheduler.tunables);
        for a in &records {
            let b = again
                .iter()
                .find(|b| b.trial == TrialId { experiment: "e".into(), ..a.trial.clone() });
            let b = b.unwrap();
            assert_eq!(a.provenance, b.provenance, "{:?}", a.trial);
        }
        let c = compare(&records, &again, &CompareOptions::default()).unwrap();
        assert_eq!(
            (c.answer(), c.incomplete.len(), c.differing.len()),
            (Answer::NoRegression, 0, 0)
        );
        assert!(c.changes.iter().all(|x| x.judged.ratio.is_none_or(|r| (r - 1.0).abs() < 1e-9)));
        assert_eq!(back(&again), again, "and so on");
    }

    #[test]
    fn another_programs_comparison_comes_back_with_its_words() {
        for name in published::names() {
            let c = published::load(name).unwrap();
            let again = Comparison::from_records(&c.title, &c.to_records());
            let words = |c: &Comparison| -> Vec<String> {
                let of = |t: &crate::model::Test| {
                    [&t.identifier, &t.title, &t.version, &t.arguments, &t.unit]
                        .map(String::as_str)
                        .join("|")
                };
                // A test without any value leaves no figure.
                let known = |t: &&crate::model::Test| t.cells.iter().any(|c| c.value.is_some());
                c.tests.iter().filter(known).map(of).collect()
            };
            assert_eq!(words(&again), words(&c), "{name}");
            assert_eq!(again.runs, c.runs, "{name}");
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
