//! FUSE by reading and writing `/dev/fuse`, as every kernel has it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::node::{self, Next, Node};
use super::wire::{self, Body, Header};
use crate::emulate::port::{BellPull, MAX_TRANSFER, Outcome, Port, Request};

/// Room for the longest message.
pub(super) const BUFFER: usize = MAX_TRANSFER as usize + 4096;

/// Reads one message; `None` when there is none. Needs a device that does not block.
pub(super) fn read_message(device: &File, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        return match rustix::io::read(device, &mut *buffer) {
            Ok(n) => Ok(Some(n)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            // A request that was given up while it was read.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::INTR) => continue,
            Err(e) => Err(e.into()),
        };
    }
}

/// Sends an answer.
pub(super) fn send(device: &File, unique: u64, error: i32, data: &[u8]) -> io::Result<()> {
    let header = wire::out_header(data.len(), error, unique);
    let parts = [io::IoSlice::new(&header), io::IoSlice::new(data)];
    match rustix::io::writev(device, &parts) {
        // No process waits for it any more.
        Ok(_) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Waits until one of the files can be read, at most this long.
pub(super) fn poll(files: &[&dyn AsFd], limit: Option<Duration>) -> io::Result<u32> {
    let mut fds: Vec<PollFd<'_>> =
        files.iter().map(|f| PollFd::new(f.as_fd(), PollFlags::POLLIN)).collect();
    match ppoll(&mut fds, limit.map(TimeSpec::from), None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(fds
            .iter()
            .enumerate()
            .filter(|(_, f)| f.any().unwrap_or(true))
            .fold(0, |bits, (i, _)| bits | 1 << i)),
        Err(e) => Err(e.into()),
    }
}

/// A request that was taken and not answered.
#[derive(Debug, Default)]
struct Open {
    unique: u64,
    /// What a read gives.
    data: Vec<u8>,
}

/// The port.
#[derive(Debug)]
pub(super) struct Plain {
    device: File,
    node: Node,
    bell: BellPull,
    buffer: Vec<u8>,
    open: Vec<Open>,
    free: Vec<u32>,
}

impl Plain {
    pub(super) fn new(device: File, node: Node, bell: BellPull) -> Plain {
        let buffer = vec![0; BUFFER];
        Plain { device, node, bell, buffer, open: Vec::new(), free: Vec::new() }
    }

    fn taken(&mut self, unique: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.open.push(Open::default());
            (self.open.len() - 1) as u32
        });
        self.open[slot as usize].unique = unique;
        slot
    }
}

impl Port for Plain {
    fn next(&mut self) -> io::Result<Option<Request>> {
        while let Some(n) = read_message(&self.device, &mut self.buffer)? {
            let message = &self.buffer[..n];
            let header = Header::parse(message);
            let (args, rest) = message[wire::IN_HEADER.min(n)..]
                .split_at(wire::args_len(header.opcode).min(n.saturating_sub(wire::IN_HEADER)));
            match self.node.handle(&header, args, &rest[..rest.len().min(256)]) {
                Next::Disk(request) => {
                    let slot = self.taken(header.unique);
                    return Ok(Some(Request { slot, ..request }));
                }
                Next::Answer(body) => send(&self.device, header.unique, 0, body.bytes())?,
                Next::Fail(errno) => send(&self.device, header.unique, errno, &[])?,
                Next::Silence => {}
            }
        }
        Ok(None)
    }

    /// The data of a write is in the buffer until the next message is read.
    fn data(&mut self, request: &Request) -> &mut [u8] {
        let len = request.len as usize;
        if request.op == iosched_types::Op::Write {
            let start = wire::IN_HEADER + wire::args_len(wire::opcode::WRITE);
            return &mut self.buffer[start..start + len];
        }
        let data = &mut self.open[request.slot as usize].data;
        data.resize(len, 0);
        data
    }

    fn answer(&mut self, request: &Request, outcome: Outcome) -> io::Result<()> {
        let open = &self.open[request.slot as usize];
        let body = if outcome.is_ok() { node::done(request) } else { Body::EMPTY };
        let data = match (request.op, outcome) {
            (iosched_types::Op::Read, Ok(())) => &open.data[..],
            _ => body.bytes(),
        };
        send(&self.device, open.unique, outcome.err().unwrap_or(0), data)?;
        self.free.push(request.slot);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        if poll(&[&self.device, &self.bell], limit)? & 2 != 0 {
            self.bell.silence();
        }
        Ok(())
    }

    fn ready(&mut self) -> bool {
        // An error shows again, and is reported, when the next message is read.
        poll(&[&self.device], Some(Duration::ZERO)).map_or(true, |seen| seen != 0)
    }
}

/// Answers the kernel's first message. Returns whether the kernel will use io_uring: it does if it offers it and `ring`
/// is set.
pub(super) fn handshake(device: &File, ring: bool) -> io::Result<bool> {
    use wire::init;
    /// Outstanding requests the kernel may have at us: more than any block device's tags.
    const MAX_BACKGROUND: u16 = 16_384;
    let mut buffer = vec![0; BUFFER];
    poll(&[device], Some(Duration::from_secs(10)))?;
    let n = read_message(device, &mut buffer)?.unwrap_or(0);
    let header = Header::parse(&buffer[..n]);
    let offer = wire::Init::parse(&buffer[wire::IN_HEADER..n.max(wire::IN_HEADER)]);
    if header.opcode != wire::opcode::INIT || offer.major != wire::MAJOR {
        return Err(io::Error::other("the kernel speaks another version of FUSE"));
    }
    if offer.flags & init::ASYNC_DIO == 0 {
        send(device, header.unique, libc::EPROTO, &[])?;
        let why = "this kernel's FUSE has no asynchronous direct I/O";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let mut wanted = init::ASYNC_DIO | init::BIG_WRITES | init::MAX_PAGES | init::INIT_EXT;
    if ring {
        wanted |= init::OVER_IO_URING;
    }
    let answer = offer.answer(wanted, MAX_BACKGROUND, MAX_TRANSFER);
    send(device, header.unique, 0, answer.bytes())?;
    Ok(wanted & offer.flags & init::OVER_IO_URING != 0)
}
