//! `dbench`: clients of a file server, each with its own files, loop over a load file; most of their time is fsync.
//!
//! The calls of each operation are those of dbench 4.00, seen with strace.

use std::collections::BTreeMap;
use std::sync::Arc;

use iosched_syscalls::{Done, Errno, Fd, Kind as What, OpenFlags, Sys};
use iosched_types::Diagnostic;
use iosched_types::units::SEC;

use super::{Descriptor, Figure, Kind, Param, Params, files};

mod load;
mod made;

use load::{Handle, Load, Op};

/// Barrier of the start; counters of bytes, and of the longest operation of each client.
const START: u32 = 0;
const BYTES: u32 = 1;
const LONGEST: u32 = 2;

/// The clients.
pub(super) static DBENCH: Descriptor = Descriptor {
    name: "dbench",
    quick: &[("time", "10")],
    text: "dbench 4: clients of a file server do the operations of a load file on local files, with a fsync for each \
           flush (Phoronix Test Suite 1.0.0: 6 clients, 600 s).",
    params: &[
        Param { name: "clients", text: "Clients.", default: "6", kind: Kind::Count(1, 4096) },
        Param {
            name: "time",
            text: "Seconds that are measured (-t).",
            default: "600",
            kind: Kind::Count(1, 100_000),
        },
        Param {
            name: "warmup",
            text: "Seconds before; -1: a fifth of the time, as in dbench.",
            default: "-1",
            kind: Kind::Count(-1, 100_000),
        },
        Param {
            name: "loadfile",
            text: "Load file (-c), such as dbench's client.txt; `made`: a load made from the counts of that file.",
            default: "made",
            kind: Kind::File(check),
        },
    ],
    figures: &[
        Figure { name: "throughput", unit: "MB/s", higher_is_better: Some(true) },
        Figure { name: "max latency", unit: "ms", higher_is_better: Some(false) },
    ],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| match p.file("loadfile") {
        Some(_) => 0,
        None => p.count("clients") * made::documents(),
    },
    fits: |_| Ok(()),
    prepare: None,
    run: |sys, p| Box::pin(run(sys, p)),
};

fn check(file: &str, text: &str) -> Result<(), Diagnostic> {
    Load::parse(file, text).map(drop)
}

async fn run(sys: Sys, p: Params) -> Done {
    let load = match p.file("loadfile") {
        Some(text) => Load::parse("", &text).map_err(|_| Errno::EINVAL)?,
        None => made::made(),
    };
    let load = Arc::new(load);
    let (clients, time) = (p.count("clients"), p.count("time") * SEC);
    let warmup = match p.number("warmup") {
        -1 => time / 5,
        n => n.unsigned_abs() * SEC,
    };
    for id in 0..clients {
        let load = load.clone();
        sys.fork_as("client", async move |sys| client(sys, load, id, clients, warmup, time).await)
            .await?;
    }
    files::wait_for(&sys, clients).await?;
    let bytes = sys.add(BYTES, 0).await?;
    let mut longest = 0;
    for id in 0..clients {
        longest = longest.max(sys.add(LONGEST + id as u32, 0).await?);
    }
    sys.figure("throughput", bytes as f64 / 1e6 / p.count("time") as f64).await?;
    sys.figure("max latency", longest as f64 / 1e6).await
}

async fn client(sys: Sys, load: Arc<Load>, id: u64, clients: u64, warmup: u64, time: u64) -> Done {
    let names = load.names_of(id);
    let mut client = Client { sys, names, open: BTreeMap::new(), moved: 0 };
    client.sys.barrier(START, clients as u32).await?;
    let (warm, mut longest) = (client.sys.now() + warmup, 0);
    let end = warm + time;
    let mut before = None;
    'time: loop {
        for op in &load.ops {
            let begun = client.sys.now();
            if begun >= end {
                break 'time;
            }
            if before.is_none() && begun >= warm {
                before = Some(client.moved);
            }
            // The client looks whether its parent is alive.
            client.sys.getpid().await?;
            let what = client.operation(op).await?;
            if before.is_some() {
                longest = longest.max(client.sys.now() - begun);
                client.sys.note(what, begun, 0).await?;
            }
        }
    }
    let moved = client.moved - before.unwrap_or(client.moved);
    client.sys.add(BYTES, moved.cast_signed()).await?;
    client.sys.add(LONGEST + id as u32, longest.cast_signed()).await?;
    client.close_all().await?;
    client.deltree(&format!("clients/client{id}")).await
}

struct Client {
    sys: Sys,
    names: Vec<String>,
    /// Descriptor and name of each open file.
    open: BTreeMap<Handle, (Fd, u32)>,
    /// Bytes read and written by request.
    moved: u64,
}

