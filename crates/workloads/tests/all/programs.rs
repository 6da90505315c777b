//! The table of programs: names, parameters, what is refused and how.
#![allow(clippy::disallowed_methods, reason = "tests read the documentation")]

use std::collections::BTreeSet;

use iosched_workloads::programs::{Descriptor, PROGRAMS, Params};

fn refused(line: &str) -> String {
    Descriptor::from_command_line(line).map(|_| ()).expect_err("a bad line").to_string()
}

#[test]
fn a_command_line_sets_parameters_in_order() {
    let (d, p) = Descriptor::from_command_line("rd two big 64k 1M -4096 500").unwrap();
    assert_eq!(d.name, "rd");
    assert_eq!((&*p.word("pattern"), &*p.word("file")), ("two", "big"));
    assert_eq!((p.bytes("bs"), p.bytes("start"), p.number("stride")), (65536, 1 << 20, -4096));
    assert_eq!((p.count("count"), p.bytes("size")), (500, 256 << 20));
    let (_, p) = Descriptor::from_command_line("fsops over_fsync d 4 100 4096 16777216").unwrap();
    assert_eq!((p.count("nproc"), p.count("arg")), (4, 16_777_216));
}

/// As they stand in the rows of data/truth-fs and in the scripts that made them.
#[test]
fn command_lines_of_the_measurements_are_taken() {
    let same = |theirs: &str, ours: &str| {
        let read = |line: &str| {
            Descriptor::from_command_line(line).unwrap_or_else(|e| panic!("{line}: {e}"))
        };
        let ((a, p), (b, q)) = (read(theirs), read(ours));
        assert_eq!((a.name, p), (b.name, q), "{theirs}");
    };
    same("./fsops run append_fsync . 4 100 4096 0", "fsops append_fsync . 4 100 4096 0");
    same("fsops run append_fsync $M 4 100 4096 0", "fsops append_fsync . 4 100 4096 0");
    same("fsops run over_fsync /mnt/x 1 30", "fsops over_fsync . 1 30");
    same("rd pread /mnt/x/small 4096 0 65536 100", "rd pread small 4096 0 65536 100");
    same("rd pread $M/d/small", "rd pread d/small");
    assert!(refused("rd pread /mnt/x/../small").contains("below the program's directory"));
}

#[test]
fn what_does_not_fit_is_said_with_the_nearest_word() {
    assert!(refused("fsop append_fsync").contains("did you mean \"fsops\"?"));
    assert!(refused("fsops apend_fsync").contains("did you mean \"append_fsync\"?"));
    assert!(refused("fsops append_fsync /etc").contains("below the program's directory"));
    assert!(refused("fsops append_fsync a/../../b").contains("below the program's directory"));
    assert!(refused("fsops append_fsync . 0").contains("nproc=0 is out of range: 1 to 4096"));
    assert!(refused("fsops append_fsync . two").contains("a number is expected"));
    assert!(refused("relay 1 2 3 4 5").contains("usage: relay NPROC ROUNDS SIZE THINK"));
    assert!(refused("startup konsol").contains("did you mean \"konsole\"?"));
    assert!(refused("startup bash 10r-sek").contains("did you mean \"10r-seq\"?"));
    assert!(refused("startup bash 5r5w-raw").contains("did you mean \"5r5w-"), "nobody writes raw");
    assert!(refused("startup bash x").contains("readers and writers are expected: 0r, 10r-seq"));
    assert!(refused("startup bash 0r 0").contains("iterations=0 is out of range: 1 to 10000"));
    assert!(refused("video 0r 40 1M 50000").contains("decode=50000 is out of range: 0 to 41666"));
    assert!(refused("interleaved 5 0").contains("zone=0 is out of range: 4096 to"));
    for (line, words) in [
        ("interleaved 5 4096", "zone=4096 is no multiple of block="),
        ("rd pread big 64k 0 64k 5000 1M", "do not lie in size=1048576"),
        (
            "rd pread big 1G 0 4096 1 1M",
            "reads of 1073741824 bytes from 0 to 0 do not lie in size=",
        ),
        ("fsops append_fsync . 1 10 0", "op=append_fsync needs a size above 0"),
        ("fsops direct_append . 1 10 100", "a size that is a multiple of 512, not 100"),
    ] {
        let why = refused(line);
        assert!(why.contains(words), "{line}: {why}");
    }
    let set = |n: &str, v: &str| (n.to_string(), v.to_string());
    let apart = |d: &str, n: &str, v: &str| {
        Params::of(Descriptor::find(d).unwrap(), &[set(n, v)]).map(|_| ()).unwrap_err()
    };
    assert!(apart("sqlite", "page_size", "513").contains("is no power of two"));
    assert!(apart("postmark", "smallest", "2M").contains("smallest=2097152 is above largest="));
    let pgbench = Descriptor::find("pgbench").unwrap();
    let few = Params::of(pgbench, &[set("shared_buffers", "1M"), set("clients", "50")]);
    assert!(
        few.unwrap_err().contains("shared_buffers=1048576 is too little for 50 clients: 1638400")
    );
    let rd = Descriptor::find("rd").unwrap();
    let e = Params::of(rd, &[set("strid", "1")]).unwrap_err();
    assert!(e.contains("did you mean \"stride\"?"), "{e}");
    let e = Params::of(rd, &[set("bs", "1"), set("bs", "2")]).unwrap_err();
    assert_eq!(e, "bs is set twice");
}

