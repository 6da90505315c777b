//! Reading and changing metadata: free space, inodes, directories.

use iosched_types::{Flags, Nanos};

use super::dir::Change;
use super::inode::{At, CHUNK_BLOCKS, CLUSTER_SECTORS, FORK};
use super::layout::{header, root};
use super::log::{Item, NEW_CHUNK, Seq};
use super::space::{For, Touched};
use super::{State, Xfs};
use crate::fs::Full;
use crate::fs::extents::Mapped;
use crate::kernel::{Event, Kernel, Wait};

/// Sectors of a block.
pub(super) const BLOCK: u64 = 8;
/// Bytes before the text of a link in a block.
const LINK_HEADER: u64 = 56;
/// Changes in a group's header are in its first bytes.
pub(super) const FIRST: (u64, u64) = (0, 64);

impl Xfs {
    /// Reads a buffer unless it is in memory. One that is being read is waited for.
    pub(super) async fn read(&self, k: &Kernel, sector: u64, sectors: u64) {
        self.read_as(k, (sector, sectors), Flags::META).await;
    }

    /// The same, with such flags.
    pub(super) async fn read_as(&self, k: &Kernel, (sector, sectors): (u64, u64), flags: Flags) {
        if self.with(|s| !s.warm.insert(sector)) {
            return k.metadata_read(sector).await;
        }
        let group = k.with(|w| w.group());
        k.late_metadata_bio((sector, sectors), flags, Some(group));
        k.wait(Wait::Submit).await;
        k.wait(Wait::Io(group)).await;
    }

    /// Reads what taking some of a group's free space needs.
    pub(super) async fn read_space(&self, k: &Kernel, group: u64) {
        self.read_trees(k, group, [root::BY_SIZE, root::BY_PLACE]).await;
    }

    /// The same for giving some back: its neighbours are sought first. Seen in Linux 6.12 in all groups of `rm_tree_remount`.
    async fn read_space_around(&self, k: &Kernel, group: u64) {
        self.read_trees(k, group, [root::BY_PLACE, root::BY_SIZE]).await;
    }

    async fn read_trees(&self, k: &Kernel, group: u64, trees: [u64; 2]) {
        for header in [header::AGF, header::AGFL] {
            self.read(k, self.with(|s| s.layout.header(group, header)), 1).await;
        }
        for tree in trees {
            self.read(k, self.with(|s| s.layout.sector(group, tree)), BLOCK).await;
        }
    }

    /// Takes up to `blocks` blocks near a goal, in its group if they are there and nobody else is about to take some there.
    /// → group, first block in it, blocks
    pub(super) async fn allocate(
        &self,
        k: &Kernel,
        (home, goal): (u64, u64),
        blocks: u64,
        what: For,
    ) -> Result<(u64, u64, u64), Full> {
        loop {
            let group = match self.with(|s| s.choose(home, blocks, what)) {
                Choice::Group(group) => group,
                Choice::Wait => {
                    k.wait(Wait::Event(Event::Room)).await;
                    continue;
                }
                // What was freed can be taken when the log has it.
                Choice::Full => match self.with(|s| s.freed.back().map(|(seq, _)| *seq)) {
                    Some(seq) => {
                        self.force(k, seq).await;
                        continue;
                    }
                    None => return Err(Full),
                },
            };
            self.with(|s| s.busy.insert(group));
            self.read_space(k, group).await;
            let goal = if group == home { goal } else { 0 };
            let taken = self.with(|s| {
                s.busy.remove(&group);
                let (start, n) = s.find(group, goal, blocks, what)?;
                s.usable[group as usize].take(start, n);
                let touched = s.groups[group as usize].take(start, n);
                s.space_changed(group, touched);
                Some((group, start, n))
            });
            k.with(|w| w.signal(Event::Room));
            if let Some(taken) = taken {
                return Ok(taken);
            }
        }
    }

    /// Gives blocks of the device back.
    pub(super) async fn release(&self, k: &Kernel, extents: &[Mapped]) {
        for m in extents {
            let group = self.with(|s| s.layout.group_of(m.start));
            if self.with(|s| s.owners.any(m.start, m.start + m.blocks)) {
                self.read_owners(k, group).await;
                self.with(|s| s.owners_changed(*m));
            }
            self.read_space_around(k, group).await;
            for (start, end) in self.with(|s| s.owners.drop(m.start, m.start + m.blocks)) {
                self.with(|s| s.give(Mapped { logical: m.logical, start, blocks: end - start }));
            }
        }
    }

