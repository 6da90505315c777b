//! The messages between ublk and its server, as in `linux/ublk_cmd.h`. Bytes in, bytes out.

use iosched_types::{Op, SECTOR};
use nix::libc;

/// Commands to `/dev/ublk-control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Who made a device, with what.
    DevInfo,
    /// Make a device.
    Add,
    /// Remove it.
    Delete,
    /// Show its disk.
    Start,
    /// Take its disk away.
    Stop,
    /// What the disk is like.
    SetParams,
    /// What the driver can do. There in numbers of an ioctl only.
    Features,
}

/// Bytes of `ublksrv_ctrl_cmd` and `ublksrv_io_cmd`; they are part of the ioctl numbers.
pub(crate) const CONTROL: usize = 32;
const IO: usize = 16;
/// Where either has the address of a buffer.
pub(crate) const ADDRESS: usize = 8;

impl Ask {
    /// The number of the first kernels, or that of an ioctl (Linux 6.4).
    pub(crate) fn number(self, encoded: bool) -> u32 {
        let (number, reads_only) = match self {
            Ask::DevInfo => (0x02, true),
            Ask::Add => (0x04, false),
            Ask::Delete => (0x05, false),
            Ask::Start => (0x06, false),
            Ask::Stop => (0x07, false),
            Ask::SetParams => (0x08, false),
            Ask::Features => (0x13, true),
        };
        match (encoded || self == Ask::Features, reads_only) {
            (false, _) => number,
            (true, true) => nix::request_code_read!(b'u', number, CONTROL) as u32,
            (true, false) => nix::request_code_readwrite!(b'u', number, CONTROL) as u32,
        }
    }
}

/// Commands of a queue: take the first request of a tag; answer and take the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Fetch,
    CommitAndFetch,
}

impl Turn {
    pub(crate) fn number(self, encoded: bool) -> u32 {
        let number = match self {
            Turn::Fetch => 0x20,
            Turn::CommitAndFetch => 0x21,
        };
        if encoded { nix::request_code_readwrite!(b'u', number, IO) as u32 } else { number }
    }
}

/// Abilities of the driver.
pub(crate) mod feature {
    pub(crate) const CMD_IOCTL_ENCODE: u64 = 1 << 6;
    /// Data goes by reads and writes of the character device instead of buffers that the kernel knows.
    pub(crate) const USER_COPY: u64 = 1 << 7;
}

/// Most requests of a queue.
pub(crate) const MAX_DEPTH: u32 = 4096;
/// Bytes of `ublksrv_io_desc`.
pub(crate) const DESCRIPTOR: usize = 24;

/// Where the descriptors of a queue begin in the character device, for mmap.
pub(crate) fn descriptors_at(queue: u16) -> u64 {
    u64::from(queue) * u64::from(MAX_DEPTH) * DESCRIPTOR as u64
}

/// Where the data of a tag begins in the character device, for reads and writes.
pub(crate) fn data_at(queue: u16, tag: u16) -> u64 {
    0x8000_0000 + (u64::from(queue) << 41 | u64::from(tag) << 25)
}

/// `ublksrv_ctrl_cmd` without its buffer's address, which is filled in later.
pub(crate) fn control(device: u32, buffer: usize, data: u64) -> [u8; CONTROL] {
    let mut b = [0; CONTROL];
    b[..4].copy_from_slice(&device.to_ne_bytes());
    // Not for one queue.
    b[4..6].copy_from_slice(&u16::MAX.to_ne_bytes());
    b[6..8].copy_from_slice(&u16::try_from(buffer).unwrap_or(u16::MAX).to_ne_bytes());
    b[16..24].copy_from_slice(&data.to_ne_bytes());
    b
}

/// `ublksrv_io_cmd` without its buffer's address.
pub(crate) fn io(queue: u16, tag: u16, result: i32) -> [u8; IO] {
    let mut b = [0; IO];
    b[..2].copy_from_slice(&queue.to_ne_bytes());
    b[2..4].copy_from_slice(&tag.to_ne_bytes());
    b[4..8].copy_from_slice(&result.to_ne_bytes());
    b
}