#[test]
fn every_default_fits_and_every_name_is_there_once() {
    let mut names: Vec<&str> = PROGRAMS.iter().map(|d| d.name).collect();
    for d in PROGRAMS {
        Params::of(d, &[]).unwrap_or_else(|e| panic!("{}: {e}", d.name));
        assert!(d.text.ends_with('.'), "{}", d.name);
        for p in d.params {
            assert!(p.text.ends_with('.'), "{}: {}", d.name, p.name);
        }
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), PROGRAMS.len());
}

#[test]
fn a_file_is_read_and_checked_with_the_experiment() {
    let d = Descriptor::find("dbench").unwrap();
    let with = |name: &str, text: Result<&str, &str>| {
        let set = [("loadfile".to_string(), name.to_string())];
        let text = text.map(String::from).map_err(String::from);
        Params::of(d, &set).unwrap().with_files(d, &|_| text.clone())
    };
    // The default stands for no file, and none is read.
    assert!(with("made", Err("read")).unwrap().file("loadfile").is_none());
    let p = with("l.txt", Ok("Flush 1 OK\n")).unwrap();
    assert_eq!(p.file("loadfile").as_deref(), Some("Flush 1 OK\n"));
    // A record names the file and a digest, not its text.
    let (_, shown) = p.iter().find(|(n, _)| *n == "loadfile").unwrap();
    assert!(shown.starts_with("l.txt (") && shown.len() < 30, "{shown}");
    let e = with("l.txt", Err("no such file")).unwrap_err().to_string();
    assert!(e.contains("cannot read \"l.txt\": no such file"), "{e}");
    let e = with("l.txt", Ok("Flush 1 OK\nFlash 1 OK\n")).unwrap_err().to_string();
    assert!(e.contains("l.txt:2:1") && e.contains("did you mean \"Flush\"?"), "{e}");
}

/// Whoever writes a program finds every call there.
#[test]
fn every_call_stands_in_the_table_of_calls() {
    let read = |path: &str| {
        std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let page = read("docs/programs.md");
    let (_, table) = page.split_once("| kind | calls |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let there: BTreeSet<&str> = table.split('`').skip(1).step_by(2).collect();
    let source = read("crates/syscalls/src/sys.rs");
    let calls = source.split("pub async fn ").skip(1).map(|f| f.split(['(', '<']).next().unwrap());
    for call in calls.filter(|c| *c != "call") {
        assert!(there.contains(call), "docs/programs.md lacks {call}");
    }
}

/// The tables of `docs/programs.md` are the programs' own. `BLESS=1 cargo test -p iosched-workloads` writes them.
#[test]
fn the_page_has_every_program() {
    const BEGIN: &str = "<!-- programs:begin -->\n";
    const END: &str = "<!-- programs:end -->";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/programs.md");
    let page = std::fs::read_to_string(path).unwrap();
    let tables: String =
        PROGRAMS.iter().map(|d| format!("\n### {}\n\n{}", d.name, d.table())).collect();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}{tables}\n{END}{after}");
    if std::env::var("BLESS").is_ok() {
        std::fs::write(path, &wanted).unwrap();
    } else {
        assert!(page == wanted, "BLESS=1 cargo test -p iosched-workloads writes the tables anew");
    }
}
