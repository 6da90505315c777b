//! `video`: a film is played while others read and write, and programs start. The S suite's video_playing_vs_commands.

use iosched_syscalls::{Advice, Done, Errno, OpenFlags, Part, Sys, Whence};
use iosched_types::units::{MS, SEC};
use iosched_types::{Bytes, Nanos};

use super::background::{self, FILE_SIZE, LOAD, WRITER_RATE};
use super::cold::{self, Start};
use super::{Descriptor, Figure, Kind, Param, Params, files};

/// Frames of a second.
const FRAMES: u64 = 24;
/// From one start of bash to the next.
const EVERY: Nanos = 3 * SEC;
/// Where playing begins; what lies before it is never read.
const BEGIN: u64 = 92;
/// Counters: frames that were shown or dropped, frames dropped; above 0 when playing is over.
const PLAYED: u32 = 120;
const DROPPED: u32 = 121;
const OVER: u32 = 122;
/// Films that began.
const BEGUN: u32 = 123;
/// What plays: a program that starts cold before, as in the suite, or a film that plays itself.
const PLAYERS: &[&str] = &["mplayer", "none"];

/// The film.
pub(super) static VIDEO: Descriptor = Descriptor {
    name: "video",
    quick: &[("seconds", "10"), ("iterations", "1"), ("file_size", "1G")],
    text: "Plays a film of 24 frames a second beside readers and writers and a cold start of bash every 3 s, and counts \
           frames whose data come too late (the S suite's video_playing_vs_commands).",
    params: &[
        LOAD,
        Param {
            name: "seconds",
            text: "Length of what is played.",
            default: "40",
            kind: Kind::Count(1, 86_400),
        },
        Param {
            name: "rate",
            text: "Bytes of a second of film.",
            default: "1M",
            kind: Kind::Bytes(FRAMES as i64, 1 << 30),
        },
        Param {
            name: "decode",
            text: "Microseconds of CPU to decode a frame; a frame may be so late.",
            default: "5000",
            kind: Kind::Count(0, 41_666),
        },
        Param {
            name: "tolerance",
            text: "Playing is given up when it has not ended so many seconds after its length.",
            default: "60",
            kind: Kind::Count(1, 3600),
        },
        Param {
            name: "iterations",
            text: "How often it is played. The first time that it is given up is the last.",
            default: "10",
            kind: Kind::Count(1, 10_000),
        },
        FILE_SIZE,
        WRITER_RATE,
        Param {
            name: "player",
            text: "Program that starts cold before it plays; none: playing begins at once.",
            default: PLAYERS[0],
            kind: Kind::Word(PLAYERS),
        },
    ],
    figures: &[
        Figure { name: "drop rate", unit: "%", higher_is_better: Some(false) },
        Figure { name: "frames dropped", unit: "frames", higher_is_better: None },
        Figure { name: "frames", unit: "frames", higher_is_better: None },
        Figure { name: "films given up", unit: "films", higher_is_better: None },
        Figure { name: "films never begun", unit: "films", higher_is_better: None },
        background::THROUGHPUT[0],
        background::THROUGHPUT[1],
    ],
    absent: &[],
    only_real: &[],
    periodic: &[],
    room: |p| film(p).saturating_add(background::room(p)),
    fits: |_| Ok(()),
    prepare: Some(|sys, p| Box::pin(prepare(sys, p))),
    run: |sys, p| Box::pin(run(sys, p)),
};

async fn prepare(sys: Sys, p: Params) -> Done {
    Start::find("bash").prepare(&sys).await?;
    if let Some(player) = player(&p) {
        player.prepare(&sys).await?;
    }
    files::make(&sys, "film", film(&p)).await?;
    background::prepare(&sys, &p).await
}

/// Bytes of the film.
fn film(p: &Params) -> Bytes {
    (BEGIN + p.count("seconds")).saturating_mul(p.bytes("rate"))
}

fn player(p: &Params) -> Option<&'static Start> {
    let name = p.word("player");
    (&*name != "none").then(|| Start::find(&name))
}

