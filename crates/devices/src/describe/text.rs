//! The description as text of at most 80 columns.

use std::fmt;

use iosched_types::units::{show_bytes, show_count, show_nanos, three_digits};

use super::{Description, WRITES_BEFORE_FLUSH, seek_times};
use crate::figure::{Figure, FigureValue};
use crate::params::{ArrayParams, HddParams, Raid, Rotation, SsdParams, Unit, VolumeParams};
use crate::spec::Model;

const WIDTH: usize = 80;

/// A parameter's value with its unit.
pub(super) fn value(unit: Unit, value: u64) -> String {
    let v = value as f64;
    match unit {
        Unit::Bytes => show_bytes(v),
        Unit::Nanos => show_nanos(v),
        Unit::Rate => mb(v / 1e6),
        Unit::Percent => format!("{value} %"),
        Unit::Count => value.to_string(),
        Unit::Flag => if value == 0 { "no" } else { "yes" }.into(),
        Unit::Word(words) => words.get(value as usize).copied().unwrap_or_default().into(),
    }
}

fn mb(v: f64) -> String {
    format!("{} MB/s", three_digits(v))
}

fn ms(ns: f64) -> String {
    show_nanos(ns)
}

/// The model in words.
pub(super) fn words(model: &Model) -> Vec<String> {
    match model {
        Model::Fixed(p) => vec![
            format!("Every read and write takes {}, {} at a time.", ms(p.lat_ns as f64), p.par),
            "The place on the device makes no difference.".into(),
        ],
        Model::Hdd(p) => disk(p, model),
        Model::Ssd(p) => drive(p),
        Model::Volume(p) => volume(p),
        Model::Array(p) => array(p),
    }
}

fn disk(p: &HddParams, model: &Model) -> Vec<String> {
    let (mean, full) = seek_times(model).unwrap_or_default();
    let mut all = vec![format!(
        "One arm: a seek takes {} at least, {} on average, {} at most.",
        ms(p.seek_a as f64),
        ms(mean),
        ms(full)
    )];
    let turn = three_digits(60e9 / p.rev_ns as f64);
    all.push(match p.rot {
        Rotation::Half => format!("{turn} turns a minute; rotation always costs half a turn."),
        Rotation::Hash => {
            format!("{turn} turns a minute; rotation costs a fixed share per sector.")
        }
        Rotation::Angle => format!("{turn} turns a minute; the platter's angle is followed."),
    });
    all.push(if p.bw_inner == 0 {
        format!("The medium moves {}.", mb(p.bw as f64 / 1e6))
    } else {
        let (outer, inner) = (mb(p.bw as f64 / 1e6), mb(p.bw_inner as f64 / 1e6));
        format!("The medium moves {outer} at the rim and {inner} at the hub, in {} zones.", p.zones)
    });
    all.push(match (p.sptf, p.window) {
        (false, _) => "Commands are served in order of arrival.".into(),
        (true, 0) => "Of the commands queued, the one reached soonest is next.".into(),
        (true, n) => format!("Of the {n} oldest commands queued, the one reached soonest is next."),
    });
    if p.sptf && p.age_ns > 0 {
        all.push(format!("A command older than {} goes first.", ms(p.age_ns as f64)));
    }
    all.push(if p.wcache == 0 {
        "No write cache: a write completes when it is on the medium.".into()
    } else if p.wc_ns > 0 {
        format!(
            "A volatile write cache of {}, entered by one write at a time: written out when the arm is idle, and in turn \
             with reads once half full; a flush waits for what the cache held when it came.",
            show_bytes(p.wcache as f64)
        )
    } else {
        format!(
            "A volatile write cache of {}: written out when the arm is idle, and before \
             reads once {} % full; a flush empties it.",
            show_bytes(p.wcache as f64),
            p.wcache_high
        )
    });
    if p.missed_rev {
        all.push(
            "A write behind the last command that comes late waits for the next turn; reads in order never wait."
                .into(),
        );
    }
    all.extend(controller(p.ctl_ns));
    all
}

