//! What others do to a run's directory, and what programs leave behind: nothing of another's is touched, nothing stays.

use super::programs::{ENDED, MOUNTED, RUN, lacks};
use super::*;

/// Waits until the run has its directory, whose name is then in `$d`.
const BEGUN: &str = "i=0; until d=$(ls -d m/iosched-program-*/run 2>/dev/null) || [ $i = 600 ]; \
                     do sleep 0.05; i=$((i + 1)); done; d=${d%/run}; ";
/// Makes the name lead to a directory of somebody else's.
const COVERED: &str = "mkdir -p m/precious/run/sub; echo kept >m/precious/run/data; \
                       echo kept >m/precious/run/sub/x; chmod 700 m/precious; mv $d m/moved; ln -s precious $d; ";
/// What is there afterwards, and the directory in its place again.
const LOOKED_AT: &str = "; cat m/precious/run/data m/precious/run/sub/x >kept || true; \
                         ls m/precious/run m/precious/run/sub >>kept; stat -c %a m/precious >>kept; \
                         \"$1\" restore >restored 2>&1 || true; \
                         rm -r m/precious; rm $d; mv m/moved $d; \"$1\" restore >>restored";

#[test]
fn a_directory_whose_name_leads_elsewhere_fails_the_run_and_nothing_else_is_touched() {
    if skip() {
        return;
    }
    for program in ["fs-mark --param n=20 --program text", "fs-mark --param n=20", "files.fio"] {
        if !program.contains("text") && program.starts_with("fs-mark") && lacks("fs_mark") {
            continue;
        }
        let place = Place::new();
        let job = "[r]\ndirectory=/data\nrw=randread\nsize=4m\nruntime=1\ntime_based\n";
        std::fs::write(place.path("files.fio"), job).unwrap();
        let run = RUN.replace("--runs 1", "--runs 2").replace("--no-store", "");
        let output = place.in_own_mounts(&format!(
            "{MOUNTED} code=0; {run} {program} & run=$!; {BEGUN} {COVERED} \
             wait $run || code=$?; \"$1\" results export 1 --format json >stored {LOOKED_AT} {ENDED}"
        ));
        says(&output, 4, &["was moved or removed", "iosched restore --state-dir"]);
        let stored = place.text("stored");
        assert!(stored.contains("does not lead to the run's directory"), "{program}: {stored}");
        assert!(!stored.contains("\"complete\""), "{program}: {stored}");
        assert_eq!(
            place.text("kept"),
            "kept\nkept\nm/precious/run:\ndata\nsub\n\nm/precious/run/sub:\nx\n700\n"
        );
        assert!(place.text("restored").contains("stays as it is"), "{}", place.text("restored"));
        place.is_as_before();
    }
}

/// ext4 with inodes of 128 bytes keeps no time of birth, and gives the number of a removed directory to the next.
#[test]
fn a_later_directory_of_the_same_name_and_number_is_no_directory_of_the_run() {
    if skip() {
        return;
    }
    let place = Place::new();
    let mounted = MOUNTED.replace("-q -F", "-q -F -I 128");
    let output = place.in_own_mounts(&format!(
        "{mounted} code=0; {RUN} fs-mark --param n=20 --program text & run=$!; {BEGUN} \
         stat -c %i $d >before; kill -STOP $run; kill -KILL $(pgrep -P $run) $run; wait $run || code=$?; \
         rm -rf $d; mkdir $d; stat -c %i $d >after; echo kept >$d/mine; \
         \"$1\" restore >restored 2>&1 || true; cat $d/mine >kept; rm -r $d; \"$1\" restore {ENDED}"
    ));
    says(&output, 137, &[]);
    assert_eq!(place.text("before"), place.text("after"), "the number is not used again here");
    assert_eq!(place.text("kept"), "kept\n");
    assert!(place.text("restored").contains("stays as it is"), "{}", place.text("restored"));
    place.is_as_before();
}

#[test]
fn what_a_program_leaves_running_is_ended_and_told() {
    if skip() || lacks("sqlite3") {
        return;
    }
    let place = Place::new();
    let mark = mark("70135");
    let wrapper = format!(
        "mkdir bin; printf '#!/bin/sh\\nsetsid sleep {mark} >/dev/null 2>&1 &\\nexec %s \"$@\"\\n' \
         $(command -v sqlite3) >bin/sqlite3; chmod +x bin/sqlite3; "
    );
    let run = RUN.replace("\"$1\"", "env PATH=$PWD/bin:$PATH \"$1\"");
    let output = place.in_own_mounts(&format!(
        "{MOUNTED} {wrapper} code=0; {run} --format json sqlite --param inserts=20 >out.json || code=$? {ENDED}"
    ));
    says(&output, 0, &[]);
    assert!(place.text("out.json").contains("\"left-running\""), "{}", place.text("out.json"));
    assert!(!sleeps(&mark), "it is left");
    place.is_as_before();
}

