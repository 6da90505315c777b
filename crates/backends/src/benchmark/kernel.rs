//! `kernel-compile` and `kernel-tasks`: make and git on a kernel's source tree.

use std::time::Duration;

use iosched_types::Bytes;
use iosched_workloads::programs::Params;
use nix::sys::signal::Signal;

use super::tree::{self, COPY};
use super::{At, Limit, Plan, Read, Recipe, Seen, Server, Tool, Words, only_defaults, only_text};
use crate::error::Result;

const fn tool(name: &'static str, package: &'static str) -> Tool {
    Tool { name, folders: &[], package, version: ("", &[]) }
}

/// What builds a kernel. Its objtool wants a header.
const BUILDS: &[Tool] = &[
    Tool { name: "make", folders: &[], package: "make", version: ("--version", &[3, 82]) },
    Tool { name: "gcc", folders: &[], package: "gcc", version: ("--version", &[]) },
    tool("flex", "flex"),
    tool("bison", "bison"),
    tool("bc", "bc"),
    Tool {
        name: "libelf.h",
        folders: &["/usr/include"],
        package: "libelf-dev",
        version: ("", &[]),
    },
    tool("sh", "dash"),
    tree::TOOLS[0],
    tree::TOOLS[1],
    tree::TOOLS[2],
];
/// A build runs the text of whoever made the tree.
const USERS: &[&str] = &["nobody"];

/// The build.
pub(super) static KERNEL_COMPILE: Recipe = Recipe {
    workload: "kernel-compile",
    tools: BUILDS,
    users: USERS,
    server: None,
    tree: Some(|p, tree| tree + objects(&p.word("config"))),
    can: compile_can,
    plan: compile,
    figures: |printed, _, seen| {
        // An end without a compilation is no build.
        (compiled(printed) > 0).then(|| vec![("seconds", seen.seconds)])
    },
};

/// The tasks.
pub(super) static KERNEL_TASKS: Recipe = Recipe {
    workload: "kernel-tasks",
    tools: BUILDS,
    users: USERS,
    server: None,
    tree: Some(tasks_room),
    can: tasks_can,
    plan: tasks,
    figures: tasks_figures,
};

/// Longer than any build should take.
const GIVEN_UP: Duration = Duration::from_secs(4 * 3600);
/// Compilers at a time in the suite.
const JOBS: u64 = 5;
/// What the suite's make builds.
const CONFIG: &str = "defconfig";

/// Bytes of what a build makes, with room to spare: Linux 6.1 on x86-64.
fn objects(config: &str) -> Bytes {
    if config == CONFIG { 2 << 30 } else { 512 << 20 }
}

/// Figures of the text set how long it computes.
fn compile_can(p: &Params) -> Result<()> {
    whole(p)?;
    only_defaults(p, "kernel-compile", &["files", "cpu", "object"])
}

fn whole(p: &Params) -> Result<()> {
    match p.count("scale") {
        100 => Ok(()),
        n => Err(only_text(&format!("scale={n}: a kernel's tree is taken whole"))),
    }
}

fn make(at: &At<'_>, more: &[&str]) -> Words {
    at.command("make", &[&["-C", &at.file(COPY)], more].concat())
}

/// A tree with a configuration.
fn configured(at: &At<'_>, config: &str) -> Result<Plan> {
    let mut prepare = Vec::new();
    if tree::may_be_built(at) {
        prepare.push(make(at, &["-s", "mrproper"]));
    }
    prepare.push(make(at, &["-s", config]));
    Ok(Plan { lay: tree::lay(at)?, prepare, ..Plan::default() })
}

fn compile(p: &Params, at: &At<'_>) -> Result<Plan> {
    let mut plan = configured(at, &p.word("config"))?;
    // It was just unpacked.
    plan.keeps_caches = p.count("cached") == 1;
    plan.run = vec![make(at, &[&format!("-j{}", p.count("jobs"))])];
    plan.limit = Limit::Fails(GIVEN_UP);
    Ok(plan)
}

/// What a kernel's make says of each compilation: `  CC      init/main.o`, `  CC [M]  fs/fat/dir.o`.
fn compiled(printed: &str) -> usize {
    printed.lines().filter(|l| l.split_whitespace().next() == Some("CC")).count()
}

fn tasks_can(p: &Params) -> Result<()> {
    whole(p)
}