async fn run(sys: Sys, p: Params) -> Done {
    let background = background::start(&sys, &p).await?;
    let (mut given_up, mut tried) = (false, 0);
    for number in 1..=p.number("iterations") {
        given_up = !once(&sys, &p, number).await?;
        tried = number;
        if given_up {
            break;
        }
    }
    background.stop(&sys).await?;
    let (played, dropped) = (sys.add(PLAYED, 0).await?, sys.add(DROPPED, 0).await?);
    sys.figure("frames", played as f64).await?;
    sys.figure("frames dropped", dropped as f64).await?;
    sys.figure("films given up", f64::from(u8::from(given_up))).await?;
    sys.figure("films never begun", (tried - sys.add(BEGUN, 0).await?) as f64).await?;
    if given_up {
        // The suite has no figure then: all that was not played is missing.
        return sys.beyond("drop rate", 100.0).await;
    }
    sys.figure("drop rate", 100.0 * dropped as f64 / played.max(1) as f64).await
}

/// Plays it; `false` when it is given up.
async fn once(sys: &Sys, p: &Params, number: i64) -> Result<bool, Errno> {
    sys.add(OVER, -sys.add(OVER, 0).await?).await?;
    let limit = (p.count("seconds") + p.count("tolerance")) * SEC;
    let own = p.clone();
    let player =
        sys.fork_as("player", async move |sys| play(&sys, &own, limit, number).await).await?;
    let starts = sys.fork_as("starts", async move |sys| starts(&sys, number).await).await?;
    let watchdog =
        sys.fork_as("watchdog", async move |sys| watch(&sys, limit, number).await).await?;
    let begun = sys.now();
    sys.join(player).await?;
    let _ = sys.signal(watchdog).await;
    sys.join(watchdog).await?;
    let ended = sys.add(OVER, 1).await? == 1;
    sys.mark(Part::Phase, "film", begun).await?;
    sys.add(cold::GIVEN_UP, number - sys.add(cold::GIVEN_UP, 0).await?).await?;
    let _ = sys.signal(starts).await;
    sys.join(starts).await?;
    Ok(ended)
}

/// Gives up starts that last beyond the limit, that of the player first of all.
async fn watch(sys: &Sys, limit: Nanos, number: i64) -> Done {
    let begun = sys.now();
    background::pause(sys, limit).await?;
    if sys.now() - begun >= limit {
        sys.add(cold::GIVEN_UP, number - sys.add(cold::GIVEN_UP, 0).await?).await?;
    }
    Ok(())
}

/// A cold start of bash every 3 s. Whatever is in memory of the film goes each time, as the caches are dropped.
async fn starts(sys: &Sys, number: i64) -> Done {
    let bash = Start::find("bash");
    let film = sys.open("film", OpenFlags::READ).await?;
    while sys.add(OVER, 0).await? == 0 {
        background::pause(sys, EVERY).await?;
        if sys.stopped().await? {
            break;
        }
        sys.fadvise(film, 0, 0, Advice::DontNeed).await?;
        bash.run(sys, number).await?;
    }
    sys.close(film).await
}

/// The player: its clock goes on when data are late.
async fn play(sys: &Sys, p: &Params, limit: Nanos, number: i64) -> Done {
    let asked = sys.now();
    if let Some(player) = player(p) {
        player.run(sys, number).await?;
        sys.mark(Part::Beside, "player starts", asked).await?;
    }
    let film = sys.open("film", OpenFlags::READ).await?;
    sys.fadvise(film, 0, 0, Advice::DontNeed).await?;
    // Where it finds the index: at the beginning and at the end.
    sys.pread(film, 0, 4096).await?;
    sys.pread(film, self::film(p).saturating_sub(4096), 4096).await?;
    sys.lseek(film, (BEGIN * p.bytes("rate")).cast_signed(), Whence::Set).await?;
    let decode = p.micros("decode");
    let mut begun = None;
    for frame in 0..p.count("seconds") * FRAMES {
        sys.read(film, p.bytes("rate") / FRAMES).await?;
        if sys.now() - asked > limit {
            sys.add(OVER, 1).await?;
            break;
        }
        // It begins with its first frame.
        if begun.is_none() {
            sys.add(BEGUN, 1).await?;
        }
        let begun = *begun.get_or_insert(sys.now());
        let due = begun + frame * SEC / FRAMES;
        sys.add(PLAYED, 1).await?;
        if sys.now() > due + decode.max(MS) {
            sys.add(DROPPED, 1).await?;
            sys.mark(Part::Event, "frame dropped", due).await?;
            continue;
        }
        sys.compute(decode).await?;
        // The frame is shown, and the next one is fetched.
        background::pause(sys, (due + SEC / FRAMES).saturating_sub(sys.now())).await?;
    }
    sys.close(film).await
}
