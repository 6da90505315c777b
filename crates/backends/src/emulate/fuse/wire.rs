//! Messages of FUSE, as `linux/fuse.h` has them: what the kernel asks and what it is told.

/// Version that is spoken: 7.42, or the kernel's if that is older.
pub(super) const MAJOR: u32 = 7;
pub(super) const MINOR: u32 = 42;

/// Kinds of requests.
pub(super) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const FLUSH: u32 = 25;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const INTERRUPT: u32 = 36;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const FALLOCATE: u32 = 43;
}

/// Flags of `INIT`.
pub(super) mod init {
    pub(crate) const BIG_WRITES: u64 = 1 << 5;
    pub(crate) const ASYNC_DIO: u64 = 1 << 15;
    pub(crate) const MAX_PAGES: u64 = 1 << 22;
    pub(crate) const INIT_EXT: u64 = 1 << 30;
    pub(crate) const OVER_IO_URING: u64 = 1 << 41;
}

/// Flags of `OPEN`'s answer.
pub(super) const FOPEN_DIRECT_IO: u32 = 1;
pub(super) const FOPEN_NOFLUSH: u32 = 1 << 5;
pub(super) const FOPEN_PARALLEL_DIRECT_WRITES: u32 = 1 << 6;

/// Bytes of `fuse_in_header` and `fuse_out_header`.
pub(super) const IN_HEADER: usize = 40;
pub(super) const OUT_HEADER: usize = 16;
/// Bytes of the longest fixed answer, `fuse_entry_out`.
pub(super) const LONGEST: usize = 128;

/// Numbers of a message, in the order in which they stand there.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_at(N.min(self.0.len()));
        self.0 = rest;
        let mut out = [0; N];
        // Fields that a shorter message of an older kernel lacks count as zero.
        out[..head.len()].copy_from_slice(head);
        out
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.bytes())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.bytes())
    }
}

/// What of `fuse_in_header` matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// Length of the whole message.
    pub(super) len: u32,
    pub(super) opcode: u32,
    pub(super) unique: u64,
    pub(super) node: u64,
}

impl Header {
    pub(super) fn parse(bytes: &[u8]) -> Header {
        let mut f = Fields(bytes);
        Header { len: f.u32(), opcode: f.u32(), unique: f.u64(), node: f.u64() }
    }
}

/// An answer of fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Body {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Body {
    pub(super) const EMPTY: Body = Body { bytes: [0; LONGEST], len: 0 };

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn u16(&mut self, v: u16) {
        self.put(&v.to_ne_bytes());
    }

    fn u32(&mut self, v: u32) {
        self.put(&v.to_ne_bytes());
    }

    fn u64(&mut self, v: u64) {
        self.put(&v.to_ne_bytes());
    }
}

/// `fuse_out_header`.
pub(super) fn out_header(body: usize, error: i32, unique: u64) -> [u8; OUT_HEADER] {
    let mut out = [0; OUT_HEADER];
    out[..4].copy_from_slice(&((OUT_HEADER + body) as u32).to_ne_bytes());
    out[4..8].copy_from_slice(&(-error).to_ne_bytes());
    out[8..].copy_from_slice(&unique.to_ne_bytes());
    out
}

/// Bytes of arguments that stand between header and the rest of a message.
pub(super) fn args_len(opcode: u32) -> usize {
    match opcode {
        opcode::READ | opcode::WRITE => 40,
        opcode::FALLOCATE => 32,
        opcode::INIT => 64,
        opcode::GETATTR | opcode::FSYNC => 16,
        _ => 0,
    }
}

/// What `INIT` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Init {
    pub(super) major: u32,
    pub(super) minor: u32,
    pub(super) max_readahead: u32,
    pub(super) flags: u64,
}

impl Init {
    pub(super) fn parse(args: &[u8]) -> Init {
        let mut f = Fields(args);
        let (major, minor, max_readahead, low) = (f.u32(), f.u32(), f.u32(), u64::from(f.u32()));
        let high = if low & init::INIT_EXT != 0 { u64::from(f.u32()) << 32 } else { 0 };
        Init { major, minor, max_readahead, flags: low | high }
    }

    /// `fuse_init_out`: takes `flags` of those that the kernel offers.
    pub(super) fn answer(&self, flags: u64, background: u16, max_write: u32) -> Body {
        let flags = flags & self.flags;
        let mut b = Body::EMPTY;
        b.u32(MAJOR);
        b.u32(self.minor.min(MINOR));
        b.u32(self.max_readahead);
        b.u32(flags as u32);
        b.u16(background);
        b.u16(background);
        b.u32(max_write);
        // Granularity of times, in ns.
        b.u32(1);
        b.u16(u16::try_from(max_write / 4096).unwrap_or(u16::MAX));
        b.u16(0);
        b.u32((flags >> 32) as u32);
        b.put(&[0; 28]);
        b
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) node: u64,
    pub(super) size: u64,
    /// Kind and permissions.
    pub(super) mode: u32,
}

impl Attributes {
    /// `fuse_attr`.
    fn put(self, b: &mut Body) {
        b.u64(self.node);
        b.u64(self.size);
        // Blocks; times of access, change of data, change.
        b.put(&[0; 32]);
        b.put(&[0; 12]);
        b.u32(self.mode);
        b.u32(1);
        // Owner, group, device.
        b.put(&[0; 12]);
        b.u32(4096);
        b.u32(0);
    }

