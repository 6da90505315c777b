//! Threads that submit I/Os for a process: glibc's for POSIX AIO (`helpers`) and the kernel's for io_uring (`workers`).
//!
//! A thread has a number of its own behind those of all processes. The queue knows it by that number when it plugs and
//! when it sleeps for a tag.

use std::collections::VecDeque;
use std::ops::Range;

use iosched_block::{Stack, Submit};
use iosched_types::{Bio, BioId, Fifo, Flags, Nanos, TaskId};
use iosched_workloads::fio::IoEngine;
use iosched_workloads::fio::process::Job;

use crate::cpu::Cores;
use crate::machine::Machine;

use self::helpers::Helper;
use self::workers::{Pool, Worker};

mod helpers;
mod workers;

/// Who does the I/O of a job.
#[derive(Clone, Debug)]
pub(crate) enum Others {
    /// The process alone.
    None,
    /// A thread for each of its files.
    Helpers(Range<u32>),
    /// The process itself; workers of this pool do what would make it wait.
    Pool(u32),
}

/// One thread.
#[derive(Debug)]
pub(crate) struct Thread {
    /// The job.
    pub(crate) task: TaskId,
    /// The number the queue knows it by.
    pub(crate) number: TaskId,
    /// The bio that the thread is about to submit, or blocked on, and those after it.
    pub(crate) left: VecDeque<Bio>,
    /// A large I/O goes under a plug.
    plugged: bool,
    /// The I/O has not taken its core time yet.
    pub(crate) unpaid: bool,
    /// It is on its core, in the middle of its work.
    running: bool,
    pub(crate) role: Role,
}

/// What a thread is for.
#[derive(Debug)]
pub(crate) enum Role {
    /// The requests for one file.
    Helper(Helper),
    /// What a process would have had to wait for.
    Worker(Worker),
}

/// How far a thread came with its bios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// All are submitted.
    Nothing,
    /// It sleeps for a request.
    Asleep,
    /// Its core works for it. It goes on when that is over.
    Working,
}

/// Wakes threads: on cores, or at once where core time does not count.
pub(crate) struct Waker<'a> {
    pub(crate) now: Nanos,
    pub(crate) cores: &'a mut Option<Cores>,
    pub(crate) ready: &'a mut Fifo<TaskId>,
}

impl Waker<'_> {
    /// Something other than an I/O wakes a thread.
    pub(crate) fn wake(&mut self, number: TaskId) {
        match self.cores {
            Some(cores) => cores.wake(self.now, number),
            None => self.ready.push_back(number),
        }
    }

    /// An I/O of a thread is done. `wakes`: the thread sleeps for it.
    pub(crate) fn done(&mut self, number: TaskId, io: BioId, wakes: bool) {
        match self.cores {
            Some(cores) => cores.completion(self.now, number, io, wakes),
            None if wakes => self.ready.push_back(number),
            None => {}
        }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// The number of the first.
    first: TaskId,
    pub(crate) all: Vec<Thread>,
    pub(crate) pools: Vec<Pool>,
}

impl Threads {
    /// The threads' numbers begin behind those of `tasks` processes.
    pub(crate) fn behind(queue: &mut Stack, tasks: usize) -> Self {
        Threads { first: queue.reserve_tasks(tasks), ..Threads::default() }
    }

    /// The thread with this number, if it is one.
    #[inline(always)]
    pub(crate) fn thread_of(&self, number: TaskId) -> Option<u32> {
        number.checked_sub(self.first)
    }

    /// Who will do the I/O of a job.
    pub(crate) fn of(&mut self, queue: &mut Stack, task: TaskId, job: &Job) -> Others {
        match job.spec().engine {
            IoEngine::Posixaio => {
                let first = self.all.len() as u32;
                for _ in job.files().iter() {
                    let helper = Helper::with_room_for(job.units());
                    self.add(queue, task, Role::Helper(helper));
                }
                Others::Helpers(first..self.all.len() as u32)
            }
            IoEngine::IoUring if queue.has_tags() => {
                let cpus = u32::from(queue.facts().cpus);
                self.pools.push(Pool::new(task, job.units(), cpus));
                Others::Pool(self.pools.len() as u32 - 1)
            }
            _ => Others::None,
        }
    }

