//! ext3: what differs from ext4. Each group has its own tables ([`layout`]), blocks are given one by one when a page is
//! written to ([`windows`]) and found through indirect blocks ([`indirect`]), and with the kernel's own `jbd` a sync waits for the
//! data of everybody.
//!
//! Names, inodes, the journal's book-keeping and the paths of calls are those of `ext4`, which are the same code here as they
//! were, copied, in the kernel. Since 4.3 the kernel mounts ext3 by its ext4.

pub mod indirect;
pub mod layout;
pub mod windows;

use super::age::Ageing;
use super::ext4::layout::{Format, Layout};
use super::ext4::{Ext, Name, Options};

/// Of [`Ext3`].
#[derive(Clone, Copy, Debug)]
pub struct Three;

impl Name for Three {
    const NAME: &'static str = "ext3";
    const JOURNAL: &'static str = "kjournald";
}

/// ext3, mounted.
pub type Ext3 = Ext<Three>;

impl Ext3 {
    /// An empty or aged file system of a format of [`layout`] on a device of `blocks` blocks of 4 KiB, mounted, with its root
    /// directory as `root`.
    #[must_use]
    pub fn new(
        blocks: u64,
        root: u32,
        format: Format,
        options: Options,
        ageing: Option<Ageing>,
    ) -> Self {
        let layout = Layout::of(blocks, format);
        let space = windows::Space::new(layout.clone(), ageing);
        Self::with_windows(layout, space, root, Options { delalloc: false, ..options })
    }
}

#[cfg(test)]
mod tests;
