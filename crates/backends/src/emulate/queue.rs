//! A queue of driver commands over io_uring. The server gives every slot to the kernel with a buffer. The slot comes
//! back with a request, and goes to the kernel again together with the answer.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::port::{BellPull, Outcome, Port, Request};
use crate::sys::memory::Area;
use crate::sys::ring::{Command, Ring};

/// What differs between drivers.
pub(crate) trait Driver {
    /// File that commands go to.
    fn device(&self) -> BorrowedFd<'_>;

    /// How many slots there are.
    fn slots(&self) -> u32;

    /// Bytes of memory for all of them.
    fn memory(&self) -> usize;

    /// The command that gives a slot to the kernel for the first time.
    fn first(&mut self, slot: u32) -> Command;

    /// What came in a slot.
    fn arrived(&mut self, slot: u32, memory: &mut [u8]) -> Arrived;

    /// Where the data of a slot is.
    fn data(&self, slot: u32) -> Range<usize>;

    /// The command that answers a request and gives the slot again.
    fn commit(&mut self, request: &Request, outcome: Outcome, memory: &mut [u8]) -> Command;

    /// Whether the device is to be watched for what comes beside the queue.
    fn is_watched(&self) -> bool;

    /// Something came beside the queue.
    ///
    /// # Errors
    /// The kernel's.
    fn beside(&mut self) -> io::Result<()>;
}

/// What a driver makes of a slot that came back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// A request to the disk.
    Disk(Request),
    /// It is answered with this command.
    Answered(Command),
}

/// Who has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Nobody,
    Kernel,
    Us,
}

/// What carries commands to a driver: a ring of io_uring, or, in tests, a kernel of our own.
pub(crate) trait Carrier {
    /// The memory that commands refer to.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Queues a command.
    ///
    /// # Errors
    /// The kernel's.
    fn command(&mut self, device: BorrowedFd<'_>, command: Command, user: u64) -> io::Result<()>;

    /// Says once when a file can be read.
    ///
    /// # Errors
    /// The kernel's.
    fn watch(&mut self, file: BorrowedFd<'_>, user: u64) -> io::Result<()>;

    /// Hands over what was queued.
    ///
    /// # Errors
    /// The kernel's.
    fn submit(&mut self) -> io::Result<()>;

    /// As `submit`, and waits for a completion.
    ///
    /// # Errors
    /// The kernel's.
    fn wait(&mut self, limit: Option<Duration>) -> io::Result<()>;

    /// Whether there is something to take, or to submit for.
    fn ready(&mut self) -> bool;

    /// Whether something was queued and not handed over.
    fn has_queued(&mut self) -> bool;

    /// The next completion.
    fn take(&mut self) -> Option<(u64, i32)>;
}

impl Carrier for Ring {
    fn bytes_mut(&mut self) -> &mut [u8] {
        Ring::bytes_mut(self)
    }

    fn command(&mut self, device: BorrowedFd<'_>, command: Command, user: u64) -> io::Result<()> {
        Ring::command(self, device, command, user)
    }

    fn watch(&mut self, file: BorrowedFd<'_>, user: u64) -> io::Result<()> {
        Ring::watch(self, file, user)
    }

    fn submit(&mut self) -> io::Result<()> {
        Ring::submit(self)
    }

    fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        Ring::wait(self, limit)
    }

    fn ready(&mut self) -> bool {
        Ring::ready(self)
    }

    fn has_queued(&mut self) -> bool {
        Ring::has_queued(self)
    }

    fn take(&mut self) -> Option<(u64, i32)> {
        Ring::take(self)
    }
}

/// Slots and their owners. If the two sides disagreed, the queue would answer one request with the data of another. It
/// ends instead.
#[derive(Debug)]
struct Slots(Vec<Holder>);

impl Slots {
    fn new(n: u32) -> Slots {
        Slots(vec![Holder::Nobody; n as usize])
    }

    fn give(&mut self, slot: u32) -> io::Result<()> {
        self.pass(slot, &[Holder::Nobody, Holder::Us], Holder::Kernel)
    }

    fn take(&mut self, slot: u32) -> io::Result<()> {
        self.pass(slot, &[Holder::Kernel], Holder::Us)
    }

