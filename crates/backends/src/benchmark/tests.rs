use iosched_workloads::programs::Descriptor;

use super::*;

/// The plan for a directory that the program sees as `/tested`.
fn planned(r: &'static Recipe, params: &Params, dir: &Path) -> Result<Plan> {
    let mut tools = Found::named(r.tools);
    tools.add(tree::TREE, "/usr/src/linux-source-6.1.tar.xz".into(), String::new());
    (r.can)(params)?;
    let (own, scratch, noise) = (dir, dir, false);
    (r.plan)(params, &At { dir: Path::new("/tested"), own, scratch, tools: &tools, noise })
}

fn params(line: &str) -> Params {
    Descriptor::from_command_line(line).unwrap().1
}

fn printed(name: &str) -> String {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(path).unwrap()
}

/// It took two seconds and ended by itself.
const TWO: Seen = Seen { seconds: 2.0, ended: true };

fn figures(workload: &str, text: &str) -> Vec<(&'static str, f64)> {
    let name = workload.split(' ').next().unwrap();
    of(name).unwrap().read(text, &params(workload), TWO).unwrap()
}

/// Each recipe is for a workload that there is, and gives figures that this has.
#[test]
fn recipes_have_the_names_of_their_workloads() {
    for r in RECIPES {
        let (program, params) = Descriptor::from_command_line(r.workload).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let plan = planned(r, &params, dir.path()).unwrap();
        assert!(!plan.run.is_empty(), "{}", r.workload);
        let server = plan.server.iter().map(|s| &s.run);
        for words in plan.prepare.iter().chain(&plan.run).chain(server) {
            let told = |w: &String| {
                ["/tested", "http://127.0.0.1:", dir.path().to_str().unwrap()]
                    .iter()
                    .any(|place| w.contains(place))
            };
            assert!(words.iter().any(told), "{}: {words:?} names no place of ours", r.workload);
            assert!(r.tools.iter().any(|t| t.name == words[0]), "{words:?} is no tool of it");
        }
        // Nothing that serves others runs as root, and nobody's makefile.
        let users = plan.server.is_some() || r.tree.is_some();
        assert_eq!(users, !r.users.is_empty(), "{}", r.workload);
        assert_eq!(plan.server.as_ref().map(|s| s.run[0].as_str()), r.server, "{}", r.workload);
        assert_eq!(program.name, r.workload);
    }
    let names = |w: &str| -> Vec<&str> {
        let (program, _) = Descriptor::from_command_line(w).unwrap();
        program.figures.iter().map(|f| f.name).collect()
    };
    for (line, fixture) in OUTPUTS {
        let Ok(file) = fixture else { continue };
        let workload = line.split(' ').next().unwrap();
        let found: Vec<&str> = figures(line, &printed(file)).iter().map(|f| f.0).collect();
        let all = names(workload);
        assert_eq!(found, all[..found.len()], "{workload}");
        // What only PostgreSQL's own processes know is not told; this IOzone only wrote.
        let part = matches!(workload, "pgbench" | "iozone");
        assert!(found.len() == all.len() || part, "{found:?}");
    }
}

/// A file of what each real program printed, by workload with parameters; or why there is none.
const OUTPUTS: &[(&str, std::result::Result<&str, &str>)] = &[
    ("sqlite", Err("it prints a number of rows and takes a time")),
    ("fs-mark", Ok("fs_mark.txt")),
    ("postmark", Ok("postmark.txt")),
    ("pg-test-fsync", Ok("pg_test_fsync.txt")),
    ("dbench", Ok("dbench.txt")),
    ("nginx 2000", Ok("ab.txt")),
    ("apache 2000", Ok("ab.txt")),
    ("pgbench", Ok("pgbench.txt")),
    ("iozone 65536k 4k 2", Ok("iozone_throughput.txt")),
    ("kernel-compile", Err("it takes a time; what make prints is no figure")),
    ("kernel-tasks", Err("make prints a line a file, git a count of ours: tests of kernel.rs")),
];

fn workloads() -> Vec<&'static str> {
    let mut all: Vec<_> = real_programs().collect();
    all.sort_unstable();
    all
}

/// The words between backquotes in a text, in order.
fn quoted(text: &str) -> Vec<&str> {
    let mut all: Vec<_> = text.split('`').skip(1).step_by(2).collect();
    all.sort_unstable();
    all
}

