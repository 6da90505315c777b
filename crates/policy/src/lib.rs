//! Rules that set schedulers: which class of device gets which scheduler, and which line decided.
//!
//! [`Policy::read`] reads udev rules, profiles of TuneD, settings of TLP, tmpfiles and sysfsutils, and plain tables.
//! [`judge`] applies them to classes of devices ([`Class`]) on a machine ([`Machine`]) in the order of a start: the
//! kernel's default, udev's `add`, writes at boot, TuneD, then a later `change` event. What depends on something that is not
//! known (a program's output, a model's name) is followed both ways.

mod class;
mod flags;
mod glob;
mod judge;
mod other;
mod policy;
mod queue;
mod shipped;
mod udev;

pub use class::{Class, Parent, builtin_classes, classes_from_toml};
pub use flags::{Flag, Kind};
pub use judge::{Judgement, Outcome, Verdict, judge};
pub use policy::Policy;
pub use queue::Machine;
pub use shipped::{SHIPPED, Shipped, origin, shipped, title};
