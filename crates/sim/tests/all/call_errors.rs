//! Bad scenarios of calls: each is refused with its place, what is wrong, and what would be right.

use iosched_devices::{DeviceSpec, catalogue};
use iosched_sim::scenario::{Scenario, run};
use proptest::prelude::*;

fn lookup(name: &str) -> Result<DeviceSpec, String> {
    catalogue::find(name).map_err(|e| e.to_string())
}

const GOOD: &str = r#"scheduler = "none"
service_ms = 1
memory = "64M"

[filesystem]
type = "ext4"
size = "1G"

[sysctl]
"vm.dirty_ratio" = 20

[queue]
read_ahead_kb = 128

[[file]]
path = "a"
size = "1M"

[[task]]
name = "A"
prio = "be/4"

[[call]]
task = "A"
call = "open"
file = "a"
flags = "read, write"

[[call]]
t_ms = 1
task = "A"
call = "pread"
file = "a"
at = 0
len = "4K"
times = 2
"#;

fn read(text: &str) -> String {
    match Scenario::from_toml("s.toml", text) {
        Ok(scenario) => match run(&scenario, &lookup) {
            Ok(e) => format!("{} calls", e.calls.map_or(0, |c| c.calls.len())),
            Err(e) => e.to_string(),
        },
        Err(e) => e.to_string(),
    }
}

#[test]
fn the_good_one_is_good() {
    assert_eq!(read(GOOD), "3 calls");
}

#[test]
fn every_bad_line_is_refused_at_its_place() {
    for (good, bad, place, help) in [
        ("service_ms = 1", "pull_at_ms = [0]", "s.toml:2:1", "does not go with [[call]]"),
        ("memory = \"64M\"", "memory = \"0\"", "s.toml:3:10", "16M"),
        ("memory = \"64M\"", "memry = \"64M\"", "s.toml:3:1", "did you mean \"memory\"?"),
        ("memory = \"64M\"", "zone_sectors = 8", "s.toml:3:1", "[[request]]"),
        ("type = \"ext4\"", "type = \"ext5\"", "s.toml:6:8", "ext4"),
        ("size = \"1G\"", "size = \"2T\"", "s.toml:23:1", "larger than the device"),
        ("\"vm.dirty_ratio\" = 20", "\"vm.dirty_ratio\" = 101", "s.toml:10:1", "0 to 100"),
        ("\"vm.dirty_ratio\" = 20", "\"vm.dirty_rato\" = 2", "s.toml:10:1", "vm.dirty_ratio"),
        ("read_ahead_kb = 128", "read_ahed_kb = 1", "s.toml:13:1", "read_ahead_kb"),
        ("size = \"1M\"", "size = \"many\"", "s.toml:17:8", "no size"),
        ("size = \"1M\"", "size = \"1M\"\ntimes = 3", "s.toml:16:8", "{}"),
        ("size = \"1M\"", "size = \"4G\"", "s.toml:23:1", "ENOSPC"),
        ("name = \"A\"", "nme = \"A\"", "s.toml:20:1", "did you mean \"name\"?"),
        ("prio = \"be/4\"", "prio = \"be/9\"", "s.toml:21:8", "be/0 to be/7"),
        ("call = \"open\"", "call = \"opn\"", "s.toml:25:8", "did you mean \"open\"?"),
        ("call = \"open\"", "call = \"close\"", "s.toml:27:1", "unknown key \"flags\" in a close"),
        ("flags = \"read, write\"", "flags = \"reed\"", "s.toml:27:9", "did you mean \"read\"?"),
        ("t_ms = 1", "t_ms = -1", "s.toml:30:8", "negative"),
        (
            "call = \"pread\"\nfile = \"a\"",
            "call = \"pread\"\nfile = \"ab\"",
            "s.toml:33:8",
            "has not opened",
        ),
        ("at = 0\n", "", "s.toml:29:1", "this call needs \"at\""),
        ("at = 0", "at = -1", "s.toml:34:6", "no size"),
        ("len = \"4K\"", "len = \"2T\"", "s.toml:35:7", "out of range"),
        ("times = 2", "times = 0", "s.toml:36:9", "1 to"),
        ("times = 2", "step = \"-4X\"", "s.toml:36:8", "step is no size"),
        ("times = 2", "advice = \"random\"", "s.toml:36:1", "unknown key \"advice\" in a pread"),
        ("call = \"pread\"", "call = \"load\"", "s.toml:35:1", "in a load"),
    ] {
        assert!(GOOD.contains(good), "{good}");
        let got = read(&GOOD.replacen(good, bad, 1));
        assert!(got.contains(place) && got.contains(help), "{bad}:\n{got}");
        assert!(got.contains('^'), "a caret points at it:\n{got}");
    }
}