#[test]
fn every_recipe_has_its_output_and_stands_in_the_documents() {
    let mut outputs: Vec<_> =
        OUTPUTS.iter().map(|(line, _)| line.split(' ').next().unwrap()).collect();
    outputs.sort_unstable();
    assert_eq!(outputs, workloads(), "left is OUTPUTS, right RECIPES");
    let page = |name: &str| {
        fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let readme = page("README.md");
    let (before, _) = readme.split_once(" are the real").expect("README.md names real programs");
    let (_, list) = before.rsplit_once("kernel `").unwrap();
    assert_eq!(quoted(&format!("`{list}")), workloads(), "left is README.md, right RECIPES");
    let programs = page("docs/programs.md");
    let (_, table) = programs.split_once("| workload | real program |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let first = table.lines().skip(2).filter_map(|row| row.split('|').nth(1));
    let first = first.collect::<String>();
    assert_eq!(quoted(&first), workloads(), "left is docs/programs.md, right RECIPES");
}

#[test]
fn outputs_of_the_tools_are_read() {
    // Two loops of 1000 files at 1226.5 and 564.0 a second.
    let [(_, rate)] = figures("fs-mark", &printed("fs_mark.txt"))[..] else { panic!() };
    assert!((rate - 2.0 / (1.0 / 1226.5 + 1.0 / 564.0)).abs() < 1e-9, "{rate}");
    assert_eq!(
        figures("postmark", &printed("postmark.txt")),
        [("transactions per second", 5000.0), ("read", 29.17), ("written", 52.94)]
    );
    let pg = figures("pg-test-fsync", &printed("pg_test_fsync.txt"));
    assert_eq!(pg.len(), 32);
    for wanted in [
        ("open_datasync", 5769.769),
        ("open_sync, two writes", 57.545),
        ("open_sync 8 * 2kB", 9.329),
        ("write, close, fsync", 71.154),
        ("write", 2_337_170.374),
        ("fdatasync, time of one", 400.0),
        ("open_sync 8 * 2kB, time of one", 107_196.0),
        ("write, time of one", 0.0),
    ] {
        assert!(pg.contains(&wanted), "{wanted:?} in {pg:?}");
    }
    // Versions before 9.3 print rates alone, and what the system lacks is n/a.
    let text = printed("pg_test_fsync.txt");
    let older: Vec<&str> = text.lines().map(|l| l.split("ops/sec").next().unwrap()).collect();
    let older = older.join("\n").replace("       5769.769", "n/a");
    assert_eq!(figures("pg-test-fsync", &older), pg[1..16]);
    let io = printed("iozone_throughput.txt");
    assert_eq!(figures("iozone", &io), [("write", 565_567.69), ("rewrite", 294_859.14)]);
    assert_eq!(
        figures("iozone 65536k 4k 2", &io),
        [
            ("write", 565_567.69),
            ("write, parent", 545_366.78),
            ("write, slowest process", 278_001.75),
            ("write, fastest process", 287_565.94),
            ("rewrite", 294_859.14),
            ("rewrite, parent", 292_792.81),
            ("rewrite, slowest process", 132_628.09),
            ("rewrite, fastest process", 162_231.05),
        ]
    );
    assert_eq!(figures("sqlite 3 20 delete full 4096 46", "iosched|60\n"), [("seconds", 2.0)]);
    let db = figures("dbench", &printed("dbench.txt"));
    assert_eq!(db, [("throughput", 169.782), ("max latency", 57.062)]);
    assert_eq!(figures("nginx 2000", &printed("ab.txt")), [("requests per second", 2156.16)]);
    assert_eq!(
        figures("pgbench", &printed("pgbench.txt")),
        [("tps", 297.894_975), ("log syncs per transaction", 1.0)]
    );
    // Since 18 the view of the log has no syncs.
    let newer = printed("pgbench.txt").replace("iosched|597", "iosched|");
    assert_eq!(figures("pgbench", &newer), [("tps", 297.894_975)]);
}

#[test]
fn requests_that_were_not_answered_with_the_page_count_for_nothing() {
    let refused =
        printed("ab.txt").replace("Failed requests:        0", "Failed requests:        3");
    for text in [refused, printed("ab_failed.txt")] {
        let e = of("nginx").unwrap().read(&text, &params("nginx 2000"), TWO).unwrap_err();
        let said = e.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = ["Failed requests: 3", "Non-2xx responses: 20"];
        assert!(wanted.iter().any(|w| said.contains(w)), "{said}");
    }
    // Fewer requests than were asked for; another page than ours.
    for line in ["nginx 4294969296", "nginx 2000 100 1 3065"] {
        of("nginx").unwrap().read(&printed("ab.txt"), &params(line), TWO).unwrap_err();
    }
}

/// A server goes on when it cannot write its log.
#[test]
fn requests_that_were_not_logged_count_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let plan = planned(of("nginx").unwrap(), &params("nginx 3"), dir.path()).unwrap();
    let log = dir.path().join("access.log");
    plan.logged(dir.path()).unwrap_err();
    fs::write(&log, "GET\nGET\nGE").unwrap();
    let e = plan.logged(dir.path()).unwrap_err().to_string();
    assert!(e.contains("access.log has 2 lines, and 3 were to be written"), "{e}");
    // One more was made to see whether it answers.
    fs::write(&log, "GET\n".repeat(4)).unwrap();
    plan.logged(dir.path()).unwrap();
    let other = dir.path().join("other");
    fs::rename(&log, &other).unwrap();
    std::os::unix::fs::symlink(&other, &log).unwrap();
    plan.logged(dir.path()).unwrap_err();
    Plan::default().logged(dir.path()).unwrap();
}

#[test]
fn output_without_figures_is_an_error_with_its_words() {
    for r in RECIPES {
        let e = r.read("it broke\n\nbadly", &params(r.workload), TWO).unwrap_err().to_string();
        assert!(e.contains(r.main()) && e.contains("it broke; badly"), "{e}");
        let e = r.read("", &params(r.workload), TWO).unwrap_err().to_string();
        let first = of_text(r.workload).unwrap().figures[0].name;
        assert!(e.contains(first) && e.ends_with(": it printed nothing"), "{e}");
    }
    let small = printed("postmark.txt").replace("megabytes", "kilobytes");
    let read = figures("postmark", &small)[1].1;
    assert!((read - 29.17 / 1024.0).abs() < 1e-12, "{read}");
}

#[test]
fn what_a_program_cannot_do_its_text_can() {
    for line in [
        "pg-test-fsync 1 16k",
        "sqlite 1 1 delete full 4096 20",
        "iozone 1048577 1024",
        "dbench 1 10 0",
        "pgbench 1 1 1 0 tpcb 128M 1 1 20",
        "pgbench 1 1 1 0 tpcb 128M 1 1 300 1G 50 46",
        "nginx 100 10 1 3064 31",
        "nginx 2147483648",
        "apache 4294967396",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let recipe = of(line.split(' ').next().unwrap()).unwrap();
        let e = planned(recipe, &params(line), dir.path()).unwrap_err();
        assert!(e.help().contains("--program text"), "{line}: {e}");
    }
}

#[test]
fn rows_of_sqlite_have_the_length_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = of("sqlite").unwrap();
    let plan = planned(recipe, &params("sqlite 3 2 wal normal 4096 46"), dir.path()).unwrap();
    assert_eq!(plan.run.len(), 2);
    let text = fs::read_to_string(dir.path().join("inserts.1")).unwrap();
    assert_eq!(text.matches("INSERT").count(), 3);
    assert!(
        text.starts_with(
            "PRAGMA page_size=4096;PRAGMA journal_mode=wal;PRAGMA synchronous=normal;"
        )
    );
    assert!(text.contains("'xxxx','xxxxxxxxxxxxxxxx'"), "{text}");
}

#[test]
fn the_newest_of_several_versions_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    for v in ["9", "15", "13", "odd"] {
        fs::create_dir_all(dir.path().join(v).join("bin")).unwrap();
    }
    let pattern = format!("{}/*/bin", dir.path().display());
    assert_eq!(tool::matching(&pattern)[0], dir.path().join("15/bin"));
}

/// A shell that does nothing takes no time.
#[test]
fn sqlite_has_a_time_only_if_its_rows_are_there() {
    let params = params("sqlite 3 20 wal normal 4096 46");
    let read = |text| of("sqlite").unwrap().read(text, &params, TWO);
    assert_eq!(read("wal\niosched|60\n").unwrap(), [("seconds", 2.0)]);
    for bad in ["", "wal\n", "iosched|59\n", "iosched|\n"] {
        read(bad).unwrap_err();
    }
}