    /// An inode for a new file; its chunk is made if there is none with room.
    pub(super) async fn new_inode(&self, k: &Kernel, group: u64, near: u64) -> Result<At, Full> {
        let block = |at| self.with(|s| s.layout.sector(group, at));
        if self.with(|s| s.inodes.free_in(group, near)).is_none() {
            let goal = self.with(|s| s.inodes.newest(group)).map(|c| c + CHUNK_BLOCKS);
            let exact =
                goal.filter(|g| self.with(|s| s.usable[group as usize].is_free(*g, CHUNK_BLOCKS)));
            let goal = (group, exact.unwrap_or(root::INODES));
            let (group, chunk, _) = self.allocate(k, goal, CHUNK_BLOCKS, For::Inodes).await?;
            self.read(k, self.with(|s| s.layout.sector(group, root::INODES)), BLOCK).await;
            self.read(k, self.with(|s| s.layout.sector(group, root::FREE_INODES)), BLOCK).await;
            return Ok(self.with(|s| s.add_chunk(group, chunk)));
        }
        self.read(k, self.with(|s| s.layout.header(group, header::AGI)), 1).await;
        self.read(k, block(root::FREE_INODES), BLOCK).await;
        self.read(k, block(root::INODES), BLOCK).await;
        loop {
            // Somebody may have taken the one that was free before the reads.
            let Some(at) = self.with(|s| s.inodes.free_in(group, near)) else { return Err(Full) };
            let cluster = self.with(|s| at.cluster(&s.layout));
            self.read(k, cluster, CLUSTER_SECTORS).await;
            if self.with(|s| s.inodes.free_in(group, near)) == Some(at) {
                return Ok(at);
            }
        }
    }

    /// Carries out a change of a directory: new blocks get a place, and what changes is noted.
    pub(super) async fn change_directory(
        &self,
        k: &Kernel,
        directory: u32,
        change: Change,
    ) -> Result<(), Full> {
        for logical in change.new {
            self.place_block(k, directory, logical).await?;
        }
        for logical in change.gone {
            let start =
                self.with(|s| s.inodes.get_mut(directory).and_then(|i| i.extents.take(logical)));
            if let Some(start) = start {
                self.with(|s| s.forget_block(start));
                self.release(k, &[Mapped { logical, start, blocks: 1 }]).await;
            }
        }
        self.with(|s| {
            for (logical, from, to) in change.edits {
                let place = s.inodes.get(directory).and_then(|i| i.extents.holds(logical));
                if let Some(m) = place {
                    let sector = (m.start + logical - m.logical) * BLOCK;
                    s.log.change(sector, BLOCK, (from, to));
                    s.warm.insert(sector);
                }
            }
            s.changed(k, directory, true);
        });
        Ok(())
    }

    /// A block of a directory gets a place: right behind the one before it, or near the inode.
    async fn place_block(&self, k: &Kernel, file: u32, logical: u64) -> Result<(), Full> {
        let goal = self.with(|s| s.goal(file, logical));
        let (group, start, _) = self.allocate(k, goal, 1, For::Metadata).await?;
        self.with(|s| {
            let start = group * s.layout.group + start;
            if let Some(inode) = s.inodes.get_mut(file) {
                inode.extents.map(Mapped { logical, start, blocks: 1 });
            }
            s.warm.insert(start * BLOCK);
        });
        self.index(k, file).await
    }

    /// Extents that are too many for the inode go to a block of their own.
    pub(super) async fn index(&self, k: &Kernel, file: u32) -> Result<(), Full> {
        let (over, there) =
            self.with(|s| s.inodes.get(file).map_or((false, None), |i| (i.overflows(), i.index)));
        if !over {
            return Ok(());
        }
        if there.is_none() {
            let goal = self.with(|s| s.home(file));
            let (group, start, _) = self.allocate(k, goal, 1, For::Metadata).await?;
            self.with(|s| {
                let start = group * s.layout.group + start;
                s.warm.insert(start * BLOCK);
                if let Some(inode) = s.inodes.get_mut(file) {
                    inode.index = Some(start);
                }
            });
        }
        self.with(|s| {
            let Some(inode) = s.inodes.get(file) else { return };
            let end = (72 + 16 * inode.extents.len() as u64).min(4096);
            if let Some(index) = inode.index {
                s.log.change(index * BLOCK, BLOCK, (end.saturating_sub(256), end));
            }
        });
        Ok(())
    }

