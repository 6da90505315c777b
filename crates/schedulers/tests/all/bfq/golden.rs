//! Golden files: processes in, what happens and why out. `BLESS=1 cargo test` rewrites the answers.
//!
//! | line | meaning |
//! |---|---|
//! | `scheduler NAME` | first line |
//! | `set NAME=VALUE …` | tunables |
//! | `disk rotational\|flash MS` | what the device is and what every command takes, one at a time |
//! | `reader at MS depth N think MS from SECTOR sectors N requests N` | a sequential process; `writer` writes without anybody waiting |

use iosched_types::units::MS;
use iosched_types::{Op, Request};

use super::driver::{Rig, disk};

const IN: &str = "```processes\n";
const OUT: &str = "```happens\n";
const END: &str = "```\n";

fn word(line: &str, key: &str) -> u64 {
    let mut words = line.split(' ');
    words.find(|w| *w == key);
    words.next().and_then(|w| w.parse().ok()).unwrap_or_else(|| panic!("no {key} in {line}"))
}

fn play(script: &str) -> String {
    let value = |key: &str| script.lines().find_map(|l| l.strip_prefix(key));
    let name = value("scheduler ").expect("a scheduler");
    let set: Vec<(&str, i64)> = value("set ")
        .into_iter()
        .flat_map(str::split_whitespace)
        .filter_map(|w| w.split_once('='))
        .map(|(n, v)| (n, v.parse().expect("a value")))
        .collect();
    let (kind, ms) = value("disk ").and_then(|d| d.split_once(' ')).expect("a disk");
    let service = ms.parse::<u64>().expect("a time") * MS;
    let mut rig = Rig::new(name, &set, disk(kind == "rotational"), 1, move |_| service);
    for line in script.lines() {
        let op = match line.split(' ').next() {
            Some("reader") => Op::Read,
            Some("writer") => Op::Write,
            _ => continue,
        };
        let (from, sectors) = (word(line, "from"), word(line, "sectors"));
        let requests = word(line, "requests");
        let (at, think) = (word(line, "at") * MS, word(line, "think") * MS);
        rig.process(at, word(line, "depth") as usize, think, move |n| {
            (n < requests).then(|| Request::new(op, from + n * sectors, sectors as u32))
        });
    }
    rig.run_to(60_000 * MS);
    assert_eq!(rig.completed, rig.total_asked());
    rig.notes.iter().map(|(t, n)| format!("{:8.3} {n}\n", *t as f64 / 1e6)).collect()
}

fn replay(page: &str) -> String {
    let (mut done, mut rest) = (String::new(), page);
    while let Some((before, after)) = rest.split_once(IN) {
        let (script, after) = after.split_once(END).expect("an end of the processes");
        let (between, after) = after.split_once(OUT).expect("what happens");
        let (_, after) = after.split_once(END).expect("an end of what happens");
        done += &format!("{before}{IN}{script}{END}{between}{OUT}{}{END}", play(script));
        rest = after;
    }
    done + rest
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads the files it checks")]
fn golden_files_say_what_happens() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for generation in ["v7r3", "4.12", "6.12"] {
        let path = dir.join(format!("bfq@{generation}.md"));
        let page = std::fs::read_to_string(&path).expect("a golden file");
        let wanted = replay(&page);
        assert!(wanted.contains(IN));
        iosched_testing::golden(&path, &wanted);
    }
}