/// The fields of `ublksrv_ctrl_dev_info` that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DevInfo {
    pub(crate) queues: u16,
    pub(crate) depth: u16,
    pub(crate) max_io_bytes: u32,
    pub(crate) device: u32,
    pub(crate) pid: i32,
    pub(crate) flags: u64,
    /// A word of the server's own, which the driver keeps. It marks the owner of the device.
    pub(crate) mark: u64,
}

impl DevInfo {
    pub(crate) const BYTES: usize = 64;

    pub(crate) fn bytes(&self) -> [u8; Self::BYTES] {
        let mut b = [0; Self::BYTES];
        b[..2].copy_from_slice(&self.queues.to_ne_bytes());
        b[2..4].copy_from_slice(&self.depth.to_ne_bytes());
        b[8..12].copy_from_slice(&self.max_io_bytes.to_ne_bytes());
        b[12..16].copy_from_slice(&self.device.to_ne_bytes());
        b[16..20].copy_from_slice(&self.pid.to_ne_bytes());
        b[24..32].copy_from_slice(&self.flags.to_ne_bytes());
        b[32..40].copy_from_slice(&self.mark.to_ne_bytes());
        b
    }

    pub(crate) fn parse(b: &[u8; Self::BYTES]) -> DevInfo {
        DevInfo {
            queues: u16::from_ne_bytes(part(b, 0)),
            depth: u16::from_ne_bytes(part(b, 2)),
            max_io_bytes: u32::from_ne_bytes(part(b, 8)),
            device: u32::from_ne_bytes(part(b, 12)),
            pid: i32::from_ne_bytes(part(b, 16)),
            flags: u64::from_ne_bytes(part(b, 24)),
            mark: u64::from_ne_bytes(part(b, 32)),
        }
    }
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// What a disk is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    pub(crate) bytes: u64,
    pub(crate) logical_block: u32,
    pub(crate) max_io_bytes: u32,
    pub(crate) rotational: bool,
    pub(crate) write_cache: bool,
    pub(crate) fua: bool,
}

impl Params {
    pub(crate) const BYTES: usize = 64;

    /// `ublk_params` with basic ones and those of discards.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        const BASIC_AND_DISCARD: u32 = 1 << 0 | 1 << 1;
        let shift = self.logical_block.max(512).trailing_zeros() as u8;
        let attributes = u32::from(self.rotational) << 1
            | u32::from(self.write_cache) << 2
            // A disk without a cache has nothing to force a write through.
            | u32::from(self.fua && self.write_cache) << 3;
        let sectors = |bytes: u64| bytes / SECTOR;
        let most_discarded = u32::MAX / SECTOR as u32;
        let mut b = [0; Self::BYTES];
        let mut put = |at: usize, bytes: &[u8]| b[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &(Self::BYTES as u32).to_ne_bytes());
        put(4, &BASIC_AND_DISCARD.to_ne_bytes());
        put(8, &attributes.to_ne_bytes());
        // Logical and physical block, best and least transfer.
        put(12, &[shift, shift, shift, shift]);
        put(16, &(sectors(u64::from(self.max_io_bytes)) as u32).to_ne_bytes());
        put(24, &sectors(self.bytes).to_ne_bytes());
        // Alignment 0, granularity, the longest discard and write of zeros, one piece each.
        put(44, &self.logical_block.max(512).to_ne_bytes());
        put(48, &most_discarded.to_ne_bytes());
        put(52, &most_discarded.to_ne_bytes());
        put(56, &1u16.to_ne_bytes());
        b
    }
}

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) op: Op,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) fua: bool,
}