fn tasks_room(p: &Params, tree: Bytes) -> Bytes {
    let files = (p.count("readers") + p.count("writers")).saturating_mul(p.bytes("file"));
    let more = match &*p.word("task") {
        "make" => objects(CONFIG),
        // Objects of git, loose and in a pack, while both are there.
        _ => tree,
    };
    tree.saturating_add(more).saturating_add(files)
}

fn tasks(p: &Params, at: &At<'_>) -> Result<Plan> {
    let task = p.word("task");
    let git = |words: &[&str]| at.command("git", &[&["-C", &at.file(COPY)], words].concat());
    let mut plan = match &*task {
        "make" => configured(at, CONFIG)?,
        _ => history(p, at)?,
    };
    plan.run = vec![match &*task {
        "make" => make(at, &[&format!("-j{JOBS}")]),
        "grep" => git(&["grep", "-l", WORD]),
        "checkout" => git(&["checkout", "-q", "theirs"]),
        _ => git(&["merge", "-q", "-m", "merged", "theirs"]),
    }];
    let limit = Duration::from_secs(p.count("limit"));
    plan.limit = if &*task == "make" { Limit::Ends(limit) } else { Limit::Tells(limit) };
    let list = match &*task {
        "grep" => "git ls-files",
        _ => "git diff --name-only base theirs",
    };
    if &*task != "make" {
        let count = format!("cd '{}' && {list} | wc -l | sed 's/^/{COUNT}/'", at.file(COPY));
        plan.ask = vec![at.command("sh", &["-c", &count])];
    }
    plan.prepare.extend(large_files(p, at));
    plan.server = beside(p, at)?;
    Ok(plan)
}

/// A word that is in one file alone.
const WORD: &str = "looked-for-by-iosched";
/// What stands before the number of files.
const COUNT: &str = "iosched files ";

/// A repository of the tree: a commit of it, and two that change the same files in different places.
fn history(p: &Params, at: &At<'_>) -> Result<Plan> {
    // Others than root have no home, and git asks who they are.
    at.put(
        ".gitconfig",
        "[user]\n\tname = iosched\n\temail = iosched@localhost\n[core]\n\tcompression = 1\n[gc]\n\tauto = 0\n\
         [pack]\n\twindow = 0\n[maintenance]\n\tauto = false\n",
    )?;
    let start = if &*p.word("task") == "merge" { "ours" } else { "base" };
    let text = format!(
        "set -e\ncd '{}'\ngit init -q\necho {WORD} >iosched-word\ngit add -A -f\ngit commit -q -m base\ngit branch base\n\
         git ls-tree -r -l HEAD | awk '$4 > 1024 && /^100644.*\\.[ch]$/ {{ sub(/^[^\\t]*\\t/, \"\"); print }}' |\n\
         \tawk 'int(NR * {1} / 100) > int((NR - 1) * {1} / 100)' >../changed\n\
         change() {{\n\tgit checkout -q -b \"$1\" base\n\txargs -r -d '\\n' sed -i -e \"$2\" <../changed\n\t\
         git commit -q -a --allow-empty -m \"$1\"\n}}\n\
         change theirs '$a\\iosched'\nchange ours '1i\\iosched'\n\
         git repack -a -d -q\ngit checkout -q {start}\n\
         # Files as old as the index would be read again.\nsleep 2\ngit update-index -q --refresh\n",
        at.file(COPY),
        p.count("changed"),
    );
    let script = at.put("history.sh", &text)?;
    Ok(Plan { lay: tree::lay(at)?, prepare: vec![at.command("sh", &[&script])], ..Plan::default() })
}

/// What the readers read.
fn large_files(p: &Params, at: &At<'_>) -> Vec<Words> {
    let from = if at.noise { "/dev/urandom" } else { "/dev/zero" };
    let write = |i| {
        let file = at.file(&format!("large{i}"));
        let text = format!("exec head -c {} {from} >'{file}'", p.bytes("file"));
        at.command("sh", &["-c", &text])
    };
    (0..p.count("readers")).map(write).collect()
}

/// Seconds that many readers and writers have at most before the task begins; who waits for a server gives up after 60.
const LONGEST_RISE: f64 = 50.0;

