//! The file system: a root with one file. Reads and writes of the file are the disk's.

use iosched_types::Op;
use nix::libc;

use super::wire::{self, Attributes, Body, Fields, Header, opcode};
use crate::emulate::port::Request;

/// The file's name.
pub(super) const NAME: &str = "disk";
const ROOT: u64 = 1;
const DISK: u64 = 2;
/// Seconds for which the kernel may remember names and attributes: they never change.
const VALID: u64 = 86_400;

/// What is to be done about a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Answer this.
    Answer(Body),
    /// Answer with the number of an error.
    Fail(i32),
    /// It wants no answer.
    Silence,
    /// A request to the disk; the caller knows its slot.
    Disk(Request),
}

/// The file system.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Size of the file.
    pub(super) bytes: u64,
}

impl Node {
    fn attributes(self, node: u64) -> Option<Attributes> {
        match node {
            ROOT => Some(Attributes { node, size: 0, mode: libc::S_IFDIR | 0o700 }),
            DISK => Some(Attributes { node, size: self.bytes, mode: libc::S_IFREG | 0o600 }),
            _ => None,
        }
    }

    /// A message: `args` are the fixed arguments of its kind, `rest` is what follows.
    pub(super) fn handle(self, header: &Header, args: &[u8], rest: &[u8]) -> Next {
        let known = |found: Option<Attributes>, answer: fn(Attributes, u64) -> Body| {
            found.map_or(Next::Fail(libc::ENOENT), |a| Next::Answer(answer(a, VALID)))
        };
        let mut f = Fields(args);
        match header.opcode {
            opcode::READ => {
                let (_handle, offset, size) = (f.u64(), f.u64(), u64::from(f.u32()));
                match size.min(self.bytes.saturating_sub(offset)) {
                    0 => Next::Answer(Body::EMPTY),
                    len => disk(Op::Read, offset, len),
                }
            }
            opcode::WRITE => {
                let (_handle, offset, size) = (f.u64(), f.u64(), u64::from(f.u32()));
                match self.is_inside(offset, size) {
                    true => disk(Op::Write, offset, size),
                    false => Next::Fail(libc::ENOSPC),
                }
            }
            opcode::FSYNC => disk(Op::Flush, 0, 0),
            opcode::FALLOCATE => {
                let (_handle, offset, len, mode) = (f.u64(), f.u64(), f.u64(), f.u32());
                let zeros = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) as u32;
                match mode & zeros != 0 && self.is_inside(offset, len) {
                    true => disk(Op::Discard, offset, len),
                    false => Next::Fail(libc::EOPNOTSUPP),
                }
            }
            opcode::LOOKUP => {
                let ours =
                    header.node == ROOT && rest.split(|b| *b == 0).next() == Some(NAME.as_bytes());
                known(ours.then(|| self.attributes(DISK)).flatten(), Attributes::entry_out)
            }
            opcode::GETATTR => known(self.attributes(header.node), Attributes::attr_out),
            opcode::OPEN => Next::Answer(wire::open_out(
                wire::FOPEN_DIRECT_IO | wire::FOPEN_PARALLEL_DIRECT_WRITES | wire::FOPEN_NOFLUSH,
            )),
            opcode::STATFS => Next::Answer(wire::statfs_out(self.bytes / 4096)),
            opcode::FLUSH | opcode::RELEASE | opcode::DESTROY => Next::Answer(Body::EMPTY),
            opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT => Next::Silence,
            _ => Next::Fail(libc::ENOSYS),
        }
    }

    fn is_inside(self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.bytes)
    }
}

fn disk(op: Op, offset: u64, len: u64) -> Next {
    Next::Disk(Request { slot: 0, op, offset, len, fua: false })
}

/// The answer to the kernel for a request that the disk has done.
pub(super) fn done(request: &Request) -> Body {
    match request.op {
        Op::Write => wire::write_out(request.len as u32),
        _ => Body::EMPTY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Node = Node { bytes: 1 << 20 };

    fn message(opcode: u32, node: u64, numbers: &[u64], rest: &[u8]) -> Next {
        let args: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
        NODE.handle(&Header { len: 0, opcode, unique: 1, node }, &args, rest)
    }

    #[test]
    fn the_disk_is_found_by_its_name_only() {
        assert!(matches!(message(opcode::LOOKUP, ROOT, &[], b"disk\0"), Next::Answer(_)));
        for name in [&b"dis\0"[..], b"disk2\0", b"\0"] {
            assert_eq!(message(opcode::LOOKUP, ROOT, &[], name), Next::Fail(libc::ENOENT));
        }
        assert_eq!(message(opcode::LOOKUP, DISK, &[], b"disk\0"), Next::Fail(libc::ENOENT));
        assert_eq!(message(opcode::GETATTR, 3, &[], b""), Next::Fail(libc::ENOENT));
        assert_eq!(message(opcode::FORGET, DISK, &[1], b""), Next::Silence);
        assert_eq!(message(9, ROOT, &[], b""), Next::Fail(libc::ENOSYS));
    }

    #[test]
    fn requests_stay_inside_the_disk() {
        let end = 1 << 20;
        let read = |o, n| message(opcode::READ, DISK, &[0, o, n], b"");
        assert_eq!(read(4096, 8192), disk(Op::Read, 4096, 8192));
        assert_eq!(read(end - 512, 4096), disk(Op::Read, end - 512, 512));
        assert_eq!(read(end, 4096), Next::Answer(Body::EMPTY));
        let write = |o, n| message(opcode::WRITE, DISK, &[0, o, n], b"");
        assert_eq!(write(end - 512, 512), disk(Op::Write, end - 512, 512));
        assert_eq!(write(end, 1), Next::Fail(libc::ENOSPC));
        assert_eq!(write(u64::MAX, 2), Next::Fail(libc::ENOSPC));
        let hole = |o, n, mode| message(opcode::FALLOCATE, DISK, &[0, o, n, mode], b"");
        assert_eq!(hole(0, end, 3), disk(Op::Discard, 0, end));
        assert_eq!(hole(0, end, 0x11), disk(Op::Discard, 0, end));
        assert_eq!(hole(0, end + 1, 3), Next::Fail(libc::EOPNOTSUPP));
        assert_eq!(hole(0, end, 0), Next::Fail(libc::EOPNOTSUPP));
        assert_eq!(message(opcode::FSYNC, DISK, &[0, 1], b""), disk(Op::Flush, 0, 0));
    }
}