fn controller(ns: u64) -> Option<String> {
    (ns > 0).then(|| {
        format!("The controller takes {} for a command, one after the other.", ms(ns as f64))
    })
}

fn drive(p: &SsdParams) -> Vec<String> {
    let (rd, wr) = (ms(p.rd_ns as f64), ms(p.wr_ns as f64));
    let mut all = vec![format!(
        "{} flash units work at once; a read takes {rd}, a program {wr}, of up to {}.",
        p.chans,
        show_bytes(p.stripe as f64)
    )];
    if p.bus_bw > 0 {
        all.push(format!("One bus to the host moves {}.", mb(p.bus_bw as f64 / 1e6)));
    }
    all.push(if p.cache == 0 {
        "A write completes when it is programmed.".into()
    } else {
        let pace = match p.drain_bw {
            0 => String::new(),
            bw => format!(", which drains at {}", mb(bw as f64 / 1e6)),
        };
        let cache = show_bytes(p.cache as f64);
        format!("A write completes when it is in the write cache of {cache}{pace}.")
    });
    if p.rprio {
        all.push("A unit serves waiting reads before waiting programs.".into());
    }
    if p.log {
        all.push("Cached writes are gathered into full programs (log-structured).".into());
    }
    if p.slc > 0 {
        all.push(format!(
            "The SLC cache takes {}; when it is full, a program takes {}.",
            show_bytes(p.slc as f64),
            ms(p.slc_full_wr_ns as f64)
        ));
    }
    all.extend(controller(p.ctl_ns));
    all
}

fn volume(p: &VolumeParams) -> Vec<String> {
    let (rd, wr) = (ms(p.rd_ns as f64), ms(p.wr_ns as f64));
    let mut all = vec![format!("A read takes {rd}, a write {wr}, any number at once.")];
    if p.iops > 0 {
        let (rate, burst) = (show_count(p.iops as f64), show_count(p.iops_burst as f64));
        all.push(format!("{rate} operations a second are granted, {burst} can be saved up."));
    }
    if p.bw > 0 {
        let (rate, burst) = (mb(p.bw as f64 / 1e6), show_bytes(p.bw_burst as f64));
        all.push(format!("{rate} are granted, {burst} can be saved up."));
    }
    all
}

fn array(p: &ArrayParams) -> Vec<String> {
    let layout = match p.raid {
        Raid::Raid0 => "stripes",
        Raid::Raid5 => "stripes with rotating parity",
        Raid::Raid10 => "stripes over pairs of mirrors",
    };
    let disk = mb(p.leg_bw as f64 / 1e6);
    let mut all = vec![
        format!(
            "{} disks of {disk} in {layout}, {} on each in turn.",
            p.legs,
            show_bytes(p.el as f64)
        ),
        format!(
            "{} paths of {} and {} commands each; the path changes every {} commands.",
            p.paths,
            mb(p.link_bw as f64 / 1e6),
            p.qd,
            p.rr
        ),
        format!(
            "The controller takes {} for a read and {} for a write, one after the other.",
            ms(p.cmd_ns as f64),
            ms(p.cmdw_ns as f64)
        ),
    ];
    all.push(match p.cache {
        0 => "No write cache: a write ends on the disks.".into(),
        cache => format!(
            "A durable write cache of {}, written out from {} % full on, {} runs of rows at a time.",
            show_bytes(cache as f64),
            p.hi * 100 / 256,
            p.dpar
        ),
    });
    all.push(format!(
        "A read cache of {}; {} are read ahead from the command number {} of a stream on.",
        show_bytes(p.rcache as f64),
        show_bytes(p.ra_len as f64),
        p.ra_n
    ));
    all
}

