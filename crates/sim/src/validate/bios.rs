//! The bios of a run beside a kernel's event log of the same: form first, then how far apart neighbours lie on the disk.

use iosched_experiment::Trial;
use iosched_host::programs::{SeenBio, Submitter};
use iosched_types::{Flags, Nanos, Op};
use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::fs::volume::Volume;

use crate::error::SimError;

/// A bio as both sides can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedBio {
    /// When, in nanoseconds since the reset of the device.
    pub at: u64,
    /// `program`, `flusher` or `journal`.
    pub by: &'static str,
    /// Operation and flags as in the log: `R:MP`, `W:SMI`; `flush` for an empty one.
    pub form: String,
    /// What lies there: `JNL`, `ITAB`, …, or `-`.
    pub class: String,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u64,
}

impl LoggedBio {
    /// Whether class, flags, size and submitter are the same.
    #[must_use]
    pub fn is_like(&self, other: &LoggedBio) -> bool {
        self.by == other.by
            && self.form == other.form
            && self.class == other.class
            && self.sectors == other.sectors
    }
}

impl std::fmt::Display for LoggedBio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { by, form, class, sector, sectors, .. } = self;
        write!(f, "{by} {form} {class} {sector}+{sectors}")
    }
}

/// How far two sequences agree.
#[derive(Clone, Debug)]
pub struct BiosBeside {
    /// The kernel's bios, from the begin of the measured part to where the log was cut, or to the end of the part.
    pub kernel: Vec<LoggedBio>,
    /// Ours.
    pub ours: Vec<LoggedBio>,
    /// The first that differs in class, flags, size or submitter, or that one side has not.
    pub first: Option<usize>,
    /// The first that lies otherwise from the one before it.
    pub first_distance: Option<usize>,
}

/// Reads the bios of an event log. The measured part ends with its mark; then what is under way goes on.
#[must_use]
pub fn parse_bios(text: &str) -> Vec<LoggedBio> {
    let begun = text.lines().skip_while(|l| !(l.starts_with('#') && l.ends_with(" begin")));
    let measured = begun.take_while(|l| !(l.starts_with('#') && l.ends_with(" end")));
    measured.filter_map(bio).collect()
}

/// `Q t pid comm FLAGS sector nsect K ino page LAYOUT`; names of tasks may have spaces.
fn bio(line: &str) -> Option<LoggedBio> {
    let words: Vec<&str> = line.split(' ').collect();
    let n = words.len();
    if words.first() != Some(&"Q") || n < 11 {
        return None;
    }
    let comm = words[3..n - 7].join(" ");
    let by = match comm.as_str() {
        c if c.starts_with("jbd2") || c.starts_with("xfsaild") => "journal",
        // The log's own workers.
        c if c.starts_with("kworker") && words[n - 1] == "LOG" => "journal",
        c if c.starts_with("kworker") => "flusher",
        _ => "program",
    };
    let sectors = words[n - 5].parse().ok()?;
    Some(LoggedBio {
        at: words[1].parse().ok()?,
        by,
        form: if sectors == 0 { "flush".into() } else { words[n - 7].into() },
        class: words[n - 1].into(),
        sector: words[n - 6].parse().ok()?,
        sectors,
    })
}

fn form(bio: &SeenBio) -> String {
    if bio.sectors == 0 {
        return "flush".into();
    }
    let mut text = format!("{}:", if bio.op == Op::Read { 'R' } else { 'W' });
    for (flag, letter) in [
        (Flags::PREFLUSH, 'f'),
        (Flags::FUA, 'U'),
        (Flags::SYNC, 'S'),
        (Flags::META, 'M'),
        (Flags::PRIO, 'P'),
        (Flags::RAHEAD, 'A'),
        (Flags::IDLE, 'I'),
        (Flags::BACKGROUND, 'B'),
    ] {
        if bio.flags.has(flag) {
            text.push(letter);
        }
    }
    text
}