#[test]
fn a_tool_that_does_nothing_has_no_figures() {
    if skip() {
        return;
    }
    let place = Place::new();
    // A file that cannot be run hides none.
    let empty = "mkdir bin before; printf '#!/bin/sh\\n' >bin/sqlite3; chmod +x bin/sqlite3; touch before/sqlite3; ";
    let run = RUN.replace("\"$1\"", "env PATH=$PWD/before:$PWD/bin:$PATH \"$1\"");
    let output = place.in_own_mounts(&format!(
        "{MOUNTED} {empty} code=0; {run} sqlite --param inserts=20 || code=$? {ENDED}"
    ));
    says(&output, 4, &["sqlite3 failed with an end without its figures"]);
    place.is_as_before();
}

#[test]
fn the_doctor_asks_side_by_side_and_leaves_nothing_after_a_signal() {
    let place = Place::new();
    let mark = mark("70136");
    let silent = format!(
        "mkdir silent; for t in fio dbench blktrace nvme; do \
         printf '#!/bin/sh\\nsleep {mark}; :\\n' >silent/$t; chmod +x silent/$t; done; "
    );
    let doctor = "env PATH=$PWD/silent:$PATH \"$1\" doctor >out";
    let script = format!(
        "set -e; {silent} code=0; {doctor} & doctor=$!; i=0; \
         until [ $(pgrep -fc '^sleep {mark}$') -ge 3 ]; do sleep 0.1; i=$((i + 1)); [ $i -lt 600 ] || exit 8; done; \
         kill -TERM $doctor; wait $doctor || code=$?; \
         if pgrep -f '^sleep {mark}$' >left; then exit 9; fi; exit $code"
    );
    let output = place.command("sh").args(["-c", &script, "sh", program()]).output().unwrap();
    says(&output, 4, &["interrupted by SIGTERM"]);
    let output = place.command("sh").args(["-c", doctor, "sh", program()]).output().unwrap();
    says(&output, 0, &[]);
    assert!(place.text("out").matches("does not answer").count() > 3, "{}", place.text("out"));
}

#[test]
fn a_dry_run_refuses_for_want_of_room_as_the_run_does() {
    if skip() {
        return;
    }
    for (options, code) in [("", 2), ("--dry-run", 3)] {
        let place = Place::new();
        let job = "[r]\ndirectory=/data\nrw=randread\nsize=3g\n";
        std::fs::write(place.path("files.fio"), job).unwrap();
        let file = RUN.replace("$PWD/m ", "$PWD/m/iosched-a.img --size 1600M ");
        let output = place.in_own_mounts(&format!(
            "{MOUNTED} code=0; {RUN} files.fio {options} >out || code=$?; \
             {file} job.fio {options} >>out || code=$code$? {ENDED}"
        ));
        says(&output, code * 11, &[]);
        let said = place.text("out") + &String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("files needs at least 3.00 GiB, and"), "{said}");
        assert!(said.contains("no space left for") && said.contains("1677721600 bytes"), "{said}");
        place.is_as_before();
    }
}

/// A file with data and a hole was filled until the disk was full: its data counted as room.
#[test]
fn a_hole_that_has_no_room_is_not_filled() {
    if skip() {
        return;
    }
    let place = Place::new();
    let half = "head -c 400M /dev/urandom >m/half; truncate -s 900M m/half; head -c 300M /dev/zero >m/full; ";
    let run = RUN.replace("$PWD/m ", "$PWD/m/half --overwrite-file $PWD/m/half ");
    let output = place.in_own_mounts(&format!(
        "{MOUNTED} {half} sync; stat -c %b m/half >before; code=0; {run} job.fio >out || code=$?; \
         {run} job.fio --dry-run >>out || code=$code$?; sync; stat -c %b m/half >after; rm m/half m/full {ENDED}"
    ));
    // The hole is 500 MiB; a block that maps the file may be counted, too.
    says(&output, 43, &["laying it out: it needs 5242"]);
    assert!(place.text("out").contains("REFUSED   no space left on"), "{}", place.text("out"));
    assert_eq!(place.text("before"), place.text("after"));
    place.is_as_before();
}
