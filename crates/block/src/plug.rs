//! The plug of a thread: submissions are held back for a moment, so that they can merge and travel together.

use iosched_schedulers::{BlockPath, Position, TaskInfo};
use iosched_types::{Bio, ReqId, TaskId};

use crate::profile::{LargeRequest, MergeScan, PlugKind};
use crate::queue::Queue;
use crate::timeline::Timeline;

/// One task's plug.
#[derive(Debug, Default)]
pub(crate) struct Plug {
    active: bool,
    list: Vec<ReqId>,
    /// The throttle has already counted the bio this task is blocked on.
    pub(crate) wbt_charged: bool,
    /// The task sleeps inside the block layer, for a tag, a request or in the throttle.
    pub(crate) inside: bool,
}

impl Queue {
    /// Adds a task that will submit bios ([`Bio::task`]) and returns its number. Tasks and threads are numbered as they come.
    pub fn task_started(&mut self, info: TaskInfo) -> TaskId {
        let task = self.add_thread();
        // Threads that came before it have no facts: to schedulers they have no name and nice 0.
        for thread in self.facts.tasks.len() as TaskId..task {
            self.facts.tasks.push(TaskInfo { pid: thread, ..TaskInfo::default() });
        }
        self.facts.tasks.push(info);
        self.legacy.pool.room_for(task);
        task
    }

    /// Numbers of threads begin behind those of `tasks` processes. Returns the first of them.
    pub fn reserve_tasks(&mut self, tasks: usize) -> TaskId {
        let tasks = self.plugs.len().max(tasks);
        self.plugs.resize_with(tasks, Plug::default);
        tasks as TaskId
    }

    /// The number of another thread that will submit bios ([`Bio::thread`]).
    pub fn add_thread(&mut self) -> TaskId {
        self.plugs.push(Plug::default());
        self.plugs.len() as TaskId - 1
    }

    /// `blk_start_plug`: the task will submit several bios. Kernels with a device plug ignore it.
    pub fn start_plug(&mut self, task: TaskId) {
        if self.profile.plug.kind == PlugKind::Task {
            self.plugs[task as usize].active = true;
        }
    }

    /// Whether the thread has a plug now.
    #[must_use]
    pub fn has_plug(&self, thread: TaskId) -> bool {
        self.plug_active(thread)
    }

    /// `blk_finish_plug`: hands over what is plugged.
    pub fn finish_plug(&mut self, tl: &mut Timeline, task: TaskId) {
        self.plugs[task as usize].active = false;
        self.flush_plug(tl, task);
    }

    /// The task goes to sleep: its plug is emptied, the plug itself stays.
    pub fn task_sleeps(&mut self, tl: &mut Timeline, task: TaskId) {
        self.flush_plug(tl, task);
    }

    #[inline(always)]
    pub(crate) fn plug_active(&self, task: TaskId) -> bool {
        self.plugs.get(task as usize).is_some_and(|p| p.active)
    }

    /// Tries to merge into the task's plugged requests, newest first.
    #[inline(always)]
    pub(crate) fn merge_into_plug(&mut self, bio: &Bio) -> bool {
        let plug = self.plugs.get(bio.thread as usize);
        plug.is_some_and(|p| !p.list.is_empty()) && self.merge_into_plug_list(bio)
    }

    fn merge_into_plug_list(&mut self, bio: &Bio) -> bool {
        let plug = &self.plugs[bio.thread as usize];
        let scan = match self.plug_scan {
            MergeScan::All => plug.list.len(),
            MergeScan::Newest => plug.list.len().min(1),
        };
        for back in 1..=scan {
            let list = &self.plugs[bio.thread as usize].list;
            let id = list[list.len() - back];
            if self.merge_into_plugged(id, bio) {
                return true;
            }
        }
        false
    }

    /// Adds a request to the task's plug, emptying a full one first.
    pub(crate) fn add_to_plug(&mut self, tl: &mut Timeline, task: TaskId, id: ReqId) {
        let p = &self.profile.plug;
        let list = &self.plugs[task as usize].list;
        let large = match p.large {
            LargeRequest::Newest => list.last(),
            LargeRequest::Oldest => list.first(),
        };
        let full = list.len() >= p.max_requests as usize
            || large.is_some_and(|l| self.reqs[*l].sectors >= p.max_kb * 2);
        if full {
            self.flush_plug(tl, task);
            if self.path == BlockPath::Mq {
                self.run_deferred(tl);
            }
        }
        self.plugs[task as usize].list.push(id);
    }

    #[inline(always)]
    fn flush_plug(&mut self, tl: &mut Timeline, task: TaskId) {
        if self.plugs.get(task as usize).is_some_and(|p| !p.list.is_empty()) {
            self.flush_plug_list(tl, task);
        }
    }

    fn flush_plug_list(&mut self, tl: &mut Timeline, task: TaskId) {
        let mut list = std::mem::take(&mut self.plugs[task as usize].list);
        if self.profile.plug.sorted {
            // Stable: equal sectors stay in the order of arrival.
            list.sort_by_key(|id| self.reqs[*id].sector);
        }
        // All of a task's requests lie on the hardware queue of its CPU.
        let h = list.first().map_or(0, |id| usize::from(self.reqs[*id].hctx));
        for id in &list {
            match self.path {
                BlockPath::Legacy => self.legacy_insert_merge(tl, *id),
                BlockPath::Mq if self.none => self.direct_issue(tl, *id),
                BlockPath::Mq => self.mq_insert(tl, *id, Position::Sort),
            }
        }
        list.clear();
        self.plugs[task as usize].list = list;
        match self.path {
            BlockPath::Mq => self.ask_run(h),
            BlockPath::Legacy => {
                self.run_pending = true;
                self.run_deferred(tl);
            }
        }
    }
}