/// Reads a `ublksrv_io_desc`.
///
/// # Errors
/// `EOPNOTSUPP` for what this disk does not do.
pub(crate) fn asked(descriptor: &[u8; DESCRIPTOR]) -> Result<Asked, i32> {
    const FUA: u32 = 1 << 13;
    let op_flags = u32::from_ne_bytes(part(descriptor, 0));
    let sectors = u64::from(u32::from_ne_bytes(part(descriptor, 4)));
    let start = u64::from_ne_bytes(part(descriptor, 8));
    let op = match op_flags & 0xFF {
        0 => Op::Read,
        1 => Op::Write,
        2 => Op::Flush,
        // Zeros are what a discarded place reads as here.
        3 | 5 => Op::Discard,
        _ => return Err(libc::EOPNOTSUPP),
    };
    let offset = start.checked_mul(SECTOR).ok_or(libc::EINVAL)?;
    let (offset, len) = if op == Op::Flush { (0, 0) } else { (offset, sectors * SECTOR) };
    Ok(Asked { op, offset, len, fua: op_flags & FUA != 0 })
}

/// The result that a request's answer carries: bytes, or an error.
pub(crate) fn result(op: Op, len: u64, outcome: Result<(), i32>) -> i32 {
    match (outcome, op) {
        (Ok(()), Op::Read | Op::Write) => i32::try_from(len).unwrap_or(-libc::EIO),
        (Ok(()), _) => 0,
        (Err(errno), _) => -errno,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_headers() {
        // Printed by a C program that includes `linux/ublk_cmd.h` of Linux 6.12 (x86-64).
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
        for (ask, number) in [
            (Ask::DevInfo, 0x8020_7502),
            (Ask::Add, 0xC020_7504),
            (Ask::Delete, 0xC020_7505),
            (Ask::Start, 0xC020_7506),
            (Ask::Stop, 0xC020_7507),
            (Ask::SetParams, 0xC020_7508),
            (Ask::Features, 0x8020_7513),
        ] {
            assert_eq!(ask.number(true), number, "{ask:?}");
        }
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
        for (turn, number) in [(Turn::Fetch, 0xC010_7520), (Turn::CommitAndFetch, 0xC010_7521)] {
            assert_eq!(turn.number(true), number);
        }
        let old = [Ask::DevInfo, Ask::Add, Ask::Delete, Ask::Start, Ask::Stop, Ask::SetParams];
        assert_eq!(old.map(|a| a.number(false)), [2, 4, 5, 6, 7, 8]);
        assert_eq!(Ask::Features.number(false), Ask::Features.number(true), "no other was made");
        assert_eq!([Turn::Fetch, Turn::CommitAndFetch].map(|t| t.number(false)), [0x20, 0x21]);
    }

    #[test]
    fn places_in_the_character_device() {
        assert_eq!((descriptors_at(0), descriptors_at(1)), (0, 98_304));
        assert_eq!(data_at(0, 0), 0x8000_0000);
        assert_eq!(data_at(0, 1) - data_at(0, 0), 32 << 20, "32 MiB for each tag");
        assert_eq!(data_at(1, 0) - data_at(0, 0), 1 << 41);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn commands_have_the_headers_layout() {
        let b = control(64, 0x40, 4321);
        assert_eq!(b[..8], [64, 0, 0, 0, 0xFF, 0xFF, 0x40, 0]);
        assert_eq!(b[8..16], [0; 8], "the address is filled in by the ring");
        assert_eq!(b[16..20], [0xE1, 0x10, 0, 0]);
        assert_eq!(b[20..], [0; 12]);
        let b = io(2, 31, -5);
        assert_eq!(b[..8], [2, 0, 31, 0, 0xFB, 0xFF, 0xFF, 0xFF]);
        assert_eq!(b[8..], [0; 8]);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_device_is_described_and_read_back() {
        let info = DevInfo {
            queues: 2,
            depth: 0x120,
            max_io_bytes: 1 << 20,
            device: 64,
            pid: 7,
            flags: feature::USER_COPY | feature::CMD_IOCTL_ENCODE,
            mark: 0x1122_3344_5566_7788,
        };
        let b = info.bytes();
        assert_eq!(b[..8], [2, 0, 0x20, 1, 0, 0, 0, 0], "queues, depth, state");
        assert_eq!(b[8..16], [0, 0, 0x10, 0, 64, 0, 0, 0], "bytes of an I/O, number");
        assert_eq!(b[16..24], [7, 0, 0, 0, 0, 0, 0, 0], "process");
        assert_eq!(
            b[24..40],
            [0xC0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]
        );
        assert_eq!(b[40..], [0; 24]);
        assert_eq!(DevInfo::parse(&b), info);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_disk_is_described_as_the_model_is() {
        let disk = Params {
            bytes: 1 << 30,
            logical_block: 4096,
            max_io_bytes: 512 << 10,
            rotational: true,
            write_cache: true,
            fua: true,
        };
        let b = disk.to_bytes();
        assert_eq!(b[..8], [64, 0, 0, 0, 3, 0, 0, 0], "length, basic and discard");
        assert_eq!(b[8..12], [0b1110, 0, 0, 0], "rotational, cache, FUA");
        assert_eq!(b[12..24], [12, 12, 12, 12, 0, 4, 0, 0, 0, 0, 0, 0], "blocks, 1024 sectors");
        assert_eq!(b[24..40], [0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "sectors");
        assert_eq!(b[40..48], [0, 0, 0, 0, 0, 16, 0, 0], "alignment and granularity");
        assert_eq!(b[48..56], [0xFF, 0xFF, 0x7F, 0, 0xFF, 0xFF, 0x7F, 0]);
        assert_eq!(b[56..], [1, 0, 0, 0, 0, 0, 0, 0], "one piece; nothing beyond byte 60");
        let attributes = |p: Params| p.to_bytes()[8];
        assert_eq!(attributes(Params { write_cache: false, ..disk }), 0b0010);
        assert_eq!(attributes(Params { fua: false, rotational: false, ..disk }), 0b0100);
        assert_eq!(Params { logical_block: 512, ..disk }.to_bytes()[12], 9);
    }

    fn descriptor(op_flags: u32, sectors: u32, start: u64) -> [u8; DESCRIPTOR] {
        let mut b = [0xEE; DESCRIPTOR];
        b[..4].copy_from_slice(&op_flags.to_ne_bytes());
        b[4..8].copy_from_slice(&sectors.to_ne_bytes());
        b[8..16].copy_from_slice(&start.to_ne_bytes());
        b
    }

    #[test]
    fn descriptors_become_requests() {
        let is = |op, offset, len, fua| Ok(Asked { op, offset, len, fua });
        assert_eq!(asked(&descriptor(0, 8, 16)), is(Op::Read, 8192, 4096, false));
        assert_eq!(asked(&descriptor(1, 1, 3)), is(Op::Write, 1536, 512, false));
        assert_eq!(asked(&descriptor(1 | 1 << 13, 1, 3)), is(Op::Write, 1536, 512, true));
        // Failfast, metadata, swap: nothing to a disk.
        let others = 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 15 | 1 << 16;
        assert_eq!(asked(&descriptor(others, 8, 16)), is(Op::Read, 8192, 4096, false));
        assert_eq!(asked(&descriptor(2, 99, 99)), is(Op::Flush, 0, 0, false));
        assert_eq!(asked(&descriptor(3, 2048, 0)), is(Op::Discard, 0, 1 << 20, false));
        assert_eq!(asked(&descriptor(5, 2048, 0)), is(Op::Discard, 0, 1 << 20, false));
        for op in [4, 10, 13, 18, 255] {
            assert_eq!(asked(&descriptor(op, 8, 0)), Err(libc::EOPNOTSUPP), "{op}");
        }
        assert_eq!(asked(&descriptor(0, 8, u64::MAX / 2)), Err(libc::EINVAL));
    }

    #[test]
    fn answers_are_bytes_or_errors() {
        assert_eq!(result(Op::Read, 4096, Ok(())), 4096);
        assert_eq!(result(Op::Write, 512, Ok(())), 512);
        assert_eq!(result(Op::Flush, 0, Ok(())), 0);
        assert_eq!(result(Op::Discard, 1 << 30, Ok(())), 0);
        assert_eq!(result(Op::Write, 512, Err(libc::ENOSPC)), -libc::ENOSPC);
        assert_eq!(result(Op::Flush, 0, Err(libc::EIO)), -libc::EIO);
    }
}
