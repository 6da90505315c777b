//! Options about where I/O goes: files, sizes, offsets, logs.

use super::draft::{Draft, split_amount};
use super::spec::FileService;
use super::table::{SERVICE, SKIP};
use super::value::{self, Parsed, ValueError};

pub(crate) fn apply(draft: &mut Draft, name: &str, text: &str) -> Parsed<bool> {
    Ok(target(draft, name, text)? || log(draft, name, text)?)
}

fn target(draft: &mut Draft, name: &str, text: &str) -> Parsed<bool> {
    let kb = draft.kb();
    let t = &mut draft.spec.target;
    match name {
        "filename" => t.files = split_names(text)?,
        "directory" => t.directory = Some(text.to_string()),
        "nrfiles" => t.nrfiles = value::small(text, 1, 65536, kb)?,
        "file_service_type" => t.service = service(text)?,
        "size" => {
            let (bytes, percent) = split_amount(text, kb)?;
            // As in fio, 0 is the size that is there: the whole device. A file has none.
            (t.size, t.size_percent) = (bytes.filter(|n| *n > 0), percent);
        }
        "io_size" => {
            let (bytes, percent) = split_amount(text, kb)?;
            t.io_size_percent = percent;
            draft.spec.io_size = bytes.filter(|n| *n > 0);
        }
        "filesize" => t.filesize = Some(value::range(text, true, |n| value::size(n, 1, kb))?),
        "offset" => {
            let (bytes, percent) = split_amount(text, kb)?;
            (t.offset, t.offset_percent) = (bytes.unwrap_or(0), percent);
        }
        "offset_increment" => {
            let (bytes, percent) = split_amount(text, kb)?;
            (t.offset_increment, t.offset_increment_percent) = (bytes.unwrap_or(0), percent);
        }
        "offset_align" => t.offset_align = value::integer(text, kb)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn log(draft: &mut Draft, name: &str, text: &str) -> Parsed<bool> {
    let kb = draft.kb();
    let replay = &mut draft.replay;
    match name {
        "read_iolog" => draft.read_iolog = Some(text.to_string()),
        "write_iolog" => draft.spec.write_iolog = Some(text.to_string()),
        "replay_no_stall" => replay.no_stall = value::boolean(text)?,
        "replay_time_scale" => {
            replay.time_scale = u64::from(value::small(text, 1, u32::MAX, kb)?);
        }
        "replay_scale" => replay.scale = u64::from(value::small(text, 1, u32::MAX, kb)?),
        "replay_align" => {
            let align = value::size(text, 1, kb)?;
            if !align.is_power_of_two() {
                return Err(ValueError::new(format!("{align} is not a power of 2")));
            }
            replay.align = align;
        }
        "replay_skip" => {
            for word in text.split(',') {
                replay.skip[value::word(word.trim(), SKIP)?] = true;
            }
        }
        "replay_redirect" => replay.redirect = Some(text.to_string()),
        _ => return Ok(false),
    }
    Ok(true)
}

/// File names separated by `:`, where `\:` is a colon of the name.
pub(crate) fn split_names(text: &str) -> Parsed<Vec<String>> {
    let mut names = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let last = names.last_mut().ok_or_else(|| ValueError::new("no name"))?;
        match c {
            '\\' if chars.peek() == Some(&':') => last.extend(chars.next()),
            ':' => names.push(String::new()),
            _ => last.push(c),
        }
    }
    if names.iter().any(|n| n.trim().is_empty()) {
        return Err(ValueError::new("an empty file name"));
    }
    Ok(names)
}

fn service(text: &str) -> Parsed<FileService> {
    let (word, rest) = text.split_once(':').map_or((text, None), |(w, r)| (w, Some(r)));
    let word = SERVICE[value::word(word, SERVICE)?];
    let count = || rest.map_or(Ok(1), |n| value::small(n, 1, u32::MAX, 1024));
    let shape = |default: f64| rest.map_or(Ok(default), value::float);
    Ok(match word {
        "roundrobin" => FileService::RoundRobin(count()?),
        "random" => FileService::Random(count()?),
        "sequential" => {
            count()?;
            FileService::Sequential
        }
        "zipf" => match shape(1.1)? {
            t if t >= 0.0 && t != 1.0 => FileService::Zipf(t),
            _ => return Err(ValueError::new("the theta of zipf is positive and not 1")),
        },
        "pareto" => match shape(0.2)? {
            p if p > 0.0 && p < 1.0 => FileService::Pareto(p),
            _ => return Err(ValueError::new("the power of pareto is between 0 and 1")),
        },
        _ => match shape(0.0)? {
            d if (0.0..100.0).contains(&d) => FileService::Normal(d),
            _ => return Err(ValueError::new("the deviation of normal is from 0 to below 100")),
        },
    })
}
