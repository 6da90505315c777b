//! `iosched emulate`: a process in the foreground, and the server of the disk in a session of its own.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use iosched_backends::apart::{self, Orders, Parting};
use iosched_backends::emulate::{DataMode, EmulatedDisk, Options, Transport};
use iosched_backends::{Error, made};
use iosched_lab::machine::Interrupt;

use crate::args::{EmulateArgs, Format};
use crate::choose;
use crate::fail::{Failure, Outcome, code};
use crate::files::{note, print, print_json};
use crate::live::{guardian, size_of, state_dir};

/// The hidden option that makes a process the server.
const SERVED: &str = "--served";

/// Both processes begin here.
pub(crate) fn emulate(args: &EmulateArgs) -> Outcome {
    if args.served {
        return serve(args);
    }
    // Mistakes are told before anything is started.
    let _ = asked_for(args)?;
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let place = words.iter().position(|w| w == "emulate").map_or(0, |i| i + 1);
    words.insert(place, SERVED.into());
    let program = guardian()?.program;
    match apart::wait_for(Command::new(program).args(words))? {
        Parting::Ended(status) => match status.code() {
            Some(0) => Ok(()),
            // It said why.
            Some(other) => Err(Failure::silent(u8::try_from(other).unwrap_or(code::FAILED))),
            None => Err(Failure::new(
                code::FAILED,
                format!("the disk's server ended ({status}); its guardian removes the disk"),
            )),
        },
        Parting::Left => Err(Failure::silent(code::MISSING)),
    }
}

/// What the command line asks for.
fn asked_for(args: &EmulateArgs) -> Outcome<(iosched_devices::DeviceSpec, Options)> {
    let spec = choose::device(&args.device)?;
    let data = DataMode::parse(&args.data).ok_or_else(|| {
        Failure::with_help(
            format!("\"{}\" is no place for data", args.data),
            "memory, file, file:DIR or discard",
        )
    })?;
    let options = Options {
        depth: args.depth,
        data,
        transport: args.transport.as_deref().map(transport).transpose()?,
        bytes: args.size.as_deref().map(size_of).transpose()?,
        state_dir: state_dir(&args.state),
        guardian: Some(guardian()?),
        // A machine too slow for the model is measured all the same.
        unchecked: args.measure,
        measure: args.measure,
        ..Options::default()
    };
    Ok((spec, options))
}

fn transport(word: &str) -> Outcome<Transport> {
    Transport::parse(word).ok_or_else(|| {
        let all: Vec<String> = Transport::ALL.iter().map(ToString::to_string).collect();
        Failure::with_help(
            format!("there is no way \"{word}\" to an emulated disk"),
            format!("the ways are {}", all.join(", ")),
        )
    })
}

/// The server.
fn serve(args: &EmulateArgs) -> Outcome {
    let (spec, options) = asked_for(args)?;
    made::keep_others_out();
    let interrupt =
        Interrupt::install().map_err(|e| Error::io("catching signals for", "iosched", e))?;
    let mut orders = Orders::at_stdin(&interrupt)?;
    let options = Options { interrupt: interrupt.clone(), ..options };
    let disk = EmulatedDisk::start(&spec, &options)?;
    if args.measure {
        let measured = disk.measure(&interrupt);
        disk.stop()?;
        let measured = measured?;
        return match args.format {
            Format::Table => print(&measured.render()),
            Format::Json => print_json(&measured),
        };
    }
    let mut text = format!("{}\n{}\n", disk.node().display(), disk.self_check_result().render());
    for note in disk.notes() {
        text.push_str(&format!("note: {note}\n"));
    }
    text.push_str("Ctrl-C ends it.\n");
    print(&text)?;
    watch(&disk, &interrupt, &orders);
    outlast(&disk, &mut orders)?;
    Ok(disk.stop()?)
}

/// Waits for a signal; on a terminal a line says every second what the disk does.
fn watch(disk: &EmulatedDisk, interrupt: &Interrupt, orders: &Orders) {
    let terminal = std::io::stderr().is_terminal();
    let mut shown = false;
    let (mut before, mut since) = (disk.served(), Instant::now());
    while interrupt.check().is_ok() {
        std::thread::sleep(Duration::from_millis(50));
        if terminal && since.elapsed() >= Duration::from_secs(1) {
            let now = disk.served();
            if orders.is_watched() {
                let line = now.live_line(&before, since.elapsed().as_secs_f64());
                // A terminal that went away is no reason to stop.
                let _ = write!(std::io::stderr(), "\r{line:<79}");
                shown = true;
            }
            (before, since) = (now, Instant::now());
        }
    }
    if shown {
        let _ = writeln!(std::io::stderr());
    }
}

/// How long to wait, without a message, for a program that only looks at the disk, as udev does.
const PATIENCE: Duration = Duration::from_millis(500);

/// Releases the disk, and serves it as before until its last user has gone.
fn outlast(disk: &EmulatedDisk, orders: &mut Orders) -> Outcome {
    disk.release()?;
    let (since, mut told) = (Instant::now(), 0);
    while disk.is_held() {
        // A signal to the server itself counts as one.
        let asked = orders.asked().max(1);
        if told < asked && since.elapsed() > PATIENCE {
            told = asked;
            say(disk, told, orders.alone());
            if told >= 3 || orders.alone() {
                orders.leave();
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn say(disk: &EmulatedDisk, asked: usize, alone: bool) {
    let node = disk.node();
    let users = disk.users();
    let again = if asked > 1 { "still " } else { "" };
    match users.is_empty() {
        true => note(&format!("{} is {again}held by somebody who is not seen", node.display())),
        false => note(&format!("{again}in use: {}", users.join("; "))),
    }
    let server = std::process::id();
    note(&match asked {
        _ if alone => format!("process {server} serves it until nobody holds it"),
        1 => {
            "It is detached, and served at the model's speed until nobody holds it; then it goes. \
              Ctrl-C again says who is left."
                .into()
        }
        2 => "Waiting for them. One more Ctrl-C leaves the server to itself.".into(),
        _ => format!(
            "Process {server} serves it by itself until nobody holds it: unmount it, or end who has it \
             open. To cut it off: kill -9 {server}; its users get I/O errors."
        ),
    });
}
