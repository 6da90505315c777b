//! FUSE over io_uring (Linux 6.14 and newer): requests and answers lie in memory that both sides see.
//!
//! The kernel wants a queue for each CPU that there could be. One thread serves all of them through one ring.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use super::node::{self, Next, Node};
use super::plain;
use super::wire::{self, Body, Header};
use crate::emulate::port::{MAX_TRANSFER, Outcome, Request};
use crate::emulate::queue::{Arrived, Driver};
use crate::sys::ring::{ARGS, Command, Memory};

/// Commands: hand over a slot's memory; answer and fetch the next.
const REGISTER: u32 = 1;
const COMMIT_AND_FETCH: u32 = 2;
/// `fuse_uring_req_header`: a header of either direction, arguments, and `fuse_uring_ent_in_out`.
const OP_IN: usize = 128;
const COMMIT_ID: usize = 264;
const PAYLOAD_SIZE: usize = 272;
const HEADERS: usize = 288;
/// Bytes of a slot's headers in memory, with room for the list of its two parts.
const STRIDE: usize = 512;
/// Slots of each queue. A request comes by the queue of its sender's CPU. So everything that a block device can have in
/// flight may come in one queue, and a few other requests of the file system.
const DEPTH: u32 = 128 + 8;

/// The driver's side of a queue.
#[derive(Debug)]
pub(super) struct FuseRing {
    device: File,
    node: Node,
    queues: u32,
    commits: Vec<(u64, u64)>,
    spare: Vec<u8>,
}

impl FuseRing {
    /// `queues` is the number of CPUs that there could be.
    pub(super) fn new(device: File, node: Node, queues: u32) -> FuseRing {
        let commits = vec![(0, 0); (queues * DEPTH) as usize];
        FuseRing { device, node, queues, commits, spare: vec![0; plain::BUFFER] }
    }

    fn headers(slot: u32) -> Range<usize> {
        let start = slot as usize * STRIDE;
        start..start + HEADERS
    }

    /// `fuse_uring_cmd_req`.
    fn command(&self, slot: u32, op: u32, commit: u64, memory: Memory) -> Command {
        let mut args = [0; ARGS];
        args[8..16].copy_from_slice(&commit.to_ne_bytes());
        args[16..18].copy_from_slice(&((slot / DEPTH) as u16).to_ne_bytes());
        Command { op, args, memory }
    }

    /// Writes an answer. Its data is in place or is `body`.
    fn put(&self, slot: u32, memory: &mut [u8], error: i32, data: usize, body: &Body) -> Command {
        let (unique, commit) = self.commits[slot as usize];
        let payload = self.data(slot).start;
        memory[payload..payload + body.bytes().len()].copy_from_slice(body.bytes());
        let len = data.max(body.bytes().len());
        let headers = &mut memory[Self::headers(slot)];
        headers[..wire::OUT_HEADER].copy_from_slice(&wire::out_header(len, error, unique));
        headers[PAYLOAD_SIZE..PAYLOAD_SIZE + 4].copy_from_slice(&(len as u32).to_ne_bytes());
        self.command(slot, COMMIT_AND_FETCH, commit, Memory::None)
    }
}

