//! fio's jobs on files of a file system, with real system calls.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests of what touches the machine"
)]

use std::path::Path;
use std::process::Command;

use iosched_backends::Error;
use iosched_backends::backend::{Emulated, Real};
use iosched_backends::emulate;
use iosched_backends::target::Leave;
use iosched_devices::DeviceSpec;
use iosched_experiment::{Record, Trial};
use iosched_lab::machine::Backend;

use crate::backends::{machine, program, ran, tolerant, trial};

const BIG: &str = "title=\"t\"\n[model]\nkind=\"fixed\"\ncap=\"512MiB\"\nlat_ns=2000000\npar=2\n\
                   [queue]\nmax_hw_sectors_kb=128\nqueue_depth=4\nrotational=true\n";
const JOB: &str = "[global]\ndirect=0\nsize=4m\n[r]\nrw=read\nbs=4k\ndirectory=/a/b\n\
                   [w]\nstonewall\nrw=write\nbs=64k\nfsync=16\nunlink=1\n";

fn on(filesystem: &str, job: &str) -> Trial {
    let device = DeviceSpec::from_toml("big", BIG).unwrap();
    let mut trial = Trial { device, ..trial("none", job) };
    trial.id.device = "big".into();
    trial.host.set_filesystem(filesystem).unwrap();
    trial
}

/// Each job did what it says, through the page cache: 4 KiB reads became larger commands of the disk.
fn did_it(record: &Record) {
    ran(record);
    let [r, w] = &record.jobs[..] else { panic!("{:?}", record.jobs.len()) };
    assert_eq!((r.read.ios, r.read.bytes), (1024, 4 << 20));
    // fio does not sync after its last write.
    assert_eq!((w.write.ios, w.sync.ios), (64, 3));
}

#[test]
fn jobs_on_files_run_on_each_file_system_of_the_emulated_disk() {
    let Some(_turn) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut backend = Emulated::new(tolerant(dir.path()), emulate::Options::default());
    for filesystem in ["ext4", "ext4:nobarrier,commit=30", "xfs"] {
        let cell = on(filesystem, JOB);
        match backend.prepare(&cell) {
            Err(e @ Error::TooFast { .. }) => return println!("SKIPPED: {e}"),
            other => other.unwrap(),
        }
        let record = match backend.run(&cell) {
            Err(Error::NoTool { tool, .. }) => {
                println!("SKIPPED: no {tool}");
                continue;
            }
            other => other.unwrap(),
        };
        did_it(&record);
        let reads = record.device.commands[0];
        assert!((32..200).contains(&reads), "{filesystem}: {reads} reads of 4 MiB, read ahead");
    }
    // An option that this kernel's file system does not have is an answer, not a mount without it.
    let mut cell = on("ext4", JOB);
    cell.host.given = vec!["nosuchoption".into()];
    let e = backend.run(&cell).unwrap_err();
    assert!(e.to_string().contains("nosuchoption"), "{e}");
    backend.cleanup().unwrap();
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "no state file stays");
}

/// A directory in a file system of somebody else, on a loop device of its own.
#[test]
fn jobs_on_files_leave_a_directory_as_it_was() {
    let Some(_turn) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let sh = |script: &str| Command::new("sh").args(["-ec", script]).status().unwrap().success();
    let (image, mount, state) = (at("img"), at("m"), at("state"));
    assert!(sh(&format!(
        "truncate -s 256M {image}; mkfs.ext4 -q -F {image}; mkdir {mount} {state}; \
         mount -o loop {image} {mount}; echo mine >{mount}/w.0.0"
    )));
    let mut backend = Real::new(mount.as_str(), Leave::default(), tolerant(Path::new(&state)));
    let result = backend.run(&trial("none", JOB));
    let beyond = backend.run(&trial("none", &JOB.replace("/a/b", "../../b")));
    let bare = backend.run(&trial("none", "[r]\nrw=read\nsize=1m\ndirect=1\n"));
    let cleaned = backend.cleanup();
    let left = std::fs::read_dir(&mount).unwrap().flatten();
    let mut left: Vec<_> = left.map(|e| e.file_name().into_string().unwrap()).collect();
    left.sort();
    let mine = std::fs::read_to_string(format!("{mount}/w.0.0")).unwrap();
    assert!(sh(&format!("umount {mount}")));
    did_it(&result.unwrap());
    assert!(beyond.unwrap_err().to_string().contains("leads out"), "of the directory");
    assert!(bare.unwrap_err().to_string().contains("is a directory"));
    cleaned.unwrap();
    assert_eq!(left, ["lost+found", "w.0.0"]);
    assert_eq!(mine, "mine\n", "a file of the same name beside ours");
    assert!(std::fs::read_dir(&state).unwrap().next().is_none(), "no state file stays");
}

fn has(tool: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
    found.is_ok_and(|o| o.status.success())
}

/// sqlite3 needs a path without links, fs_mark a short one.
#[test]
fn real_programs_run_on_the_emulated_disk_and_in_a_directory() {
    let Some(_turn) = machine() else { return };
    let (state, mine) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wanted = [
        ("sqlite3", "sqlite 3 2 delete full 1024 46", "seconds"),
        ("fs_mark", "fs-mark 5 16k", "files per second"),
        ("postmark", "postmark 20 50", "transactions per second"),
    ];
    let mut emulated = Emulated::new(tolerant(state.path()), emulate::Options::default());
    let name = mine.path().to_str().unwrap();
    let mut real = Real::new(name, Leave::default(), tolerant(state.path()));
    for (tool, line, figure) in wanted {
        if !has(tool) {
            println!("SKIPPED: no {tool}");
            continue;
        }
        let cell = Trial { device: on("ext4", JOB).device, ..program("none", line) };
        match emulated.prepare(&cell) {
            Err(e @ Error::TooFast { .. }) => return println!("SKIPPED: {e}"),
            other => other.unwrap(),
        }
        if let Err(e) = real.prepare(&cell) {
            return println!("SKIPPED: {e}");
        }
        let records = [emulated.run(&cell).unwrap(), real.run(&cell).unwrap()];
        for record in &records {
            let found = record.metrics.iter().find(|m| m.name == figure);
            assert!(found.is_some_and(|m| m.value > 0.0), "{line}: {:?}", record.metrics);
            assert!(record.provenance["program.file"].ends_with(tool), "{line}");
        }
        if tool == "sqlite3" {
            // Each of six INSERTs and the table syncs four times on a disk of 2 ms, and there are journal commits.
            let seconds = records[0].metrics.iter().find(|m| m.name == figure).unwrap().value;
            assert!(seconds > 7.0 * 4.0 * 0.002, "{seconds} s");
        }
    }
    emulated.cleanup().unwrap();
    real.cleanup().unwrap();
    assert_eq!(std::fs::read_dir(mine.path()).unwrap().count(), 0, "the directory is as it was");
    assert!(std::fs::read_dir(state.path()).unwrap().next().is_none(), "no state file stays");
}
