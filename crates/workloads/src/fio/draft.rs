//! One section on its way to a job: options applied one after the other.

use iosched_types::{IoPrio, PrioClass, cgroup};

use super::exits::{self, ExitWhat};
use super::spec::{JobSpec, Rate};
use super::value::{self, Amount, Parsed, ValueError};
use super::{apply_io, apply_place, commands, file_options};

/// A job before `numjobs` and the defaults that depend on other options.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) spec: JobSpec,
    /// `kb_base`; 0 is the default.
    pub(crate) kb: u64,
    pub(crate) name: Option<String>,
    pub(crate) numjobs: u32,
    pub(crate) stonewall: bool,
    pub(crate) new_group: bool,
    pub(crate) exitall: bool,
    pub(crate) exit_what: Option<ExitWhat>,
    pub(crate) bs: [Option<u64>; 3],
    pub(crate) bsrange: [Option<(u64, u64)>; 3],
    pub(crate) ba: [Option<u64>; 3],
    pub(crate) engine: String,
    pub(crate) iodepth: Option<u32>,
    pub(crate) batch: Option<u32>,
    pub(crate) complete_min: Option<u32>,
    pub(crate) complete_max: Option<u32>,
    pub(crate) low: Option<u32>,
    pub(crate) prio: Option<u8>,
    pub(crate) class: Option<u8>,
    pub(crate) cgroup: Option<String>,
    pub(crate) cgroup_weight: Option<u32>,
    pub(crate) split_cpus: bool,
    pub(crate) think_blocks: Option<u64>,
    pub(crate) read_iolog: Option<String>,
    pub(crate) replay: Replay,
}

/// How a log is changed before it is replayed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replay {
    pub(crate) no_stall: bool,
    /// Percent; 0 is 100.
    pub(crate) time_scale: u64,
    /// Divisor; 0 is 1.
    pub(crate) scale: u64,
    pub(crate) align: u64,
    /// By position in `table::SKIP`.
    pub(crate) skip: [bool; 4],
    pub(crate) redirect: Option<String>,
}

impl Draft {
    pub(crate) fn kb(&self) -> u64 {
        if self.kb == 1000 { 1000 } else { 1024 }
    }

    /// Applies a simulated option by its canonical name.
    pub(crate) fn apply(&mut self, name: &str, text: Option<&str>) -> Parsed<()> {
        if let Some(result) = self.apply_flag(name, text) {
            return result;
        }
        let Some(text) = text else {
            return Err(ValueError::new("the option needs a value"));
        };
        if text.is_empty() {
            return Err(ValueError::new("the value is empty"));
        }
        let handled = apply_io::apply(self, name, text)?
            || apply_place::apply(self, name, text)?
            || file_options::apply(&mut self.spec, name, text)?
            || self.apply_time(name, text)?
            || self.apply_process(name, text)?;
        if handled { Ok(()) } else { Err(ValueError::new(format!("nothing applies {name}"))) }
    }

    fn apply_flag(&mut self, name: &str, text: Option<&str>) -> Option<Parsed<()>> {
        let target = match name {
            "bs_unaligned" => &mut self.spec.bs.unaligned,
            "norandommap" => &mut self.spec.norandommap,
            "time_based" => &mut self.spec.time_based,
            "stonewall" => &mut self.stonewall,
            "new_group" => &mut self.new_group,
            "group_reporting" => &mut self.spec.group_reporting,
            "exitall" => &mut self.exitall,
            _ => return None,
        };
        Some(value::flag(text).map(|v| *target = v))
    }

