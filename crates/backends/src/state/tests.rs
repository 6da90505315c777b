//! Tests of state files.

use super::*;

fn change() -> Change {
    Change::TraceInstance { name: "iosched-1-0".into() }
}

/// A state file in a folder that others may write to leads nowhere else.
#[test]
fn names_that_lead_elsewhere_are_refused() {
    let (pid, version, boot_id) = (1, VERSION, boot_id());
    let written = |instance: &str, change: Change| {
        let (instance, boot_id) = (instance.to_string(), boot_id.clone());
        let state = State { version, pid, instance, boot_id, change };
        parse(&serde_json::to_string(&state).unwrap())
    };
    written(instance(), change()).unwrap();
    for owner in ["", "x", "a/../../victim", "1-0123456789abcde/", "../1-0123456789abcdef"] {
        let e = written(owner, change()).unwrap_err().to_string();
        assert!(e.contains("its owner is"), "{e}");
    }
    for name in ["", "iosched-", "../iosched-1", "iosched-1/../../x"] {
        let change = Change::TraceInstance { name: name.into() };
        let e = written(instance(), change).unwrap_err().to_string();
        assert!(e.contains("its trace instance is"), "{e}");
    }
    let queue = |name: &str| {
        let tunables = [(name.to_string(), "0".to_string())].into();
        let before = Box::new(QueueState { tunables, ..QueueState::default() });
        let (device, queue) = ("sda".into(), None);
        Change::Queue { device, diskseq: None, queue, tag_depth: None, before, set: None }
    };
    written(instance(), queue("read_expire")).unwrap();
    for name in ["../../../../etc/passwd", "/etc/passwd", ".."] {
        let e = written(instance(), queue(name)).unwrap_err().to_string();
        assert!(e.contains("its tunable is"), "{e}");
    }
    let disk = |label: &str| Change::EmulatedDisk { number: 0, label: label.into(), connection: 0 };
    written(instance(), disk("iosched:1:hdd")).unwrap();
    let e = written(instance(), disk("/home/image")).unwrap_err().to_string();
    assert!(e.contains("its loop device is"), "{e}");
}

#[test]
fn a_file_of_another_version_or_not_of_text_is_refused_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.json");
    let state = State {
        version: VERSION,
        pid: 1,
        instance: "x".into(),
        boot_id: boot_id(),
        change: change(),
    };
    let other = State { version: 9, ..state };
    let other = serde_json::to_vec(&other).unwrap();
    for (content, why) in [(&other[..], "it has version 9"), (b"{\"pid\": \xff\xfe", "line 1")] {
        fs::write(&path, content).unwrap();
        let e = StateFile::take_over(&path, false).unwrap_err().to_string();
        assert!(e.contains(why) && e.contains("iosched doctor"), "{e}");
        assert!(path.exists());
    }
    assert_eq!(restore_command(Path::new(STATE_DIR)), "iosched restore");
    let odd = restore_command(Path::new("/a b/it's"));
    assert_eq!(odd, r"iosched restore --state-dir '/a b/it'\''s'");
}

/// No one needs `iosched restore` after a boot.
#[test]
fn what_an_earlier_boot_took_along_stands_in_no_ones_way() {
    let dir = tempfile::tempdir().unwrap();
    let path = StateFile::path_in(dir.path(), "a");
    let write = |boot_id: &str, change: Change| {
        let (boot_id, instance) = (boot_id.into(), instance().to_string());
        let state = State { version: VERSION, pid: 1, instance, boot_id, change };
        fs::write(&path, serde_json::to_string(&state).unwrap()).unwrap();
    };
    write("an earlier one", change());
    StateFile::create(dir.path(), "a", change()).unwrap().finish().unwrap();
    write(&boot_id(), change());
    let e = StateFile::create(dir.path(), "a", change()).unwrap_err();
    assert!(matches!(e, Error::Unrestored { .. }), "{e:?}");
    // Files outlive a boot.
    let made = MadeDirectory::choose(dir.path(), "iosched-program").unwrap();
    write("an earlier one", Change::Directory(made));
    let e = StateFile::create(dir.path(), "a", change()).unwrap_err();
    assert!(matches!(e, Error::Unrestored { .. }), "{e:?}");
}

#[test]
fn the_last_settings_that_were_written_whole_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let (device, before) = ("loop0".into(), Box::new(QueueState::default()));
    let (diskseq, queue, tag_depth) = (Some(7), Some(9), Some(32));
    let change = Change::Queue { device, diskseq, queue, tag_depth, before, set: None };
    let file = StateFile::create(dir.path(), "loop0", change).unwrap();
    let last = || match parse(&fs::read_to_string(file.path()).unwrap()).unwrap().change {
        Change::Queue { queue: Some(9), set, .. } => set.and_then(|s| s.scheduler),
        other => panic!("{other:?}"),
    };
    assert_eq!(last(), None);
    for name in ["bfq", "kyber"] {
        let scheduler = Some(name.to_string());
        file.set(&QueueState { scheduler, ..QueueState::default() }).unwrap();
        assert_eq!(last().as_deref(), Some(name));
    }
    let mut open = OpenOptions::new().append(true).open(file.path()).unwrap();
    open.write_all(b"\n{\"set\":{\"sched").unwrap();
    assert_eq!(last().as_deref(), Some("kyber"));
}

