//! Bad scenario files: each is refused with its place, what is wrong, and what would be right.

use iosched_devices::{DeviceSpec, catalogue};
use iosched_sim::scenario::{Scenario, ScenarioError, run};
use proptest::prelude::*;

fn lookup(name: &str) -> Result<DeviceSpec, String> {
    catalogue::find(name).map_err(|e| e.to_string())
}

const GOOD: &str = r#"scheduler = "mq-deadline"
kernel = "6.12"
driver_depth = 1
service_ms = 5.0
hz = 1000

[tunables]
fifo_batch = 2

[[request]]
t_ms = 0.0
op = "R"
sector = 1000
sectors = 8
pid = 1
sync = true
prio = "be/4"
"#;

fn read(text: &str) -> String {
    match Scenario::from_toml("s.toml", text) {
        Ok(scenario) => match run(&scenario, &lookup) {
            Ok(e) => format!("{} dispatched", e.dispatched.len()),
            Err(e) => e.to_string(),
        },
        Err(e) => e.to_string(),
    }
}

#[test]
fn a_write_across_the_end_of_a_zone_is_refused() {
    let zoned = |text: &str| read(&text.replace("hz = 1000", "hz = 1000\nzone_sectors = 1004"));
    assert_eq!(zoned(GOOD), "1 dispatched", "reads may cross");
    let e = zoned(&GOOD.replace("\"R\"", "\"W\""));
    assert!(e.contains("crosses the end of a zone of 1004 sectors"), "{e}");
    assert!(e.contains("s.toml:14:10"), "{e}");
    assert!(read(&GOOD.replace("hz = 1000", "zone_sectors = 0")).contains("zone_sectors"));
}

#[test]
fn the_good_one_is_good() {
    assert_eq!(read(GOOD), "1 dispatched");
}

