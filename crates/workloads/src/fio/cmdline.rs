//! fio command lines, the form in which most jobs are posted: `fio --name=a --rw=read …` becomes sections of a job file.
//!
//! Rules of fio 3.33: options before the first `--name` are those of all jobs, as are those behind `--name=global`; one
//! dash is as good as two; `--option value` is `--option=value`, but for options that stand alone. Around the command
//! a text may have a prompt, `sudo`, variables that are set and used, comments, and lines that end in `\`, of Windows in
//! `^`. Of a job file on the command line the sections come last, wherever it stands: options before the first `--name`
//! are defaults of its jobs (`fio a.fio --bs=16k`: a `bs` in the file stays).

use std::collections::BTreeMap;
use std::rc::Rc;

use iosched_types::Diagnostic;

use super::lexer::{Include, MAX_ERRORS, RawOption, Section, lex};
use super::option::{Kind, find_option};
use super::shell::{Word, commands, expanded, in_loop};

/// fio's own options that take a value and change only its report or how it runs.
const REPORTS: &[&str] = &[
    "output",
    "o",
    "output-format",
    "terse-version",
    "eta",
    "eta-newline",
    "eta-interval",
    "status-interval",
    "debug",
    "d",
    "max-jobs",
    "alloc-size",
    "aux-path",
    "idle-prof",
    "append-terse",
    "trigger-file",
    "trigger-timeout",
    "timeout-ms",
];
/// The same without a value.
const FLAGS: &[&str] = &[
    "minimal",
    "readonly",
    "warnings-fatal",
    "bandwidth-log",
    "latency-log",
    "inflate-log",
    "daemonize",
    "print-terse",
    "parse-only",
    "m",
];

/// The sections of a command line; `None` for all other texts.
pub(crate) fn sections(
    file: &str,
    text: &str,
    include: Include<'_>,
    warnings: &mut Vec<String>,
) -> Option<Result<Vec<Section>, Vec<Diagnostic>>> {
    let is_section = |line: &str| line.trim_start().starts_with('[');
    if text.lines().any(is_section)
        || !text.to_ascii_lowercase().contains("fio")
        || text.contains('\0')
    {
        return None;
    }
    let file: Rc<str> = file.into();
    let commands = commands(&file, text);
    let assigned = assignments(&commands);
    let mut found = commands.iter().filter_map(|words| Some((words, at_fio(words, &assigned)?)));
    let (words, at) = found.next()?;
    if let Some((other, at)) = found.next() {
        let d = other[at].line.diagnostic(other[at].column, 3, "a second fio command");
        return Some(Err(vec![d.with_help("a workload is one command: keep one of them")]));
    }
    if let Some(d) = in_loop(&commands, words) {
        return Some(Err(vec![d]));
    }
    for command in &commands {
        let Some(first) = command.first() else { continue };
        let is_this = std::ptr::eq(command, words);
        let known = |w: &Word| {
            ["sudo", "$", "#", "time", "doas", "-E"].contains(&w.text.as_str())
                || w.text.contains('=')
                || w.text.ends_with(['$', '#'])
        };
        let left = match is_this {
            true => command[..at].iter().any(|w| !known(w)),
            false => command.iter().any(|w| !w.text.contains('=')),
        };
        if left && warnings.len() < MAX_ERRORS {
            let what = if is_this { "what stands before fio" } else { "a command beside fio" };
            let told = if is_this { &command[..at] } else { &command[..] };
            warnings.push(format!("{}: {what} is not run: {}", first.line.place(), shown(told)));
        }
    }
    let read = options(&words[at + 1..], &assigned, warnings);
    Some(read.and_then(|read| read.with_file(&file, include)))
}

/// Whether fio's first word is an option or a job file. In a sentence neither follows it.
pub(super) fn begins(word: &str) -> bool {
    let ends = [".fio", ".job", ".ini", ".cfg", ".conf"].iter().any(|e| word.ends_with(e));
    word.starts_with(DASHES) || ends || word.starts_with(['/', '.']) && word.contains('/')
}

/// The program under the names that posts give it: `fio`, `FIO`, `/usr/bin/fio`, `fio.exe`, `fio-3.33`, and images of
/// containers that run it (`user/fio:latest`).
pub(super) fn is_fio(word: &str) -> bool {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).to_ascii_lowercase();
    let name = name.split(':').next().unwrap_or_default();
    let version = |v: &str| v.starts_with(|c: char| c.is_ascii_digit());
    let name = name.strip_suffix(".exe").unwrap_or(name);
    name == "fio" || name.strip_prefix("fio-").is_some_and(version)
}