#[test]
fn requests_and_calls_are_not_mixed() {
    let got = read(&format!("{GOOD}\n[[request]]\nop = \"R\"\nsector = 0\n"));
    assert!(got.contains("\"request\" does not go with [[call]]"), "{got}");
    let got = read(
        "scheduler = \"none\"\nservice_ms = 1\ncold = true\n[[request]]\nop = \"R\"\nsector = 0\n",
    );
    assert!(got.contains("\"cold\" does not go with [[request]]"), "{got}");
}

#[test]
fn a_map_comes_before_its_use_and_an_error_is_an_answer() {
    let load = "\n[[call]]\ntask = \"A\"\ncall = \"load\"\nfile = \"a\"\nat = 0\n";
    let got = read(&format!("{GOOD}{load}"));
    assert!(got.contains("\"a\" is not mapped") && got.contains("mmap"), "{got}");
    let text = GOOD.replacen("flags = \"read, write\"", "flags = \"read, create, exclusive\"", 1);
    let s = Scenario::from_toml("s.toml", &text).unwrap();
    let calls = run(&s, &lookup).unwrap().calls.unwrap().calls;
    let errors: Vec<&str> = calls.iter().filter_map(|c| c.error.as_deref()).collect();
    assert!(errors[0].starts_with("EEXIST") && errors[1].starts_with("EBADF"), "{errors:?}");
}

/// The device itself as a file; a discard of it is no call of this form, and names are not made on it.
#[test]
fn a_device_is_a_file() {
    let text = GOOD
        .replace("file = \"a\"", "file = \"/dev/x\"")
        .replace("[[file]]\npath = \"a\"\nsize = \"1M\"\n", "");
    let s = Scenario::from_toml("s.toml", &text).unwrap();
    let calls = run(&s, &lookup).unwrap().calls.unwrap();
    assert_eq!(calls.calls[1].answer, Some(4096), "{calls:?}");
    assert_eq!(calls.bios[0].flags, "RA");
}

/// Dropped pages come from the disk again; those of a map stay. `madvise` takes the advice of maps only.
#[test]
fn caches_are_dropped_and_maps_are_advised() {
    let call =
        |name: &str, more: &str| format!("\n[[call]]\ntask = \"A\"\ncall = \"{name}\"\n{more}");
    let again = call("pread", "file = \"a\"\nat = 0\nlen = \"4K\"\n");
    let map = call("mmap", "file = \"a\"\nlen = \"4K\"\n");
    let advice = |word: &str| call("madvise", &format!("file = \"a\"\nadvice = \"{word}\"\n"));
    let drop = call("drop_caches", "");
    let reads = |calls: &str| {
        let s = Scenario::from_toml("s.toml", &format!("{GOOD}{calls}")).unwrap();
        run(&s, &lookup).unwrap().calls.unwrap().bios.len()
    };
    let once = reads("");
    assert_eq!(reads(&again), once);
    assert!(reads(&format!("{drop}{again}")) > once);
    let mapped = format!("{map}{}{drop}{again}", advice("random"));
    assert_eq!(reads(&mapped), once);
    let got = read(&format!("{GOOD}{map}{}", advice("willneed")));
    assert!(got.contains("unknown advice \"willneed\""), "{got}");
}

#[test]
fn json_goes_there_and_back() {
    let s = Scenario::from_toml("s.toml", GOOD).unwrap();
    let e = run(&s, &lookup).unwrap();
    let text = serde_json::to_string(&e).unwrap();
    let back: iosched_sim::scenario::Explanation = serde_json::from_str(&text).unwrap();
    assert_eq!(back, e);
    assert!(
        text.contains("\"what\":\"finds\"") && text.contains("\"until\":\"page 0 of a"),
        "{text}"
    );
}

proptest! {
    /// Any change of bytes gives a scenario or an error, never a panic.
    #[test]
    fn mutilated_files_never_panic(at in 0usize..430, with in "\\PC{0,3}", cut in 0usize..4) {
        let mut text: Vec<char> = GOOD.chars().collect();
        let at = at.min(text.len());
        let end = (at + cut).min(text.len());
        text.splice(at..end, with.chars());
        let text: String = text.into_iter().collect();
        let _ = read(&text);
    }
}