/// Readers and writers, each of a file of its own from end to end, for as long as the task takes.
fn beside(p: &Params, at: &At<'_>) -> Result<Option<Server>> {
    let (readers, writers) = (p.count("readers"), p.count("writers"));
    if readers + writers == 0 {
        return Ok(None);
    }
    let mut text = String::from("trap 'exit 0' TERM\n");
    let mut repeat = |command: String| {
        text += &format!("(while {command}; do :; done) 2>/dev/null &\n");
    };
    for i in 0..readers {
        // What memory still has of the file would be no load: `nocache` without a block forgets all of it.
        let file = at.file(&format!("large{i}"));
        repeat(format!(
            "dd if='{file}' iflag=nocache count=0 && dd if='{file}' of=/dev/null bs=1M"
        ));
    }
    let count = p.bytes("file").div_ceil(1 << 20);
    for i in 0..writers {
        let file = at.file(&format!("written{i}"));
        repeat(format!("dd if=/dev/zero of='{file}' bs=1M count={count} conv=notrunc"));
    }
    text += "wait\n";
    let run = at.command("sh", &[&at.put("beside.sh", &text)?]);
    // As the text waits, so that they do not count as programs that start with the task.
    let rise = (1.0 + (readers + writers) as f64 / 2.0).min(LONGEST_RISE);
    let ready = at.command("sh", &["-c", &format!("exec sleep {rise}")]);
    Ok(Some(Server { run, ready, stop: Signal::SIGTERM }))
}

