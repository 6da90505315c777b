//! The host: everything above the block layer. Tasks with their threads, the cores that they run on, and the event loop
//! that moves tasks, queue and device along one clock.
//!
//! Today a task runs a fio job. `steps` takes the job step by step: the static fast path. Another kind of work would be
//! added there and in `Task`. Waking, cores, starts and the clock ask only for the task's state.

mod charged;
pub mod cpu;
mod direct;
mod error;
mod events;
pub mod fs;
mod ios;
mod looks;
mod machine;
mod player;
pub mod programs;
mod samples;
mod starts;
mod steps;
mod tasks;
mod threads;
mod trims;
mod wake;

pub use error::HostError;
pub use looks::{FIRST_LOOKS, Looks};
pub use machine::Machine;
pub use player::{Beside, Moved, Played, Player, Score, Side, task_info};
pub use samples::Sampler;
pub use starts::first_start;
pub use tasks::Task;