/// Where a command has fio with an option. A word of a sentence, and an image that is named as the program in it, are
/// followed by none. A variable counts by its value, `$FIO` without one by its name.
pub(super) fn at_fio(words: &[Word], assigned: &BTreeMap<String, String>) -> Option<usize> {
    let program = |w: &Word| match w.text.contains('$') {
        true => is_fio(expanded(&w.text, assigned).trim_matches(['$', '{', '}'])),
        false => is_fio(&w.text),
    };
    words.windows(2).position(|pair| program(&pair[0]) && begins(&pair[1].text))
}

pub(super) const DASHES: [char; 3] = ['-', '–', '—'];

fn shown(words: &[Word]) -> String {
    let text = words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
    text.chars().take(60).collect()
}

/// `NAME=value` of lines before, and in front of commands.
fn assignments(commands: &[Vec<Word>]) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for word in commands.iter().flat_map(|c| c.iter().take_while(|w| !w.text.starts_with('-'))) {
        if let Some((name, value)) = word.text.split_once('=')
            && is_name(name)
        {
            out.insert(name.to_string(), value.to_string());
        }
    }
    out
}

pub(super) fn is_name(name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(part) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// What a command line says: its sections, and the job file that it names.
struct Read<'a> {
    sections: Vec<Section>,
    jobs: Option<&'a Word>,
}

impl Read<'_> {
    /// All sections, those of the job file last.
    fn with_file(
        mut self,
        file: &Rc<str>,
        include: Include<'_>,
    ) -> Result<Vec<Section>, Vec<Diagnostic>> {
        if let Some(word) = self.jobs {
            let text = include(&word.text).map_err(|why| {
                let wide = word.text.chars().count();
                let message = format!("cannot read the job file \"{}\": {why}", word.text);
                let help = "a job file is run by its own name, too: iosched run FILE, with options as --set NAME=VALUE";
                vec![word.line.diagnostic(word.column, wide, message).with_help(help)]
            })?;
            self.sections.extend(lex(&word.text, &text, include)?);
        } else if self.sections.iter().all(|s| s.name == "global") {
            let d = Diagnostic::file(&**file, "the fio command names no job");
            return Err(vec![d.with_help("fio wants --name=NAME or a job file, too")]);
        }
        Ok(self.sections)
    }
}

fn options<'a>(
    words: &'a [Word],
    assigned: &BTreeMap<String, String>,
    warnings: &mut Vec<String>,
) -> Result<Read<'a>, Vec<Diagnostic>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut jobs = None;
    let mut errors = Vec::new();
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        let wide = word.text.chars().count();
        let bare = word.text.trim_start_matches(DASHES);
        if bare.len() == word.text.len() {
            if jobs.replace(word).is_some() {
                let message = format!("\"{bare}\" is a second job file");
                let help = "a workload is one job file: run the others by their own names";
                errors.push(word.line.diagnostic(word.column, wide, message).with_help(help));
            }
            continue;
        }
        let (key, mut value) = bare.split_once('=').map_or((bare, None), |(k, v)| (k, Some(v)));
        let def = find_option(key);
        let alone = FLAGS.contains(&key) || def.is_none_or(|d| d.kind == Kind::Flag);
        if value.is_none() && (!alone || REPORTS.contains(&key)) {
            value = rest.next_if(|w| !w.text.starts_with('-')).map(|w| w.text.as_str());
        }
        if def.is_none() && (REPORTS.contains(&key) || FLAGS.contains(&key)) {
            let place = word.line.place();
            warnings.push(format!(
                "{place}: {key} has no effect on timing: it only changes what fio reports or logs"
            ));
            continue;
        }
        let dashes = wide - bare.chars().count();
        let value = value.map(|v| expanded(v, assigned));
        if key == "name" {
            let name = value.unwrap_or_default();
            sections.push(Section { name, line: word.line.clone(), options: Vec::new() });
            continue;
        }
        if sections.is_empty() {
            let line = word.line.clone();
            sections.push(Section { name: "global".into(), line, options: Vec::new() });
        }
        let key_column = word.column + dashes;
        let value_column = key_column + key.chars().count() + 1;
        let option =
            RawOption { key: key.into(), value, line: word.line.clone(), key_column, value_column };
        if let Some(section) = sections.last_mut() {
            section.options.push(option);
        }
    }
    errors.truncate(MAX_ERRORS);
    if errors.is_empty() { Ok(Read { sections, jobs }) } else { Err(errors) }
}

#[cfg(test)]
mod tests {
    use crate::fio::{JobSet, NoLookup, parse};

    fn set(text: &str) -> JobSet {
        parse("a.sh", text, &NoLookup, &|_| Err("none".into()), &[])
            .unwrap_or_else(|e| panic!("{text}: {}", e[0]))
    }

    /// Job by job what the same job file means; the places differ.
    fn same(command: &str, file: &str) -> JobSet {
        let (mut a, mut b) = (set(command), set(file));
        for job in a.jobs.iter_mut().chain(&mut b.jobs) {
            job.place.clear();
        }
        assert_eq!(a.jobs, b.jobs, "{command}");
        a
    }

