//! Commands around the machine: the doctor, putting things back, and what all live runs share.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iosched_backends::guardian::GuardianCommand;
use iosched_backends::restore::{Restored, restore_all};
use iosched_backends::target::{self, Leave};
use iosched_backends::{Error, TREE, doctor as machine, made, own_tree, state};
use iosched_devices::params::FixedParams;
use iosched_devices::{DeviceSpec, Model};
use iosched_lab::machine::Interrupt;
use iosched_types::units::parse_bytes;

use crate::args::{DoctorArgs, Format, RunArgs, StateArgs};
use crate::fail::{Failure, Outcome, code};
use crate::files::{note, print, print_json};
use crate::tables::{columns, print_fitted, prose};

/// Where state files are.
pub(crate) fn state_dir(args: &StateArgs) -> PathBuf {
    let dir = args.state_dir.clone().unwrap_or_else(|| state::STATE_DIR.into());
    // fio runs in a folder of its own, and a guardian may outlive this one.
    std::path::absolute(&dir).unwrap_or(dir)
}

/// How the guardian is started.
pub(crate) fn guardian() -> Outcome<GuardianCommand> {
    Ok(GuardianCommand::this_program("guardian")?)
}

/// Catches the signals that end a simulation in good order; Ctrl-Z stops it as it stops any program.
pub(crate) fn ending() -> Outcome<Interrupt> {
    Ok(Interrupt::ending().map_err(|e| Error::io("catching signals for", "iosched", e))?)
}

/// Catches the signals that end a run in good order, and lets nobody else write to what the run makes.
pub(crate) fn interrupt() -> Outcome<Interrupt> {
    made::keep_others_out();
    let interrupt =
        Interrupt::install().map_err(|e| Error::io("catching signals for", "iosched", e))?;
    let asked = interrupt.clone();
    // It ends with the program.
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(200));
            if asked.stop_asked() {
                note(
                    "Ctrl-Z is not followed: whoever uses the disk would hang; Ctrl-C ends it in good order",
                );
            }
        }
    });
    Ok(interrupt)
}

/// What may go, by the user's word.
pub(crate) fn leave(args: &RunArgs) -> Outcome<Leave> {
    Ok(Leave {
        destroy_data: args.destroy_data.clone(),
        overwrite_file: args.overwrite_file.clone(),
        size: args.size.as_deref().map(size_of).transpose()?,
    })
}

/// The user's own copies of programs. They are looked at before anything starts.
pub(crate) fn tools(args: &RunArgs) -> Outcome<Vec<(&'static str, PathBuf)>> {
    let tree = args.tree.as_deref().map(own_tree).transpose()?.map(|tree| (TREE, tree));
    let own = args.iozone.as_deref().map(iozone).transpose()?.map(|path| ("iozone", path));
    Ok(own.into_iter().chain(tree).collect())
}

/// The real path of a program that the user names.
fn iozone(path: &Path) -> Outcome<PathBuf> {
    let runs = path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    match path.canonicalize() {
        // Programs start in a directory of their own.
        Ok(absolute) if runs => Ok(absolute),
        _ => Err(Failure::with_help(
            format!("--iozone: {} is no program that can be run", path.display()),
            "it takes the path of the program's file; --program text runs iosched's own text",
        )),
    }
}

/// A size as people write it.
pub(crate) fn size_of(text: &str) -> Outcome<u64> {
    let bytes = parse_bytes(text).filter(|b| *b > 0);
    bytes.ok_or_else(|| Failure::with_help(format!("\"{text}\" is no size"), "such as 8G or 512M"))
}

/// A real disk or file as a trial names it. Jobs are checked against its size. Nothing is assumed about its behaviour.
pub(crate) fn disk(name: &str, size: Option<u64>) -> Result<DeviceSpec, String> {
    let cap = target::planned_size(name, size).map_err(|e| match e.help() {
        help if help.is_empty() => e.to_string(),
        help => format!("{e}\n  = help: {help}"),
    })?;
    let mut spec = DeviceSpec::new(
        name,
        Model::Fixed(FixedParams { cap, lat_ns: 1, par: 1, depth: 0, flush_ns: 0 }),
    );
    spec.title = "a real device".into();
    Ok(spec)
}

/// `iosched doctor`.
pub(crate) fn doctor(args: &DoctorArgs) -> Outcome {
    let report = machine::examine(args.target.as_deref(), &ending()?)?;
    match args.format {
        Format::Table => print_fitted(&report.render(prose(columns()))),
        Format::Json => print_json(&report.to_json()),
    }
}

/// What was done to put something back.
fn done(what: &[String]) -> String {
    if what.is_empty() { "is as it was already".into() } else { what.join(", ") }
}

/// `iosched restore`.
pub(crate) fn restore(args: &StateArgs) -> Outcome {
    let mut failure = Failure::silent(code::FAILED);
    let mut text = String::new();
    for (name, result) in restore_all(&state_dir(args)) {
        match result {
            Ok(Restored::Done(what)) => text.push_str(&format!("{name}: {}\n", done(&what))),
            Ok(Restored::InUse) => text.push_str(&format!("{name}: in use by a running iosched\n")),
            Ok(Restored::Stale(why)) => text.push_str(&format!("{name}: forgotten, {why}\n")),
            Err(e) => failure.messages.push(format!("{name}: {e}")),
        }
    }
    if text.is_empty() && failure.messages.is_empty() {
        text = "nothing to put back\n".into();
    }
    print(&text)?;
    if failure.messages.is_empty() { Ok(()) } else { Err(failure) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_to_do_is_said_too() {
        assert_eq!(done(&[]), "is as it was already");
        assert_eq!(done(&["a".into(), "b".into()]), "a, b");
    }
}
