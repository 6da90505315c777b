//! `fsops`: exactly defined file operations, by one process or by several.

use std::sync::Arc;

use iosched_syscalls::{Done, Fd, OpenFlags, Sys, Whence};
use iosched_types::units::SEC;

use super::files::{self, MIB};
use super::{Descriptor, Kind, Param, Params, fits};

const OPS: &[&str] = &[
    "append_fsync",
    "append_fdatasync",
    "append_nosync",
    "over_fsync",
    "over_fdatasync",
    "over_nosync",
    "over_rand_fsync",
    "over_rand_fdatasync",
    "osync_append",
    "osync_over",
    "odsync_append",
    "odsync_over",
    "direct_append",
    "direct_append_fsync",
    "direct_over",
    "direct_over_fsync",
    "create_fsync",
    "create_nosync",
    "rename_fsync",
    "rename_nosync",
    "rename_fsync_dir",
    "mkdir",
    "mkdir_fsync",
    "unlink",
    "sync",
    "syncfs",
    "bgcommit",
    "slowcreate",
];

/// The file operations.
pub(super) static FSOPS: Descriptor = Descriptor {
    name: "fsops",
    quick: &[],
    text: "Does one file operation again and again in each of several processes, and times each.",
    params: &[
        Param {
            name: "op",
            text: "The operation: what is written how, and what makes it durable.",
            default: "append_fsync",
            kind: Kind::Word(OPS),
        },
        Param { name: "dir", text: "Where.", default: ".", kind: Kind::Name },
        Param { name: "nproc", text: "Processes.", default: "1", kind: Kind::Count(1, 4096) },
        Param {
            name: "n",
            text: "Operations of each process.",
            default: "100",
            kind: Kind::Count(1, 1 << 32),
        },
        Param {
            name: "size",
            text: "Bytes that an operation writes.",
            default: "4096",
            kind: Kind::Bytes(0, 1 << 40),
        },
        Param {
            name: "arg",
            text: "Of `over`: length of the file (0: 16 MiB); of `create_*`: 1 gives each process a directory of its own; \
                   of `bgcommit`: seconds of sleep; of `slowcreate`: microseconds between files.",
            default: "0",
            kind: Kind::Bytes(0, 1 << 50),
        },
    ],
    figures: &[],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |_| 0,
    fits: |p| {
        let (op, size) = (p.word("op"), p.bytes("size"));
        let writes = op.contains("over") || op.contains("append");
        fits(!writes || size > 0, || format!("op={op} needs a size above 0"))?;
        let aligned = !op.starts_with("direct") || size.is_multiple_of(512);
        fits(aligned, || format!("op={op} needs a size that is a multiple of 512, not {size}"))
    },
    prepare: Some(|sys, p| Box::pin(prepare(sys, p))),
    run: |sys, p| Box::pin(run(sys, p)),
};

/// What is done to make an operation durable.
#[derive(Clone, Copy, PartialEq)]
enum Durable {
    No,
    Fsync,
    Fdatasync,
}

/// One process's work.
#[derive(Clone)]
struct Worker {
    op: Arc<str>,
    dir: Arc<str>,
    n: u64,
    size: u64,
    arg: u64,
    durable: Durable,
    process: u64,
}

impl Worker {
    fn of(p: &Params, process: u64) -> Worker {
        let op = p.word("op");
        let durable = match &*op {
            o if o.contains("fdatasync") => Durable::Fdatasync,
            o if o.contains("fsync") => Durable::Fsync,
            _ => Durable::No,
        };
        let over = op.contains("over");
        let arg = match p.count("arg") {
            0 if over => 16 * MIB,
            n => n,
        };
        let (n, size) = (p.count("n"), p.bytes("size"));
        Worker { op, dir: p.word("dir"), n, size, arg, durable, process }
    }

    fn appends(&self) -> bool {
        self.op.contains("append")
    }

    fn overwrites(&self) -> bool {
        self.op.contains("over")
    }

    async fn make_durable(&self, sys: &Sys, fd: Fd) -> Done {
        match self.durable {
            Durable::No => Ok(()),
            Durable::Fsync => sys.fsync(fd).await,
            Durable::Fdatasync => sys.fdatasync(fd).await,
        }
    }

    /// What is there before the measured part.
    async fn prepare(&self, sys: &Sys) -> Done {
        let (dir, p) = (&self.dir, self.process);
        if self.overwrites() {
            files::make(sys, &format!("{dir}/f{p}"), self.arg).await?;
        } else if self.appends() {
            files::make(sys, &format!("{dir}/f{p}"), 4096).await?;
        } else if self.op.starts_with("create") && self.arg > 0 {
            sys.mkdir(format_args!("{dir}/d{p}")).await?;
        } else if self.op.starts_with("rename") {
            files::make(sys, &format!("{dir}/target{p}"), self.size).await?;
        } else if &*self.op == "unlink" {
            sys.mkdir(format_args!("{dir}/d{p}")).await?;
            for i in 0..self.n {
                let fd = sys.creat(format_args!("{dir}/d{p}/f{i}")).await?;
                files::write_all(sys, fd, self.size).await?;
                sys.close(fd).await?;
            }
        }
        Ok(())
    }