    /// A new thread.
    pub(crate) fn add(&mut self, queue: &mut Stack, task: TaskId, role: Role) -> u32 {
        let number = queue.add_thread();
        let thread = number - self.first;
        debug_assert_eq!(thread as usize, self.all.len());
        let left = VecDeque::new();
        let (plugged, unpaid, running) = (false, false, false);
        self.all.push(Thread { task, number, left, plugged, unpaid, running, role });
        thread
    }

    /// The I/O of a unit is done. Returns whether a thread gets it first; the process then hears of it from the thread.
    pub(crate) fn done(
        &mut self,
        others: &Others,
        io: BioId,
        unit: u32,
        waker: &mut Waker<'_>,
    ) -> bool {
        match others {
            Others::None => false,
            Others::Helpers(own) => self.helper_done(own.clone(), unit, waker),
            Others::Pool(pool) => self.sync_done(*pool, io, unit, waker),
        }
    }

    /// The threads of a process.
    pub(crate) fn of_task(&self, task: TaskId) -> impl Iterator<Item = &Thread> {
        self.all.iter().filter(move |thread| thread.task == task)
    }
}

impl Machine {
    /// A thread has something to do.
    pub(crate) fn wake_thread(&mut self, number: TaskId) {
        let (now, cores, ready) = (self.tl.now, &mut self.cores, &mut self.ready);
        Waker { now, cores, ready }.wake(number);
    }

    /// A thread was made. It runs before those who have been ready for longer.
    pub(crate) fn start_thread(&mut self, number: TaskId) {
        if self.cores.is_some() {
            self.wake_thread(number);
        } else {
            self.ready.push_front(number);
        }
    }

    /// Lets a thread run until it sleeps, or its core works for it.
    pub(crate) fn run_thread(&mut self, h: u32) {
        match self.threads.all[h as usize].role {
            Role::Helper(_) => self.run_helper(h),
            Role::Worker(_) => self.run_worker(h),
        }
    }

    /// A thread begins an I/O, in pieces if necessary.
    pub(crate) fn take_up(&mut self, h: u32, bio: Bio) {
        let thread = &mut self.threads.all[h as usize];
        let bio = Bio { thread: thread.number, flags: bio.flags.without(Flags::NOWAIT), ..bio };
        thread.unpaid = self.cores.is_some();
        if bio.sectors <= self.single {
            thread.left.push_back(bio);
        } else {
            thread.left.extend(self.queue.split(bio));
            thread.plugged = bio.sectors > self.unplugged;
        }
        if thread.plugged {
            self.queue.start_plug(thread.number);
        }
    }

    /// A thread submits its bios. `resumed`: the thread was woken for the first bio.
    pub(crate) fn submit_left(&mut self, h: u32, mut resumed: bool) -> Left {
        let number = self.threads.all[h as usize].number;
        if self.threads.all[h as usize].unpaid {
            self.begin_thread_piece(number);
            return Left::Working;
        }
        while let Some(bio) = self.next_left(h) {
            self.look(|l| l.thread_io);
            if self.queue.submit(&mut self.tl, &bio, resumed) == Submit::Blocked {
                self.leave_core(number);
                self.end_call();
                return Left::Asleep;
            }
            resumed = false;
            let thread = &mut self.threads.all[h as usize];
            thread.left.pop_front();
            if !thread.plugged {
                self.settle();
            }
        }
        let thread = &mut self.threads.all[h as usize];
        if std::mem::take(&mut thread.plugged) {
            self.queue.finish_plug(&mut self.tl, thread.number);
        }
        self.end_call();
        Left::Nothing
    }

    /// The bio that a thread submits next, from the core on which it is.
    fn next_left(&mut self, h: u32) -> Option<Bio> {
        let thread = &self.threads.all[h as usize];
        let mut bio = *thread.left.front()?;
        if let Some(cores) = &mut self.cores {
            cores.submits(thread.number, bio.id);
            bio.cpu = cores.core_of(thread.number);
        }
        Some(bio)
    }
}
