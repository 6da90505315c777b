//! `iosched explain`: a few requests at given times in, every decision of the scheduler out.
//!
//! ```
//! use iosched_sim::scenario::{Scenario, run};
//! let text = r#"
//!     scheduler = "deadline"
//!     kernel = "3.12"
//!     pull_at_ms = [0, 0]
//!     [[request]]
//!     op = "W"
//!     sector = 500
//!     [[request]]
//!     op = "R"
//!     sector = 100
//! "#;
//! let scenario = Scenario::from_toml("example.toml", text).unwrap();
//! let explanation = run(&scenario, &|name| Err(format!("no device {name}"))).unwrap();
//! let order: Vec<u64> = explanation.dispatched.iter().map(|d| d.sector).collect();
//! assert_eq!(order, [100, 500]);
//! ```
//!
//! A scenario can be worked out by hand because it leaves out plugs (requests go straight to the scheduler), limits on
//! allocated requests, the writeback throttle and CPU time. All requests of one instant are inserted before the driver
//! is asked. At one instant, a completion and the request that the device takes next come before the steps of
//! processes. With `service_ms` the driver asks at every completion, with `device` when the block layer would.

mod beside;
pub mod calls;
mod explanation;
mod read;
mod run;
mod target;

pub use beside::beside;
pub(crate) use beside::in_step;
pub use calls::Calls;
pub use explanation::{Dispatched, Explanation, Idle, Life, Switched};
pub(crate) use explanation::{WIDTH, ms, wrapped};
pub use run::{ScenarioError, run};

use std::sync::Arc;

use iosched_block::{KernelProfile, SchedulerChoice};
use iosched_experiment::{Place, Placed};
use iosched_types::{Diagnostic, IoPrio, Nanos, Op, Sector};

/// Requests a scenario may have.
pub const MOST_REQUESTS: usize = 1 << 16;

/// A scenario: everything but the device model, which is looked up when it [`run`]s.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The kernel profile; `hz` is applied.
    pub kernel: KernelProfile,
    /// Scheduler and tunables.
    pub scheduler: SchedulerChoice,
    /// Whether requests may merge.
    pub merges: bool,
    /// What the scheduler's requests go to.
    pub driver: Driver,
    /// `zone_sectors`: the size of a zone of a zoned device, 0 without zones.
    pub zone_sectors: Sector,
    /// Schedulers that take over while the scenario runs, with the times at which they are asked for.
    pub switches: Vec<(Nanos, SchedulerChoice)>,
    /// The requests, in the order of the file.
    pub requests: Vec<Wanted>,
    /// System calls instead of requests.
    pub calls: Option<Arc<Calls>>,
    /// What has no effect, for people to read.
    pub warnings: Vec<Diagnostic>,
}

/// What takes the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Driver {
    /// `service_ms`: every command takes as long, up to `depth` at once.
    Service {
        /// `service_ms` in ns.
        time: Nanos,
        /// `driver_depth`, if it was given.
        depth: Option<u32>,
    },
    /// `device`: a model from the catalogue or a file.
    Device {
        /// Name or file.
        name: Placed<String>,
        /// `driver_depth`, where it is not the device's own.
        depth: Option<u32>,
    },
    /// `pull_at_ms`: the driver asks for one request at each of these times.
    Pull {
        /// The times, in order.
        at: Vec<Nanos>,
        /// What becomes of the requests.
        completes: Completes,
        /// `driver_depth`: what the scheduler is told.
        depth: u32,
    },
}

/// When pulled requests complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completes {
    /// At the instant at which they were pulled.
    AtOnce,
    /// Not within the scenario.
    Never,
}

/// One request of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Insertion time; with `after` counted from that request's completion.
    pub at: Nanos,
    /// An earlier request that has to complete first.
    pub after: Option<usize>,
    /// Operation.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// Process.
    pub pid: u32,
    /// Whether a process waits for it.
    pub sync: bool,
    /// Priority.
    pub prio: IoPrio,
    /// Whether the process ends when this request completes.
    pub exits: bool,
    /// Where it stands in the file.
    pub(crate) place: Place,
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn from_toml(file: &str, text: &str) -> Result<Scenario, Diagnostic> {
        read::scenario(file, text, None)
    }

    /// The same scenario under another scheduler, by its name. Tunables of the file hold where both are of one family;
    /// what has no effect is a warning.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn under(file: &str, text: &str, scheduler: &str) -> Result<Scenario, Diagnostic> {
        read::scenario(file, text, Some(scheduler))
    }
}