#[test]
fn a_second_instance_is_locked_out_and_a_dead_one_must_be_restored() {
    let dir = tempfile::tempdir().unwrap();
    let first = StateFile::create(dir.path(), "sda", change()).unwrap();
    let e = StateFile::create(dir.path(), "sda", change()).unwrap_err();
    assert!(matches!(&e, Error::Locked { pid, .. } if *pid == std::process::id()), "{e:?}");
    let path = first.path().to_path_buf();
    assert!(StateFile::take_over(&path, false).unwrap().is_none());
    drop(first);
    let e = StateFile::create(dir.path(), "sda", change()).unwrap_err();
    assert!(matches!(e, Error::Unrestored { .. }), "{e:?}");
    let (file, state) = StateFile::take_over(&path, false).unwrap().unwrap();
    assert_eq!(state.change, change());
    file.finish().unwrap();
    assert!(list(dir.path()).is_empty());
    StateFile::create(dir.path(), "sda", change()).unwrap().finish().unwrap();
}

/// A script removes the folder of a run that it has just killed. The guardian may not have looked yet.
#[test]
fn a_state_file_that_another_program_removed_still_says_what_to_undo() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("state");
    for undone in [false, true] {
        let owned = StateFile::create(&folder, "sda", change()).unwrap();
        let path = owned.path().to_path_buf();
        let watched = StateFile::open(&path).unwrap().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        // Another run begins in the same place, and its file is no business of the first.
        let other = StateFile::create(&folder, "sda", change()).unwrap();
        if undone {
            owned.finish().unwrap();
        } else {
            drop(owned);
        }
        let found = StateFile::take_over_opened(watched, &path, true).unwrap();
        assert_eq!(found.is_none(), undone);
        if let Some((file, state)) = found {
            assert_eq!(state.change, change());
            file.finish().unwrap();
        }
        assert!(path.exists(), "the other run's");
        other.finish().unwrap();
        assert!(!path.exists());
    }
}

#[test]
fn an_unfinished_state_file_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    drop(NewFile::create(dir.path(), "sda").unwrap());
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none(), "it had no name");
    // Where every file has a temporary name: a living owner's file stays, a dead one's is removed.
    let owned = NewFile::named(dir.path(), "sda").unwrap();
    sweep(dir.path());
    assert!(owned.temporary.as_ref().unwrap().exists());
    owned.link(&dir.path().join("sda.json")).unwrap();
    drop(NewFile::named(dir.path(), "sdb").unwrap());
    let theirs = dir.path().join(".tmp123");
    fs::write(&theirs, "a user's").unwrap();
    sweep(dir.path());
    fs::remove_file(theirs).expect("what is not ours stays");
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    // A name that somebody made a link of leads nowhere.
    let precious = dir.path().join("precious");
    fs::write(&precious, "kept").unwrap();
    let name = format!("{TEMPORARY}sda.{}", std::process::id());
    std::os::unix::fs::symlink(&precious, dir.path().join(name)).unwrap();
    let again = NewFile::named(dir.path(), "sda").unwrap();
    assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
    let e = again.link(&dir.path().join("sda.json")).unwrap_err();
    assert_eq!(e.kind(), std::io::ErrorKind::AlreadyExists);
}

#[test]
fn a_killed_process_is_told_from_a_living_one() {
    assert!(dying("Name:\tx\nState:\tZ (zombie)\nSigPnd:\t0000000000000000\n"));
    assert!(dying("State:\tD (disk sleep)\nSigPnd:\t0000000000000100\n"));
    assert!(!dying("State:\tD (disk sleep)\nSigPnd:\t0000000000004000\n"));
    assert!(!is_dying(std::process::id()));
}

#[test]
fn which_directory_was_made_is_read_again_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let made = MadeDirectory::choose(dir.path(), "iosched-program-1").unwrap();
    let change = Change::Directory(made);
    let mut file = StateFile::create(dir.path(), "a", change.clone()).unwrap();
    let (path, before) = (file.path().to_path_buf(), fs::read_to_string(file.path()).unwrap());
    assert_eq!(parse(&before).unwrap().change, change);
    file.made("1:2:3.4").unwrap();
    let after = fs::read_to_string(&path).unwrap();
    let own = |text: &str| match parse(text).unwrap().change {
        Change::Directory(made) => made.own,
        other => panic!("{other:?}"),
    };
    assert_eq!(own(&after).as_deref(), Some("1:2:3.4"));
    for cut in before.len()..after.trim_end().len() {
        assert_eq!(own(&after[..cut]), None, "{}", &after[..cut]);
    }
    file.finish().unwrap();
}

#[test]
fn junk_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (i, junk) in ["", "{", "[]", "{\"version\":1}"].iter().enumerate() {
        let path = dir.path().join(format!("{i}.json"));
        fs::write(&path, junk).unwrap();
        assert!(StateFile::take_over(&path, false).is_err(), "{junk}");
    }
    let pipe = dir.path().join("pipe.json");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
    assert!(StateFile::take_over(&pipe, false).is_err(), "it would wait for a writer");
}
