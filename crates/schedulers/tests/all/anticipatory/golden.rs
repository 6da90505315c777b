//! Golden files of the anticipatory scheduler: processes in, what happens and why out.
//! `BLESS=1 cargo test` rewrites the answers.
//!
//! | line | meaning |
//! |---|---|
//! | `scheduler NAME` | first line |
//! | `set NAME=VALUE …` | tunables |
//! | `reader A at MS think MS: PLACE …` | a process that reads these places one after the other, and exits |
//! | `write PLACE at MS` | one asynchronous write |
//!
//! One command at a time takes 5 ms.

use super::*;

const IN: &str = "```processes\n";
const OUT: &str = "```happens\n";
const END: &str = "```\n";

fn play(script: &str) -> String {
    let mut lines = script.lines().filter(|l| !l.is_empty());
    let name = lines.next().unwrap().strip_prefix("scheduler ").unwrap();
    let (set, rest): (Vec<&str>, Vec<&str>) = lines.partition(|l| l.starts_with("set "));
    let set: Vec<(&str, i64)> = set
        .iter()
        .flat_map(|l| l[4..].split(' '))
        .map(|w| w.split_once('=').map(|(n, v)| (n, v.parse().unwrap())).unwrap())
        .collect();
    let mut d = Driver::new(name, &set, QueueFacts::default());
    for line in rest {
        let words: Vec<&str> = line.split([' ', ':']).filter(|w| !w.is_empty()).collect();
        let number = |i: usize| words[i].parse::<u64>().unwrap();
        match words[0] {
            "reader" => {
                let places = (6..words.len()).map(number).collect();
                let task = d.reader(number(3), number(5), places);
                assert_eq!(words[1], ((b'A' + task as u8) as char).to_string());
            }
            "write" => {
                d.single(number(3) * MS, Op::Write, number(1), false);
            }
            other => panic!("cannot play {other}"),
        }
    }
    d.run(100_000 * MS);
    d.reasons().iter().map(|r| format!("{}\n", r.trim_start())).collect()
}

fn replay(page: &str) -> String {
    let (mut done, mut rest) = (String::new(), page);
    while let Some((before, after)) = rest.split_once(IN) {
        let (script, after) = after.split_once(END).unwrap();
        let (between, after) = after.split_once(OUT).unwrap();
        let (_, after) = after.split_once(END).unwrap();
        done += &format!("{before}{IN}{script}{END}{between}{OUT}{}{END}", play(script));
        rest = after;
    }
    done + rest
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads the files it checks")]
fn golden_files_say_what_happens() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for generation in ["2.6.18", "2.6.32"] {
        let path = dir.join(format!("anticipatory@{generation}.md"));
        let page = std::fs::read_to_string(&path).unwrap();
        let wanted = replay(&page);
        assert!(wanted.contains(IN));
        iosched_testing::golden(&path, &wanted);
    }
}
