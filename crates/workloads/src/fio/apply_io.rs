//! Options about the pattern and submission of I/O.

use super::draft::Draft;
use super::spec::{Distribution, Pattern, SplitEntry};
use super::table::{DISTRIBUTION, RW, SYNC};
use super::value::{self, Parsed, ValueError};
use super::{engines, newer};

/// fio's limit for sizes in one `bssplit` list.
const MAX_SPLITS: usize = 64;
/// What stands in the place of another engine.
const SIMULATED_ENGINES: &str = "simulated are sync, psync, vsync, pvsync, pvsync2, mmap, libaio, io_uring, posixaio, and on files filecreate, filestat, filedelete";
/// fio's limit for zones of one distribution.
const MAX_ZONES: usize = 256;

pub(crate) fn apply(draft: &mut Draft, name: &str, text: &str) -> Parsed<bool> {
    Ok(pattern(draft, name, text)? || queue(draft, name, text)?)
}

fn pattern(draft: &mut Draft, name: &str, text: &str) -> Parsed<bool> {
    let kb = draft.kb();
    let spec = &mut draft.spec;
    match name {
        "rw" => spec.pattern = rw(text, kb, spec.pattern.identical)?,
        "rw_sequencer" => {
            spec.pattern.identical = value::word(text, &["sequential", "identical"])? == 1;
        }
        "bs" => {
            let sizes = value::three(text, |t| value::size(t, 1, kb));
            merge(&mut draft.bs, sizes.map_err(|e| no_range(text, e))?);
        }
        "bsrange" => {
            let one = |t: &str| value::range(t, false, |n| value::size(n, 1, kb));
            merge(&mut draft.bsrange, value::three(text, one)?);
        }
        "ba" => merge(&mut draft.ba, value::three(text, |t| value::size(t, 1, kb))?),
        "bssplit" => spec.bs.split = lists(text, |t| split(t, kb))?,
        "bs_is_seq_rand" => spec.bs.seq_rand = value::boolean(text)?,
        "randrepeat" => spec.randrepeat = value::boolean(text)?,
        "randseed" => spec.randseed = Some(value::integer(text, kb)?),
        "random_distribution" => spec.distribution = distribution(text, kb)?,
        "percentage_random" => {
            let values = value::three(text, |t| value::small(t, 0, 100, kb))?;
            for (to, v) in spec.percentage_random.iter_mut().zip(values) {
                *to = v.unwrap_or(*to);
            }
        }
        "rwmixread" => spec.rwmixread = value::small(text, 0, 100, kb)?,
        "rwmixwrite" => spec.rwmixread = 100 - value::small(text, 0, 100, kb)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn queue(draft: &mut Draft, name: &str, text: &str) -> Parsed<bool> {
    let kb = draft.kb();
    let spec = &mut draft.spec;
    let count = |min: u32| value::small(text, min, u32::MAX, kb);
    match name {
        "ioengine" => {
            let name = text.split(':').next().unwrap_or(text);
            if let Some(what) = newer::engine(name) {
                let message = format!("ioengine {name} is not simulated: {what}");
                return Err(ValueError::new(message).help(SIMULATED_ENGINES));
            }
            let index = value::word(name, engines::ALL)
                .map_err(|e| ValueError { message: format!("\"{name}\" is unknown"), ..e })?;
            spec.engine = engines::engine(engines::ALL[index]).map_err(|why| {
                let message = format!("ioengine {} is not simulated: {why}", engines::ALL[index]);
                ValueError::new(message).help(SIMULATED_ENGINES)
            })?;
            draft.engine = engines::ALL[index].to_string();
        }
        "iodepth" => draft.iodepth = Some(count(1)?),
        "iodepth_batch" => draft.batch = Some(count(0)?),
        "iodepth_batch_complete_min" => draft.complete_min = Some(count(0)?),
        "iodepth_batch_complete_max" => draft.complete_max = Some(count(0)?),
        "iodepth_low" => draft.low = Some(count(0)?),
        "direct" => spec.direct = value::boolean(text)?,
        "buffered" => spec.direct = !value::boolean(text)?,
        "sync" => spec.sync = [0, 0, 1, 1, 2][value::word(text, SYNC)?],
        "fsync" => spec.fsync = count(0)?,
        "fdatasync" => spec.fdatasync = count(0)?,
        "end_fsync" => spec.end_fsync = value::boolean(text)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// fio takes `-` and `:` between block sizes for a comma.
fn no_range(text: &str, e: ValueError) -> ValueError {
    let Some((low, high)) = text.split_once(['-', ':']).filter(|(low, _)| !low.contains(','))
    else {
        return e;
    };
    let message = "a range of block sizes is an option of its own";
    ValueError::new(message).help(format!(
        "write bsrange={low}-{high}; fio 3.33 reads this as bs={low},{high}: {low} for reads, {high} for writes and trims"
    ))
}

/// Later values replace earlier ones. Directions that are left out keep their value.
fn merge<T: Copy>(to: &mut [Option<T>; 3], from: [Option<T>; 3]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.or(*to);
    }
}

/// `randread:8`, `write:4k`, `read:-8k` and the plain forms.
fn rw(text: &str, kb: u64, identical: bool) -> Parsed<Pattern> {
    let (word, suffix) = text.split_once(':').map_or((text, None), |(w, s)| (w, Some(s)));
    let word = RW[value::word(word, RW)?];
    let random = word.starts_with("rand");
    let base = word.strip_prefix("rand").unwrap_or(word);
    let mixed = matches!(base, "rw" | "readwrite");
    let trim_then_write = base == "trimwrite";
    let mut pattern = Pattern {
        read: base == "read" || mixed,
        write: base == "write" || mixed || trim_then_write,
        trim: base == "trim" || trim_then_write,
        random,
        trim_then_write,
        ddir_seq_nr: 1,
        stride: 0,
        identical,
    };
    match suffix {
        None => {}
        Some(n) if random => {
            pattern.ddir_seq_nr = u64::from(value::small(n, 1, u32::MAX, kb)?);
        }
        Some(n) => pattern.stride = value::bounded(n, i64::MIN, i64::MAX, kb)?,
    }
    Ok(pattern)
}

/// Up to three lists for reads, writes and trims, the last one for the directions after it.
fn lists<T: Clone>(text: &str, parse: impl Fn(&str) -> Parsed<T>) -> Parsed<[T; 3]> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(ValueError::new("at most three lists: for reads, writes and trims"));
    }
    let mut out = Vec::with_capacity(3);
    for part in &parts {
        out.push(parse(part)?);
    }
    let last = out[out.len() - 1].clone();
    out.resize(3, last);
    out.try_into().map_err(|_| ValueError::new("at most three lists"))
}

/// Fills in the percentages that were left out (blank or 0): the rest in equal whole parts. Sorted by
/// percentage, as fio keeps the list, the last entry takes what is still missing to 100.
fn fill(percents: &mut [u32], what: &str) -> Parsed<()> {
    let sum: u32 = percents.iter().sum();
    if sum > 100 {
        return Err(ValueError::new(format!("{what} percentages add up to {sum}, more than 100")));
    }
    let blank = percents.iter().filter(|p| **p == 0).count() as u32;
    if let Some(each) = (100 - sum).checked_div(blank) {
        percents.iter_mut().filter(|p| **p == 0).for_each(|p| *p = each);
    }
    Ok(())
}

fn percent(text: &str) -> Parsed<u32> {
    if text.trim().is_empty() {
        return Ok(0);
    }
    value::small(text.trim(), 0, 100, 1024)
}

/// `4k/10:64k/50:32k`.
fn split(text: &str, kb: u64) -> Parsed<Vec<SplitEntry>> {
    let mut entries = Vec::new();
    for part in text.split(':') {
        if entries.len() == MAX_SPLITS {
            return Err(ValueError::new("more than 64 block sizes"));
        }
        let (bs, share) = part.split_once('/').unwrap_or((part, ""));
        entries.push(SplitEntry { bs: value::size(bs, 1, kb)?, percent: percent(share)? });
    }
    let mut percents: Vec<u32> = entries.iter().map(|e| e.percent).collect();
    fill(&mut percents, "block size")?;
    for (e, p) in entries.iter_mut().zip(&percents) {
        e.percent = *p;
    }
    entries.sort_by_key(|e| e.percent);
    let rest = 100 - percents.iter().sum::<u32>();
    if let Some(last) = entries.last_mut() {
        last.percent += rest;
    }
    entries.retain(|e| e.percent > 0);
    Ok(entries)
}

fn distribution(text: &str, kb: u64) -> Parsed<[Distribution; 3]> {
    let (word, rest) = text.split_once(':').map_or((text, None), |(w, r)| (w, Some(r)));
    let word = DISTRIBUTION[value::word(word, DISTRIBUTION)?];
    let rest = rest.unwrap_or("");
    if word == "zoned" {
        return lists(rest, |t| zones(t, percent).and_then(zoned));
    }
    if word == "zoned_abs" {
        return lists(rest, |t| zones(t, |s| value::size(s, 1, kb)).map(Distribution::ZonedAbs));
    }
    if word == "random" {
        return match rest {
            "" => Ok(Default::default()),
            _ => Err(ValueError::new("the uniform distribution takes no parameter")),
        };
    }
    let (main, center) = rest.split_once(':').map_or((rest, None), |(m, c)| (m, Some(c)));
    let center = center.map(value::float).transpose()?;
    if center.is_some_and(|c| !(0.0..=1.0).contains(&c)) {
        return Err(ValueError::new("the centre is from 0 to 1"));
    }
    let given = if main.is_empty() { None } else { Some(value::float(main)?) };
    let d = match word {
        "zipf" => match given.unwrap_or(1.1) {
            1.0 => return Err(ValueError::new("the theta of zipf must differ from 1")),
            t if t < 0.0 => return Err(ValueError::new("the theta of zipf must not be negative")),
            t => Distribution::Zipf(t, center),
        },
        "pareto" => match given.unwrap_or(0.2) {
            p if p > 0.0 && p < 1.0 => Distribution::Pareto(p, center),
            _ => return Err(ValueError::new("the power of pareto is between 0 and 1")),
        },
        _ => match given.unwrap_or(0.0) {
            d if (0.0..100.0).contains(&d) => Distribution::Normal(d, center),
            _ => return Err(ValueError::new("the deviation of normal is from 0 to below 100")),
        },
    };
    Ok([d.clone(), d.clone(), d])
}

/// `60/10:30/20:10`: access percentage and size of each zone.
fn zones<T>(text: &str, size: impl Fn(&str) -> Parsed<T>) -> Parsed<Vec<(u32, T)>> {
    let mut out = Vec::new();
    for part in text.split(':').filter(|p| !p.trim().is_empty()) {
        if out.len() == MAX_ZONES {
            return Err(ValueError::new("more than 256 zones"));
        }
        let (access, extent) = part.split_once('/').unwrap_or((part, ""));
        out.push((percent(access)?, size(extent)?));
    }
    let sum: u32 = out.iter().map(|z| z.0).sum();
    if sum != 100 {
        return Err(ValueError::new(format!("access percentages add up to {sum}, not 100")));
    }
    Ok(out)
}

/// Zones by percentage of the size; blank ones share what is left.
fn zoned(zones: Vec<(u32, u32)>) -> Parsed<Distribution> {
    let mut sizes: Vec<u32> = zones.iter().map(|z| z.1).collect();
    fill(&mut sizes, "zone size")?;
    let sum: u32 = sizes.iter().sum();
    if let Some(last) = sizes.last_mut() {
        *last += 100 - sum;
    }
    Ok(Distribution::Zoned(zones.iter().zip(sizes).map(|(z, s)| (z.0, f64::from(s))).collect()))
}