impl Driver for FuseRing {
    fn device(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn slots(&self) -> u32 {
        self.queues * DEPTH
    }

    fn memory(&self) -> usize {
        self.slots() as usize * (STRIDE + MAX_TRANSFER as usize)
    }

    fn first(&mut self, slot: u32) -> Command {
        let headers = Self::headers(slot);
        let list = headers.end;
        let parts = [headers, self.data(slot)];
        self.command(slot, REGISTER, 0, Memory::List { list, parts })
    }

    fn arrived(&mut self, slot: u32, memory: &mut [u8]) -> Arrived {
        let headers = &memory[Self::headers(slot)];
        let header = Header::parse(headers);
        let commit = wire::Fields(&headers[COMMIT_ID..]).u64();
        let size = wire::Fields(&headers[PAYLOAD_SIZE..]).u32() as usize;
        self.commits[slot as usize] = (header.unique, commit);
        let rest = &memory[self.data(slot)];
        let next =
            self.node.handle(&header, &headers[OP_IN..COMMIT_ID - 8], &rest[..size.min(256)]);
        match next {
            Next::Disk(request) => Arrived::Disk(Request { slot, ..request }),
            Next::Answer(body) => Arrived::Answered(self.put(slot, memory, 0, 0, &body)),
            Next::Fail(errno) => Arrived::Answered(self.put(slot, memory, errno, 0, &Body::EMPTY)),
            // Messages that want no answer come beside the queue. Here the slot must go back in any case.
            Next::Silence => Arrived::Answered(self.put(slot, memory, 0, 0, &Body::EMPTY)),
        }
    }

    fn data(&self, slot: u32) -> Range<usize> {
        let start = self.slots() as usize * STRIDE + slot as usize * MAX_TRANSFER as usize;
        start..start + MAX_TRANSFER as usize
    }

    fn commit(&mut self, request: &Request, outcome: Outcome, memory: &mut [u8]) -> Command {
        let slot = request.slot;
        match outcome {
            Ok(()) if request.op == iosched_types::Op::Read => {
                self.put(slot, memory, 0, request.len as usize, &Body::EMPTY)
            }
            Ok(()) => self.put(slot, memory, 0, 0, &node::done(request)),
            Err(errno) => self.put(slot, memory, errno, 0, &Body::EMPTY),
        }
    }

    fn is_watched(&self) -> bool {
        true
    }

    /// Forgotten nodes and requests that are given up. Neither matters here, but they must be read.
    fn beside(&mut self) -> io::Result<()> {
        while plain::read_message(&self.device, &mut self.spare)?.is_some() {}
        Ok(())
    }
}

/// Number of CPUs that there could be, of a list as `0-3,8`.
pub(super) fn cpus_of(list: &str) -> Option<u32> {
    let mut n = 0;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        n += last.checked_sub(first)? + 1;
    }
    Some(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_types::Op;

    fn driver() -> FuseRing {
        FuseRing::new(File::open("/dev/null").unwrap(), Node { bytes: 1 << 30 }, 2)
    }

    /// What the kernel writes into a slot: header, arguments, commit id, size of the payload.
    fn place(
        d: &FuseRing,
        memory: &mut [u8],
        slot: u32,
        opcode: u32,
        args: &[u64],
        payload: &[u8],
    ) {
        let at = FuseRing::headers(slot).start;
        let mut put = |at: usize, bytes: &[u8]| memory[at..at + bytes.len()].copy_from_slice(bytes);
        put(at + 4, &opcode.to_ne_bytes());
        put(at + 8, &77u64.to_ne_bytes());
        put(at + 16, &1u64.to_ne_bytes());
        for (i, a) in args.iter().enumerate() {
            put(at + OP_IN + i * 8, &a.to_ne_bytes());
        }
        put(at + COMMIT_ID, &4242u64.to_ne_bytes());
        put(at + PAYLOAD_SIZE, &(payload.len() as u32).to_ne_bytes());
        put(d.data(slot).start, payload);
    }

    #[test]
    fn a_slot_is_registered_with_both_its_parts() {
        let mut d = driver();
        let c = d.first(DEPTH + 1);
        let at = (DEPTH as usize + 1) * STRIDE;
        let data = d.data(DEPTH + 1);
        assert_eq!(c.memory, Memory::List { list: at + 288, parts: [at..at + 288, data.clone()] });
        assert_eq!((c.op, c.args[16], data.len()), (REGISTER, 1, 1 << 20), "the second queue");
        assert!(d.data(d.slots() - 1).end <= d.memory());
        assert!(d.data(0).start >= FuseRing::headers(d.slots() - 1).end + 32);
    }

    #[test]
    fn a_write_comes_with_its_data_and_is_answered_by_its_number() {
        let mut d = driver();
        let mut memory = vec![0; d.memory()];
        place(&d, &mut memory, 3, wire::opcode::WRITE, &[0, 8192, 5], b"hello");
        let Arrived::Disk(r) = d.arrived(3, &mut memory) else { panic!("to the disk") };
        assert_eq!(r, Request { slot: 3, op: Op::Write, offset: 8192, len: 5, fua: false });
        assert_eq!(&memory[d.data(3)][..5], b"hello");
        let c = d.commit(&r, Ok(()), &mut memory);
        let mut args = [0; ARGS];
        args[8..10].copy_from_slice(&4242u16.to_ne_bytes());
        assert_eq!(c, Command { op: COMMIT_AND_FETCH, args, memory: Memory::None });
        let headers = &memory[FuseRing::headers(3)];
        assert_eq!(headers[..16], wire::out_header(8, 0, 77));
        assert_eq!(headers[PAYLOAD_SIZE..PAYLOAD_SIZE + 4], 8u32.to_ne_bytes());
        assert_eq!(&memory[d.data(3)][..8], wire::write_out(5).bytes());
    }

    #[test]
    fn reads_keep_what_was_put_and_failures_have_no_data() {
        let mut d = driver();
        let mut memory = vec![0; d.memory()];
        place(&d, &mut memory, 0, wire::opcode::READ, &[0, 0, 4096], b"");
        let Arrived::Disk(r) = d.arrived(0, &mut memory) else { panic!("to the disk") };
        let start = d.data(0).start;
        memory[start..start + 4096].fill(9);
        d.commit(&r, Ok(()), &mut memory);
        assert_eq!(memory[..16], wire::out_header(4096, 0, 77));
        assert!(memory[start..start + 4096].iter().all(|b| *b == 9));
        d.commit(&r, Err(5), &mut memory);
        assert_eq!(memory[..16], wire::out_header(0, 5, 77));
        assert_eq!(memory[PAYLOAD_SIZE..PAYLOAD_SIZE + 4], [0; 4]);
    }

    #[test]
    fn names_are_looked_up_at_once() {
        let mut d = driver();
        let mut memory = vec![0; d.memory()];
        place(&d, &mut memory, 1, wire::opcode::LOOKUP, &[], b"disk\0");
        assert!(matches!(d.arrived(1, &mut memory), Arrived::Answered(_)));
        assert_eq!(memory[STRIDE..STRIDE + 16], wire::out_header(128, 0, 77));
    }

    #[test]
    fn cpus_are_counted() {
        assert_eq!(cpus_of("0-1\n"), Some(2));
        assert_eq!(cpus_of("0"), Some(1));
        assert_eq!(cpus_of("0-3,8,10-11"), Some(7));
        assert_eq!(cpus_of("x"), None);
    }
}
