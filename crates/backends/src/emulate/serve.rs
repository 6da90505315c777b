//! The thread that serves a disk: takes requests from a port, gives them to the model, answers on time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use iosched_devices::Command;
use iosched_types::{Nanos, Op};

use super::alert::Alert;
use super::clockwork::Clockwork;
use super::data::DataStore;
use super::lateness::Lateness;
use super::port::{Bell, Outcome, Port, Request, is_over};
use super::softirq::Softirqs;
use super::stamps::{Stamp, Stamps};

/// An answer that waits for its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    request: Request,
    outcome: Outcome,
    stamp: Stamp,
}

/// The state that the serving thread shares with the threads that look and give orders.
pub(crate) struct Shared {
    pub(crate) work: Clockwork<Answer>,
    pub(crate) data: DataStore,
    pub(crate) bell: Bell,
    /// How late sleeps end, in ns, as the thread takes it to be.
    margin: AtomicU64,
    /// Time that the thread spent awake only to be on time, in ns.
    awake: AtomicU64,
    /// Whether the model answers so quickly that idle CPUs must not fall asleep.
    quick: bool,
    /// When each request came and went, while a measurement asks for it.
    pub(crate) stamps: Stamps,
}

/// What the serving thread alone needs to know.
struct Hand {
    lateness: Lateness,
    alert: Alert,
    ready: Vec<Answer>,
    softirqs: Softirqs,
    /// Whether something was answered since the softirqs were last run.
    answered: bool,
    /// When it last woke, while that is wanted.
    woken: Nanos,
}

/// Requests taken before due answers are looked for again.
const TURN: usize = 32;
/// Longest time before an answer that is spent awake.
const MOST_AWAKE: Nanos = 150_000;

impl Shared {
    pub(crate) fn new(
        work: Clockwork<Answer>,
        data: DataStore,
        bell: Bell,
        quick: bool,
    ) -> Arc<Shared> {
        let (margin, awake) = (AtomicU64::new(0), AtomicU64::new(0));
        let stamps = Stamps::default();
        Arc::new(Shared { work, data, bell, margin, awake, quick, stamps })
    }

    /// Every command is answered at once from now on.
    pub(crate) fn hurry(&self) {
        self.work.hurry();
        self.bell.ring();
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.work.stop();
        self.bell.ring();
    }

    /// How long before an answer the thread stops sleeping, in ns, and how long it was awake so far.
    pub(crate) fn waking(&self) -> (Nanos, Nanos) {
        (self.margin.load(Ordering::Relaxed), self.awake.load(Ordering::Relaxed))
    }

    /// Serves until the disk goes away or [`stop`](Self::stop) is called.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn serve(&self, port: &mut impl Port) -> io::Result<()> {
        let spare = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
        let mut hand = Hand {
            lateness: Lateness::new(if spare { MOST_AWAKE } else { 0 }),
            alert: Alert::new(spare && self.quick),
            ready: Vec::new(),
            softirqs: Softirqs::new()?,
            answered: false,
            woken: 0,
        };
        let ended = loop {
            self.bell.noticed();
            if self.work.is_stopped() {
                break Ok(());
            }
            if let Err(e) = self.turn(port, &mut hand) {
                break Err(e);
            }
        };
        ended.or_else(|e| if is_over(&e) { Ok(()) } else { Err(e) })
    }

    fn turn(&self, port: &mut impl Port, hand: &mut Hand) -> io::Result<()> {
        let mut taken = 0;
        while taken < TURN
            && let Some(request) = port.next()?
        {
            self.take(port, request, hand)?;
            taken += 1;
        }
        let next = self.work.due(&mut hand.ready);
        for a in hand.ready.drain(..) {
            hand.answered = true;
            let begun = self.stamps.now(&self.work);
            port.answer(&a.request, a.outcome)?;
            self.stamps.answered(&self.work, a.stamp, begun);
        }
        if taken == TURN {
            return port.flush();
        }
        self.pause(port, hand, next)?;
        hand.woken = self.stamps.now(&self.work);
        Ok(())
    }

    /// The data is fetched or put away at once, so that the answer only has to be sent; the model does
    /// not wait for it.
    fn take(&self, port: &mut impl Port, request: Request, hand: &mut Hand) -> io::Result<()> {
        let arrived = self.work.now();
        hand.alert.used(arrived);
        let Request { op, offset, len, fua, .. } = request;
        let moved = match op {
            Op::Read => self.data.read(offset, port.data(&request)),
            Op::Write => self.data.write(offset, port.data(&request)),
            Op::Discard => self.data.discard(offset, len),
            Op::Flush => Ok(()),
        };
        let outcome = moved.map_err(|e| e.raw_os_error().unwrap_or(nix::libc::EIO));
        if outcome.is_err() && op != Op::Discard {
            return port.answer(&request, outcome);
        }
        let stamp = Stamp::new(hand.woken, arrived, self.stamps.now(&self.work));
        self.work.submit(
            arrived,
            Command { id: 0, op, offset, len, fua },
            Answer { request, outcome, stamp },
        );
        Ok(())
    }

    /// Sleeps until a request comes or an answer is nearly due, and stays awake for the rest.
    fn pause(&self, port: &mut impl Port, hand: &mut Hand, next: Option<Nanos>) -> io::Result<()> {
        let Hand { lateness, alert, softirqs, answered, .. } = hand;
        let Some(due) = next else { return port.wait(alert.rest(self.work.now())) };
        let sleep_until = due.saturating_sub(lateness.margin());
        let now = self.work.now();
        if now < sleep_until {
            port.wait(Some(Duration::from_nanos(sleep_until - now)))?;
            let woken = self.work.now();
            if woken >= sleep_until {
                lateness.saw(woken - sleep_until);
                self.margin.store(lateness.margin(), Ordering::Relaxed);
            }
            return Ok(());
        }
        port.flush()?;
        if std::mem::take(answered) {
            // Otherwise a process with its answer ready waits until this thread sleeps.
            softirqs.run();
        }
        let started = self.work.now();
        let mut now = started;
        while now < due && !port.ready() && !self.bell.rings() {
            std::hint::spin_loop();
            now = self.work.now();
        }
        self.awake.fetch_add(now - started, Ordering::Relaxed);
        Ok(())
    }
}
