//! fio job files: options, expansion and behaviour as fio 3.33 has them.

mod apply_io;
mod apply_place;
mod blockmap;
mod check;
mod cmdline;
pub mod commands;
mod disks;
mod docs;
mod draft;
mod engines;
pub mod exits;
mod expand;
pub mod file_options;
mod finish;
pub mod generator;
pub mod iolog;
pub mod iolog_write;
pub mod layout;
mod lexer;
mod live;
mod newer;
pub mod on_files;
mod option;
mod parse;
mod pasted;
pub mod process;
mod replay;
mod shape;
mod shell;
mod skew;
mod spec;
pub mod stats;
mod table;
mod table_engines;
mod table_other;
pub mod taus;
mod value;

pub use check::{check_cpus, check_files};
pub use disks::assumed as assumed_parts;
pub use disks::check_disks;
pub use docs::options_page;
pub use expand::{Lookup, NoLookup};
pub use finish::MAX_JOBS;
pub use live::is_live_only;
pub use option::{Effect, Kind, OptionDef, describe, find_option, nearest_option, options};
pub use parse::{parse, parse_live};
pub use spec::{
    BlockSizes, Distribution, FileService, IoEngine, JobSet, JobSpec, Pattern, Rate, SplitEntry,
    Target, ThinkTime, Wait,
};
pub use taus::DEFAULT_SEED;
