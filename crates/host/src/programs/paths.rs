//! Paths of calls and of the kernel's threads through a mounted file system: who goes on, with what bios, until when.
//!
//! An actor is whoever has a path: first the kernel's threads, then the tasks in order.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use iosched_block::Submit;
use iosched_schedulers::TaskInfo;
use iosched_syscalls::Answer;
use iosched_types::{Bio, IoPrio, Op, PrioClass};
use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::kernel::{BioOut, Event, Wait};

use crate::cpu::Seat;
use crate::events::HostEvent;
use crate::fs::Path;

use super::Programs;
use super::io::Owner;
use super::seen::Cause;
use super::task::{State, Tid};

/// The kernel's threads of a file system.
pub(super) const THREADS: u32 = 6;
/// Numbers of the kernel's threads where those of tasks stand.
const KERNEL: Tid = 1 << 31;

/// The journal's thread.
const JOURNAL: Tid = KERNEL + 1;
/// Who ends writes of the log. The kernel's worker for that comes before all others and does not wait: it takes no core here.
const LOG_ENDS: Tid = KERNEL + 5;

/// Who has a path.
#[derive(Default)]
pub(super) struct Actor {
    path: Option<Path>,
    /// Bios that it hands over.
    left: VecDeque<Bio>,
    /// The first of them was refused once.
    resumed: bool,
    plugged: bool,
    /// The I/O context of a kernel thread.
    context: Option<u32>,
    /// The end of a sleep that was cut short is not its end.
    nap: u32,
    /// It waits for this, or for time.
    event: Option<Event>,
    blocked: bool,
    /// A kernel thread has paid for its next bio.
    pub(super) paid: bool,
    /// A kernel thread sleeps, or has never run.
    asleep: bool,
}

impl Actor {
    /// Whether there is a bio that the queue has not seen.
    fn is_new(&self) -> bool {
        !self.left.is_empty() && !self.resumed
    }
}

/// The place of a task, or of a kernel thread, among those that run on cores: that of its actor.
pub(super) fn seat_of(t: Tid) -> u32 {
    actor_of(t)
}

/// Who has that place.
pub(super) fn seated(seat: u32) -> Tid {
    number_of(seat)
}

/// The actor of a task.
pub(super) fn actor_of(t: Tid) -> u32 {
    if t >= KERNEL { t - KERNEL } else { t + THREADS }
}

fn number_of(actor: u32) -> Tid {
    if actor < THREADS { KERNEL + actor } else { actor - THREADS }
}

pub(super) fn is_thread(t: Tid) -> bool {
    t >= KERNEL
}

/// Whether it is the thread that writes dirty pages back.
pub(super) fn is_flusher(t: Tid) -> bool {
    t == KERNEL
}

impl Programs {
    /// Starts the kernel's threads of a mounted file system.
    pub(super) fn start_threads(&mut self) {
        let Some(mount) = self.fs.mount() else { return };
        mount.set_time(self.tl.now);
        let threads = mount.threads();
        self.actors.clear();
        for (a, path) in (0..).zip(threads) {
            self.actors.push(Actor { path: Some(path), asleep: true, ..Actor::default() });
            match KERNEL + a {
                LOG_ENDS => _ = self.drive(LOG_ENDS),
                t => self.actor_goes_on(t),
            }
        }
    }

    /// Kernel threads that are ready wait for a core from now on.
    pub(super) fn seat_threads(&mut self) {
        let Some(cores) = &mut self.cores else { return };
        for seat in 0..THREADS {
            cores.add_task(Seat::default());
            cores.has_run(seat);
        }
        let ready = std::mem::take(&mut self.ready);
        for t in ready {
            if is_thread(t) {
                cores.wake(self.tl.now, seat_of(t));
            } else {
                self.ready.push_back(t);
            }
        }
    }

    /// A task's call takes a path. The answer, if it ends without a wait.
    pub(super) fn take_path(&mut self, t: Tid, path: Path) -> Option<Answer> {
        let a = actor_of(t) as usize;
        if self.actors.len() <= a {
            self.actors.resize_with(a + 1, Actor::default);
        }
        self.actors[a].path = Some(path);
        let cgroup = self.identities.get(t as usize).map_or(0, |i| i.info.cgroup);
        if cgroup > 0
            && let Some(mount) = self.fs.mount()
        {
            mount.world.borrow_mut().set_cgroup(a as u32, cgroup);
        }
        self.drive(t)
    }

