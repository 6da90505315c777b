//! The same outputs by a locale with a decimal comma: no figure is cut off at it.

use iosched_experiment::record::Record;
use iosched_results::import::{Context, import};

use crate::imports::{figure, read, refused};

/// A text with commas before its decimals. Marks of collecting scripts, comments and versions stay.
fn with_commas(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let kept = line.starts_with('#')
            || line.contains("ersion")
            || ["fio-", "pgbench (", "sysbench "].iter().any(|s| line.starts_with(s));
        let mut before = ' ';
        let mut rest = line.chars().peekable();
        while let Some(c) = rest.next() {
            let digits = before.is_ascii_digit() && rest.peek().is_some_and(char::is_ascii_digit);
            out.push(if c == '.' && digits && !kept { ',' } else { c });
            before = c;
        }
        out.push('\n');
    }
    out
}

const BONNIE: &str = "\
Version  1.03       ------Sequential Output------ --Sequential Input- --Random-
                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--
Machine        Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP  /sec %CP
host           300M  8412  98 25000  20 12000  10  9000  95 60000  15 250.1   1
";
const BARS: &str = "A title\n\nSQLite\nSeconds < Lower Is Better\nHDD: CFQ .. 341.703 |=======\nHDD: Noop . 38.04 |==\n";
const S: &str = "Latency statistics: [sec]\n min max avg std_dev conf99%\n 1.2 2.4 1.804 0.3 0.4\n";

#[test]
fn a_decimal_comma_is_read_by_every_importer() {
    let files = [
        ("dbench", include_str!("../data/imports/dbench.txt")),
        ("pgbench", include_str!("../data/imports/pgbench.txt")),
        ("pgbench -R", include_str!("../data/imports/pgbench_rate.txt")),
        ("sysbench", include_str!("../data/imports/sysbench.txt")),
        ("pg_test_fsync", include_str!("../data/pg_test_fsync.txt")),
        ("iozone", include_str!("../data/iozone.txt")),
        ("iozone -t", include_str!("../data/iozone_throughput.txt")),
        ("bonnie++", BONNIE),
        ("text", BARS),
        ("s-suite", S),
        ("fio", include_str!("../data/imports/fio-normal.txt")),
    ];
    let all = |text: &str| import("x.txt", text, None, &Context::default());
    for (name, text) in files {
        let commas = with_commas(text);
        let figures = |r: Vec<Record>| -> Vec<_> {
            r.into_iter().map(|r| (r.trial, r.metrics, r.jobs)).collect()
        };
        let read = all(&commas).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(figures(read), figures(all(text).unwrap()), "{name}");
        assert!(
            commas.matches(',').count() > text.matches(',').count() || name == "iozone",
            "{name}"
        );
    }
}

/// A comma that could be either is refused, with its line.
#[test]
fn a_comma_that_can_be_two_things_is_refused() {
    let tps =
        "pgbench (16.1)\nlatency average = 8,556 ms\ntps = 116 (without initial connection time)\n";
    let e = import("p.txt", tps, None, &Context::default()).unwrap_err();
    assert_eq!((e.line, e.column), (2, 19), "{e}");
    assert!(e.message.contains("8.556") && e.message.contains("8556"), "{e}");
    let e = refused("scheduler,workload,metric,unit,value\nbfq,w,m,s,\"8,556\"\n");
    assert!(e.contains("8556"), "{e}");
    let csv = "scheduler,workload,metric,unit,value\nbfq,w,m,s,\"0,26\"\n";
    assert_eq!(figure(&read(("c.csv", csv))[0], "m"), 0.26);
    let grouped = "tps = 1'168.7 (without initial connection time)\n";
    assert!(refused(grouped).contains("1'168.7"), "{}", refused(grouped));
}

/// sysbench 0.5 heads its latencies with "response time".
#[test]
fn latencies_of_sysbench_0_5() {
    let text = "sysbench 0.5:  multi-threaded system evaluation benchmark\n\
                Operations performed:  6000 reads, 4000 writes, 12800 Other = 22800 Total\n\
                Read 93.75Mb  Written 62.5Mb  Total transferred 156.25Mb  (2.1313Mb/sec)\n  136.40 Requests/sec executed\n\n\
                General statistics:\n    total time:                          73.3122s\n    response time:\n\
                \x20        min:                                  0.00ms\n         avg:                                  4.12ms\n\
                \x20        max:                                120.10ms\n         approx.  99.9 percentile:            11.02ms\n";
    let r = &read(("s.txt", text))[0];
    assert_eq!((figure(r, "latency avg"), figure(r, "latency max")), (4.12, 120.1));
    assert_eq!((figure(r, "latency p99.9"), figure(r, "requests")), (11.02, 136.4));
}

/// Only `tps` is the same word in every language.
#[test]
fn latencies_of_pgbench_in_other_languages() {
    let text = "pgbench (PostgreSQL) 16.1\nTransaktionstyp: <builtin: TPC-B (sort of)>\nLatenzmittelwert = 8,556 ms\n\
                initiale Verbindungszeit = 9,236 ms\ntps = 1168,712345 (ohne initiale Verbindungszeit)\n";
    let r = &read(("p.txt", text))[0];
    assert_eq!((figure(r, "latency average"), figure(r, "tps")), (8.556, 1168.712345));
    assert_eq!(figure(r, "initiale Verbindungszeit"), 9.236);
}