    /// A link's text goes into its inode, or into a block of its own behind a header.
    pub(super) async fn write_link(&self, k: &Kernel, link: u32, bytes: u64) -> Result<(), Full> {
        if bytes <= FORK {
            return Ok(());
        }
        let goal = self.with(|s| s.home(link));
        let (group, start, _) = self.allocate(k, goal, 1, For::Metadata).await?;
        self.with(|s| {
            let start = group * s.layout.group + start;
            s.warm.insert(start * BLOCK);
            if let Some(inode) = s.inodes.get_mut(link) {
                inode.extents.map(Mapped { logical: 0, start, blocks: 1 });
            }
            s.log.change(start * BLOCK, BLOCK, (0, LINK_HEADER + bytes));
            s.changed(k, link, true);
        });
        Ok(())
    }

    /// Frees inodes that have neither name nor user, and their blocks.
    pub(super) async fn free_dead(&self, k: &Kernel) {
        while let Some(inode) = self.with(|s| s.dead.pop()) {
            let mut extents = inode.extents.clone().cut(0);
            extents.extend(inode.copied.clone().cut(0));
            extents.extend(inode.index.map(|start| Mapped { logical: 0, start, blocks: 1 }));
            self.release(k, &extents).await;
            let at = inode.at;
            self.read(k, self.with(|s| s.layout.header(at.group, header::AGI)), 1).await;
            self.read(k, self.with(|s| s.layout.sector(at.group, root::INODES)), BLOCK).await;
            self.read(k, self.with(|s| s.layout.sector(at.group, root::FREE_INODES)), BLOCK).await;
            let whole = self.with(|s| {
                if inode.kind != crate::fs::Kind::File {
                    extents.iter().for_each(|m| s.forget_block(m.start));
                }
                inode.index.into_iter().for_each(|b| s.forget_block(b));
                let whole = s.inodes.free(at);
                s.inode_changed(at, whole);
                s.log.change_inode(at.number());
                if whole {
                    s.drop_chunk(at);
                }
                whole
            });
            if whole {
                let start = self.with(|s| at.group * s.layout.group + at.chunk);
                let chunk = Mapped { logical: 0, start, blocks: CHUNK_BLOCKS };
                self.release(k, &[chunk]).await;
            }
        }
    }
}

/// Where blocks can be taken.
enum Choice {
    Group(u64),
    /// Others are about to take some in all groups that have any.
    Wait,
    Full,
}

impl State {
    fn find(&self, group: u64, goal: u64, blocks: u64, what: For) -> Option<(u64, u64)> {
        self.usable[group as usize].near(goal, blocks, what)
    }

    /// The group for an allocation: its home, or the next one that nobody is busy in; one with room for all of it first.
    fn choose(&self, home: u64, blocks: u64, what: For) -> Choice {
        let n = self.layout.groups;
        let mut some = None;
        let mut any = false;
        for group in (0..n).map(|i| (home + i) % n) {
            let Some((_, len)) = self.find(group, 0, blocks, what) else { continue };
            any = true;
            if self.busy.contains(&group) {
                continue;
            }
            if len == blocks {
                return Choice::Group(group);
            }
            some = some.max(Some((len, std::cmp::Reverse(group))));
        }
        match some {
            Some((_, std::cmp::Reverse(group))) => Choice::Group(group),
            None if any => Choice::Wait,
            None => Choice::Full,
        }
    }

    /// Where a file's inode is: group and block of it.
    pub(super) fn home(&self, file: u32) -> (u64, u64) {
        self.inodes.get(file).map_or((0, 0), |i| (i.at.group, i.at.block()))
    }

