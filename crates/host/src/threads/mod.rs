//! Threads that submit I/Os for a process: glibc's for POSIX AIO (`helpers`) and the kernel's for io_uring (`workers`).
//!
//! A thread has a number of its own behind those of all processes. The queue knows it by that number when it plugs and
//! when it sleeps for a tag.

use std::collections::VecDeque;
use std::ops::Range;

use iosched_block::{Queue, Submit};
use iosched_types::{Bio, Fifo, Flags, TaskId};
use iosched_workloads::fio::IoEngine;
use iosched_workloads::fio::process::Job;

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
    pub(crate) fn behind(queue: &mut Queue, tasks: usize) -> Self {
        Threads { first: queue.reserve_tasks(tasks), ..Threads::default() }
    }

    /// The thread with this number, if it is one.
    #[inline(always)]
    pub(crate) fn thread_of(&self, number: TaskId) -> Option<u32> {
        number.checked_sub(self.first)
    }

    /// Who will do the I/O of a job.
    pub(crate) fn of(&mut self, queue: &mut Queue, task: TaskId, job: &Job) -> Others {
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
    pub(crate) fn add(&mut self, queue: &mut Queue, task: TaskId, role: Role) -> u32 {
        let number = queue.add_thread();
        let thread = number - self.first;
        debug_assert_eq!(thread as usize, self.all.len());
        self.all.push(Thread { task, number, left: VecDeque::new(), plugged: false, role });
        thread
    }

    /// The I/O of a unit is done. Returns whether a thread gets it first; the process then hears of it from the thread.
    pub(crate) fn done(&mut self, others: &Others, unit: u32, ready: &mut Fifo<TaskId>) -> bool {
        match others {
            Others::None => false,
            Others::Helpers(own) => {
                self.helper_done(own.clone(), unit, ready);
                false
            }
            Others::Pool(pool) => self.sync_done(*pool, unit, ready),
        }
    }
}

impl Machine {
    /// Lets a thread run until it sleeps.
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

    /// A thread submits its bios. `false` when it sleeps for a request. `resumed`: the thread was woken for the first
    /// bio.
    pub(crate) fn submit_left(&mut self, h: u32, mut resumed: bool) -> bool {
        while let Some(bio) = self.threads.all[h as usize].left.front().copied() {
            if self.queue.submit(&mut self.tl, &bio, resumed) == Submit::Blocked {
                self.end_call();
                return false;
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
        true
    }
}
