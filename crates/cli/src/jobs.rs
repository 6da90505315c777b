//! Jobs that come with the program: `examples/jobs/*.fio`, usable by name without a checkout.

use iosched_types::nearest::did_you_mean;
use iosched_workloads::programs::PROGRAMS;

use crate::situations::SITUATIONS;

/// A job by name.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../examples/jobs/", $name, ".fio")),
        }),*]
    };
}

/// All of them, by name.
pub(crate) static JOBS: &[Builtin] = builtin![
    "bandwidth-latency",
    "database",
    "desktop",
    "mixed-rates",
    "one-streaming-writer",
    "priorities",
    "random-read-qd128",
    "random-read-qd32",
    "random-writers",
    "sequential-readers",
];

impl Builtin {
    /// The comment at the top of the file, as one sentence.
    pub(crate) fn summary(&self) -> String {
        let comment = self.text.lines().take_while(|l| l.starts_with('#') && !l.starts_with(QUICK));
        comment.map(|l| l.trim_start_matches('#').trim()).collect::<Vec<_>>().join(" ")
    }
}

/// Before the options that make a job short, in a comment of its own.
const QUICK: &str = "# --quick: ";

/// The options that make a job short; none where it does not say so.
pub(crate) fn quick(text: &'static str) -> Vec<(&'static str, &'static str)> {
    let line = text.lines().find_map(|l| l.strip_prefix(QUICK));
    line.unwrap_or_default().split(' ').filter_map(|o| o.split_once('=')).collect()
}

/// Words that people type for a load that is here under another name, and what that is.
const CALLED: &[(&[&str], &str)] = &[
    (
        &["postgres", "postgresql", "psql", "pg"],
        "pgbench is a PostgreSQL server under load, pg-test-fsync its syncs alone, and database a fio job of a database's \
         reads, log and checkpoint",
    ),
    (
        &["mysql", "mariadb", "innodb", "oracle", "sqlserver", "mongodb", "oltp", "db", "dbms"],
        "database is a fio job of a database's reads, log and checkpoint; pgbench and sqlite are whole servers and programs",
    ),
    (&["sqlite3"], "sqlite is a program"),
    (&["fsync", "sync", "pg_test_fsync"], "pg-test-fsync times the ways to sync a log"),
    (
        &["web", "http", "httpd", "webserver", "apache2"],
        "nginx and apache are web servers under load",
    ),
    (
        &["samba", "smb", "cifs", "nfs", "fileserver", "file-server"],
        "dbench has the clients of a file server",
    ),
    (&["mail", "mailserver", "maildir"], "postmark has the small files of a mail server"),
    (
        &["compile", "compiling", "make", "build", "gcc", "kernel", "linux"],
        "kernel-compile and php-compile compile, kernel-tasks has make, git grep, checkout and merge, and compilebench \
         the files alone",
    ),
    (&["git"], "kernel-tasks has git grep, checkout and merge on a cold tree"),
    (&["php"], "php-compile compiles PHP"),
    (&["copy", "cp", "rsync", "dd"], "file-copy copies a file"),
    (
        &["boot", "start", "login", "latency", "responsiveness"],
        "startup times the cold start of a program under load",
    ),
    (
        &["film", "movie", "mplayer", "vlc", "playback"],
        "video plays a film beside readers and writers",
    ),
    (
        &["random", "randread", "rand"],
        "random-read-qd32 and random-writers are fio jobs; --set changes their options",
    ),
    (
        &["seq", "sequential", "read", "streaming"],
        "sequential-readers is a fio job; --set changes its options",
    ),
];

/// What somebody who typed this word may mean; empty where nothing here is that.
fn called(word: &str) -> &'static str {
    let word = word.to_lowercase();
    CALLED.iter().find(|(words, _)| words.contains(&word.as_str())).map_or("", |(_, text)| text)
}

/// The text of a job. The help of what is not there also names programs, which stand in the same place.
pub(crate) fn find(name: &str) -> Result<&'static str, String> {
    JOBS.iter().find(|j| j.name == name).map(|j| j.text).ok_or_else(|| {
        let own = || JOBS.iter().map(|j| j.name).chain(PROGRAMS.iter().map(|p| p.name));
        let names = || own().chain(SITUATIONS.iter().map(|s| s.name));
        let known = called(name);
        if !known.is_empty() {
            return format!("{known}; see `iosched list workloads`");
        }
        let near = did_you_mean(name, names());
        let list = || names().collect::<Vec<_>>().join(", ");
        if near.is_empty() { format!("a job file, or one of: {}", list()) } else { near }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word is a load here or leads to some, never both, and each sentence names one that is there.
    #[test]
    fn words_that_people_type_lead_to_loads_that_there_are() {
        let known: Vec<&str> =
            JOBS.iter().map(|j| j.name).chain(PROGRAMS.iter().map(|p| p.name)).collect();
        for (words, text) in CALLED {
            let mut named = text.split([' ', ',', ';']);
            assert!(named.any(|w| known.contains(&w)), "{text}");
            assert!(words.iter().all(|w| !known.contains(w) && called(w) == *text), "{words:?}");
        }
        assert!(find("Postgres").is_err_and(|help| help.contains("pgbench is a PostgreSQL")));
        assert!(find("databse").is_err_and(|help| help.contains("did you mean \"database\"?")));
    }
}