fn logged(bio: &SeenBio, volume: &Volume, reset: Nanos) -> LoggedBio {
    let class = volume.class(bio.sector);
    LoggedBio {
        at: bio.at.saturating_sub(reset),
        by: match bio.by {
            Submitter::Program => "program",
            Submitter::Flusher => "flusher",
            Submitter::Journal => "journal",
        },
        form: form(bio),
        class: if bio.sectors == 0 { "-".into() } else { class.into() },
        sector: bio.sector,
        sectors: u64::from(bio.sectors),
    }
}

/// A bio as the kernel logs it: behind the step that takes flushes away where no cache is announced.
fn reaching(bio: &SeenBio, write_cache: bool) -> Option<SeenBio> {
    let flags = bio.flags.without(Flags::PREFLUSH.with(Flags::FUA));
    match write_cache {
        true => Some(*bio),
        false => (bio.sectors > 0).then_some(SeenBio { flags, ..*bio }),
    }
}

/// Runs a trial and lays its bios beside the kernel's.
///
/// # Errors
/// As [`crate::simulate`].
pub fn beside_bios(trial: &Trial, kernel: Vec<LoggedBio>) -> Result<BiosBeside, SimError> {
    let capacity = trial.device.capacity();
    let volume = crate::mount::volume(trial, capacity);
    let ours = match trial.work.load() {
        Some(load) => crate::programs::bios(trial, load, kernel.len() + 1)?,
        None => crate::files::bios(trial, kernel.len() + 1)?,
    };
    let reset = trial.reset_at;
    let reaching = ours.iter().filter_map(|b| reaching(b, trial.device.write_cache));
    let ours: Vec<LoggedBio> = reaching.map(|b| logged(&b, &volume, reset)).collect();
    let both = kernel.len().max(ours.len());
    let at = |list: &[LoggedBio], i: usize| list.get(i).cloned();
    let unlike = |i: &usize| match (kernel.get(*i), ours.get(*i)) {
        (Some(k), Some(o)) => !k.is_like(o),
        _ => true,
    };
    let first = (0..both).find(unlike);
    let step = |list: &[LoggedBio], i: usize| {
        Some(at(list, i)?.sector.wrapping_sub(at(list, i.checked_sub(1)?)?.sector))
    };
    // An empty flush lies nowhere.
    let lies = |i: usize| {
        [i, i.wrapping_sub(1)].iter().all(|i| ours.get(*i).is_some_and(|b| b.sectors > 0))
    };
    let until = first.unwrap_or(both);
    let first_distance = (1..until).find(|i| lies(*i) && step(&kernel, *i) != step(&ours, *i));
    Ok(BiosBeside { kernel, ours, first, first_distance })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_cache_nothing_flushes() {
        let flags = Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC);
        let record =
            SeenBio { at: 0, by: Submitter::Journal, op: Op::Write, flags, sector: 8, sectors: 8 };
        let form_of = |b: &SeenBio, cache| reaching(b, cache).map(|b| form(&b));
        assert_eq!(form_of(&record, true).as_deref(), Some("W:fUS"));
        assert_eq!(form_of(&record, false).as_deref(), Some("W:S"));
        let flush = SeenBio { sectors: 0, ..record };
        assert_eq!(form_of(&flush, true).as_deref(), Some("flush"));
        assert_eq!(form_of(&flush, false), None);
    }

    #[test]
    fn a_log_names_its_bios() {
        let log = "Q 10 3 early R:A 8 8 f 5 0 -\n# 36 begin\nQ 40 13 kworker/u4:1 W: 64 16 f 7 0 -\n\
                   U 40 13 kworker/u4:1 1 0\nQ 50 31 jbd2/simdisk-8 W:fUSMI 72 8 b 2 9 JNL\n\
                   Q 60 5 my tool W:fS 0 0 - 0 0 -\n# 70 end\nQ 80 5 sync W:SMP 0 8 b 2 0 SB\n";
        let bios = parse_bios(log);
        let shown: Vec<String> = bios.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["flusher W: - 64+16", "journal W:fUSMI JNL 72+8", "program flush - 0+0"]
        );
    }
}
