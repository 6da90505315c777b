//! Words that the shell completes.

use super::{JOB, Place};

/// What bash offers for the last of these words.
fn offered(place: &Place, words: &[&str]) -> Vec<String> {
    let program = place.iosched(&[]).get_program().to_string_lossy().into_owned();
    place.file("completions.bash", place.out(&["completions", "bash"]));
    let all: Vec<&str> = std::iter::once(program.as_str()).chain(words.iter().copied()).collect();
    let (last, before) = (all[all.len() - 1], all[all.len() - 2]);
    let script = format!(
        "source ./completions.bash; COMP_WORDS=(\"$@\"); COMP_CWORD={}; \
         _iosched_words \"$1\" '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        all.len() - 1
    );
    let mut bash = std::process::Command::new("bash");
    bash.args(["--norc", "-c", &script, "bash"]).args(&all).current_dir(place.dir.path());
    bash.env("IOSCHED_DB", place.dir.path().join("results.db"));
    let out = bash.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().filter(|l| !l.is_empty()).map(Into::into).collect()
}

#[test]
fn words_behind_a_comma_and_names_of_experiments_are_completed() {
    let place = Place::new();
    let offered = |words: &[&str]| offered(&place, words);
    assert_eq!(offered(&["run", "x.fio", "--device", "hdd-7200,ss"]), ["hdd-7200,ssd-sata"]);
    assert_eq!(offered(&["run", "x.fio", "--device", "hdd-7"]), ["hdd-7200"]);
    let schedulers = offered(&["run", "x.fio", "--scheduler", "none,kyber,bf"]);
    assert!(schedulers.contains(&"none,kyber,bfq".to_string()), "{schedulers:?}");
    assert!(offered(&["run", "x.fio", "--output", "a,b"]).iter().all(|w| !w.contains("bfq")));
    let job = place.file("j.fio", JOB);
    let run = ["run", &job, "--device", "fixed", "--scheduler", "none", "--quiet", "--name"];
    for name in ["desk top", "desktop"] {
        place.out(&[&run[..], &[name]].concat());
    }
    for words in [&["results", "show", "de"][..], &["compare", "desktop", "de"], &["report", "de"]]
    {
        assert_eq!(offered(words), ["desk\\ top", "desktop"], "{words:?}");
    }
    assert_eq!(offered(&["results", "show", "none-such"]), [""; 0]);
    let published = offered(&["report", "--published", "linux-4"]);
    assert!(published.contains(&"linux-4.12".to_string()), "{published:?}");
}