    fn apply_time(&mut self, name: &str, text: &str) -> Parsed<bool> {
        const SEC: u64 = 1_000_000_000;
        let kb = self.kb();
        let think = &mut self.spec.think;
        match name {
            "runtime" => {
                self.spec.runtime = Some(value::time(text, SEC)?).filter(|t| *t > 0);
            }
            "ramp_time" => self.spec.ramp_time = value::time(text, SEC)?,
            "startdelay" => {
                let (lo, hi) = value::range(text, true, |t| value::time(t, SEC))?;
                self.spec.wait.delay = lo;
                self.spec.wait.delay_max = hi;
            }
            "loops" => {
                self.spec.loops = u64::from(value::small(text, 1, u32::MAX, kb)?);
            }
            "number_ios" => {
                self.spec.number_ios = Some(value::integer(text, kb)?).filter(|n| *n > 0);
            }
            "thinktime" => think.time = value::time(text, 1_000)?,
            "thinktime_spin" => think.spin = value::time(text, 1_000)?,
            "thinktime_iotime" => think.iotime = value::time(text, SEC)?,
            "thinktime_blocks" => {
                self.think_blocks = Some(u64::from(value::small(text, 1, u32::MAX, kb)?));
            }
            "thinktime_blocks_type" => {
                think.issue = value::word(text, &["complete", "issue"])? == 1;
            }
            "rate_process" => {
                let poisson = value::word(text, &["linear", "poisson"])? == 1;
                self.spec.rate.iter_mut().for_each(|r| r.poisson = poisson);
            }
            "rate" => self.rates(text, |r, v| r.bytes = v)?,
            "rate_min" => self.rates(text, |r, v| r.min_bytes = v)?,
            "rate_iops" => self.iops(text, |r, v| r.iops = v)?,
            "rate_iops_min" => self.iops(text, |r, v| r.min_iops = v)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn rates(&mut self, text: &str, set: impl Fn(&mut Rate, u64)) -> Parsed<()> {
        let kb = self.kb();
        let values = value::three(text, |t| value::integer(t, kb))?;
        for (rate, v) in self.spec.rate.iter_mut().zip(values) {
            if let Some(v) = v {
                set(rate, v);
            }
        }
        Ok(())
    }

    fn iops(&mut self, text: &str, set: impl Fn(&mut Rate, u32)) -> Parsed<()> {
        let kb = self.kb();
        let values = value::three(text, |t| value::small(t, 0, u32::MAX, kb))?;
        for (rate, v) in self.spec.rate.iter_mut().zip(values) {
            if let Some(v) = v {
                set(rate, v);
            }
        }
        Ok(())
    }

    fn apply_process(&mut self, name: &str, text: &str) -> Parsed<bool> {
        let kb = self.kb();
        let spec = &mut self.spec;
        match name {
            "name" => self.name = Some(text.to_string()),
            "numjobs" => self.numjobs = value::small(text, 1, u32::MAX, kb)?,
            "prio" => self.prio = Some(value::small(text, 0, 7, kb)? as u8),
            "prioclass" => self.class = Some(value::small(text, 0, 3, kb)? as u8),
            "nice" => spec.nice = value::bounded(text, -20, 19, kb)? as i8,
            "flow" => spec.flow = value::bounded(text, -1000, 1000, kb)?,
            "flow_id" => spec.flow_id = value::small(text, 0, u32::MAX, kb)?,
            "flow_sleep" => {
                let us = value::integer(text, kb)?;
                spec.flow_sleep = us
                    .checked_mul(1_000)
                    .filter(|t| i64::try_from(*t).is_ok())
                    .ok_or_else(|| ValueError::new("the time is too long"))?;
            }
            "cgroup" => self.cgroup = Some(cgroup::path(text).map_err(ValueError::new)?),
            "cgroup_weight" => self.cgroup_weight = Some(value::small(text, 100, 1000, kb)?),
            "cpus_allowed" => spec.cpus = value::cpus(text)?,
            "cpumask" => {
                let mask = value::size(text, 1, kb)?;
                spec.cpus = (0..64).filter(|c| mask >> c & 1 == 1).collect();
            }
            "cpus_allowed_policy" => {
                self.split_cpus = value::word(text, &["shared", "split"])? == 1;
            }
            "exit_what" => self.exit_what = Some(exits::WHAT[value::word(text, exits::WORDS)?]),
            "exec_prerun" => spec.caches_before = commands::read(text)?,
            "exec_postrun" => spec.caches_after = commands::read(text)?,
            "percentile_list" => {
                let mut list = value::floats(text, 100.0)?;
                list.sort_by(f64::total_cmp);
                list.dedup();
                spec.percentiles = list;
            }
            "kb_base" => {
                self.kb = [1024, 1000][value::word(text, &["1024", "1000"])?];
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The argument of `ioprio_set`: a class alone has level 0, a level alone is best effort.
    pub(crate) fn ioprio(&self) -> IoPrio {
        let class = match (self.class, self.prio) {
            (Some(1), _) => PrioClass::Rt,
            (Some(2), _) | (None | Some(0), Some(_)) => PrioClass::Be,
            (Some(3), _) => PrioClass::Idle,
            _ => PrioClass::None,
        };
        let level = match class {
            PrioClass::Rt | PrioClass::Be => self.prio.unwrap_or(0),
            PrioClass::Idle | PrioClass::None => 0,
        };
        IoPrio { class, level }
    }
}

/// Splits an amount into bytes and percent.
pub(crate) fn split_amount(text: &str, kb: u64) -> Parsed<(Option<u64>, Option<u32>)> {
    Ok(match value::amount(text, kb)? {
        Amount::Bytes(b) => (Some(b), None),
        Amount::Percent(p) => (None, Some(p)),
    })
}
