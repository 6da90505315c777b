//! Five published comparisons, shipped so that a newcomer can look at real numbers at once.

use iosched_experiment::record::Record;
use iosched_types::nearest::did_you_mean;

use crate::model::Comparison;

const FILES: [(&str, &str); 5] = [
    ("linux-4.12", include_str!("../../../data/published/linux-4.12.json")),
    ("linux-3.12", include_str!("../../../data/published/linux-3.12.json")),
    ("pg-test-fsync-ssd", include_str!("../../../data/published/pg-test-fsync-ssd.json")),
    ("iozone-san", include_str!("../../../data/published/iozone-san.json")),
    (
        "bfq-v7r3-responsiveness",
        include_str!("../../../data/published/bfq-v7r3-responsiveness.json"),
    ),
];

/// Why a published comparison could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// No such name.
    #[error("no published comparison \"{name}\" ({list}){help}")]
    Unknown {
        /// As asked for.
        name: String,
        /// The names there are.
        list: String,
        /// The nearest, or empty.
        help: String,
    },
    /// The shipped file is damaged.
    #[error("published comparison {name}: {source}")]
    Damaged {
        /// The name.
        name: String,
        /// What the parser says.
        source: serde_json::Error,
    },
}

/// Names of the published comparisons.
#[must_use]
pub fn names() -> Vec<&'static str> {
    FILES.iter().map(|f| f.0).collect()
}

/// A published comparison.
///
/// # Errors
/// [`PublishedError::Unknown`] with the nearest name.
pub fn load(name: &str) -> Result<Comparison, PublishedError> {
    let Some((_, text)) = FILES.iter().find(|f| f.0 == name) else {
        let help = did_you_mean(name, names());
        let help = if help.is_empty() { help } else { format!("; {help}") };
        return Err(PublishedError::Unknown { name: name.into(), list: names().join(", "), help });
    };
    serde_json::from_str(text)
        .map_err(|source| PublishedError::Damaged { name: name.into(), source })
}