/// Each line replaces one of the good file; the error names its place and says what is right.
#[test]
fn every_bad_line_is_refused_at_its_place() {
    let cases = [
        (
            r#"scheduler = "mq-deadline""#,
            r#"scheduler = "mq-dedline""#,
            "s.toml:1:13",
            "did you mean \"mq-deadline\"?",
        ),
        (
            r#"scheduler = "mq-deadline""#,
            r#"scheduler = "mq-deadline@2.4""#,
            "s.toml:1:13",
            "4.12-5.13",
        ),
        (r#"scheduler = "mq-deadline""#, r#"scheduler = "cfq""#, "s.toml:1:13", "cfq@"),
        (r#"scheduler = "mq-deadline""#, r#"scheduler = 7"#, "s.toml:1:13", "a string"),
        (
            r#"scheduler = "mq-deadline""#,
            r#"schedular = "noop""#,
            "s.toml:1:1",
            "did you mean \"scheduler\"?",
        ),
        (r#"kernel = "6.12""#, r#"kernel = "6.13""#, "s.toml:2:10", "6.12"),
        ("driver_depth = 1", "driver_depth = 0", "s.toml:3:16", "1 to 65536"),
        ("driver_depth = 1", "driver_depth = -1", "s.toml:3:16", "out of range"),
        ("driver_depth = 1", "driver_depth = 1.5", "s.toml:3:16", "a whole number"),
        (
            "driver_depth = 1",
            "driver_depth = 99999999999999999999",
            "s.toml:3:16",
            "out of the range of numbers",
        ),
        ("driver_depth = 1", "completes = \"never\"", "s.toml:3:1", "belongs to \"pull_at_ms\""),
        ("service_ms = 5.0", "service_ms = nan", "s.toml:4:14", "finite"),
        ("service_ms = 5.0", "service_ms = inf", "s.toml:4:14", "finite"),
        ("service_ms = 5.0", "service_ms = -5", "s.toml:4:14", "negative"),
        ("service_ms = 5.0", "service_ms = 0", "s.toml:4:14", "above 0"),
        ("service_ms = 5.0", "service_ms = 1e300", "s.toml:4:14", "too long"),
        ("service_ms = 5.0", "device = \"hdd-7201\"", "s.toml:4:10", "hdd-7200"),
        ("service_ms = 5.0", "device = \"\"", "s.toml:4:10", "empty"),
        ("service_ms = 5.0", "service_ms = 5\ndevice = \"hdd-7200\"", "s.toml:5:1", "exclude"),
        ("service_ms = 5.0", "pull_at_ms = []", "s.toml:4:14", "1 to"),
        ("service_ms = 5.0", "pull_at_ms = [0, -1]", "s.toml:4:18", "negative"),
        (
            "service_ms = 5.0",
            "pull_at_ms = [0]\ncompletes = \"later\"",
            "s.toml:5:13",
            "\"at-once\" or \"never\"",
        ),
        ("hz = 1000", "hz = 0", "s.toml:5:6", "1 to 10000"),
        ("hz = 1000", "merges = 2", "s.toml:5:10", "true or false"),
        ("fifo_batch = 2", "fifo_batc = 2", "s.toml:8:1", "did you mean \"fifo_batch\"?"),
        ("fifo_batch = 2", "fifo_batch = -1", "s.toml:8:14", "out of range"),
        ("fifo_batch = 2", "fifo_batch = \"2\"", "s.toml:8:14", "a whole number"),
        ("t_ms = 0.0", "t_ms = -0.5", "s.toml:11:8", "negative"),
        ("t_ms = 0.0", "t_ms = nan", "s.toml:11:8", "finite"),
        ("t_ms = 0.0", "t_ms = \"0\"", "s.toml:11:8", "a number"),
        ("t_ms = 0.0", "after = 0", "s.toml:11:9", "the first request"),
        ("t_ms = 0.0", "tms = 0", "s.toml:11:1", "did you mean \"t_ms\"?"),
        (r#"op = "R""#, r#"op = "X""#, "s.toml:12:6", "R (read)"),
        (r#"op = "R""#, r#"op = "F""#, "s.toml:14:11", "carries no sectors"),
        ("sector = 1000", "sector = -1", "s.toml:13:10", "out of range"),
        ("sector = 1000", "sector = 9223372036854775807", "s.toml:13:10", "out of range"),
        ("sectors = 8", "sectors = 0", "s.toml:14:11", "out of range"),
        ("sectors = 8", "sectors = 4294967296", "s.toml:14:11", "out of range"),
        ("pid = 1", "pid = -1", "s.toml:15:7", "out of range"),
        ("sync = true", "sync = 1", "s.toml:16:8", "true or false"),
        (r#"prio = "be/4""#, r#"prio = "be/8""#, "s.toml:17:8", "be/0 to be/7"),
        (r#"prio = "be/4""#, r#"prio = "be/4"#, "s.toml:17", ""),
    ];
    for (good, bad, place, help) in cases {
        assert!(GOOD.contains(good), "{good}");
        let got = read(&GOOD.replace(good, bad));
        assert!(got.contains(place) && got.contains(help), "{bad}:\n{got}");
        assert!(got.contains('^'), "a caret points at it:\n{got}");
    }
}

#[test]
fn what_is_missing_is_named() {
    for (without, help) in [
        ("scheduler = \"mq-deadline\"\n", "names its scheduler"),
        ("service_ms = 5.0\n", "service_ms, device, pull_at_ms"),
        ("op = \"R\"\n", "no \"op\""),
        ("sector = 1000\n", "no \"sector\""),
        (GOOD, "names its scheduler"),
        (GOOD.split_once("[[").unwrap().1.split_once("]]\n").unwrap().1, "no \"op\""),
    ] {
        let got = read(&GOOD.replace(without, ""));
        assert!(got.contains("s.toml") && got.contains(help), "{got}");
    }
    let head = GOOD.split_once("[[").unwrap().0;
    assert!(read(head).contains("without requests"));
    let one = format!("{head}[request]\nop = \"R\"\nsector = 1\n");
    assert!(read(&one).contains("[[request]]"));
}

/// An error reads like this.
#[test]
fn an_error_shows_the_line() {
    let got = read(&GOOD.replace("pid = 1", "pid = -1"));
    let want = "\
pid = -1 is out of range: 0 to 4294967295
  --> s.toml:15:7
   |
15 | pid = -1
   |       ^^";
    assert_eq!(got, want);
}

#[test]
fn a_switch_that_cannot_be_is_refused() {
    let with = |switch: &str| read(&format!("{GOOD}\n[[switch]]\n{switch}\n"));
    assert_eq!(
        with("scheduler = \"bfq\"\nt_ms = 1.0\ntunables = { slice_idle = 0 }"),
        "1 dispatched"
    );
    for (switch, place, help) in [
        ("t_ms = 1.0", "s.toml:19", "names its scheduler"),
        ("scheduler = \"bqf\"", "s.toml:20:13", "did you mean \"bfq\"?"),
        ("scheduler = \"cfq@4.12\"", "s.toml:20:13", "different block layers"),
        ("scheduler = \"none\"\ntime = 3", "s.toml:21:1", "t_ms"),
        ("scheduler = \"none\"\nt_ms = -3", "s.toml:21:8", "negative"),
        ("scheduler = \"bfq\"\ntunables = { fifo_batch = 1 }", "s.toml:21:14", "no tunable"),
    ] {
        let got = with(switch);
        assert!(got.contains(place) && got.contains(help), "{switch}:\n{got}");
    }
    let pulled = GOOD.replace("service_ms = 5.0", "pull_at_ms = [0]");
    let got = read(&format!("{pulled}\n[[switch]]\nscheduler = \"bfq\"\n"));
    assert!(got.contains("asks by hand") && got.contains("give service_ms or device"), "{got}");
}

#[test]
fn requests_beyond_the_devices_end_are_refused() {
    let text = GOOD.replace("service_ms = 5.0", "device = \"hdd-7200\"");
    assert_eq!(read(&text), "1 dispatched");
    let got = read(&text.replace("sector = 1000", "sector = 9000000000000"));
    assert!(got.contains("s.toml:13:10") && got.contains("beyond the end of hdd-7200"), "{got}");
}

#[test]
fn a_device_that_cannot_be_found_is_an_error_of_the_file() {
    let text = GOOD.replace("service_ms = 5.0", "device = \"mine.toml\"");
    let scenario = Scenario::from_toml("s.toml", &text).unwrap();
    let e = run(&scenario, &|name| Err(format!("{name}: no such file"))).unwrap_err();
    assert!(matches!(&e, ScenarioError::Text(d) if d.line == 4), "{e}");
}

#[test]
fn what_has_no_effect_is_a_warning() {
    let s = Scenario::from_toml("s.toml", &GOOD.replace("sync = true", "sync = false")).unwrap();
    assert_eq!(s.warnings.len(), 1);
    assert!(s.requests[0].op == iosched_types::Op::Read && s.warnings[0].line == 16);
}

/// Where no kernel is named, a generation brings its own; without either it is the newest that was measured.
#[test]
fn the_kernel_follows_the_generation() {
    for (scheduler, kernel) in [
        ("mq-deadline", "7.1"),
        ("noop@2.6.18", "2.6.18"),
        ("anticipatory@2.6.32", "2.6.18"),
        ("cfq@3.12", "3.14"),
        ("bfq@v7r3", "3.14"),
        ("mq-deadline@5.15", "5.15"),
        ("mq-deadline@6.1", "6.1"),
        ("bfq", "7.1"),
        ("bfq@6.12", "6.12"),
        ("adios", "7.1"),
    ] {
        let text = format!(
            "scheduler = \"{scheduler}\"\nservice_ms = 1\n[[request]]\nop = \"R\"\nsector = 0"
        );
        let s = Scenario::from_toml("s.toml", &text).unwrap();
        assert_eq!(s.kernel.version, kernel, "{scheduler}");
        assert_eq!(run(&s, &lookup).unwrap().dispatched.len(), 1, "{scheduler}");
    }
}

proptest! {
    /// Any change of bytes gives a scenario or an error, never a panic.
    #[test]
    fn mutilated_files_never_panic(at in 0usize..260, with in "\\PC{0,3}", cut in 0usize..4) {
        let mut text: Vec<char> = GOOD.chars().collect();
        let at = at.min(text.len());
        let end = (at + cut).min(text.len());
        text.splice(at..end, with.chars());
        let text: String = text.into_iter().collect();
        let _ = read(&text);
    }
}
