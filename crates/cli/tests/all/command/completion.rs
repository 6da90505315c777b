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
    let place = stored();
    let offered = |words: &[&str]| offered(&place, words);
    assert_eq!(offered(&["run", "x.fio", "--device", "hdd-7200,ss"]), ["hdd-7200,ssd-sata"]);
    assert_eq!(offered(&["run", "x.fio", "--device", "hdd-7"]), ["hdd-7200"]);
    let schedulers = offered(&["run", "x.fio", "--scheduler", "none,kyber,bf"]);
    assert!(schedulers.contains(&"none,kyber,bfq".to_string()), "{schedulers:?}");
    assert!(offered(&["run", "x.fio", "--output", "a,b"]).iter().all(|w| !w.contains("bfq")));
    for words in [&["results", "show", "de"][..], &["compare", "desktop", "de"], &["report", "de"]]
    {
        assert_eq!(offered(words), ["desk\\ top", "desktop"], "{words:?}");
    }
    assert_eq!(offered(&["results", "show", "none-such"]), [""; 0]);
    let published = offered(&["report", "--published", "linux-4"]);
    assert!(published.contains(&"linux-4.12".to_string()), "{published:?}");
}

/// fish asks the same; it has no word for "nothing to offer" but an empty answer.
#[test]
fn fish_completes_lists_and_names_of_experiments() {
    if std::process::Command::new("fish").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no fish");
        return;
    }
    let place = stored();
    let dir = place.dir.path();
    let script = place.out(&["completions", "fish"]);
    place.file("completions.fish", script);
    let offered = |line: &str| {
        let mut fish = std::process::Command::new("fish");
        fish.args(["--no-config", "-c", "source completions.fish; complete -C $argv[1]", line]);
        fish.current_dir(dir).env("IOSCHED_DB", dir.join("results.db")).env("PATH", path(&place));
        let out = fish.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines().map(|l| l.split('\t').next().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(offered("iosched run x.fio --device hdd-7200,ss"), ["hdd-7200,ssd-sata"]);
    assert_eq!(offered("iosched run x.fio --device=hdd-7200,ss"), ["--device=hdd-7200,ssd-sata"]);
    assert_eq!(offered("iosched run x.fio --device hdd-7"), ["hdd-7200"]);
    for line in ["iosched results show de", "iosched compare desktop de", "iosched report de"] {
        assert_eq!(offered(line), ["desk top", "desktop"], "{line}");
    }
}

/// zsh completes on a terminal only: its own module makes one.
#[test]
fn zsh_completes_lists_and_names_of_experiments() {
    if std::process::Command::new("zsh").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no zsh");
        return;
    }
    let place = stored();
    let dir = place.dir.path();
    std::fs::create_dir(dir.join("functions")).unwrap();
    place.file("functions/_iosched", place.out(&["completions", "zsh"]));
    let completed = |line: &str| {
        let script = r#"
            zmodload zsh/zpty
            zpty terminal zsh -f -i
            zpty -w terminal "PS1=; fpath=($PWD/functions \$fpath); autoload -U compinit; compinit -D -u; stty -echo"
            zpty -w terminal "line() { print -r -- \"=[\$BUFFER]=\"; BUFFER=; zle accept-line }; zle -N line; bindkey '^X' line; print ready''ok"
            zpty -r -m terminal out '*readyok*'
            zpty -n -w terminal "$1"$'\t\x18'
            zpty -r -m terminal out '*=\[*\]=*'
            print -r -- "$out"
        "#;
        let mut zsh = std::process::Command::new("timeout");
        zsh.args(["60", "zsh", "-f", "-c", script, "zsh", line]);
        zsh.current_dir(dir).env("IOSCHED_DB", dir.join("results.db")).env("PATH", path(&place));
        let text = String::from_utf8_lossy(&zsh.output().unwrap().stdout).into_owned();
        let line = text.rsplit_once("=[").and_then(|(_, l)| l.split_once("]="));
        line.unwrap_or_else(|| panic!("{text}")).0.trim_end().to_string()
    };
    let device = completed("iosched run x.fio --device hdd-7200,ss");
    assert_eq!(device, "iosched run x.fio --device hdd-7200,ssd-sata");
    assert_eq!(completed("iosched results show deskt"), "iosched results show desktop");
    assert_eq!(completed("iosched compare desk\\ "), "iosched compare desk\\ top");
}

/// The folder of the program, then those of the user.
fn path(place: &Place) -> std::ffi::OsString {
    let program = std::path::PathBuf::from(place.iosched(&[]).get_program());
    let user = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(program.parent().unwrap().to_path_buf());
    std::env::join_paths(all.chain(std::env::split_paths(&user))).unwrap()
}

/// A place whose results file has two experiments.
fn stored() -> Place {
    let place = Place::new();
    let job = place.file("j.fio", JOB);
    let run = ["run", &job, "--device", "fixed", "--scheduler", "none", "--quiet", "--name"];
    for name in ["desk top", "desktop"] {
        place.out(&[&run[..], &[name]].concat());
    }
    place
}
