//! The device that a scenario is played on.

use std::collections::VecDeque;

use iosched_block::ArrayConfig;
use iosched_devices::{Command, Completion, Device, DeviceSpec, Shifted};
use iosched_types::{Bytes, Nanos, SECTOR};

use super::run::ScenarioError;
use crate::stack::{array_of, reset_of};

use super::{Completes, Driver, Scenario, Wanted};

/// Sectors of a device that is nothing but a service time, unless requests lie beyond: 1 TiB.
const CAPACITY: u64 = 1 << 31;

/// A device that is nothing but a service time.
struct Constant {
    capacity: Bytes,
    /// `None`: commands never complete.
    time: Option<Nanos>,
    queue: VecDeque<Completion>,
    in_flight: usize,
}

impl Device for Constant {
    fn capacity(&self) -> Bytes {
        self.capacity
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        self.in_flight += 1;
        if let Some(time) = self.time {
            self.queue.push_back(Completion { id: command.id, t_start: now, t_done: now + time });
        }
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        self.queue.front().map(|c| c.t_done)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.queue.front().is_some_and(|c| c.t_done <= now) {
            done.extend(self.queue.pop_front());
            self.in_flight -= 1;
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// What the block layer is told about the device.
pub(super) struct Target {
    pub(super) device: Box<dyn Device>,
    pub(super) depth: u32,
    /// Requests that the driver takes at a time; 0: as many as it has tags.
    pub(super) at_once: u32,
    pub(super) rotational: bool,
    pub(super) write_cache: bool,
    pub(super) fua: bool,
    pub(super) budget: bool,
    pub(super) max_hw_sectors_kb: u32,
}

impl Target {
    fn constant(scenario: &Scenario, time: Option<Nanos>, depth: u32) -> Target {
        let end = scenario.requests.iter().map(end).max().unwrap_or(0);
        let capacity = end.max(CAPACITY) * SECTOR;
        let device = Box::new(Constant { capacity, time, queue: VecDeque::new(), in_flight: 0 });
        let max_hw_sectors_kb = 1 << 20;
        // A driver that asks for one request at a time stages nothing, whatever the kernel; a cache makes flushes visible.
        Target {
            device,
            depth,
            at_once: 0,
            max_hw_sectors_kb,
            rotational: true,
            write_cache: true,
            fua: false,
            budget: true,
        }
    }

    fn of_spec(
        scenario: &Scenario,
        leg: usize,
        spec: &DeviceSpec,
        depth: Option<u32>,
    ) -> Result<Target, String> {
        let own = match spec.queue_depth {
            // Older libata keeps one of the 32 NCQ slots to itself.
            32 if spec.budget => scenario.kernel.ncq_depth.min(32),
            own => own,
        };
        let mut device = spec.build().map_err(|e| e.to_string())?;
        let reset = reset_of(leg, spec);
        if reset > 0 {
            device = Box::new(Shifted::new(device, reset));
        }
        Ok(Target {
            device,
            depth: depth.unwrap_or(own),
            at_once: if depth.is_some() { 0 } else { spec.at_once },
            rotational: spec.rotational,
            write_cache: spec.write_cache,
            fua: spec.fua,
            budget: spec.budget && scenario.kernel.mq.budget_first,
            max_hw_sectors_kb: spec.max_hw_sectors_kb,
        })
    }
}

fn end(w: &Wanted) -> u64 {
    w.sector + u64::from(w.sectors)
}

/// The disks of a scenario, and the array that they make.
pub(super) fn targets(
    scenario: &Scenario,
    lookup: &dyn Fn(&str) -> Result<DeviceSpec, String>,
) -> Result<(Vec<Target>, Option<ArrayConfig>), ScenarioError> {
    let one = |target| Ok((vec![target], None));
    match &scenario.driver {
        Driver::Service { time, depth } => {
            one(Target::constant(scenario, Some(*time), depth.unwrap_or(1)))
        }
        Driver::Pull { completes, depth, .. } => {
            let time = (*completes == Completes::AtOnce).then_some(0);
            // Without a scheduler the only tags there are hold the requests that wait as well.
            let none = scenario.scheduler.descriptor.facts.bypass;
            let depth = if none { scenario.requests.len() as u32 } else { *depth };
            one(Target::constant(scenario, time, depth))
        }
        Driver::Device { name, depth } => {
            let spec = lookup(&name.value).map_err(|e| name.place.error(e))?;
            let legs = spec.legs().into_iter().enumerate();
            let targets = legs.map(|(i, leg)| Target::of_spec(scenario, i, &leg, *depth));
            let targets = targets.collect::<Result<Vec<_>, _>>();
            let targets = targets.map_err(|e| name.place.error(e))?;
            let sectors = spec.capacity() / SECTOR;
            if let Some(w) = scenario.requests.iter().find(|w| end(w) > sectors) {
                let message = format!("request beyond the end of {}", spec.name);
                let help = format!("it has {sectors} sectors; this one ends at {}", end(w));
                return Err(w.place.error(message).with_help(help).into());
            }
            Ok((targets, array_of(&spec)))
        }
    }
}
