//! Jobs that come with the program: `examples/jobs/*.fio`, usable by name without a checkout.

use iosched_types::nearest::did_you_mean;
use iosched_workloads::programs::PROGRAMS;

/// A job by name.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../examples/jobs/", $name, ".fio")),
        }),*]
    };
}

/// All of them, by name.
pub(crate) static JOBS: &[Builtin] = builtin![
    "bandwidth-latency",
    "database",
    "desktop",
    "mixed-rates",
    "priorities",
    "random-read-qd32",
    "random-writers",
    "sequential-readers",
];

impl Builtin {
    /// The comment at the top of the file, as one sentence.
    pub(crate) fn summary(&self) -> String {
        let comment = self.text.lines().take_while(|l| l.starts_with('#'));
        comment.map(|l| l.trim_start_matches('#').trim()).collect::<Vec<_>>().join(" ")
    }
}

/// The text of a job. The help of what is not there also names programs, which stand in the same place.
pub(crate) fn find(name: &str) -> Result<&'static str, String> {
    JOBS.iter().find(|j| j.name == name).map(|j| j.text).ok_or_else(|| {
        let names = || JOBS.iter().map(|j| j.name).chain(PROGRAMS.iter().map(|p| p.name));
        let near = did_you_mean(name, names());
        let list = || names().collect::<Vec<_>>().join(", ");
        if near.is_empty() { format!("a job file, or one of: {}", list()) } else { near }
    })
}
