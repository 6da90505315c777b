//! The picture of `docs/performance.md` is drawn from the table beside it. `BLESS=1` draws it anew.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::PathBuf;

use iosched_report::svg::{Svg, stand_alone, ticks};

const SIZE: (f64, f64) = (720.0, 360.0);
/// Room for numbers on the left, names on the right, a title and the axis.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;

const STYLE: &str = "svg{background:#fff;font:13px sans-serif}text{fill:#333}path{fill:none;stroke-width:2}\
.grid path{stroke:#ddd;stroke-width:1}.p{stroke-width:7;stroke-linecap:round}\
.s0{stroke:#777}.s1{stroke:#b58900}.s2{stroke:#859900}.s3{stroke:#2aa198}.s4{stroke:#268bd2}\
.s5{stroke:#d33682}.s6{stroke:#cb4b16}.s7{stroke:#6c71c4}";

fn docs(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Numbers of processes, then each scheduler's instructions a request.
struct Table {
    processes: Vec<f64>,
    rows: Vec<(String, Vec<f64>)>,
}

fn number(text: &str) -> f64 {
    text.replace(',', "").parse().unwrap_or_else(|_| panic!("\"{text}\" is not a number"))
}

fn table(page: &str) -> Table {
    let (_, rest) = page.split_once("<!-- processes:begin -->").expect("a mark");
    let (body, _) = rest.split_once("<!-- processes:end -->").expect("its end");
    let mut lines = body.lines().filter(|l| l.starts_with('|') && !l.starts_with("|---"));
    let cells = |l: &str| -> Vec<String> {
        l.trim_matches('|').split('|').map(|c| c.trim().to_string()).collect()
    };
    let processes = cells(lines.next().unwrap())[1..].iter().map(|c| number(c)).collect();
    let row = |l: &str| {
        let c = cells(l);
        (c[0].clone(), c[1..].iter().map(|c| number(c)).collect())
    };
    Table { processes, rows: lines.map(row).collect() }
}

fn draw(t: &Table) -> String {
    let most = t.rows.iter().flat_map(|(_, v)| v).copied().fold(0.0, f64::max);
    let (low, high) = (t.processes[0].log10(), t.processes.last().unwrap().log10());
    let x = |p: f64| LEFT + (p.log10() - low) / (high - low) * (SIZE.0 - LEFT - RIGHT);
    let y = |n: f64| SIZE.1 - BOTTOM - n / most * (SIZE.1 - TOP - BOTTOM);
    let title = "Instructions a simulated request, by the number of processes";
    let mut svg = Svg::new(SIZE.0 as u32, SIZE.1 as u32, "plot", title);
    svg.text((LEFT, 18.0), "start", title);
    svg.open("grid", None);
    for n in ticks(0.0, most, 6) {
        svg.line("g", (LEFT, y(n)), (SIZE.0 - RIGHT, y(n)));
        svg.text((LEFT - 8.0, y(n) + 4.0), "end", &format!("{n}"));
    }
    for p in &t.processes {
        svg.line("g", (x(*p), TOP), (x(*p), SIZE.1 - BOTTOM));
        svg.text((x(*p), SIZE.1 - BOTTOM + 18.0), "middle", &format!("{p}"));
    }
    svg.close();
    svg.text((LEFT, SIZE.1 - 8.0), "start", "processes, each with 8 reads in flight, on hdd");
    let mut names: Vec<(f64, &str)> = Vec::new();
    for (i, (name, values)) in t.rows.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            t.processes.iter().zip(values).map(|(p, n)| (x(*p), y(*n))).collect();
        svg.polyline(&format!("s{}", i % 8), &points);
        svg.dots(&format!("p s{}", i % 8), &points);
        names.push((points.last().unwrap().1, name));
    }
    // Names stand at the ends of their lines, moved apart where lines end close together.
    names.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = 0.0;
    for (at, name) in names {
        let at = f64::max(at + 4.0, free);
        svg.text((SIZE.0 - RIGHT + 10.0, at), "start", name);
        free = at + 14.0;
    }
    stand_alone(&svg.finish(), STYLE)
}

#[test]
fn the_picture_shows_the_table() {
    let page = std::fs::read_to_string(docs("performance.md")).unwrap();
    assert!(page.contains("](performance-processes.svg)"), "the page shows its picture");
    let want = draw(&table(&page));
    let path = docs("performance-processes.svg");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &want).unwrap();
    }
    let have = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        have == want,
        "docs/performance-processes.svg is old: BLESS=1 cargo test -p iosched --test performance_page"
    );
}

/// No more than the logarithm: a thousand times as many processes cost less than three times as much.
#[test]
fn the_cost_grows_no_worse_than_the_logarithm() {
    let page = std::fs::read_to_string(docs("performance.md")).unwrap();
    let t = table(&page);
    let growth = t.processes.last().unwrap().log2() / t.processes[0].log2();
    for (name, values) in &t.rows {
        let grown = values.last().unwrap() / values[0];
        assert!(grown <= growth, "{name}: {grown:.2} times, the logarithm {growth:.2} times");
    }
}
