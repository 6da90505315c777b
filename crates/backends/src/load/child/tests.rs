use super::*;

#[test]
fn grandchildren_die_too() {
    let mut load =
        Load::start(Command::new("sh").args(["-c", "sleep 1000 & wait"]), "dash").unwrap();
    assert!(load.wait(Duration::from_millis(50), &mut || Ok(())).unwrap().is_none());
    let group = Pid::from_raw(i32::try_from(load.pid()).unwrap());
    load.kill();
    let deadline = Instant::now() + Duration::from_secs(5);
    // Signal 0 asks whether the group still has a process (zombies wait for init).
    while killpg(group, None).is_ok() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(killpg(group, None).is_err());
}

#[test]
fn what_descendants_use_is_counted() {
    let mut command = Command::new("sh");
    command.args(["-c", "sh -c 'while :; do :; done' & wait"]);
    let mut load = Load::start(&mut command, "dash").unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while load.descendants_ticks() == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(load.descendants_ticks() > 0);
    load.kill();
    assert_eq!(load.descendants_ticks(), 0, "there are none any more");
}

/// A load with a child in a session of its own, and what it consists of.
fn with_a_child_apart() -> (Load, Vec<Pid>) {
    let mut command = Command::new("sh");
    command.args(["-c", "setsid sleep 1000 & wait"]);
    let load = Load::start(&mut command, "dash").unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut family = Vec::new();
    while family.is_empty() && Instant::now() < deadline {
        family = descendants(load.pid());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!family.is_empty());
    (load, family)
}

/// Waits until none of these lives, for some seconds.
fn all_die(family: &[Pid]) -> bool {
    let root = SysRoot::default();
    let alive = |p: &Pid| {
        let stat = root.get(&format!("/proc/{p}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while family.iter().any(alive) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    !family.iter().any(alive)
}

#[test]
fn a_child_that_left_the_group_dies_too() {
    let (mut load, family) = with_a_child_apart();
    load.kill();
    assert!(all_die(&family));
}

/// Like fio's jobs while fio starts: the child is in a session of its own, and its parent is killed.
#[test]
fn what_a_killed_load_leaves_behind_dies_too() {
    let (mut load, family) = with_a_child_apart();
    kill(Pid::from_raw(i32::try_from(load.pid()).unwrap()), Signal::SIGKILL).unwrap();
    assert!(load.wait(Duration::from_secs(10), &mut || Ok(())).unwrap().is_some());
    assert!(all_die(&family));
}

/// A program that ends by itself, in good order, and leaves one in a session of its own.
#[test]
fn what_a_program_leaves_running_is_ended_and_counted() {
    let alive = |word: &str| {
        SysRoot::default().list("/proc").iter().any(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|b| *b == 0).any(|w| w == word.as_bytes())
        })
    };
    let start = |word: &str| {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            &format!(
                "setsid sleep {word} & while :; do \
            case $(tr '\\0' ' ' </proc/$!/cmdline) in sleep*) exit 0;; esac; done"
            ),
        ]);
        let mut load = Load::start(&mut command, "dash").unwrap();
        let status = load.wait(Duration::from_secs(30), &mut || Ok(())).unwrap();
        assert!(status.unwrap().success() && alive(word));
        load
    };
    // Of this process: the same test may run elsewhere.
    let [one, two, three] =
        ["70130", "70131", "70132"].map(|m| format!("{m}.{}", std::process::id()));
    drop(start(&one));
    assert!(!alive(&one));
    let mut loads = [start(&two), start(&three)];
    assert_eq!(Load::end_left(&mut loads), 2);
    assert!(!alive(&two) && !alive(&three));
    assert_eq!(Load::end_left(&mut loads), 0);
}

#[test]
fn a_missing_program_names_its_package() {
    let e = Load::start(&mut Command::new("no-such-program-here"), "fio").unwrap_err();
    assert_eq!(e.help(), "apt install fio");
}

#[test]
fn a_measured_program_gets_no_settings_from_the_environment() {
    let mut command = Command::new("env");
    command.env("LD_PRELOAD", "/nowhere.so");
    on_its_own(&mut command);
    let out = command.output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    let names: Vec<_> = said.lines().filter_map(|l| l.split('=').next()).collect();
    assert!(names.contains(&"PATH") && names.contains(&"LC_ALL"), "{said}");
    let known = |n: &&str| ["PATH", "LC_ALL", "LD_LIBRARY_PATH"].contains(n);
    assert!(names.iter().all(known), "cargo sets more than these: {said}");
}
