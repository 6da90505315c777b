use std::cell::Cell;
use std::fs;

use super::*;

thread_local! {
    /// As on a file system that tells neither the time of birth nor a generation.
    static FORGETFUL: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn as_known(born: String) -> String {
    if FORGETFUL.get() { UNKNOWN.into() } else { born }
}

fn made(parent: &Path) -> MadeDirectory {
    let mut made = MadeDirectory::choose(parent, "iosched-startup-1").unwrap();
    made.make().unwrap();
    fs::create_dir_all(made.path.join("root/usr/lib")).unwrap();
    fs::write(made.path.join("root/usr/lib/a"), "x").unwrap();
    made
}

#[test]
fn it_goes_with_all_that_is_in_it_and_links_are_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("precious");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("data"), "kept").unwrap();
    let made = made(dir.path());
    assert!(is_chosen(&made.path, "iosched-startup"), "{made:?}");
    std::os::unix::fs::symlink(&other, made.path.join("root/link")).unwrap();
    assert!(made.remove("iosched restore").unwrap());
    assert!(!made.path.exists());
    assert!(!made.remove("iosched restore").unwrap(), "somebody removed it: fine");
    assert_eq!(fs::read_to_string(other.join("data")).unwrap(), "kept");
}

#[test]
fn it_goes_though_somebody_makes_files_for_a_while() {
    let dir = tempfile::tempdir().unwrap();
    let made = made(dir.path());
    let lib = made.path.join("root/usr/lib");
    let (busy, until) = (lib.clone(), Instant::now() + Duration::from_millis(300));
    let files = std::thread::spawn(move || {
        let mut n = 0_u64;
        // It ends early when its directory is gone.
        while Instant::now() < until && fs::write(busy.join(n.to_string()), "x").is_ok() {
            n += 1;
        }
        n
    });
    while !lib.join("9").exists() {
        std::thread::yield_now();
    }
    assert!(made.remove("iosched restore").unwrap());
    assert!(files.join().unwrap() > 9);
    assert!(!made.path.exists());
}

#[test]
fn a_link_in_its_place_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let made = made(dir.path());
    let moved = dir.path().join("moved");
    fs::rename(&made.path, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &made.path).unwrap();
    made.remove("iosched restore").unwrap_err();
    assert!(moved.join("root/usr/lib/a").exists());
}

#[test]
fn another_directory_of_its_name_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let made = made(dir.path());
    let moved = dir.path().join("moved");
    fs::rename(&made.path, &moved).unwrap();
    fs::create_dir(&made.path).unwrap();
    fs::write(made.path.join("theirs"), "kept").unwrap();
    let e = made.remove("iosched restore").unwrap_err();
    assert!(e.to_string().contains("not the directory that the run made"), "{e}");
    assert_eq!(fs::read_to_string(made.path.join("theirs")).unwrap(), "kept");
    // It is known again by what it is.
    fs::rename(&made.path, dir.path().join("theirs")).unwrap();
    fs::rename(&moved, &made.path).unwrap();
    assert!(made.remove("iosched restore").unwrap() && !made.path.exists());
}

/// Its maker was killed between making it and writing down which one it is.
#[test]
fn one_that_is_not_known_goes_only_if_it_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let made = MadeDirectory::choose(dir.path(), "iosched-startup-1").unwrap();
    fs::create_dir(&made.path).unwrap();
    fs::write(made.path.join("theirs"), "kept").unwrap();
    let e = made.remove("iosched restore --state-dir /x").unwrap_err().to_string();
    assert!(e.contains("ends too early") && e.ends_with("restore --state-dir /x"), "{e}");
    assert!(made.path.join("theirs").exists());
    fs::remove_file(made.path.join("theirs")).unwrap();
    assert!(made.remove("iosched restore").unwrap() && !made.path.exists());
}