    async fn run(&self, sys: &Sys) -> Done {
        // The C library tells the kernel of a list of locks that each new process has. It does nothing here.
        sys.getpid().await?;
        // Before all, and before the first operation.
        sys.look(2).await?;
        match &*self.op {
            "sync" | "syncfs" => self.sync_all(sys).await,
            "bgcommit" | "slowcreate" => self.create_slowly(sys).await,
            _ if self.overwrites() || self.appends() => self.write_file(sys).await,
            _ => self.change_names(sys).await,
        }
    }

    async fn write_file(&self, sys: &Sys) -> Done {
        let mut flags = OpenFlags::WRITE;
        for (word, flag) in [
            ("osync", OpenFlags::SYNC),
            ("odsync", OpenFlags::DSYNC),
            ("direct", OpenFlags::DIRECT),
        ] {
            if self.op.starts_with(word) {
                flags = flags | flag;
            }
        }
        let fd = sys.open(format_args!("{}/f{}", self.dir, self.process), flags).await?;
        if self.appends() {
            sys.lseek(fd, 4096, Whence::Set).await?;
        }
        let blocks = (self.arg / self.size.max(1)).max(1);
        let random = self.op.contains("rand");
        // Fixed seeds: each process goes to the same places in every run.
        let mut state = 88_172_645_463_325_252u64.wrapping_add(self.process * 7919);
        for i in 0..self.n {
            let begun = sys.now();
            if self.appends() {
                sys.write(fd, self.size).await?;
            } else {
                let block = if random { xorshift(&mut state) } else { i } % blocks;
                sys.pwrite(fd, block * self.size, self.size).await?;
            }
            self.make_durable(sys, fd).await?;
            sys.note("op", begun, self.size).await?;
        }
        Ok(())
    }

    async fn change_names(&self, sys: &Sys) -> Done {
        for i in 0..self.n {
            let begun = sys.now();
            match &*self.op {
                "unlink" => {
                    sys.unlink(format_args!("{}/d{}/f{i}", self.dir, self.process)).await?;
                }
                op if op.starts_with("mkdir") => self.make_directory(sys, i).await?,
                op if op.starts_with("rename") => self.replace(sys).await?,
                _ => self.create(sys, i).await?,
            }
            sys.note("op", begun, self.size).await?;
        }
        Ok(())
    }

    async fn create(&self, sys: &Sys, i: u64) -> Done {
        let (dir, p) = (&self.dir, self.process);
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let fd = match self.arg {
            0 => sys.open(format_args!("{dir}/f{p}_{i}"), flags).await?,
            _ => sys.open(format_args!("{dir}/d{p}/f{i}"), flags).await?,
        };
        files::write_all(sys, fd, self.size).await?;
        self.make_durable(sys, fd).await?;
        sys.close(fd).await
    }

    async fn make_directory(&self, sys: &Sys, i: u64) -> Done {
        sys.mkdir(format_args!("{}/m{}_{i}", self.dir, self.process)).await?;
        match self.durable {
            Durable::No => Ok(()),
            _ => files::sync_directory(sys, &self.dir).await,
        }
    }

    /// A new version of a file takes the place of the old one.
    async fn replace(&self, sys: &Sys) -> Done {
        let (dir, p) = (&self.dir, self.process);
        let fd = sys.creat(format_args!("{dir}/tmp{p}")).await?;
        files::write_all(sys, fd, self.size).await?;
        self.make_durable(sys, fd).await?;
        sys.close(fd).await?;
        sys.rename(format_args!("{dir}/tmp{p}"), format_args!("{dir}/target{p}")).await?;
        if self.op.ends_with("dir") {
            files::sync_directory(sys, dir).await?;
        }
        Ok(())
    }

    async fn sync_all(&self, sys: &Sys) -> Done {
        let fd = sys.creat(format_args!("{}/w{}", self.dir, self.process)).await?;
        for _ in 0..self.n {
            sys.write(fd, self.size).await?;
        }
        let begun = sys.now();
        match &*self.op {
            "sync" => sys.sync().await?,
            _ => sys.syncfs(fd).await?,
        }
        sys.note("op", begun, self.size.saturating_mul(self.n)).await
    }

    async fn create_slowly(&self, sys: &Sys) -> Done {
        let slow = &*self.op == "slowcreate";
        for i in 0..self.n {
            let begun = sys.now();
            let name = format_args!("{}/b{}_{i}", self.dir, self.process);
            let fd = sys.open(name, OpenFlags::WRITE | OpenFlags::CREATE).await?;
            files::write_all(sys, fd, self.size).await?;
            sys.close(fd).await?;
            if slow {
                sys.note("op", begun, self.size).await?;
                sys.sleep(self.arg.saturating_mul(1000)).await?;
            }
        }
        if !slow {
            let begun = sys.now();
            sys.sleep(self.arg.saturating_mul(SEC)).await?;
            sys.note("op", begun, 0).await?;
        }
        Ok(())
    }
}

fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

async fn prepare(sys: Sys, p: Params) -> Done {
    files::make_directory(&sys, &p.word("dir")).await?;
    for process in 0..p.count("nproc") {
        Worker::of(&p, process).prepare(&sys).await?;
    }
    sys.sync().await
}

async fn run(sys: Sys, p: Params) -> Done {
    for process in 0..p.count("nproc") {
        let worker = Worker::of(&p, process);
        sys.fork_as("process", async move |sys| worker.run(&sys).await).await?;
    }
    files::wait_for(&sys, p.count("nproc")).await
}