    /// `fuse_attr_out`, valid for this many seconds.
    pub(super) fn attr_out(self, seconds: u64) -> Body {
        let mut b = Body::EMPTY;
        b.u64(seconds);
        b.u64(0);
        self.put(&mut b);
        b
    }

    /// `fuse_entry_out`.
    pub(super) fn entry_out(self, seconds: u64) -> Body {
        let mut b = Body::EMPTY;
        b.u64(self.node);
        b.u64(0);
        b.u64(seconds);
        b.u64(seconds);
        b.u64(0);
        self.put(&mut b);
        b
    }
}

/// `fuse_open_out`.
pub(super) fn open_out(flags: u32) -> Body {
    let mut b = Body::EMPTY;
    b.u64(0);
    b.u32(flags);
    b.u32(0);
    b
}

/// `fuse_write_out`.
pub(super) fn write_out(written: u32) -> Body {
    let mut b = Body::EMPTY;
    b.u32(written);
    b.u32(0);
    b
}

/// `fuse_statfs_out` of a file system of this many blocks of 4 KiB, all in use.
pub(super) fn statfs_out(blocks: u64) -> Body {
    let mut b = Body::EMPTY;
    b.u64(blocks);
    b.put(&[0; 32]);
    b.u32(4096);
    b.u32(255);
    b.u32(4096);
    b.put(&[0; 28]);
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes from groups of hex digits, on machines of little endian.
    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let value = |d: u8| char::from(d).to_digit(16).unwrap() as u8;
        digits.chunks(2).map(|d| value(d[0]) << 4 | value(d[1])).collect()
    }

    #[test]
    fn a_request_is_read_as_the_kernel_wrote_it() {
        // A read of 4096 bytes at 8192 of node 2, field by field of `fuse_in_header` and `fuse_read_in`.
        let message = hex("50000000 0f000000 4200000000000000 0200000000000000 00000000 00000000
                           00000000 0000 0000 0000000000000000 0020000000000000 00100000 00000000
                           0000000000000000 02c00000 00000000");
        let h = Header::parse(&message);
        assert_eq!(h, Header { len: 80, opcode: opcode::READ, unique: 66, node: 2 });
        assert_eq!(message.len(), IN_HEADER + args_len(opcode::READ));
        let mut f = Fields(&message[IN_HEADER..]);
        assert_eq!((f.u64(), f.u64(), f.u32()), (0, 8192, 4096));
    }

    #[test]
    fn the_handshake_takes_what_both_sides_have() {
        let mut args = hex("07000000 2d000000 00000200 fbffff73 f7030000");
        args.resize(64, 0);
        let i = Init::parse(&args);
        assert_eq!((i.major, i.minor, i.max_readahead), (7, 45, 0x20000));
        assert_eq!(i.flags & init::OVER_IO_URING, init::OVER_IO_URING);
        let wanted = init::ASYNC_DIO | init::INIT_EXT | init::OVER_IO_URING | init::MAX_PAGES;
        let out = i.answer(wanted, 0x4000, 1 << 20);
        let expected = hex("07000000 2a000000 00000200 00804040 0040 0040 00001000 01000000
                            0001 0000 00020000 00000000000000000000000000000000000000000000000000000000");
        assert_eq!(out.bytes(), expected);
        // An older kernel: the second half of the flags is missing, so the bytes in its place mean nothing.
        args[12..16].copy_from_slice(&0x8000u32.to_ne_bytes());
        assert_eq!(Init::parse(&args).flags, init::ASYNC_DIO);
        assert_eq!(Init::parse(&args).answer(wanted, 1, 4096).bytes()[12..16], hex("00800000"));
    }

    #[test]
    fn answers_have_the_kernels_layout() {
        assert_eq!(out_header(8, 0, 66), hex("18000000 00000000 4200000000000000")[..]);
        assert_eq!(out_header(0, 5, 1), hex("10000000 fbffffff 0100000000000000")[..]);
        assert_eq!(write_out(4096).bytes(), hex("0010000000000000"));
        assert_eq!(open_out(FOPEN_DIRECT_IO).bytes(), hex("0000000000000000 01000000 00000000"));
        let disk = Attributes { node: 2, size: 1 << 30, mode: 0o100_600 };
        let attr = hex("0200000000000000 0000004000000000 0000000000000000 0000000000000000
                        0000000000000000 0000000000000000 00000000 00000000 00000000 80810000
                        01000000 00000000 00000000 00000000 00100000 00000000");
        assert_eq!(attr.len(), 88);
        let head = hex("3c00000000000000 0000000000000000");
        assert_eq!(disk.attr_out(60).bytes(), [&head[..], &attr].concat());
        let head = hex("0200000000000000 0000000000000000 3c00000000000000 3c00000000000000
                        00000000 00000000");
        assert_eq!(disk.entry_out(60).bytes(), [&head[..], &attr].concat());
        assert_eq!(disk.entry_out(60).bytes().len(), LONGEST);
        assert_eq!(statfs_out(7).bytes().len(), 80);
    }
}
