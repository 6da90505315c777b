//! Options that only the real fio can follow. A live run hands them over as they are; the simulator refuses them by
//! name. None of them runs a program or names a file, so a job cannot reach beyond its target.

use super::option::OptionDef;
use super::value::{self, Parsed, ValueError};

/// The options, by fio's names.
pub(crate) const OPTIONS: &[&str] = &[
    "verify",
    "verify_only",
    "experimental_verify",
    "do_verify",
    "verify_interval",
    "verify_offset",
    "verify_pattern",
    "verify_fatal",
    "verify_async",
    "verify_backlog",
    "verify_backlog_batch",
    "hipri",
    "hipri_percentage",
    "zonemode",
    "zonesize",
    "zonerange",
    "zonecapacity",
    "zoneskip",
    "read_beyond_wp",
    "max_open_zones",
    "job_max_open_zones",
    "ignore_zone_limits",
    "zone_reset_threshold",
    "zone_reset_frequency",
    "latency_target",
    "latency_window",
    "latency_percentile",
    "latency_run",
    "max_latency",
    "rate_ignore_thinktime",
    "serialize_overlap",
    "io_submit_mode",
    "random_generator",
    "sqthread_poll",
    "sqthread_poll_cpu",
    "registerfiles",
    "fixedbufs",
    "nonvectored",
    "userspace_reap",
];

/// Whether the real fio takes an option that the simulator does not.
#[must_use]
pub fn is_live_only(name: &str) -> bool {
    OPTIONS.contains(&name)
}

/// Checks a value that is handed over: it must be of the option's kind, and must not contain a character that could end
/// a line, begin a path or name a file.
pub(super) fn checked(def: &OptionDef, text: Option<&str>, kb: u64) -> Parsed<String> {
    value::check(def.kind, text, kb)?;
    let text = text.unwrap_or("1").trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "._,:%+-".contains(c);
    match text.chars().find(|c| !plain(*c)) {
        None => Ok(text.to_string()),
        Some(c) => Err(ValueError::new(format!("\"{c}\" is not handed to fio"))
            .help("letters, digits and . _ , : % + - are")),
    }
}
