//! "Run it yourself": what a page says is enough to make the same figures elsewhere.

use super::{JOB, Place};

/// The command and the file of the page about the newest experiment.
fn again(place: &Place) -> (String, String) {
    place.out(&["report", "--html", "page.html"]);
    let page = std::fs::read_to_string(place.dir.path().join("page.html")).unwrap();
    let at = page.find("id=\"again\">").unwrap() + "id=\"again\">".len();
    let text = &page[at..at + page[at..].find("</pre>").unwrap()];
    let signs = [("&#x2f;", "/"), ("&quot;", "\""), ("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">")];
    let text = signs.iter().fold(text.to_string(), |t, (from, to)| t.replace(from, to));
    let (command, file) = text.split_once("\n\n# again.toml\n").unwrap_or_else(|| panic!("{text}"));
    (command.to_string(), file.replace("&amp;", "&"))
}

/// The figures of the newest experiment, without the name.
fn figures(place: &Place) -> String {
    let csv = place.out(&["results", "export", "1", "--format", "csv"]);
    let rows = csv.lines().map(|l| l.split_once(',').unwrap().1);
    rows.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn comes_out_the_same(place: &Place) {
    let (command, file) = again(place);
    assert!(!command.contains('\n'), "nothing is needed beside it: {command}");
    let elsewhere = Place::new();
    elsewhere.file("again.toml", file);
    let words = command.strip_prefix("iosched ").unwrap();
    let program = elsewhere.iosched(&[]).get_program().to_string_lossy().into_owned();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("'{program}' {words}")]).current_dir(elsewhere.dir.path());
    shell.env("IOSCHED_DB", elsewhere.dir.path().join("results.db"));
    let out = shell.output().unwrap();
    assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(figures(&elsewhere), figures(place), "{command}");
    assert_eq!(again(&elsewhere), (command, again(place).1), "and says so itself");
}

/// A device of the user's own, half as fast as `fixed`.
fn device(place: &Place) -> String {
    let text = "title = \"Mine\"\n[model]\nkind = \"fixed\" # half as fast\ncap = \"16GiB\"\nlat_ns = 200_000\npar = 8\n\
                [queue]\nqueue_depth = 32\n";
    place.file("mine.toml", text)
}

#[test]
fn a_command_line_is_made_an_experiment_file() {
    let place = Place::new();
    let (job, device) = (place.file("j.fio", JOB), device(&place));
    let devices = format!("{device},fixed");
    place.out(&[
        "run",
        &job,
        "--device",
        &devices,
        "--scheduler",
        "none,kyber",
        "--runs",
        "2",
        "--seed",
        "7",
        "--set",
        "bs=8k",
        "--tunable",
        "kyber.read_lat_nsec=1000000",
        "--name",
        "it's a \"desk\"",
    ]);
    comes_out_the_same(&place);
    assert!(again(&place).0.contains("--seed 7"), "{}", again(&place).0);
}

#[test]
fn options_beside_an_experiment_file_are_part_of_the_command() {
    let place = Place::new();
    place.file("j.fio", JOB);
    let text = "devices = [\"fixed\"]\nschedulers = [\"none\", \"bfq\"]\nworkloads = [\"j.fio\"]\n";
    let file = place.file("x.toml", text);
    place.out(&[
        "run",
        &file,
        "--scheduler",
        "kyber",
        "--set",
        "bs=64k",
        "--set",
        "rw=randread",
        "--quiet",
        "--name",
        "two words",
    ]);
    comes_out_the_same(&place);
    let (command, file) = again(&place);
    assert_eq!(
        command,
        "iosched run again.toml --runs 12 --set bs=64k --set rw=randread --scheduler kyber \
         --name 'two words'"
    );
    assert!(file.starts_with("devices = [\"fixed\"]"), "{file}");
}