#[test]
fn without_a_time_of_birth_a_token_tells_it_from_a_later_one() {
    FORGETFUL.set(true);
    let dir = tempfile::tempdir().unwrap();
    let begin = || {
        let mut made = MadeDirectory::choose(dir.path(), "iosched-program-1").unwrap();
        let held = made.make().unwrap();
        (made, held)
    };
    // Killed before it was marked, and after its mark was removed: it is empty.
    let (made, held) = begin();
    assert!(made.remove("x").unwrap() && !made.path.exists());
    drop(held);
    let (made, held) = begin();
    made.mark(&held).unwrap();
    fs::write(made.path.join("data"), "ours").unwrap();
    let mark = made.path.join(MARK);
    let token = fs::read_to_string(&mark).unwrap();
    // A directory of its name and number that has something of somebody else's.
    for other in ["", "0123456789abcdef"] {
        fs::write(&mark, other).unwrap();
        let e = made.remove("x").unwrap_err();
        assert!(e.to_string().contains("not the directory that the run made"), "{e}");
    }
    fs::remove_file(&mark).unwrap();
    made.remove("x").unwrap_err();
    assert!(made.path.join("data").exists());
    fs::write(&mark, &token).unwrap();
    // Where no token was written down nothing tells it.
    let own = made.own.as_ref().map(|o| o.rsplit_once(':').unwrap().0.to_string());
    MadeDirectory { own, ..made.clone() }.remove("x").unwrap_err();
    assert!(made.remove("x").unwrap() && !made.path.exists());
    FORGETFUL.set(false);
}

#[test]
fn a_file_that_cannot_be_removed_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let made = made(dir.path());
    let file = made.path.join("root/usr/lib/a");
    let set = |flag: &str| {
        let done = std::process::Command::new("chattr").arg(flag).arg(&file).output();
        done.is_ok_and(|o| o.status.success())
    };
    if !set("+i") {
        return println!("SKIPPED: no immutable files here");
    }
    let e = made.remove("x").unwrap_err().to_string();
    assert!(set("-i"));
    assert!(e.contains("root/usr/lib/a") && e.contains("os error 1)"), "{e}");
    assert!(made.remove("x").unwrap());
}

#[test]
fn its_name_leads_to_it_until_it_is_moved_or_covered() {
    let dir = tempfile::tempdir().unwrap();
    let mut made = MadeDirectory::choose(dir.path(), "iosched-program-1").unwrap();
    let held = made.make().unwrap();
    made.leads_to(&held).unwrap();
    let moved = dir.path().join("moved");
    fs::rename(&made.path, &moved).unwrap();
    made.leads_to(&held).unwrap_err();
    std::os::unix::fs::symlink(&moved, &made.path).unwrap();
    made.leads_to(&held).unwrap_err();
    fs::remove_file(&made.path).unwrap();
    fs::create_dir(&made.path).unwrap();
    made.leads_to(&held).unwrap_err();
    fs::remove_dir(&made.path).unwrap();
    fs::rename(&moved, &made.path).unwrap();
    made.leads_to(&held).unwrap();
}

#[test]
fn the_same_path_in_another_directory_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let parent = dir.path().join("mnt");
    fs::create_dir(&parent).unwrap();
    let made = made(&parent);
    // As when a file system is unmounted and the directory below has one of the same name.
    fs::rename(&parent, dir.path().join("elsewhere")).unwrap();
    fs::create_dir_all(&made.path).unwrap();
    fs::write(made.path.join("theirs"), "kept").unwrap();
    let e = made.remove("iosched restore").unwrap_err();
    assert!(matches!(e, Error::Left { .. }) && e.help().is_empty(), "{e:?}");
    assert_eq!(e.class(), crate::ExitClass::Failed, "it was not refused");
    assert!(made.path.join("theirs").exists());
    fs::remove_dir_all(&parent).unwrap();
    assert!(
        matches!(made.remove("iosched restore").unwrap_err(), Error::Left { .. }),
        "it is not there at all"
    );
}

#[test]
fn what_is_mounted_inside_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("precious");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("data"), "kept").unwrap();
    let made = made(dir.path());
    let at = made.path.join("root/usr/lib");
    if let Err(e) = rustix::mount::mount_bind(&other, &at) {
        made.remove("iosched restore").unwrap();
        return println!("SKIPPED: bind mounts: {e}");
    }
    let e = made.remove("iosched restore");
    rustix::mount::unmount(&at, rustix::mount::UnmountFlags::empty()).unwrap();
    let e = e.unwrap_err();
    assert!(e.to_string().contains(&at.display().to_string()), "{e}");
    assert_eq!(fs::read_to_string(other.join("data")).unwrap(), "kept");
    assert!(made.remove("iosched restore").unwrap());
}
