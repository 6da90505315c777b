//! Writes the simulator's jobs back as a job file for the real fio. We set the place of every job's data: the same
//! regions of the same size as in the simulator.

mod section;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Component, Path};

use iosched_experiment::Warning;
use iosched_experiment::record::PARTS;
use iosched_types::{Bytes, Diagnostic, Op};
use iosched_workloads::fio::iolog::IoLog;
use iosched_workloads::fio::layout::{Extent, lay_out, lay_out_beside};
use iosched_workloads::fio::{FileService, JobSet, JobSpec, assumed_parts, on_files};

use crate::error::{Error, Result};
use section::{making, section};

/// A job file, and what goes with it.
#[derive(Debug, Default)]
pub struct Rendered {
    /// The job file.
    pub text: String,
    /// Files beside it, by name: the logs that its jobs replay.
    pub files: Vec<(String, String)>,
    /// How the jobs differ from the user's file.
    pub warnings: Vec<Warning>,
}

/// A job file that does `set` on `target` (a device node or one large file) of `bytes`.
///
/// # Errors
/// [`Error::Input`] for regions beyond the target's end and for what only the simulator can do.
pub fn render(set: &JobSet, target: &Path, bytes: Bytes) -> Result<Rendered> {
    let from = |d: Diagnostic| Error::input(d.message.clone(), d.help.clone());
    let places = lay_out(set, bytes).map_err(from)?;
    let name = target
        .to_str()
        .ok_or_else(|| Error::input("the target's name is not UTF-8", "rename it"))?;
    let name = escaped(name);
    let mut rendered = Rendered {
        text: String::from("[global]\n"),
        warnings: remarks(set),
        ..Rendered::default()
    };
    let out = &mut rendered.text;
    line(out, "filename", &name);
    line(out, "allow_file_create", "0");
    percentiles(out);
    for (job, files) in set.jobs.iter().zip(&places) {
        section(out, job)?;
        new_group(out, set, job);
        if let Some(log) = &job.replay {
            let file = format!("replay.{}.log", rendered.files.len());
            line(out, "read_iolog", &file);
            line(out, "replay_redirect", &name);
            rendered.files.push((file, replayed(job, log, files, &name, bytes)?));
            continue;
        }
        let Some(first) = files.first() else { continue };
        if files.len() > 1 {
            // Each name is a file of its own to fio, and all of them are the target.
            line(out, "filename", vec![name.as_str(); files.len()].join(":"));
            line(out, "file_service_type", service(&job.target.service));
            rendered.warnings.push(one_region(job, files.len()));
        }
        line(out, "offset", first.start);
        line(out, "size", files.iter().map(|f| f.len).sum::<u64>());
    }
    Ok(rendered)
}

/// A job file that does `set` on files in a directory. Returned beside it: the directories that the files' names ask for.
///
/// # Errors
/// [`Error::Input`] for names that lead out of the directory and for what only the simulator can do.
pub fn render_on_files(
    set: &JobSet,
    directory: &str,
    zeros: bool,
) -> Result<(Rendered, Vec<String>)> {
    let from = |d: Diagnostic| Error::input(d.message.clone(), d.help.clone());
    let places = lay_out_beside(set, on_files::ROOM, &BTreeMap::new()).map_err(from)?;
    let mut rendered = Rendered {
        text: String::from("[global]\n"),
        warnings: remarks(set),
        ..Rendered::default()
    };
    let mut above = Vec::new();
    let out = &mut rendered.text;
    line(out, "directory", directory);
    if zeros {
        line(out, "zero_buffers", 1);
    }
    percentiles(out);
    for (job, files) in set.jobs.iter().zip(&places) {
        section(out, job)?;
        new_group(out, set, job);
        making(out, &job.file_options);
        let names = job.file_names();
        let names = names.iter().map(|n| inside(n)).collect::<Result<Vec<_>>>()?;
        above.extend(names.iter().filter_map(|n| Some(n.rsplit_once('/')?.0.to_string())));
        let list: Vec<String> = names.iter().map(|n| escaped(n)).collect();
        line(out, "filename", list.join(":"));
        if files.len() > 1 {
            line(out, "file_service_type", service(&job.target.service));
        }
        let Some(first) = files.first() else { continue };
        line(out, "offset", first.start - first.origin);
        line(out, "size", files.iter().map(|f| f.len).sum::<u64>());
    }
    above.sort();
    above.dedup();
    Ok((rendered, above))
}

