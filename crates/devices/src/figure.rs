//! Facts about devices, with their sources.

use serde::{Deserialize, Serialize};

/// How sure a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Typical of the class or reasoned; never published for this device.
    Assumed,
    /// Published or measured, but only for a sibling, by one source, or under unclear conditions.
    Low,
    /// Published or measured with a reservation.
    Medium,
    /// Published or measured.
    High,
}

impl Confidence {
    /// The words, weakest first.
    pub const WORDS: &'static [&'static str] = &["assumed", "low", "medium", "high"];

    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    pub(crate) fn from_word(word: &str) -> Option<Confidence> {
        match word {
            "assumed" => Some(Confidence::Assumed),
            "low" => Some(Confidence::Low),
            "medium" => Some(Confidence::Medium),
            "high" => Some(Confidence::High),
            _ => None,
        }
    }
}

/// The value of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FigureValue {
    /// One number.
    Number(f64),
    /// From, to.
    Range(f64, f64),
    /// Words.
    Text(String),
}

/// A fact about a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name, e.g. `rand_read_4k_qd1`.
    pub name: String,
    /// Value.
    pub value: FigureValue,
    /// Unit; empty for words.
    pub unit: String,
    /// Where it was read or measured, or the reasoning behind an assumption.
    pub source: String,
    /// How sure it is.
    pub confidence: Confidence,
    /// A reservation; empty when there is none.
    pub note: String,
    /// Why the model does not meet it within 10 %; empty where it does.
    #[serde(default)]
    pub reason: String,
    /// It was measured on a host whose time is in it, so the drive alone is faster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_host: bool,
}

/// What a device costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Amount.
    pub value: f64,
    /// Currency and basis, e.g. `USD` or `USD/month`.
    pub unit: String,
    /// Where it was read.
    pub source: String,
}