    /// A task goes on with a path when it is its turn.
    pub(super) fn put_on_path(&mut self, t: Tid, path: Path) {
        let a = actor_of(t) as usize;
        if self.actors.len() <= a {
            self.actors.resize_with(a + 1, Actor::default);
        }
        self.actors[a].path = Some(path);
    }

    /// Whether who has a path sleeps for room in the queue.
    pub(super) fn is_blocked(&self, t: Tid) -> bool {
        self.actors.get(actor_of(t) as usize).is_some_and(|a| a.blocked)
    }

    /// Whether a task is on a path.
    pub(super) fn on_path(&self, t: Tid) -> bool {
        self.actors.get(actor_of(t) as usize).is_some_and(|a| a.path.is_some())
    }

    /// Goes on with a path until it waits (`None`) or ends.
    pub(super) fn drive(&mut self, t: Tid) -> Option<Answer> {
        let a = actor_of(t);
        let world = self.fs.mount()?.world.clone();
        world.borrow_mut().now = self.tl.now;
        self.note_running(t);
        loop {
            if !self.hand_over_bios(t) {
                return None;
            }
            world.borrow_mut().congested = self.congested();
            let mut path = self.actors[a as usize].path.take()?;
            let polled = path.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let moved = world.borrow_mut().memory.take_moved();
            self.owes_for_pages(t, moved);
            if std::mem::take(&mut world.borrow_mut().writer_slept) {
                self.queue.writer_sleeps(self.tl.now);
            }
            if let Poll::Ready(answer) = polled {
                self.wake_from_world();
                self.log_ends();
                // A thread that has nothing to do on this file system gives its core back.
                if is_thread(t) {
                    self.actor_leaves(t);
                }
                return Some(answer);
            }
            self.actors[a as usize].path = Some(path);
            let wait = world.borrow_mut().take_wait(a)?;
            let sleeps = match wait {
                Wait::Submit => {
                    let bios = world.borrow_mut().take_bios(a);
                    self.queue_bios(t, bios);
                    false
                }
                ref other => {
                    let noted = self.note_wait(t, other);
                    let sleeps = world.borrow_mut().sleep(a, other) && self.set_alarm(t, other);
                    if noted && !sleeps {
                        self.note_no_wait(t);
                    }
                    sleeps
                }
            };
            self.wake_from_world();
            self.log_ends();
            if sleeps {
                if matches!(wait, Wait::Page { .. } | Wait::Io(_)) {
                    self.queue.awaited(&mut self.tl);
                }
                self.actor_sleeps(t);
                return None;
            }
        }
    }

    /// Whether the queue is congested with reads, with writes.
    fn congested(&self) -> [bool; 2] {
        [self.queue.congested(false), self.queue.congested(true)]
    }

    /// The alarm of a wait that ends by time. `false` when it is over at once, as all time is while files are prepared.
    fn set_alarm(&mut self, t: Tid, wait: &Wait) -> bool {
        let (at, event) = match *wait {
            Wait::Until(at) | Wait::Joined(at) => (at, None),
            Wait::Compute(ns) => (self.tl.now + ns, None),
            Wait::EventUntil(event, at) => (at, Some(event)),
            _ => return true,
        };
        if self.instant {
            return event.is_some();
        }
        let actor = &mut self.actors[actor_of(t) as usize];
        actor.event = event;
        actor.nap = actor.nap.wrapping_add(1);
        let alarm = HostEvent::wake(t, actor.nap);
        self.tl.events.push(at.max(self.tl.now), alarm.into());
        true
    }

    /// An alarm goes off; `true` when it was one of a path.
    pub(super) fn path_alarm(&mut self, t: Tid, nap: u32) -> bool {
        let a = actor_of(t);
        let Some(actor) = self.actors.get_mut(a as usize) else { return false };
        if actor.path.is_none() {
            return false;
        }
        if HostEvent::is_sleep(nap, actor.nap) {
            actor.nap = actor.nap.wrapping_add(1);
            if let Some(event) = actor.event.take()
                && let Some(mount) = self.fs.mount()
            {
                mount.world.borrow_mut().timed_out(a, event);
            }
            self.note_woken(t, Cause::Time);
            self.actor_goes_on(t);
        }
        true
    }