/// `text` broken at spaces, each line behind `first` or, from the second on, as many blanks.
fn wrapped(f: &mut fmt::Formatter<'_>, first: &str, text: &str) -> fmt::Result {
    let indent = first.chars().count();
    let mut line = first.to_string();
    let mut empty = true;
    for word in text.split_whitespace() {
        let word: Vec<char> = word.chars().collect();
        for (i, part) in word.chunks(WIDTH - indent).enumerate() {
            let part: String = part.iter().collect();
            let space = usize::from(!empty && i == 0);
            if !empty
                && line.chars().count() + space + part.chars().count() > f.width().unwrap_or(WIDTH)
            {
                writeln!(f, "{}", line.trim_end())?;
                line = " ".repeat(indent);
                empty = true;
            }
            if !empty && i == 0 {
                line.push(' ');
            }
            line += &part;
            empty = false;
        }
    }
    writeln!(f, "{}", line.trim_end())
}

fn number(v: f64) -> String {
    if v.fract() == 0.0 && v.abs() < 1e15 { format!("{v:.0}") } else { format!("{v}") }
}

fn figure(f: &mut fmt::Formatter<'_>, fig: &Figure) -> fmt::Result {
    let value = match &fig.value {
        FigureValue::Number(v) => number(*v),
        FigureValue::Range(a, b) => format!("{} to {}", number(*a), number(*b)),
        FigureValue::Text(t) => t.clone(),
    };
    let name = fig.name.replace('_', " ");
    let head = format!("  {name}: {value} {}", fig.unit);
    wrapped(f, "  ", &format!("{} [{}]", head.trim(), fig.confidence.word()))?;
    wrapped(f, "      ", &fig.source)?;
    if fig.with_host {
        wrapped(f, "      ", "the time of the host that measured is in it")?;
    }
    if !fig.note.is_empty() {
        wrapped(f, "      ", &format!("({})", fig.note))?;
    }
    if !fig.reason.is_empty() {
        wrapped(f, "      ", &format!("the model differs: {}", fig.reason))?;
    }
    Ok(())
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        wrapped(f, "", &format!("{}: {}", self.name, self.title))?;
        wrapped(f, "", &self.summary)?;
        writeln!(f, "\nModel")?;
        for sentence in &self.model {
            wrapped(f, "  ", sentence)?;
        }
        writeln!(f, "\nWhat it does (computed by running the model)")?;
        writeln!(f, "  {:<32} {:>8} {:>10} {:>12}", "", "IOPS", "MB/s", "mean latency")?;
        for m in &self.behaviour {
            let (iops, rate) = (show_count(m.iops), three_digits(m.mb_per_s));
            let latency = show_nanos(m.mean_ns);
            let mut name = m.load.name.to_string();
            if let Some((start, _)) = name.split_once("QD") {
                name = format!("{start}QD{}", m.load.depth);
            }
            writeln!(f, "  {name:<32} {iops:>8} {rate:>10} {latency:>12}")?;
        }
        match self.flush_ns {
            Some(ns) => writeln!(
                f,
                "  flush after {WRITES_BEFORE_FLUSH} scattered writes: {}",
                show_nanos(ns as f64)
            )?,
            None => writeln!(f, "  flush: none is sent (no volatile write cache)")?,
        }
        writeln!(f, "\nWhat the block layer sees")?;
        for (name, value) in &self.queue {
            writeln!(f, "  {name:<20} {value}")?;
        }
        writeln!(f, "\nParameters")?;
        for p in &self.parameters {
            wrapped(f, &format!("  {:<14} {:>10}  ", p.name, p.value), p.help)?;
            if !p.derivation.is_empty() {
                wrapped(f, &" ".repeat(29), &p.derivation)?;
            }
        }
        if !self.figures.is_empty() {
            writeln!(f, "\nFigures [confidence]; \"assumed\" ones are typical, not published")?;
        }
        self.figures.iter().try_for_each(|fig| figure(f, fig))
    }
}
