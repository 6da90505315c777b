//! `nginx` and `apache`: ab asks for one page again and again; the disk sees the access log only.
//!
//! Requests and answers are bytes in pipes. The CPU times are what the published rates leave for a request.

use std::collections::VecDeque;

use iosched_syscalls::{Done, Fd, OpenFlags, Sys};
use iosched_types::units::SEC;

use super::{Descriptor, Figure, Kind, Param, Params, files};

/// Bytes of a line of the access log.
const LINE: u64 = 88;
const PAGE: &str = "test.html";

const fn requests(default: &'static str) -> Param {
    Param { name: "n", text: "Requests (-n).", default, kind: Kind::Count(1, 1 << 40) }
}

const fn workers(default: &'static str, text: &'static str) -> Param {
    Param { name: "workers", text, default, kind: Kind::Count(1, 4096) }
}

const fn concurrency() -> Param {
    Param {
        name: "c",
        text: "Requests at a time (-c).",
        default: "100",
        kind: Kind::Count(1, 10_000),
    }
}

const fn page() -> Param {
    Param {
        name: "page",
        text: "Bytes of the page.",
        default: "3064",
        kind: Kind::Bytes(1, 1 << 30),
    }
}

const fn cpu(default: &'static str) -> Param {
    Param {
        name: "cpu",
        text: "Microseconds of CPU time of the server for a request.",
        default,
        kind: Kind::Count(0, 1_000_000),
    }
}

const fn client_cpu() -> Param {
    Param {
        name: "client",
        text: "Microseconds of CPU time of ab for a request.",
        default: "25",
        kind: Kind::Count(0, 1_000_000),
    }
}

const RATE: &[Figure] =
    &[Figure { name: "requests per second", unit: "1/s", higher_is_better: Some(true) }];

/// nginx.
pub(super) static NGINX: Descriptor = Descriptor {
    name: "nginx",
    quick: &[("n", "20000")],
    text: "ab against nginx 1.0.11: one page of 3,064 bytes, a line of the access log for each request.",
    params: &[
        requests("500000"),
        concurrency(),
        workers("1", "Processes of the server, each for many connections."),
        page(),
        cpu("30"),
        client_cpu(),
    ],
    figures: RATE,
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| p.count("n").saturating_mul(LINE).saturating_add(p.bytes("page")),
    fits: |_| Ok(()),
    prepare: Some(|sys, p| Box::pin(prepare(sys, p))),
    run: |sys, p| Box::pin(run(sys, p, false)),
};

/// Apache.
pub(super) static APACHE: Descriptor = Descriptor {
    name: "apache",
    quick: &[("n", "20000")],
    text: "ab against Apache 2.4.3: one page of 3,064 bytes, a line of the access log for each request.",
    params: &[
        requests("700000"),
        concurrency(),
        workers("100", "Threads of the server, each for one connection."),
        page(),
        cpu("150"),
        client_cpu(),
    ],
    figures: RATE,
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| p.count("n").saturating_mul(LINE).saturating_add(p.bytes("page")),
    fits: |_| Ok(()),
    prepare: Some(|sys, p| Box::pin(prepare(sys, p))),
    run: |sys, p| Box::pin(run(sys, p, true)),
};

async fn prepare(sys: Sys, p: Params) -> Done {
    files::make(&sys, PAGE, p.bytes("page")).await
}

async fn run(sys: Sys, p: Params, threads: bool) -> Done {
    let (n, at_a_time) = (p.count("n"), p.count("c").min(p.count("n")));
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::APPEND;
    let log = sys.open("access.log", flags).await?;
    let (asked, ask) = sys.pipe().await?;
    let (answered, answer) = sys.pipe().await?;
    let workers = p.count("workers");
    for _ in 0..workers {
        let p = p.clone();
        let worker = async move |sys: Sys| {
            if !threads {
                // Else the server would wait for itself to close the pipe.
                sys.close(ask).await?;
            }
            serve(sys, p, asked, answer, log).await
        };
        if threads {
            sys.spawn_as("worker", worker).await?
        } else {
            sys.fork_as("worker", worker).await?
        };
    }
    let begun = sys.now();
    sys.write(ask, at_a_time).await?;
    let (mut sent, mut done) = (at_a_time, 0);
    // A request is served in its turn: the oldest that is open is answered next.
    let mut open: VecDeque<u64> = (0..at_a_time).map(|_| begun).collect();
    while done < n {
        let got = sys.read(answered, at_a_time).await?;
        sys.compute(got * p.micros("client")).await?;
        done += got;
        for asked in open.drain(..got as usize) {
            sys.note("request", asked, LINE).await?;
        }
        let more = got.min(n - sent);
        if more > 0 {
            open.extend((0..more).map(|_| sys.now()));
            sys.write(ask, more).await?;
            sent += more;
        }
    }
    let time = (sys.now() - begun).max(1);
    // Workers end when there is nobody left to ask.
    sys.close(ask).await?;
    files::wait_for(&sys, workers).await?;
    sys.figure("requests per second", n as f64 * SEC as f64 / time as f64).await
}

/// A worker: the page, the answer, a line of the log.
async fn serve(sys: Sys, p: Params, asked: Fd, answer: Fd, log: Fd) -> Done {
    while sys.read(asked, 1).await? > 0 {
        let fd = sys.open(PAGE, OpenFlags::READ).await?;
        sys.fstat(fd).await?;
        sys.pread(fd, 0, p.bytes("page")).await?;
        sys.compute(p.micros("cpu")).await?;
        sys.write(log, LINE).await?;
        sys.close(fd).await?;
        sys.write(answer, 1).await?;
    }
    Ok(())
}