    /// Where the next blocks of a file should be: behind those before them, or near the inode.
    pub(super) fn goal(&self, file: u32, logical: u64) -> (u64, u64) {
        let before = self.inodes.get(file).and_then(|i| i.extents.before(logical));
        match before {
            Some(m) => {
                let end = m.start + m.blocks;
                let group = self.layout.group_of(m.start);
                (group, end - group * self.layout.group)
            }
            None => self.home(file),
        }
    }

    /// Gives blocks back.
    pub(super) fn give(&mut self, m: Mapped) {
        let group = self.layout.group_of(m.start);
        let start = m.start - group * self.layout.group;
        let touched = self.groups[group as usize].give(start, m.blocks);
        self.space_changed(group, touched);
        self.freed.push_back((self.log.seq(), m));
    }

    /// A checkpoint is in the log: what it freed can be taken.
    pub(super) fn freed_until(&mut self, seq: Seq) {
        while let Some(&(at, m)) = self.freed.front()
            && at <= seq
        {
            self.freed.pop_front();
            let group = self.layout.group_of(m.start);
            self.usable[group as usize].give(m.start - group * self.layout.group, m.blocks);
        }
    }

    fn space_changed(&mut self, group: u64, touched: Touched) {
        let (agf, place, size) = (
            self.layout.header(group, header::AGF),
            self.layout.sector(group, root::BY_PLACE),
            self.layout.sector(group, root::BY_SIZE),
        );
        self.log.change(agf, 1, FIRST);
        for (tree, bytes) in [(place, touched.by_place), (size, touched.by_size)] {
            self.log.change(tree, BLOCK, FIRST);
            self.log.change(tree, BLOCK, bytes);
        }
    }

    /// The trees of inodes change at an inode's chunk. `moves`: the chunk is new, or gone.
    pub(super) fn inode_changed(&mut self, at: At, moves: bool) {
        let records = self.inodes.records(at, moves);
        let agi = self.layout.header(at.group, header::AGI);
        self.log.change(agi, 1, FIRST);
        for (tree, bytes) in [(root::INODES, records.all), (root::FREE_INODES, records.free)] {
            let sector = self.layout.sector(at.group, tree);
            self.log.change(sector, BLOCK, FIRST);
            self.log.change(sector, BLOCK, bytes);
        }
    }

    /// A chunk of inodes is made in memory. → its first one
    fn add_chunk(&mut self, group: u64, chunk: u64) -> At {
        let at = At { group, chunk, slot: 0 };
        self.inodes.add_chunk(group, chunk);
        self.inode_changed(at, true);
        for (half, extra) in [(0, NEW_CHUNK), (CLUSTER_SECTORS, 0)] {
            let sector = self.layout.sector(group, chunk) + half;
            self.log.make(sector, CLUSTER_SECTORS, extra);
            self.warm.insert(sector);
        }
        at
    }

    fn drop_chunk(&mut self, at: At) {
        for half in [0, CLUSTER_SECTORS] {
            let sector = self.layout.sector(at.group, at.chunk) + half;
            self.log.forget(Item::Buffer(sector));
            self.warm.remove(&sector);
        }
    }

    /// A block of metadata is no more.
    fn forget_block(&mut self, block: u64) {
        self.log.forget(Item::Buffer(block * BLOCK));
        self.warm.remove(&(block * BLOCK));
    }

    /// An inode has changed; `data` says that `fdatasync` cares.
    pub(super) fn changed(&mut self, k: &Kernel, file: u32, data: bool) {
        let now = k.with(|w| w.now);
        let tick = now / self.options.tick;
        let seq = self.log.seq();
        let Some(inode) = self.inodes.get_mut(file) else { return };
        inode.times.change(now);
        inode.stamp = Some(tick);
        inode.seq = seq;
        if data {
            inode.data_seq = seq;
        }
        let number = inode.at.number();
        self.log.change_inode(number);
    }

    /// The file is read. Whether the time of the last access changes.
    pub(super) fn accessed(&mut self, file: u32, now: Nanos) -> bool {
        let rule = self.options.atime;
        let Some(inode) = self.inodes.get_mut(file) else { return false };
        inode.times.access(rule, now)
    }

    /// It has changed.
    pub(super) fn touched(&mut self, file: u32) {
        let seq = self.log.seq();
        let Some(inode) = self.inodes.get_mut(file) else { return };
        inode.seq = seq;
        let number = inode.at.number();
        self.log.change_inode(number);
    }
}
