//! Straight-line code as a program: a future that is polled once a call.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use iosched_types::Nanos;

use crate::sys::Port;
use crate::{Answer, Call, Done, Errno, Sys};

/// Something that makes system calls.
pub trait Program {
    /// The next call, given the time and the answer of the last one. The answer given to the first `resume` does not
    /// matter. `None` when the program has ended, and ever after.
    fn resume(&mut self, now: Nanos, answer: Answer) -> Option<Call>;

    /// How it ended; `Ok` before that.
    fn status(&self) -> Done {
        Ok(())
    }
}

/// A program that is an `async fn` over [`Sys`].
pub struct Script {
    future: Option<Pin<Box<dyn Future<Output = Done>>>>,
    port: Rc<Port>,
    status: Done,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.future.is_some() { "runs" } else { "ended" };
        write!(f, "Script({state}, {:?})", self.status)
    }
}

impl Script {
    /// The program that `text` is.
    pub fn new(text: impl AsyncFnOnce(Sys) -> Done + 'static) -> Script {
        let port = Rc::new(Port::default());
        let sys = Sys { port: port.clone() };
        Script { future: Some(Box::pin(async move { text(sys).await })), port, status: Ok(()) }
    }

    fn end(&mut self, status: Done) -> Option<Call> {
        self.future = None;
        self.status = status;
        None
    }
}

impl Program for Script {
    #[inline]
    fn resume(&mut self, now: Nanos, answer: Answer) -> Option<Call> {
        let future = self.future.as_mut()?;
        self.port.now.set(now);
        self.port.answer.set(Some(answer));
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(status) => self.end(status),
            Poll::Pending => match self.port.call.take() {
                Some(call) => Some(call),
                // The program awaits something other than a system call, and nothing would ever wake it.
                None => self.end(Err(Errno::EDEADLK)),
            },
        }
    }

    fn status(&self) -> Done {
        self.status
    }
}