    #[test]
    fn a_command_line_is_a_job_file() {
        // The forms in which fio 3.33 was asked.
        same(
            "fio -ioengine=libaio -direct=1 -iodepth 4 -thread -rw=randread -bs=16k -size=1m -numjobs=2 -runtime=1 \
             -group_reporting -name=mytest",
            "[mytest]\nioengine=libaio\ndirect=1\niodepth=4\nrw=randread\nbs=16k\nsize=1m\nnumjobs=2\nruntime=1\n\
             group_reporting\n",
        );
        let global = "[global]\nrw=randread\nbs=16k\nsize=1m\n[a]\n[b]\nbs=8k\n";
        same("fio --rw=randread --bs=16k --size=1m --name=a --name=b --bs=8k", global);
        same(
            "fio --name=global --rw=randread --bs=16k --size=1m --name=a --name=b --bs=8k",
            global,
        );
        same(
            "fio --name=a --rw=randread --size=1m --name=b --bs=8k --size=2m",
            "[a]\nrw=randread\nsize=1m\n[b]\nbs=8k\nsize=2m\n",
        );
        same(
            "fio --name a --rw write --size 1m --time_based --runtime 3",
            "[a]\nrw=write\nsize=1m\ntime_based\nruntime=3\n",
        );
    }

    #[test]
    fn as_people_paste_it() {
        let file = "[my job]\nfilename=/dev/sdb\nrw=randwrite\nsize=1g\ndirect=1\n";
        let pasted = "#!/bin/bash\n# raw speed\nDEV=/dev/sdb\n\nsudo fio --name='my job' --filename=$DEV \\\n   --rw=randwrite --size=1g \\ \n  –direct=1 --output=x.json > log 2>&1\n";
        let warnings = same(pasted, file).warnings;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("a.sh:7: output has no effect"), "{warnings:?}");
        let prompted = "root@nas:~# fio --name=\"my job\" --filename=/dev/sdb --rw=randwrite --size=1g --direct=1\n";
        assert!(same(prompted, file).warnings.is_empty());
        same(&prompted.replace("root@nas:~", ""), file);
    }

    /// In a container, in quotes of another shell, and under the other names of the program.
    #[test]
    fn fio_is_found_where_it_runs() {
        let file = "[a]\nrw=read\nsize=1m\n";
        let options = "--name=a --rw=read --size=1m";
        for form in [
            "docker run --rm -v /srv:/data user/fio:latest",
            "podman run img fio",
            "docker run user/fio fio",
            "FIO",
            "./fio-3.33",
        ] {
            same(&format!("{form} {options}"), file);
        }
        same(&format!("C:\\\\tools\\\\fio.exe {options}"), file);
        for form in ["FIO=/opt/fio-3.33\n$FIO", "BENCH=fio; ${BENCH}", "\"$FIO\""] {
            same(&format!("{form} {options}"), file);
        }
        let w = same(&format!("sudo sh -c 'cd /x && fio {options}'"), file).warnings;
        assert!(w.iter().any(|w| w.contains("is not run: sudo sh -c cd /x")), "{w:?}");
        let w = same(&format!("su -c 'fio {options}' bob"), file).warnings;
        assert!(w.iter().any(|w| w.contains("is not run: bob")), "{w:?}");
        let w = same(&format!("ssh db 'fio {options} && sync' | tee log"), file).warnings;
        assert!(w.iter().any(|w| w.contains("before fio is not run: ssh db")), "{w:?}");
        assert!(w.iter().any(|w| w.contains("is not run: sync")), "{w:?}");
    }

    #[test]
    fn what_else_stands_there_is_told() {
        let w = set("sync; fio --name=a --rw=read --size=1m | tee log\nnumactl -N 0 ls\n").warnings;
        assert!(w[0].contains("a.sh:1: a command beside fio is not run: sync"), "{w:?}");
        assert!(w[1].contains("tee log") && w[2].contains("numactl -N 0 ls"), "{w:?}");
        let refused = |text: &str| {
            let e = parse("a.sh", text, &NoLookup, &|_| Err("none".into()), &[]).unwrap_err();
            (e[0].line, e[0].column, e[0].to_string())
        };
        let (line, column, text) = refused("fio --name=a \\\n  --iodpeth=3 --size=1m\n");
        assert_eq!((line, column), (2, 5), "{text}");
        assert!(text.contains("did you mean \"iodepth\"?"), "{text}");
        assert!(refused("fio --rw=read --size=1m\n").2.contains("names no job"));
        let (line, column, text) = refused("fio --name=a x.fio\n");
        assert_eq!((line, column), (1, 14), "{text}");
        assert!(text.contains("x.fio") && text.contains("iosched run FILE"), "{text}");
        assert!(refused("fio --name=a\nfio --name=b\n").2.contains("a second fio command"));
    }
}
