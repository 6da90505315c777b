use super::*;

fn folded(call: &'static str, name: &str, len: Option<u64>, took: u64) -> Folded {
    Folded {
        call,
        name: Some(name.into()),
        files: 1,
        flags: OpenFlags::default(),
        len: len.map(|l| (l, l)),
        took,
        bytes: len.unwrap_or(0),
    }
}

fn insert() -> Operation {
    let one = |call| Group { times: 1, calls: vec![call] };
    let many = (0..30)
        .map(|i| one(folded(if i % 2 == 0 { "stat" } else { "close" }, "<other>", None, 1_000)));
    let rounds = Group {
        times: 12,
        calls: vec![
            folded("pwrite", "dir/db-journal", Some(4096), 12_000),
            folded("fdatasync", "dir/db-journal", None, 9_000_000),
        ],
    };
    let own = Lane { processes: 1, groups: [rounds].into_iter().chain(many).collect() };
    let reads = Group { times: 500, calls: vec![folded("pread", "big", Some(4096), 7)] };
    let beside = Lane { processes: 10, groups: vec![reads] };
    Operation { what: "insert", of: 3, took: 10_000_000, lanes: vec![own, beside] }
}

#[test]
fn the_text_has_a_line_a_call_and_counts_the_rest() {
    let text = text("sqlite", &[insert()]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..4], ["sqlite", "", "insert: 10.0 ms, the median of 3", "  12 times:"]);
    let words: Vec<&str> = lines[4].split_whitespace().collect();
    assert_eq!(words, ["pwrite", "db-journal", "4.00", "KiB", "12.0", "µs"]);
    assert_eq!(lines[28], "  and 8 more: 4 stat, 4 close");
    assert_eq!(lines[29], "  beside it, 10 processes, each:");
    let words: Vec<&str> = lines[30].split_whitespace().collect();
    assert_eq!(words[..4], ["pread", "×", "500", "big"]);
    assert_eq!(lines.len(), 31);
}

#[test]
fn names_from_logs_stay_in_their_line() {
    let call = folded("open", "dir/a\u{1b}[31mb\nc", None, 1);
    assert_eq!(file(&call), "a\u{fffd}[31mb\u{fffd}c");
}

#[test]
fn json_has_all_calls() {
    let value = json("sqlite", &[insert()]);
    let own = &value["operations"][0]["lanes"][0]["groups"];
    assert_eq!(own.as_array().unwrap().len(), 31);
    assert_eq!(own[0]["times"], 12);
    assert_eq!(own[0]["calls"][1]["took_ns"], 9_000_000);
    assert_eq!(own[0]["calls"][0]["bytes"], serde_json::json!([4096, 4096]));
}

#[test]
fn the_picture_stands_alone_and_shows_where_the_time_goes() {
    let svg = svg("sqlite", &[insert()]);
    assert!(svg.starts_with("<svg xmlns") && svg.ends_with("</svg>\n"), "{svg}");
    for text in ["12 times:", "fdatasync", "&lt;other&gt;", "and 8 more: 4 stat, 4 close"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    // Nine tenths of the bar are the syncs.
    let bar = svg.split("<rect class=\"sync\"").nth(1).unwrap();
    let width = bar.split("width=\"").nth(1).unwrap().split('"').next().unwrap();
    let share = width.parse::<f64>().unwrap() / (RIGHT - LEFT);
    assert!((0.89..=0.91).contains(&share), "{share}: {svg}");
}

#[test]
fn an_operation_that_is_one_short_call_has_a_full_bar() {
    for took in [1, 5, 368, 1590] {
        let call = folded("read", "a", Some(1), took);
        let own = Lane { processes: 1, groups: vec![Group { times: 1, calls: vec![call] }] };
        let operation = Operation { what: "read", of: 1, took, lanes: vec![own] };
        let svg = svg("t", &[operation]);
        assert!(svg.contains("<rect class=\"read\" x=\"12\" y=\"50\" width=\"736\""), "{svg}");
    }
}

#[test]
fn a_write_to_a_file_opened_with_o_sync_waits() {
    let mut call = folded("pwrite", "log", Some(8192), 10);
    assert_eq!(Class::of(&call), Class::Write);
    call.flags = OpenFlags::DSYNC | OpenFlags::DIRECT;
    assert_eq!(Class::of(&call), Class::Sync);
    let shown = Shown { call: &call, times: 1, begins: None, in_round: false };
    assert_eq!(name(&shown), "pwrite O_DSYNC O_DIRECT");
}
