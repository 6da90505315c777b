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
use iosched_backends::backend::{Backend, Emulated, Real};
use iosched_backends::emulate;
use iosched_backends::target::Leave;
use iosched_devices::DeviceSpec;
use iosched_experiment::{Record, Trial};

use crate::backends::{machine, ran, tolerant, trial};

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
