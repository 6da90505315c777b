//! Paths beside a disk of constant service time, without a block layer.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use iosched_types::{Flags, TaskId};

use super::read::Place;
use super::writeback::Backing;
use super::{BioOut, Kernel, Wait, World};

pub(crate) type Path = Pin<Box<dyn Future<Output = ()>>>;

/// One file from sector 0 on.
pub(crate) struct Flat;

impl Place for Flat {
    fn at(&self, page: u64) -> (Option<u64>, u64) {
        (Some(page * 8), u64::MAX >> 16)
    }
}

impl Backing for Flat {
    type Place = Flat;

    fn place(&self, _: u32) -> Flat {
        Flat
    }

    async fn prepare(&self, _: &Kernel, _: u32, _: u64, to: u64) -> u64 {
        to
    }

    async fn write_metadata(&self, _: &Kernel, _: Flags) {}
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Bio(u32),
    Task(TaskId, u64),
}

/// Runs paths until the first `ends` of them have ended; the bios with the time of their submission.
pub(crate) fn run(
    world: &Rc<RefCell<World>>,
    mut paths: Vec<Path>,
    ends: usize,
    ns: u64,
) -> Vec<(u64, BioOut)> {
    let mut log = Vec::new();
    let mut due: BinaryHeap<Reverse<(u64, u64, Due)>> = BinaryHeap::new();
    let mut ready: Vec<TaskId> = (0..paths.len() as TaskId).collect();
    let mut left = ends;
    let mut order = 0;
    let mut polls = 0_u64;
    // What each task sleeps for, so that a timer that came too late is known.
    let mut sleeps: Vec<(u64, Option<Wait>)> = vec![(0, None); paths.len()];
    loop {
        while let Some(task) = ready.first().copied() {
            ready.remove(0);
            let index = task as usize;
            sleeps[index].0 += 1;
            polls += 1;
            assert!(polls < 10_000_000, "task {task} spins after {:?}", sleeps[index].1);
            if paths[index].as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                left -= usize::from(index < ends);
                continue;
            }
            let mut w = world.borrow_mut();
            let wait = w.take_wait(task).unwrap();
            sleeps[index].1 = Some(wait.clone());
            order += 1;
            let until = match wait {
                Wait::Submit => {
                    for bio in w.take_bios(task) {
                        due.push(Reverse((w.now + ns, order, Due::Bio(bio.id))));
                        order += 1;
                        log.push((w.now, bio));
                    }
                    ready.insert(0, task);
                    continue;
                }
                Wait::Until(at) | Wait::Joined(at) | Wait::EventUntil(_, at) => Some(at),
                Wait::Compute(ns) => Some(w.now + ns),
                _ => None,
            };
            if !w.sleep(task, &wait) {
                ready.insert(0, task);
            } else if let Some(at) = until {
                due.push(Reverse((at, order, Due::Task(task, sleeps[index].0))));
            }
            ready.append(&mut w.woken);
        }
        if left == 0 {
            return log;
        }
        let Some(Reverse((at, _, what))) = due.pop() else { panic!("somebody sleeps for ever") };
        let mut w = world.borrow_mut();
        w.now = w.now.max(at);
        match what {
            Due::Bio(id) => w.completed(id),
            Due::Task(task, sleep) if sleeps[task as usize].0 == sleep => {
                if let Some(Wait::EventUntil(event, _)) = sleeps[task as usize].1 {
                    w.timed_out(task, event);
                }
                w.woken.push(task);
            }
            Due::Task(..) => {}
        }
        ready.append(&mut w.woken);
    }
}