    fn pass(&mut self, slot: u32, from: &[Holder], to: Holder) -> io::Result<()> {
        match self.0.get_mut(slot as usize) {
            Some(holder) if from.contains(holder) => {
                *holder = to;
                Ok(())
            }
            other => Err(io::Error::other(format!("slot {slot} is {other:?}, not {from:?}"))),
        }
    }
}

/// Marks of completions that belong to no slot.
const BELL: u64 = u64::MAX;
const BESIDE: u64 = u64::MAX - 1;

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue<D, C = Ring> {
    // The ring goes first: it has commands in the driver's device.
    ring: C,
    driver: D,
    slots: Slots,
    bell: BellPull,
}

/// Entries that are queued before they are handed over.
const BATCH: u32 = 256;

impl<D: Driver> Queue<D> {
    /// Gives every slot to the kernel.
    ///
    /// # Errors
    /// Without io_uring, or the driver's.
    pub(crate) fn start(driver: D, bell: BellPull) -> io::Result<Self> {
        let n = driver.slots();
        let ring = Ring::new(BATCH, (n + 8).next_power_of_two(), Area::zeros(driver.memory())?)?;
        Queue::by(ring, driver, bell)
    }
}

impl<D: Driver, C: Carrier> Queue<D, C> {
    /// Gives every slot to the kernel, by this carrier.
    pub(crate) fn by(mut ring: C, mut driver: D, bell: BellPull) -> io::Result<Self> {
        let n = driver.slots();
        let mut slots = Slots::new(n);
        for slot in 0..n {
            slots.give(slot)?;
            let command = driver.first(slot);
            ring.command(driver.device(), command, u64::from(slot))?;
        }
        ring.watch(bell.as_fd(), BELL)?;
        if driver.is_watched() {
            ring.watch(driver.device(), BESIDE)?;
        }
        ring.submit()?;
        Ok(Queue { ring, driver, slots, bell })
    }

    fn completed(&mut self, user: u64, result: i32) -> io::Result<Option<Request>> {
        match user {
            BELL => {
                self.bell.silence();
                self.ring.watch(self.bell.as_fd(), BELL)?;
            }
            BESIDE => {
                self.driver.beside()?;
                self.ring.watch(self.driver.device(), BESIDE)?;
            }
            slot => {
                let slot = slot as u32;
                self.slots.take(slot)?;
                if result < 0 {
                    return Err(io::Error::from_raw_os_error(-result));
                }
                match self.driver.arrived(slot, self.ring.bytes_mut()) {
                    Arrived::Disk(request) => return Ok(Some(request)),
                    Arrived::Answered(command) => self.give(slot, command)?,
                }
            }
        }
        Ok(None)
    }

    fn give(&mut self, slot: u32, command: Command) -> io::Result<()> {
        self.slots.give(slot)?;
        self.ring.command(self.driver.device(), command, u64::from(slot))
    }
}

impl<D: Driver, C: Carrier> Port for Queue<D, C> {
    fn next(&mut self) -> io::Result<Option<Request>> {
        let mut asked = false;
        loop {
            if let Some((user, result)) = self.ring.take() {
                if let Some(request) = self.completed(user, result)? {
                    return Ok(Some(request));
                }
            } else if !asked && self.ring.ready() {
                // Only once, because the kernel's mark may stay when there is nothing left to do.
                self.ring.submit()?;
                asked = true;
            } else {
                return Ok(None);
            }
        }
    }

    fn data(&mut self, request: &Request) -> &mut [u8] {
        let place = self.driver.data(request.slot);
        &mut self.ring.bytes_mut()[place][..request.len as usize]
    }

    fn answer(&mut self, request: &Request, outcome: Outcome) -> io::Result<()> {
        let command = self.driver.commit(request, outcome, self.ring.bytes_mut());
        self.give(request.slot, command)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.ring.has_queued() { self.ring.submit() } else { Ok(()) }
    }

    fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        self.ring.wait(limit)
    }

    fn ready(&mut self) -> bool {
        self.ring.ready()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_goes_back_and_forth() {
        let mut s = Slots::new(2);
        s.give(0).unwrap();
        s.take(0).unwrap();
        s.give(0).unwrap();
        s.take(0).unwrap();
        assert_eq!(s.0, [Holder::Us, Holder::Nobody]);
    }

    #[test]
    fn what_the_other_side_has_is_not_passed_on() {
        let mut s = Slots::new(1);
        assert!(s.take(0).is_err(), "nobody gave it");
        s.give(0).unwrap();
        let e = s.give(0).unwrap_err();
        assert!(e.to_string().contains("Kernel"), "{e}");
        s.take(0).unwrap();
        assert!(s.take(0).is_err(), "a request that was taken does not come again");
        assert!(s.give(1).is_err(), "there is no such slot");
    }
}
