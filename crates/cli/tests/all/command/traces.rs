//! `iosched trace`: figures, parts, forms, and what is refused.

use super::Place;

const MSR: &str = "128166372003061629,hm,1,Read,2113486848,4096,270\n\
                   128166372013061629,hm,1,Write,4096,8192,1270\n\
                   128166372023061629,hm,1,Read,2113490944,4096,500\n";

const BOTH: &str = "419,R,0,4096,1577808000000000\n725,W,8192,4096,1577808000000100\n419,R,4096,4096,1577808000000200\n";

#[test]
fn a_trace_is_shown_as_text_json_and_page() {
    let place = Place::new();
    let file = place.file("trace", MSR);
    let text = place.out(&["trace", "info", &file]);
    assert!(
        text.contains("MSR Cambridge CSV")
            && text.contains("read of 4.00 KiB at 1.97 GiB of disk hm.1"),
        "{text}"
    );
    let json = place.out(&["trace", "info", &file, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["ios"].as_u64(), json["format"].as_str()), (Some(3), Some("msr")));
    assert_eq!(json["operations"][0]["latency"]["max_ns"], 50_000);
    place.out(&["trace", "info", &file, "--html", "page.html"]);
    let page = std::fs::read_to_string(place.dir.path().join("page.html")).unwrap();
    assert!(page.contains("Offsets over time") && page.contains("Latencies over time"));
}

#[test]
fn parts_and_forms_are_written_and_read_again() {
    let place = Place::new();
    let file = place.file("trace", MSR);
    let parquet = cfg!(feature = "parquet").then_some(("parquet", "a.parquet"));
    let forms = [
        ("csv", "a.csv"),
        ("csv", "a.csv.gz"),
        ("iolog", "a.log"),
        ("iolog2", "a.log2"),
        ("blkparse", "a.blkparse"),
    ];
    for (form, name) in forms.into_iter().chain(parquet) {
        place.out(&["trace", "convert", &file, "-o", name]);
        let json = place.out(&["trace", "info", name, "--format", "json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["ios"], 3, "{form}");
        assert_eq!(json["end_bytes"], 2_113_495_040u64, "{form}");
    }
    let csv = place.out(&["trace", "cut", &file, "--from", "1s", "-o", "-"]);
    assert_eq!(csv.lines().count(), 3);
    assert!(csv.lines().nth(1).unwrap().starts_with("0,,127000,hm.1,write"), "{csv}");
    let csv = place.out(&[
        "trace",
        "filter",
        &file,
        "--op",
        "read",
        "--range",
        "..2113490000",
        "-o",
        "-",
    ]);
    assert_eq!(csv.lines().count(), 2, "{csv}");
    let csv = place.out(&["trace", "anonymise", &file, "-o", "-"]);
    assert!(!csv.contains("hm") && csv.contains("disk1"), "{csv}");
    let csv = place.out(&["trace", "merge", &file, "a.csv", "--align", "start", "-o", "-"]);
    assert_eq!(csv.lines().count(), 7, "{csv}");
}

#[test]
fn several_disks_are_asked_for() {
    let place = Place::new();
    let file = place.file("trace", BOTH);
    let why = place.fails(2, &["trace", "info", &file]);
    assert!(
        why.contains("2 disks are in the trace")
            && why.contains("--disk 419")
            && why.contains("725"),
        "{why}"
    );
    assert!(place.out(&["trace", "info", &file, "--disk", "725"]).contains("write"));
    assert!(place.out(&["trace", "info", &file, "--disk", "all"]).contains("I/Os         3"));
    let why = place.fails(2, &["trace", "info", &file, "--disk", "726"]);
    assert!(why.contains("did you mean \"725\""), "{why}");
    // Nothing is left of what was begun.
    place.fails(2, &["trace", "convert", &file, "-o", "x.csv"]);
    let left: Vec<_> =
        std::fs::read_dir(place.dir.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(left, ["trace"]);
}

#[test]
fn bad_traces_are_refused_with_advice() {
    let place = Place::new();
    for (name, content, words) in [
        ("empty", &b""[..], "the file is empty"),
        ("text", b"hello\nworld\n", "known formats: blktrace"),
        ("perf.data", b"PERFILE2xxxxxxxxxx", "perf script -i"),
        ("cut.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "damaged or cut off"),
        (
            "beyond",
            b"0,18446744073709551615,8,R,0.1\n0,18446744073709551615,8,R,0.2\n",
            "the sector is beyond any disk",
        ),
    ] {
        let file = place.file(name, content);
        let why = place.fails(2, &["trace", "info", &file]);
        assert!(why.contains(words), "{name}: {why}");
    }
    let why = place.fails(2, &["trace", "info", "nowhere"]);
    assert!(why.contains("no such file"), "{why}");
    let why = place.fails(2, &["trace", "info", "."]);
    assert!(why.contains("it is a folder"), "{why}");
    let file = place.file("trace", MSR);
    for (args, words) in [
        (&["cut", &file, "-o", "x.csv"][..], "nothing to cut"),
        (&["filter", &file, "-o", "x.csv"], "nothing to filter by"),
        (&["cut", &file, "--from", "9", "--to", "3", "-o", "x.csv"], "--from is not before --to"),
        (&["cut", &file, "--from", "soon", "-o", "x.csv"], "is no time"),
        (&["filter", &file, "--range", "9..3", "-o", "x.csv"], "is no range"),
        (&["filter", &file, "--task", "nobody", "-o", "x.csv"], "none of 3 I/Os"),
        (&["convert", &file, "-o", "no/folder.csv"], "there is no folder"),
        (&["convert", &file, "-o", "x.xlsx"], "the ending names no form"),
    ] {
        let args: Vec<&str> = [&["trace"], args].concat();
        let why = place.fails(2, &args);
        assert!(why.contains(words), "{args:?}: {why}");
    }
}

#[test]
fn records_that_are_not_used_are_told() {
    let place = Place::new();
    let file = place.file("trace", format!("{MSR}nonsense\n"));
    let text = place.out(&["trace", "info", &file]);
    assert!(
        text.contains("not used: the line has too few fields (first in line 4: nonsense)"),
        "{text}"
    );
    let output = place.iosched(&["trace", "convert", &file, "-o", "x.log"]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("too few fields") && told.contains("3 I/Os in x.log"), "{told}");
}

#[test]
fn a_cut_does_not_read_what_is_behind_it() {
    let place = Place::new();
    // More than the 32,768 records that are sorted at a time, ten milliseconds apart.
    let mut text: String = (0..40_000u64)
        .map(|i| {
            format!("{},hm,1,Read,{},4096,270\n", 128_166_372_003_061_629 + i * 100_000, i * 4096)
        })
        .collect();
    text += "no record\n";
    let file = place.file("trace", &text);
    let said = |to: &str| {
        let out =
            place.iosched(&["trace", "cut", &file, "--to", to, "-o", "a.csv"]).output().unwrap();
        String::from_utf8(out.stderr).unwrap()
    };
    let whole = said("1000s");
    assert!(whole.contains("40000 I/Os in a.csv") && whole.contains("not used"), "{whole}");
    let part = said("2s");
    assert!(part.contains("200 I/Os in a.csv") && !part.contains("not used"), "{part}");
}
