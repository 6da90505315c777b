//! Experiments: the file people write, the trials it expands to, and the record each trial yields.
//!
//! Pure data with a schema version; nothing here runs anything.

pub mod backend;
mod choice;
mod contained;
pub mod file;
pub mod fio_json;
pub mod host;
pub mod load;
pub mod mount_options;
pub mod place;
pub mod plan;
pub mod record;
pub mod replay;
pub mod source;
pub mod startup;
pub mod trial;
pub mod until;
pub mod warm_up;
pub mod work;

pub use backend::{BackendKind, Clock, Disk, RunsOn, Traits};
pub use contained::{COMMAND_LINE, OPTIONS_LINE, contained, files_of};
pub use file::{DeviceRef, Experiment, JobSource, SchedulerRef, WorkloadRef};
pub use host::{FS_TYPES, Fill, FsType, HostSpec, Misfit, Sysctls};
pub use iosched_workloads::programs::{Access, Mix};
pub use load::{
    Load, ONLY_REAL, ProgramKind, ProgramRef, ProgramWork, Started, SyscallLog, TraceRef,
    absent_behind,
};
pub use mount_options::{AccessTime, DataMode, MountOptions};
pub use place::{Place, Placed};
pub use plan::{Sources, plan};
pub use record::{
    ABSENT, CoreTime, DURABLE_AFTER, DURABLE_BW, DeviceStats, DirStats, DispatchPoint, EVENT,
    JobRecord, Mark, MarkKind, Metric, Moments, OF_ONE, OPERATION, Record, SCHEMA, SchedulerStats,
    Series, Status, TASK_CALLS, TIMING_DEVIATION, Total, TrialId, Warning, place_in_time, rates,
    together, total,
};
pub use replay::{ReplayRef, TraceWork};
pub use startup::Startup;
pub use trial::{ChoiceError, Collect, Trial, check_setting, choose_scheduler, label, path_of};
pub use until::{Steady, Until};
pub use warm_up::WarmUp;
pub use work::{FioWork, Site, Work};
