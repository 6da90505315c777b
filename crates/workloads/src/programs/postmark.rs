//! `postmark`: many small files that live for a short time, as on a mail server.
//!
//! The calls are those of PostMark 1.51, seen with strace: its 512-byte transfers are buffered to 4096 bytes.

use iosched_syscalls::{Done, Errno, OpenFlags, Sys, Whence};
use iosched_types::units::SEC;

use super::files::Dice;
use super::{Descriptor, Figure, Kind, Param, Params, fits};

/// Bytes of a buffer.
const BUFFER: u64 = 4096;
/// PostMark's "megabytes".
const MEGABYTE: f64 = (1 << 20) as f64;
/// Nanoseconds of its own that PostMark takes to fill or empty a buffer in eight calls of stdio: 0.63 s of user time for 2.35
/// million buffers, measured.
const STDIO: u64 = 270;

/// The mail server.
pub(super) static POSTMARK: Descriptor = Descriptor {
    name: "postmark",
    quick: &[("transactions", "5000")],
    text: "PostMark: makes small files, then reads, extends, makes and deletes them at random, without any sync \
           (PostMark 1.51, as Phoronix Test Suite 1.1.0 runs it).",
    params: &[
        Param {
            name: "number",
            text: "Files at the beginning (set number).",
            default: "500",
            kind: Kind::Count(1, 10_000_000),
        },
        Param {
            name: "transactions",
            text: "Transactions (set transactions).",
            default: "250000",
            kind: Kind::Count(0, 1 << 40),
        },
        Param {
            name: "smallest",
            text: "Least length of a file (set size).",
            default: "5120",
            kind: Kind::Bytes(1, 1 << 40),
        },
        Param {
            name: "largest",
            text: "Greatest length of a file (set size).",
            default: "524288",
            kind: Kind::Bytes(1, 1 << 40),
        },
        Param {
            name: "seed",
            text: "Seed (set seed).",
            default: "42",
            kind: Kind::Count(0, 1 << 32),
        },
    ],
    figures: &[
        Figure { name: "transactions per second", unit: "1/s", higher_is_better: Some(true) },
        Figure { name: "read", unit: "MB/s", higher_is_better: Some(true) },
        Figure { name: "written", unit: "MB/s", higher_is_better: Some(true) },
    ],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| {
        let mean = p.bytes("smallest") / 2 + p.bytes("largest") / 2;
        p.count("number").saturating_mul(mean)
    },
    fits: |p| {
        let (smallest, largest) = (p.bytes("smallest"), p.bytes("largest"));
        fits(smallest <= largest, || format!("smallest={smallest} is above largest={largest}"))
    },
    prepare: None,
    run: |sys, p| Box::pin(run(sys, p)),
};

struct Post {
    sys: Sys,
    p: Params,
    dice: Dice,
    /// Number and length of each file.
    files: Vec<(u64, u64)>,
    made: u64,
    read: u64,
    written: u64,
}

async fn run(sys: Sys, p: Params) -> Done {
    let dice = Dice::new(p.count("seed"));
    let files = Vec::new();
    let mut post = Post { sys, p, dice, files, made: 0, read: 0, written: 0 };
    let begun = post.sys.now();
    for _ in 0..post.p.count("number") {
        post.create().await?;
    }
    let transactions = post.sys.now();
    for _ in 0..post.p.count("transactions") {
        post.transaction().await?;
    }
    let seconds = |since: u64, until: u64| (until - since).max(1) as f64 / SEC as f64;
    let rate = post.p.count("transactions") as f64 / seconds(transactions, post.sys.now());
    while let Some((file, _)) = post.files.pop() {
        post.sys.unlink(format_args!("{file}")).await?;
    }
    let all = seconds(begun, post.sys.now());
    post.sys.figure("transactions per second", rate).await?;
    post.sys.figure("read", post.read as f64 / MEGABYTE / all).await?;
    post.sys.figure("written", post.written as f64 / MEGABYTE / all).await
}

impl Post {
    fn length(&mut self) -> u64 {
        let (least, most) = (self.p.bytes("smallest"), self.p.bytes("largest"));
        least + self.dice.below(most - least + 1)
    }

    /// Reads or extends a file, and makes or deletes one.
    async fn transaction(&mut self) -> Done {
        let begun = self.sys.now();
        if !self.files.is_empty() {
            let which = self.dice.below(self.files.len() as u64) as usize;
            if self.dice.below(2) == 0 {
                self.read(which).await?
            } else {
                self.append(which).await?
            }
        }
        if self.files.is_empty() || self.dice.below(2) == 0 {
            self.create().await?;
        } else {
            let which = self.dice.below(self.files.len() as u64) as usize;
            let (file, _) = self.files.swap_remove(which);
            self.sys.unlink(format_args!("{file}")).await?;
        }
        self.sys.note("transaction", begun, 0).await
    }

    async fn create(&mut self) -> Done {
        self.made += 1;
        let (file, len) = (self.made, self.length());
        let fd = self.sys.creat(format_args!("{file}")).await?;
        self.sys.fstat(fd).await?;
        self.transfer(len, async |sys, n| sys.write(fd, n).await).await?;
        self.written += len;
        self.files.push((file, len));
        self.sys.close(fd).await
    }

    async fn read(&mut self, which: usize) -> Done {
        let (file, len) = self.files[which];
        let fd = self.sys.open(format_args!("{file}"), OpenFlags::READ).await?;
        self.sys.fstat(fd).await?;
        // stdio asks for a whole buffer, and gets what is left.
        self.transfer(len, async |sys, _| sys.read(fd, BUFFER).await).await?;
        self.read += len;
        self.sys.close(fd).await
    }

    /// Adds up to what makes the file as long as a file may be. One that is as long already is left alone.
    async fn append(&mut self, which: usize) -> Done {
        let (file, len) = self.files[which];
        let room = self.p.bytes("largest").saturating_sub(len);
        if room == 0 {
            return Ok(());
        }
        let more = 1 + self.dice.below(room);
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::APPEND;
        let fd = self.sys.open(format_args!("{file}"), flags).await?;
        self.sys.lseek(fd, 0, Whence::End).await?;
        self.sys.fstat(fd).await?;
        self.transfer(more, async |sys, n| sys.write(fd, n).await).await?;
        self.written += more;
        self.files[which].1 += more;
        self.sys.close(fd).await
    }

    async fn transfer(
        &self,
        len: u64,
        each: impl AsyncFn(&Sys, u64) -> Result<u64, Errno>,
    ) -> Done {
        let mut left = len;
        while left > 0 {
            self.sys.compute(STDIO).await?;
            match each(&self.sys, left.min(BUFFER)).await? {
                0 => return Err(Errno::EIO),
                n => left -= n.min(left),
            }
        }
        Ok(())
    }
}
