//! The kernel's side of system calls: straight-line code that waits for pages, I/O, time and events.
//!
//! A path is an `async fn` of [`Kernel`]. It works on the [`World`] between its waits and never holds it across a wait.
//! The event loop polls the path, looks at the [`Wait`] that it left, and polls it again when that wait is over. A task
//! has one path, so its wait is a cell and nothing needs a waker.

pub mod direct;
mod locks;
pub mod memory;
mod metadata;
pub mod pdflush;
pub mod read;
pub mod reclaim;
#[cfg(test)]
pub(crate) mod testing;
pub mod timer;
pub mod world;
pub mod write;
pub mod writeback;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use iosched_types::{Nanos, TaskId};

pub use locks::Lock;
pub use world::{BioOut, Done, Event, Found, Group, World};

/// What a path waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Hands the task's bios ([`World::take_bios`]) to the block layer; over when all are handed over.
    Submit,
    /// The page is unlocked.
    Page {
        /// Whose.
        file: u32,
        /// Counted from the start of the file.
        page: u64,
    },
    /// All I/O of a group is done.
    Io(Group),
    /// A moment: the writer makes too much memory dirty.
    Until(Nanos),
    /// A moment in which others may join the commit that the caller wants.
    Joined(Nanos),
    /// Another path ends the wait.
    Event(Event),
    /// Another path ends the wait, or the moment comes.
    EventUntil(Event, Nanos),
    /// Time on a core.
    Compute(Nanos),
}

/// What a task sees of the kernel.
#[derive(Clone)]
pub struct Kernel {
    world: Rc<RefCell<World>>,
    task: TaskId,
}

impl Kernel {
    /// The kernel for one task.
    #[must_use]
    pub fn new(world: Rc<RefCell<World>>, task: TaskId) -> Self {
        Self { world, task }
    }

    /// The task.
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// Works on the world. Never across a wait.
    pub fn with<T>(&self, f: impl FnOnce(&mut World) -> T) -> T {
        f(&mut self.world.borrow_mut())
    }

    /// Waits. The event loop finds the wait in the world.
    pub fn wait(&self, wait: Wait) -> impl Future<Output = ()> + use<> {
        let (world, task) = (self.world.clone(), self.task);
        let mut left = Some(wait);
        poll_fn(move |_| match left.take() {
            Some(wait) => {
                world.borrow_mut().set_wait(task, wait);
                Poll::Pending
            }
            None => Poll::Ready(()),
        })
    }
}