impl Client {
    /// One line of the load; says which.
    async fn operation(&mut self, op: &Op) -> Result<&'static str, Errno> {
        let sys = self.sys.clone();
        Ok(match *op {
            Op::Deltree(name) => {
                self.deltree(&self.names[name as usize]).await?;
                "Deltree"
            }
            Op::Mkdir(name) => {
                self.look(name).await?;
                there(sys.mkdir(&self.names[name as usize]).await)?;
                "Mkdir"
            }
            Op::Create { name, directory, disposition, handle } => {
                self.create(name, directory, disposition, handle).await?;
                "NTCreateX"
            }
            Op::Close(handle) => {
                if let Some((fd, _)) = self.open.remove(&handle) {
                    sys.close(fd).await?;
                }
                "Close"
            }
            Op::Read { handle, at, len } => {
                self.moved += sys.pread(self.fd(handle)?, at, len.into()).await?;
                "ReadX"
            }
            Op::Write { handle, at, len } => {
                self.moved += sys.pwrite(self.fd(handle)?, at, len.into()).await?;
                "WriteX"
            }
            Op::Flush(handle) => {
                sys.fsync(self.fd(handle)?).await?;
                "Flush"
            }
            Op::Unlink(name) => {
                self.look(name).await?;
                sys.unlink(&self.names[name as usize]).await?;
                "Unlink"
            }
            Op::Rename(from, to) => {
                self.look(from).await?;
                self.look(to).await?;
                sys.rename(&self.names[from as usize], &self.names[to as usize]).await?;
                "Rename"
            }
            Op::Find(name) => {
                self.look(name).await?;
                self.list(name).await?;
                "Find"
            }
            Op::QueryPath(name) => {
                self.look(name).await?;
                "Qpathinfo"
            }
            Op::QueryFile(handle) => {
                sys.fstat(self.fd(handle)?).await?;
                "Qfileinfo"
            }
            Op::SetFile(handle) => {
                sys.fstat(self.fd(handle)?).await?;
                let name = self.open.get(&handle).map_or(0, |(_, name)| *name);
                // The file may have another name by now.
                missing(sys.utimensat(&self.names[name as usize]).await)?;
                "Sfileinfo"
            }
            // statfs and fcntl touch no disk: a call and no more.
            Op::QueryFs => {
                sys.getpid().await?;
                "Qfsinfo"
            }
            Op::Lock | Op::Unlock => {
                sys.getpid().await?;
                "LockX"
            }
        })
    }

    fn fd(&self, handle: Handle) -> Result<Fd, Errno> {
        self.open.get(&handle).map(|(fd, _)| *fd).ok_or(Errno::EBADF)
    }

    /// A name as a server of a file system without case looks for it: when it is not there, among all of its directory.
    async fn look(&self, name: u32) -> Result<bool, Errno> {
        match self.sys.stat(&self.names[name as usize]).await {
            Ok(_) => Ok(true),
            Err(Errno::ENOENT) => self.list(name).await.map(|()| false),
            Err(e) => Err(e),
        }
    }

    /// Reads the directory that a name is in.
    async fn list(&self, name: u32) -> Done {
        let name = &self.names[name as usize];
        let parent = name.rsplit_once('/').map_or(".", |(p, _)| p);
        match self.sys.open(parent, OpenFlags::READ | OpenFlags::DIRECTORY).await {
            Ok(fd) => {
                self.sys.fstat(fd).await?;
                while !self.sys.readdir(fd).await?.is_empty() {}
                self.sys.close(fd).await
            }
            e => missing(e.map(drop)),
        }
    }

    async fn create(&mut self, name: u32, directory: bool, disposition: u8, h: Handle) -> Done {
        self.look(name).await?;
        let path = &self.names[name as usize];
        // SMB: 1 opens what is there, 2 makes it, 3 does either, 4 and 5 also empty it.
        let mut flags = OpenFlags::READ | OpenFlags::WRITE;
        if directory {
            if disposition == 2 {
                there(self.sys.mkdir(path).await)?;
            }
            flags = OpenFlags::READ | OpenFlags::DIRECTORY;
        } else if disposition != 1 {
            flags = flags | OpenFlags::CREATE;
            if disposition >= 4 {
                flags = flags | OpenFlags::TRUNCATE;
            }
        }
        match self.sys.open(path, flags).await {
            Ok(fd) => {
                self.sys.fstat(fd).await?;
                if let Some((old, _)) = self.open.insert(h, (fd, name)) {
                    self.sys.close(old).await?;
                }
                Ok(())
            }
            Err(Errno::EISDIR) => {
                let fd = self.sys.open(path, OpenFlags::READ | OpenFlags::DIRECTORY).await?;
                self.sys.fstat(fd).await?;
                self.open.insert(h, (fd, name));
                Ok(())
            }
            e => missing(e.map(drop)),
        }
    }

    async fn close_all(&mut self) -> Done {
        while let Some((_, (fd, _))) = self.open.pop_first() {
            self.sys.close(fd).await?;
        }
        Ok(())
    }

    /// Deletes the files below a directory. The directories stay, as dbench leaves them.
    async fn deltree(&self, name: &str) -> Done {
        let fd = match self.sys.open(name, OpenFlags::READ | OpenFlags::DIRECTORY).await {
            Ok(fd) => fd,
            e => return missing(e.map(drop)),
        };
        self.sys.fstat(fd).await?;
        loop {
            let entries = self.sys.readdir(fd).await?;
            if entries.is_empty() {
                break;
            }
            for entry in entries {
                let below = format!("{name}/{}", entry.name);
                match self.sys.lstat(&below).await?.kind {
                    What::Directory => Box::pin(self.deltree(&below)).await?,
                    What::File | What::Link => self.sys.unlink(&below).await?,
                }
            }
        }
        self.sys.close(fd).await
    }
}

/// What is there already is well.
fn there(done: Done) -> Done {
    done.or_else(|e| if e == Errno::EEXIST { Ok(()) } else { Err(e) })
}

/// What is not there is well: the load expects it.
fn missing(done: Done) -> Done {
    done.or_else(|e| if e == Errno::ENOENT { Ok(()) } else { Err(e) })
}