/// A published comparison as records, missing cells included as failed ones.
///
/// # Errors
/// As [`load`].
pub fn records(name: &str) -> Result<Vec<Record>, PublishedError> {
    load(name).map(|c| c.to_records())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::viewer;
    use iosched_experiment::record::Status;

    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!((got - expected).abs() <= tolerance, "{got} is not {expected}");
    }

    fn by_run(c: &Comparison, values: &[f64], run: &str) -> f64 {
        values[c.runs.iter().position(|r| r.name == run).unwrap()]
    }

    #[test]
    fn all_load_and_have_every_cell() {
        let cells = |c: &Comparison| {
            c.tests.iter().flat_map(|t| &t.cells).filter(|c| c.value.is_some()).count()
        };
        let counts: Vec<usize> = names().iter().map(|n| cells(&load(n).unwrap())).collect();
        assert_eq!(counts, [125, 33, 112, 64, 1]);
        let e = load("linux-4.21").unwrap_err().to_string();
        assert!(e.contains("did you mean \"linux-4.12\""), "{e}");
    }

    #[test]
    fn geometric_means_of_linux_4_12() {
        let c = load("linux-4.12").unwrap();
        let g = viewer::geometric_means(&c).unwrap();
        for (run, expected) in [
            ("HDD: CFQ", 173.842),
            ("HDD: Noop", 187.326),
            ("HDD: Deadline", 171.591),
            ("HDD: MQ None", 127.900),
            ("HDD: MQ Kyber", 107.770),
            ("HDD: MQ BFQ", 93.317),
            ("HDD: MQ Deadline", 113.438),
            ("SSD: CFQ", 599.516),
            ("SSD: Deadline", 559.686),
            ("SSD: Noop", 598.225),
            ("SSD: MQ None", 457.346),
            ("SSD: MQ Deadline", 491.684),
            ("SSD: MQ Kyber", 455.312),
            ("SSD: MQ BFQ", 414.604),
        ] {
            close(by_run(&c, &g, run), expected, 0.0006);
        }
    }

    #[test]
    fn harmonic_means_of_linux_4_12() {
        let c = load("linux-4.12").unwrap();
        let h = viewer::harmonic_means(&c);
        assert_eq!(h.iter().map(|h| h.0.as_str()).collect::<Vec<_>>(), ["MB/s"]);
        for (run, expected) in [
            ("HDD: CFQ", 72.719),
            ("HDD: Noop", 81.888),
            ("HDD: Deadline", 72.383),
            ("HDD: MQ None", 54.042),
            ("HDD: MQ Kyber", 43.237),
            ("HDD: MQ BFQ", 38.038),
            ("HDD: MQ Deadline", 45.920),
            ("SSD: CFQ", 153.179),
            ("SSD: Deadline", 138.601),
            ("SSD: Noop", 158.832),
            ("SSD: MQ None", 128.963),
            ("SSD: MQ Deadline", 144.314),
            ("SSD: MQ Kyber", 138.860),
            ("SSD: MQ BFQ", 106.558),
        ] {
            close(by_run(&c, &h[0].1, run), expected, 0.0006);
        }
    }

    #[test]
    fn figures_of_linux_3_12() {
        let c = load("linux-3.12").unwrap();
        let g = viewer::geometric_means(&c).unwrap();
        for (run, expected) in [("Noop", 148.749), ("Deadline", 149.982), ("CFQ", 148.683)] {
            close(by_run(&c, &g, run), expected, 0.0006);
        }
        assert!(viewer::harmonic_means(&c).is_empty());
        assert_eq!(viewer::wins_and_losses(&c), [(5, 4), (4, 4), (2, 3)]);
        let of = |word: &str| c.tests.iter().find(|t| t.name().contains(word)).unwrap();
        for (word, expected) in [
            ("Test: Compile", 1.1514),
            ("Read Compiled", 1.0697),
            ("Initial Create", 1.0364),
            ("PostMark", 1.0280),
            ("1000 Files", 1.0214),
            ("NGINX", 1.0190),
            ("5000 Files", 1.0160),
            ("Linux Kernel", 1.0132),
            ("4000 Files", 1.0119),
            ("Apache", 1.0101),
            ("PHP", 1.0037),
        ] {
            close(viewer::spread(of(word)).unwrap(), expected, 0.00006);
        }
        let noisy: Vec<_> =
            c.tests.iter().filter(|t| viewer::is_noisy(t)).map(|t| t.description.clone()).collect();
        assert_eq!(noisy, ["Test: Compile"]);
        let s = of("Test: Compile").cell("Deadline").unwrap().statistics().unwrap();
        close(s.cv().unwrap(), 0.155, 0.0005);
        assert_eq!(c.tests.iter().filter(|t| !viewer::has_little_change(t)).count(), 3);
        let notable: Vec<_> =
            viewer::notable(&c).into_iter().map(|i| c.tests[i].description.clone()).collect();
        assert_eq!(notable, ["Test: Read Compiled Tree", "Test: Initial Create"]);
        close(
            viewer::cell_without_outliers(of("Test: Compile").cell("Deadline").unwrap()).unwrap(),
            71.15,
            0.01,
        );
    }

    #[test]
    fn missing_cells_stay_visible() {
        let c = load("linux-4.12").unwrap();
        let lacking = c.incomplete();
        assert_eq!(lacking.len(), 1);
        assert_eq!(lacking[0].1, ["SSD: CFQ"]);
        let failed = |n| {
            records(n).unwrap().iter().filter(|r| matches!(r.status, Status::Failed(_))).count()
        };
        assert_eq!(failed("linux-4.12"), 1);
        // 16 n/a cells in each of two units.
        assert_eq!(failed("pg-test-fsync-ssd"), 32);
    }

    #[test]
    fn a_store_takes_them_all() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = crate::store::Store::open(&dir.path().join("r.db")).unwrap();
        for name in names() {
            let doc = crate::store::Document::of(name, records(name).unwrap());
            store.import(&doc.experiments[0]).unwrap();
        }
        assert_eq!(store.list().unwrap().len(), 5);
    }
}
