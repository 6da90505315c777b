//! Cold starts of programs: the reads that a start makes when nothing is in memory.
//!
//! As the replayed start-up of the S suite: each process of the start is a task on a file of 20 MiB, past the page cache
//! and without thinking. Read-ahead is queued; a read or a read of metadata waits for all that is queued and is then read
//! alone. Requests have 4 KiB, except for as many of 128 KiB, the kernel's read-ahead, as the bytes need. How kinds and
//! sizes follow each other was not published: here they are spread evenly. Read-ahead goes on where the last request
//! ended, the other kinds begin at a random place.

use iosched_syscalls::{Done, Errno, Fd, Io, OpenFlags, Sys};
use iosched_types::Bytes;

use super::files::{self, Dice};

/// Bytes of the file of a process.
const FILE: Bytes = 20 << 20;
const SMALL: Bytes = 4 << 10;
const LARGE: Bytes = 128 << 10;
/// Counter: above 0 the start is given up. It is the number of such a start, so that later ones go on.
pub(super) const GIVEN_UP: u32 = 110;

/// A start.
#[derive(Debug)]
pub(super) struct Start {
    /// The program.
    pub(super) name: &'static str,
    /// Requests by kind: read-ahead, reads, reads of metadata.
    ahead: u64,
    reads: u64,
    metadata: u64,
    /// What they read.
    bytes: Bytes,
    processes: u64,
}

const KIB: Bytes = 1 << 10;

/// The starts. xterm, gnome-terminal and LibreOffice Writer are the suite's own traces. bash is what its files and
/// libraries need in Debian 12 in windows of 128 KiB. There is no trace of konsole: it lies between gnome-terminal and
/// the Writer. mplayer's commands and bytes are those that MPlayer 1.5 makes in Debian 12 (288 files, `read_ahead_kb` 128); its kinds
/// are in the Writer's proportion.
pub(super) static STARTS: [Start; 6] = [
    Start { name: "bash", ahead: 22, reads: 10, metadata: 8, bytes: 2888 * KIB, processes: 1 },
    Start { name: "xterm", ahead: 554, reads: 97, metadata: 67, bytes: 6042 * KIB, processes: 2 },
    Start {
        name: "gnome-terminal",
        ahead: 1992,
        reads: 433,
        metadata: 355,
        bytes: 20582 * KIB,
        processes: 7,
    },
    Start {
        name: "konsole",
        ahead: 1327,
        reads: 480,
        metadata: 217,
        bytes: 34048 * KIB,
        processes: 5,
    },
    Start {
        name: "lowriter",
        ahead: 662,
        reads: 528,
        metadata: 78,
        bytes: 47514 * KIB,
        processes: 4,
    },
    Start {
        name: "mplayer",
        ahead: 655,
        reads: 523,
        metadata: 77,
        bytes: 76083 * KIB,
        processes: 1,
    },
];

/// Their names, for tables of parameters.
pub(super) const NAMES: &[&str] =
    &["bash", "xterm", "gnome-terminal", "konsole", "lowriter", "mplayer"];

/// A request of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    ahead: bool,
    at: Bytes,
    len: Bytes,
}

impl Start {
    /// The start of that name.
    pub(super) fn find(name: &str) -> &'static Start {
        STARTS.iter().find(|s| s.name == name).unwrap_or(&STARTS[0])
    }

    /// Makes its files.
    pub(super) async fn prepare(&self, sys: &Sys) -> Done {
        for process in 0..self.processes {
            files::make(sys, &format!("{}{process}", self.name), FILE).await?;
        }
        Ok(())
    }

    /// Starts it, and ends when it has started. `number` tells starts apart.
    pub(super) async fn run(&'static self, sys: &Sys, number: i64) -> Done {
        for process in 0..self.processes {
            sys.fork_as("start", async move |sys| self.process(&sys, process, number).await)
                .await?;
        }
        files::wait_for(sys, self.processes).await
    }

    async fn process(&self, sys: &Sys, process: u64, number: i64) -> Done {
        let name = format!("{}{process}", self.name);
        let fd = sys.open(name, OpenFlags::READ | OpenFlags::DIRECT).await?;
        for request in self.requests(process) {
            if sys.add(GIVEN_UP, 0).await? >= number {
                break;
            }
            if request.ahead {
                let len = request.len as u32;
                sys.submit(Io { fd, write: false, at: request.at, len, tag: 0 }).await?;
                continue;
            }
            self.pending(sys).await?;
            self.read(sys, fd, request).await?;
        }
        self.pending(sys).await?;
        sys.close(fd).await
    }

    /// Waits for what is queued.
    async fn pending(&self, sys: &Sys) -> Done {
        let mut bad = None;
        sys.reap(u32::MAX, |c| bad = bad.or(c.answer.err())).await?;
        bad.map_or(Ok(()), Err)
    }

    async fn read(&self, sys: &Sys, fd: Fd, request: Request) -> Done {
        match sys.pread(fd, request.at, request.len).await? {
            n if n == request.len => Ok(()),
            _ => Err(Errno::EIO),
        }
    }

    /// The requests of a process, always the same ones.
    fn requests(&self, process: u64) -> Vec<Request> {
        let all = self.ahead + self.reads + self.metadata;
        let large = (self.bytes.saturating_sub(all * SMALL)) / (LARGE - SMALL);
        let mut dice = Dice::new(process + 1);
        let (mut end, mut aheads) = (0, 0);
        let mut out = Vec::new();
        for i in 0..all {
            let ahead = step(i, self.ahead, all);
            let big = ahead && step(aheads, large, self.ahead);
            aheads += u64::from(ahead);
            if i % self.processes != process {
                continue;
            }
            let len = if big { LARGE } else { SMALL };
            let at = if ahead && end + len <= FILE {
                end
            } else {
                dice.below((FILE - len) / SMALL + 1) * SMALL
            };
            end = at + len;
            out.push(Request { ahead, at, len });
        }
        out
    }
}

/// Whether the `i`th of `all` is one of `some`, spread evenly.
fn step(i: u64, some: u64, all: u64) -> bool {
    (i + 1) * some / all > i * some / all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_the_traces() {
        for (name, requests, ahead, mib) in [
            ("xterm", 718, 554, 5.9),
            ("gnome-terminal", 2780, 1992, 20.1),
            ("lowriter", 1268, 662, 46.4),
            ("bash", 40, 22, 2.8),
            ("mplayer", 1255, 655, 74.3),
        ] {
            let start = Start::find(name);
            let all: Vec<Request> = (0..start.processes).flat_map(|p| start.requests(p)).collect();
            assert_eq!(all.len(), requests, "{name}");
            assert_eq!(all.iter().filter(|r| r.ahead).count(), ahead, "{name}");
            let read = all.iter().map(|r| r.len).sum::<u64>() as f64 / f64::from(1 << 20);
            assert!((read - mib).abs() < 0.15, "{name}: {read} MiB");
            assert!(all.iter().all(|r| r.at + r.len <= FILE && r.at % SMALL == 0));
        }
        let names: Vec<&str> = STARTS.iter().map(|s| s.name).collect();
        assert_eq!(names, NAMES);
    }
}