/// A make that ran until its limit is as far as it is; other tasks are done, or took longer than that.
fn tasks_figures(printed: &str, p: &Params, seen: Seen) -> Read {
    let seconds = ("seconds", seen.seconds);
    if &*p.word("task") == "make" {
        let files = ("files", compiled(printed) as f64);
        // Before the end its time is the limit, and how many files there are is not known.
        let ended = seen.ended.then_some([seconds, ("done", 100.0)]);
        return (files.1 > 0.0).then(|| ended.into_iter().flatten().chain([files]).collect());
    }
    let files = printed.lines().find_map(|l| l.strip_prefix(COUNT))?;
    let files: f64 = files.trim().parse().ok()?;
    match seen.ended {
        // Nothing was there to be done.
        true if files < 1.0 => None,
        true => Some(vec![seconds, ("done", 100.0), ("files", files)]),
        false => Some(vec![seconds]),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use iosched_workloads::programs::Descriptor;

    use super::super::Found;
    use super::*;

    fn params(line: &str) -> Params {
        Descriptor::from_command_line(line).unwrap().1
    }

    /// The plan of a recipe for an archive.
    fn planned(recipe: &'static Recipe, line: &str, dir: &Path) -> Plan {
        let mut tools = Found::named(recipe.tools);
        tools.add(tree::TREE, PathBuf::from("/usr/src/linux-source-6.1.tar.xz"), "6.1".into());
        let tested = Path::new("/tested");
        let at = At { dir: tested, own: dir, scratch: dir, tools: &tools, noise: false };
        (recipe.plan)(&params(line), &at).unwrap()
    }

    fn lines(commands: &[Words]) -> Vec<String> {
        commands.iter().map(|w| w.join(" ")).collect()
    }

    const PRINTED: &str = "  HOSTCC  scripts/basic/fixdep\n  CC      init/main.o\n  CC [M]  fs/fat/dir.o\n  LD      vmlinux\n";

    fn seen(ended: bool) -> Seen {
        Seen { seconds: 12.5, ended }
    }

    #[test]
    fn a_build_is_unpacked_configured_and_made() {
        let dir = tempfile::tempdir().unwrap();
        let line = "kernel-compile 3 1650 450 48k 100 1 allnoconfig";
        let plan = planned(&KERNEL_COMPILE, line, dir.path());
        assert!(lines(&plan.lay)[0].ends_with("-xJf /usr/src/linux-source-6.1.tar.xz"));
        assert_eq!(lines(&plan.prepare), ["make -C /tested/linux -s allnoconfig"]);
        assert!(plan.keeps_caches);
        assert_eq!(lines(&plan.run), ["make -C /tested/linux -j3"]);
        assert_eq!(plan.limit, Limit::Fails(GIVEN_UP));
        let cold = "kernel-compile 3 1650 450 48k 100 0";
        assert!(!planned(&KERNEL_COMPILE, cold, dir.path()).keeps_caches);
        let read = |text: &str| KERNEL_COMPILE.read(text, &params(line), seen(true));
        assert_eq!(read(PRINTED).unwrap(), [("seconds", 12.5)]);
        let nothing = read("make: Nothing to be done for 'all'.").unwrap_err().to_string();
        assert!(nothing.contains("make failed") && nothing.contains("Nothing to be done"));
        // Needed: the tree, and what is built.
        let room = KERNEL_COMPILE.tree.unwrap();
        assert_eq!(room(&params(line), 1 << 30), (1 << 30) + (512 << 20));
        assert_eq!(room(&params(cold), 1 << 30), 3 << 30);
    }

    #[test]
    fn what_a_tree_has_is_not_set() {
        for line in
            ["kernel-compile 3 100", "kernel-compile 3 1650 1", "kernel-compile 3 1650 450 1k"]
        {
            let e = (KERNEL_COMPILE.can)(&params(line)).unwrap_err();
            assert!(e.help().contains("--program text"), "{line}: {e}");
        }
        for (recipe, line) in [
            (&KERNEL_COMPILE, "kernel-compile 3 1650 450 48k 5"),
            (&KERNEL_TASKS, "kernel-tasks grep 0 0 500M 60 5"),
        ] {
            let e = (recipe.can)(&params(line)).unwrap_err();
            assert!(e.to_string().contains("scale=5: a kernel's tree is taken whole"), "{e}");
        }
        (KERNEL_COMPILE.can)(&params("kernel-compile 3")).unwrap();
    }

    #[test]
    fn tasks_are_commands_of_git_on_a_history_of_our_own() {
        let dir = tempfile::tempdir().unwrap();
        for (task, run, start) in [
            ("grep", "grep -l looked-for-by-iosched", "base"),
            ("checkout", "checkout -q theirs", "base"),
            ("merge", "merge -q -m merged theirs", "ours"),
        ] {
            let line = format!("kernel-tasks {task} 0 0 500M 7 100 20");
            let plan = planned(&KERNEL_TASKS, &line, dir.path());
            assert_eq!(lines(&plan.run), [format!("git -C /tested/linux {run}")]);
            let script = fs::read_to_string(dir.path().join("history.sh")).unwrap();
            assert!(script.contains("NR * 20 / 100") && script.contains(&format!("-q {start}\n")));
            assert_eq!((plan.server, plan.limit), (None, Limit::Tells(Duration::from_secs(7))));
            let printed = "iosched-word\niosched files 1234\n";
            let read = |ended| KERNEL_TASKS.read(printed, &params(&line), seen(ended)).unwrap();
            assert_eq!(read(true), [("seconds", 12.5), ("done", 100.0), ("files", 1234.0)]);
            assert_eq!(read(false), [("seconds", 12.5)]);
            let nothing = KERNEL_TASKS.read("iosched files 0\n", &params(&line), seen(true));
            assert!(nothing.is_err(), "a task that changes no file is none");
        }
    }

    #[test]
    fn a_make_that_is_ended_has_made_what_it_has() {
        let dir = tempfile::tempdir().unwrap();
        let line = "kernel-tasks make 1 2 3M 9";
        let plan = planned(&KERNEL_TASKS, line, dir.path());
        assert_eq!(plan.limit, Limit::Ends(Duration::from_secs(9)));
        assert_eq!(
            lines(&plan.prepare),
            [
                "make -C /tested/linux -s defconfig",
                "sh -c exec head -c 3145728 /dev/zero >'/tested/large0'"
            ]
        );
        let script = fs::read_to_string(dir.path().join("beside.sh")).unwrap();
        assert_eq!(script.matches("of=/dev/null").count(), 1);
        assert_eq!(script.matches("dd if='/tested/large0' iflag=nocache count=0").count(), 1);
        assert_eq!(
            plan.server.map(|s| s.ready),
            Some(vec!["sh".into(), "-c".into(), "exec sleep 2.5".into()])
        );
        assert_eq!(script.matches("count=3 conv=notrunc").count(), 2);
        let read = |ended| KERNEL_TASKS.read(PRINTED, &params(line), seen(ended)).unwrap();
        assert_eq!(read(false), [("files", 2.0)]);
        assert_eq!(read(true), [("seconds", 12.5), ("done", 100.0), ("files", 2.0)]);
    }
}
