//! The bios of a run, for who lays them beside a kernel's.

use iosched_types::{Flags, Nanos, Op, Sector};
use iosched_vfs::kernel::BioOut;

use super::Programs;
use super::paths::is_thread;
use super::task::Tid;

/// Who handed a bio to the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitter {
    /// A task of the program.
    Program,
    /// The thread that writes dirty pages back.
    Flusher,
    /// The journal's thread, or another of the kernel's.
    Journal,
}

/// A bio, before it is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenBio {
    /// When.
    pub at: Nanos,
    /// By whom.
    pub by: Submitter,
    /// What.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector.
    pub sector: Sector,
    /// Sectors; 0 of an empty flush.
    pub sectors: u32,
}

impl Programs {
    /// Notes the first bios of a mounted file system, at most so many.
    pub fn collect_bios(&mut self, most: usize) {
        self.bios = Some((most, Vec::new()));
    }

    /// The bios that were noted.
    #[must_use]
    pub fn take_bios(&mut self) -> Vec<SeenBio> {
        self.bios.take().map(|(_, bios)| bios).unwrap_or_default()
    }

    pub(super) fn note_bios(&mut self, t: Tid, bios: &[BioOut]) {
        let Some((most, seen)) = &mut self.bios else { return };
        let by = match t {
            t if !is_thread(t) => Submitter::Program,
            t if super::paths::is_flusher(t) => Submitter::Flusher,
            _ => Submitter::Journal,
        };
        let room = most.saturating_sub(seen.len());
        seen.extend(bios.iter().take(room).map(|b| SeenBio {
            at: self.tl.now,
            by,
            op: b.op,
            flags: b.flags,
            sector: b.sector,
            sectors: b.sectors,
        }));
    }
}