    fn actor_sleeps(&mut self, t: Tid) {
        if !self.keeps_plug(t) {
            self.finish_plug_of(t);
        }
        let context = self.context_of(t);
        if let Some(context) = context {
            self.queue.task_sleeps(&mut self.tl, context);
        }
        self.actor_leaves(t);
        self.end_call();
    }

    /// Who has a path leaves its core.
    fn actor_leaves(&mut self, t: Tid) {
        if t == LOG_ENDS {
            return;
        }
        if !is_thread(t) {
            return self.sleep(t, State::Path);
        }
        self.actors[actor_of(t) as usize].asleep = true;
        if let Some(cores) = &mut self.cores {
            cores.leave(self.tl.now, seat_of(t));
        }
    }

    /// The wait of a path is over.
    fn actor_goes_on(&mut self, t: Tid) {
        if !is_thread(t) {
            return self.wake(t);
        }
        let asleep = std::mem::take(&mut self.actors[actor_of(t) as usize].asleep);
        match &mut self.cores {
            Some(cores) if asleep => cores.wake(self.tl.now, seat_of(t)),
            Some(_) => {}
            None => self.ready.push_back(t),
        }
    }

    /// Wakes those whose wait is over, and takes up asynchronous I/O that is done.
    pub(super) fn wake_from_world(&mut self) {
        let Some(mount) = self.fs.mount() else { return };
        let world = mount.world.clone();
        let w = world.borrow();
        if w.woken.is_empty() && w.finished.is_empty() {
            return;
        }
        drop(w);
        self.note_told();
        let mut w = world.borrow_mut();
        let (woken, finished) = (std::mem::take(&mut w.woken), std::mem::take(&mut w.finished));
        drop(w);
        for a in woken {
            if number_of(a) == LOG_ENDS {
                self.log_ends = true;
                continue;
            }
            let actor = &mut self.actors[a as usize];
            actor.nap = actor.nap.wrapping_add(1);
            actor.event = None;
            self.actor_goes_on(number_of(a));
        }
        for group in finished {
            self.group_done(group);
        }
    }

    /// The worker that ends writes of the log goes ahead of the tasks that the same interrupt woke, but whom it wakes comes
    /// behind them.
    pub(super) fn log_ends(&mut self) {
        if std::mem::take(&mut self.log_ends) {
            self.drive(LOG_ENDS);
        }
    }

    /// Makes bios of what a path hands over. While files are prepared they are done at once.
    fn queue_bios(&mut self, t: Tid, bios: Vec<BioOut>) {
        if self.instant {
            if let Some(mount) = self.fs.mount() {
                let mut w = mount.world.borrow_mut();
                bios.iter().for_each(|b| w.completed(b.id));
            }
            return;
        }
        let bios = self.without_flushes(bios);
        self.note_bios(t, &bios);
        self.note_made(t, &bios);
        for out in bios {
            let mut bio = self.path_bio(t, &out);
            let id = out.id as usize;
            if self.pieces.len() <= id {
                self.pieces.resize(id + 1, 0);
            }
            let left = &mut self.actors[actor_of(t) as usize].left;
            let before = left.len();
            if out.sectors == 0 {
                left.push_back(Bio { id: out.id, ..bio });
            } else {
                bio.id = out.id;
                left.extend(self.queue.split(bio));
            }
            self.pieces[id] = (left.len() - before) as u32;
        }
    }

    /// Where no device has a volatile cache, an empty flush is done at once.
    fn without_flushes(&mut self, mut bios: Vec<BioOut>) -> Vec<BioOut> {
        if self.queue.drops_flushes()
            && let Some(mount) = self.fs.mount()
        {
            let mut w = mount.world.borrow_mut();
            bios.retain(|b| {
                let dropped = b.sectors == 0 && b.op == Op::Flush;
                if dropped {
                    w.completed(b.id);
                }
                !dropped
            });
        }
        bios
    }

    /// A bio of the task's own, or of a kernel thread's.
    fn path_bio(&mut self, t: Tid, out: &BioOut) -> Bio {
        let BioOut { op, flags, sector, sectors, .. } = *out;
        if !is_thread(t) {
            return Bio { sector, sectors, ..self.bio(t, op, flags) };
        }
        let task = self.thread_context(t);
        let cgroup = match self.fs.mount() {
            Some(mount) if is_flusher(t) => mount.world.borrow_mut().owner_of(out.id),
            _ => 0,
        };
        let (id, prio, cpu) = (0, self.prio_of_thread(t), 0);
        Bio { id, op, flags, sector, sectors, task, thread: task, prio, cgroup, cpu }
    }