/// Where a group begins without a `stonewall`: `exitall` ends the jobs of one.
fn new_group(out: &mut String, set: &JobSet, job: &JobSpec) {
    let before = set.jobs.iter().find(|other| other.thread + 1 == job.thread);
    let begins = before.is_some_and(|before| before.group != job.group) && !job.wait.stonewall;
    if begins && set.jobs.iter().any(|j| j.exit_all.is_some()) {
        line(out, "new_group", 1);
    }
}

/// How a job file that is run differs from the user's.
fn remarks(set: &JobSet) -> Vec<Warning> {
    let mut out = Vec::new();
    if let Some(message) = assumed_parts(set) {
        out.push(Warning { code: PARTS.into(), message, advice: String::new() });
    }
    let drops = |j: &&JobSpec| !(j.caches_before.is_none() && j.caches_after.is_none());
    if let Some(job) = set.jobs.iter().find(drops) {
        out.push(Warning {
            code: "option-ignored".into(),
            message: format!(
                "the command that drops caches beside job \"{}\" is not run",
                job.name
            ),
            advice: "direct I/O does not use the page cache".into(),
        });
    }
    out
}

/// A file's name below the directory of all files, as in the simulator.
fn inside(name: &str) -> Result<String> {
    let below = name.trim_start_matches('/');
    let plain = |c: Component<'_>| matches!(c, Component::Normal(_));
    if below.is_empty() || !Path::new(below).components().all(plain) {
        let message = format!("\"{name}\" leads out of the directory for the jobs' files");
        return Err(Error::input(message, "name files without . and .."));
    }
    Ok(below.to_string())
}

/// A name as fio reads it in a list.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace(':', "\\:")
}

/// Without it fio keeps of total latencies only mean and extremes.
fn percentiles(out: &mut String) {
    line(out, "clat_percentiles", 1);
    line(out, "lat_percentiles", 1);
}

fn one_region(job: &JobSpec, files: usize) -> Warning {
    Warning {
        code: "one-region".into(),
        message: format!(
            "the {files} files of job \"{}\" are the same part of the target",
            job.name
        ),
        advice: "fio has one offset for all files of a job; give jobs of their own their offsets"
            .into(),
    }
}

fn service(service: &FileService) -> String {
    match service {
        FileService::Unset => "roundrobin".into(),
        FileService::RoundRobin(n) => format!("roundrobin:{n}"),
        FileService::Random(n) => format!("random:{n}"),
        FileService::Sequential => "sequential".into(),
        FileService::Zipf(theta) => format!("zipf:{theta}"),
        FileService::Pareto(theta) => format!("pareto:{theta}"),
        FileService::Normal(deviation) => format!("gauss:{deviation}"),
    }
}

/// Writes a log anew. Every file in it becomes the target, at the place that the simulator would give the file.
fn replayed(
    job: &JobSpec,
    log: &IoLog,
    files: &[Extent],
    name: &str,
    bytes: Bytes,
) -> Result<String> {
    let mut text = format!("fio version 2 iolog\n{name} add\n{name} open\n");
    let mut now = 0;
    for e in &log.entries {
        let base = files.get(e.file as usize).or(files.first()).map_or(0, |f| f.origin);
        let at = base.saturating_add(e.offset);
        if at.saturating_add(e.len) > bytes {
            let message = format!(
                "the log of job \"{}\" has an I/O of {} bytes at {at}, beyond the target's end ({bytes} bytes)",
                job.name, e.len
            );
            return Err(Error::input(
                message,
                "replay_scale= brings it nearer, or name a larger target",
            ));
        }
        let wait = e.at.saturating_sub(now) / 1000;
        if wait > 0 {
            line_of(&mut text, format_args!("{name} wait {wait}"));
            now += wait * 1000;
        }
        match e.op {
            Op::Read => line_of(&mut text, format_args!("{name} read {at} {}", e.len)),
            Op::Write => line_of(&mut text, format_args!("{name} write {at} {}", e.len)),
            Op::Discard => line_of(&mut text, format_args!("{name} trim {at} {}", e.len)),
            Op::Flush => line_of(&mut text, format_args!("{name} sync 0 0")),
        }
    }
    line_of(&mut text, format_args!("{name} close"));
    Ok(text)
}

fn line_of(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}

fn line(out: &mut String, key: &str, value: impl std::fmt::Display) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{key}={value}");
}

#[cfg(test)]
mod tests;
