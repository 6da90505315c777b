//! Lets the kernel finish I/O on this CPU while a thread of real-time priority stays awake.
//!
//! An answer only marks a request as done. A softirq wakes the user of the request: on this CPU, in a kernel thread
//! that comes after every real-time thread. So a server that stays awake for the next answer would hold back the one
//! before, until it sleeps. A system call that takes a lock against softirqs runs the pending ones when it releases the
//! lock. Setting an option of a socket is such a call.

use std::io;
use std::os::unix::net::UnixDatagram;

/// The socket.
#[derive(Debug)]
pub(crate) struct Softirqs(UnixDatagram);

impl Softirqs {
    /// A socket that is connected to nothing.
    pub(crate) fn new() -> io::Result<Softirqs> {
        UnixDatagram::unbound().map(Softirqs)
    }

    /// Runs what is pending on this CPU.
    pub(crate) fn run(&self) {
        // The option keeps its value. A failure is no reason to stop.
        let _ = rustix::net::sockopt::set_socket_keepalive(&self.0, false);
    }
}
