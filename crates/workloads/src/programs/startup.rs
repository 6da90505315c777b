//! `startup`: how long a program takes to start, cold, while others read and write. The S suite's comm_startup_lat.

use iosched_syscalls::{Done, Part, Sys};
use iosched_types::Nanos;
use iosched_types::units::SEC;

use super::background::{self, FILE_SIZE, LOAD, WRITER_RATE};
use super::cold::{self, Start};
use super::{Descriptor, Figure, Kind, Param, Params};

/// Of ten starts the mean is judged; the ends of the range only go with it.
const fn seconds(name: &'static str, higher_is_better: Option<bool>) -> Figure {
    Figure { name, unit: "s", higher_is_better }
}

/// The starts.
pub(super) static STARTUP: Descriptor = Descriptor {
    name: "startup",
    quick: &[("iterations", "2"), ("file_size", "1G")],
    text: "Cold starts of a program, one after the other, while readers and writers load the disk (the S suite's \
           comm_startup_lat, with its replayed start-ups).",
    params: &[
        Param {
            name: "command",
            text: "What is started.",
            default: "bash",
            kind: Kind::Word(cold::NAMES),
        },
        LOAD,
        Param {
            name: "iterations",
            text: "Starts. The first that takes longer than the limit is the last.",
            default: "10",
            kind: Kind::Count(1, 10_000),
        },
        Param {
            name: "limit",
            text: "Seconds after which a start is given up.",
            default: "60",
            kind: Kind::Count(1, 3600),
        },
        Param {
            name: "pause",
            text: "Seconds between two starts.",
            default: "2",
            kind: Kind::Count(0, 3600),
        },
        FILE_SIZE,
        WRITER_RATE,
    ],
    figures: &[
        seconds("startup_time", Some(false)),
        seconds("best start-up", None),
        seconds("worst start-up", None),
        Figure { name: "starts over the limit", unit: "starts", higher_is_better: None },
        background::THROUGHPUT[0],
        background::THROUGHPUT[1],
    ],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: background::room,
    fits: |_| Ok(()),
    prepare: Some(|sys, p| Box::pin(prepare(sys, p))),
    run: |sys, p| Box::pin(run(sys, p)),
};

async fn prepare(sys: Sys, p: Params) -> Done {
    Start::find(&p.word("command")).prepare(&sys).await?;
    background::prepare(&sys, &p).await
}

async fn run(sys: Sys, p: Params) -> Done {
    let start = Start::find(&p.word("command"));
    let limit = p.count("limit") * SEC;
    let background = background::start(&sys, &p).await?;
    let mut times: Vec<Nanos> = Vec::new();
    let mut given_up = false;
    for number in 1..=p.number("iterations") {
        if number > 1 {
            sys.sleep(p.count("pause") * SEC).await?;
        }
        match one(&sys, start, number, limit).await? {
            Some(time) => times.push(time),
            None => {
                given_up = true;
                break;
            }
        }
    }
    background.stop(&sys).await?;
    report(&sys, times, given_up, limit).await
}

/// A start; `None` when it took longer than the limit.
async fn one(
    sys: &Sys,
    start: &'static Start,
    number: i64,
    limit: Nanos,
) -> Result<Option<Nanos>, iosched_syscalls::Errno> {
    let begun = sys.now();
    let command = sys.fork_as("command", async move |sys| start.run(&sys, number).await).await?;
    let watchdog =
        sys.fork_as("watchdog", async move |sys| background::pause(&sys, limit).await).await?;
    if sys.wait().await? == command {
        let time = sys.now() - begun;
        sys.mark(Part::Try, "start", begun).await?;
        // It may have ended in the same moment.
        let _ = sys.signal(watchdog).await;
        sys.join(watchdog).await?;
        return Ok(Some(time));
    }
    sys.mark(Part::GivenUp, "start", begun).await?;
    sys.add(cold::GIVEN_UP, number).await?;
    sys.join(command).await?;
    Ok(None)
}

async fn report(sys: &Sys, mut times: Vec<Nanos>, given_up: bool, limit: Nanos) -> Done {
    times.sort_unstable();
    let seconds = |t: Nanos| t as f64 / SEC as f64;
    if let Some(best) = times.first() {
        sys.figure("best start-up", seconds(*best)).await?;
    }
    sys.figure("starts over the limit", f64::from(u8::from(given_up))).await?;
    if given_up {
        // As the suite: one start over the limit, and there is no figure.
        sys.beyond("startup_time", seconds(limit)).await?;
        return sys.beyond("worst start-up", seconds(limit)).await;
    }
    let (low, high) = (times[(times.len() - 1) / 2], times[times.len() / 2]);
    sys.figure("startup_time", (seconds(low) + seconds(high)) / 2.0).await?;
    sys.figure("worst start-up", seconds(times[times.len() - 1])).await
}