    /// The journal's thread may have a priority of its own.
    fn prio_of_thread(&self, t: Tid) -> IoPrio {
        let level =
            self.fs.mount().filter(|_| t == JOURNAL).and_then(|m| m.volume().journal_level());
        level.map_or_else(IoPrio::default, |level| IoPrio { class: PrioClass::Be, level })
    }

    fn thread_context(&mut self, t: Tid) -> u32 {
        let a = actor_of(t) as usize;
        if let Some(context) = self.actors[a].context {
            return context;
        }
        let prio = self.prio_of_thread(t);
        let context = self.queue.task_started(TaskInfo { pid: t, prio, ..TaskInfo::default() });
        self.actors[a].context = Some(context);
        if self.contexts.len() <= context as usize {
            self.contexts.resize(context as usize + 1, 0);
        }
        self.contexts[context as usize] = t;
        context
    }

    /// Submits bios of a path, under a plug when there are several; `false` when it sleeps for room.
    fn hand_over_bios(&mut self, t: Tid) -> bool {
        let a = actor_of(t) as usize;
        let Some(first) = self.actors[a].left.front() else {
            if self.actors[a].plugged && !self.keeps_plug(t) {
                self.finish_plug_of(t);
            }
            return true;
        };
        let context = first.thread;
        let kept = self.keeps_plug(t);
        if (kept || self.actors[a].left.len() > 1) && !self.actors[a].plugged {
            self.queue.start_plug(context);
            self.actors[a].plugged = true;
        }
        while !self.pays(t, self.actors[a].is_new())
            && let Some(bio) = self.actors[a].left.pop_front()
        {
            let resumed = std::mem::take(&mut self.actors[a].resumed);
            let mut sent = bio;
            sent.id = match resumed {
                true => bio.id,
                false => {
                    let known = self.owner(Owner::Path(bio.id));
                    self.note_known(bio.id, known);
                    known
                }
            };
            if self.queue.submit(&mut self.tl, &sent, resumed) == Submit::Taken {
                continue;
            }
            let actor = &mut self.actors[a];
            actor.left.push_front(sent);
            (actor.resumed, actor.blocked) = (true, true);
            self.note_blocked(t, context);
            self.actor_leaves(t);
            self.end_call();
            return false;
        }
        if !self.actors[a].left.is_empty() {
            return false;
        }
        if !kept {
            self.finish_plug_of(t);
        }
        self.queue.run_deferred(&mut self.tl);
        true
    }

    fn keeps_plug(&self, t: Tid) -> bool {
        self.fs.mount().is_some_and(|m| m.world.borrow().keeps_plug(actor_of(t)))
    }

    fn finish_plug_of(&mut self, t: Tid) {
        let actor = &mut self.actors[actor_of(t) as usize];
        if std::mem::take(&mut actor.plugged)
            && let Some(context) = self.context_of(t)
        {
            self.queue.finish_plug(&mut self.tl, context);
        }
    }

    /// The I/O context of who has a path, once there is one.
    fn context_of(&self, t: Tid) -> Option<u32> {
        if is_thread(t) {
            self.actors[actor_of(t) as usize].context
        } else {
            self.tasks[t as usize].context
        }
    }

    /// There is room in the queue for who slept for it; `true` when that was a path.
    pub(super) fn path_has_room(&mut self, t: Tid) -> bool {
        let Some(actor) = self.actors.get_mut(actor_of(t) as usize) else { return false };
        if !std::mem::take(&mut actor.blocked) {
            return false;
        }
        self.note_woken(t, Cause::Room);
        self.actor_goes_on(t);
        true
    }

    /// A bio of a path is done.
    pub(super) fn path_bio_done(&mut self, id: u32) {
        let left = &mut self.pieces[id as usize];
        *left -= 1;
        if *left > 0 {
            return;
        }
        if let Some(mount) = self.fs.mount() {
            let mut w = mount.world.borrow_mut();
            w.now = self.tl.now;
            w.congested = [self.queue.congested(false), self.queue.congested(true)];
            w.completed(id);
            drop(w);
            self.note_done(id);
        }
    }
}
