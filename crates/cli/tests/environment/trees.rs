//! Builds and tasks on a kernel's source tree: here a small one with the targets that a kernel's has.

use super::programs::{ENDED, RUN, lacks};
use super::*;

/// A tree of twelve files of which each is built by one command. `$(SLOW)` is what that waits for.
const MAKEFILE: &str = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 7\nEXTRAVERSION =\nFILES := $(wildcard src/*.c)\n\
    all: vmlinux\ndefconfig allnoconfig tinyconfig:\n\t@echo $@ >.config\nmrproper:\n\t@rm -f .config vmlinux src/*.o\n\
    vmlinux: $(FILES:.c=.o)\n\t@cat $^ >$@\n\
    src/%.o: src/%.c .config\n\t@echo '  CC      $@'\n\t@test \"$$(id -un)\" = nobody; SLOW\n\t@cp $< $@\n";

/// What a kernel's build asks for and this one does not use.
const TOOLS: &str = "mkdir tools; for t in gcc flex bison bc; do printf '#!/bin/sh\\necho 12.2\\n' >tools/$t; chmod +x tools/$t; \
    done; touch tools/libelf.h; PATH=$PWD/tools:$PATH; ";

impl Place {
    /// With a tree in which what a command waits for is `slow`.
    fn with_tree(slow: &str) -> Place {
        let place = Place::new();
        let sources = place.path("tree/src");
        std::fs::create_dir_all(&sources).unwrap();
        for i in 0..12 {
            let text = format!("int f{i};\n").repeat(200);
            std::fs::write(sources.join(format!("f{i}.c")), text).unwrap();
        }
        // Built before: the copy is cleaned.
        std::fs::write(sources.join("f0.o"), "").unwrap();
        std::fs::write(place.path("tree/vmlinux"), "").unwrap();
        std::fs::write(place.path("tree/Makefile"), MAKEFILE.replace("SLOW", slow)).unwrap();
        std::fs::write(place.path("tree/Kconfig"), "").unwrap();
        // As in Debian's archive.
        std::fs::write(place.path("tree/.gitignore"), "*\n").unwrap();
        place
    }

    /// Runs a program on a file system of its own.
    fn on_tree(&self, arguments: &str) -> Output {
        self.in_own_mounts(&format!(
            "{MOUNTED} {TOOLS} code=0; {RUN} --tree $PWD/tree --format json {arguments} >out.json || code=$? {ENDED}"
        ))
    }
}

/// A file system with room for what a defconfig makes.
const MOUNTED: &str = "truncate -s 4G img; mkfs.ext4 -q -F img; mkdir m; mount -o loop img m; ";

fn skipped() -> bool {
    skip() || ["make", "git", "xz"].into_iter().any(lacks)
}

#[test]
fn a_tree_is_built_in_a_copy_by_nobody() {
    if skipped() {
        return;
    }
    let place = Place::with_tree("true");
    let before = std::fs::metadata(place.path("tree/src/f0.o")).unwrap().modified().unwrap();
    let output = place.on_tree("kernel-compile --param jobs=2 --param config=tinyconfig");
    says(&output, 0, &[]);
    let json = place.text("out.json");
    for told in ["\"seconds\"", "\"program.tree.version\":\"6.1.7\"", "\"program.user\":\"nobody\""]
    {
        assert!(json.contains(told), "{told}: {json}");
    }
    // The user's own tree is as it was.
    assert!(!place.path("tree/.config").exists());
    assert_eq!(std::fs::metadata(place.path("tree/src/f0.o")).unwrap().modified().unwrap(), before);
    place.is_as_before();
}

#[test]
fn an_archive_and_what_git_has_are_built_too() {
    if skipped() {
        return;
    }
    let archive = Place::with_tree("true");
    let packed =
        works_in(&archive, "tar -cJf linux-source-6.1.tar.xz --exclude=*.o --exclude=vmlinux tree");
    assert!(packed);
    let run = RUN.replace("--runs", "--tree $PWD/linux-source-6.1.tar.xz --runs");
    let script = |run: &str| {
        format!(
            "{MOUNTED} {TOOLS} code=0; {run} --format json kernel-compile --param jobs=2 >out.json || code=$? {ENDED}"
        )
    };
    says(&archive.in_own_mounts(&script(&run)), 0, &[]);
    archive.is_as_before();
    let git = Place::with_tree("true");
    // What git does not have would be taken for built.
    let text = "cd tree && git init -q && git add -f Makefile Kconfig src/*.c && git -c user.name=i -c user.email=i \
                commit -q -m tree";
    assert!(works_in(&git, text));
    says(&git.on_tree("kernel-compile --param jobs=2"), 0, &[]);
    git.is_as_before();
}

fn works_in(place: &Place, script: &str) -> bool {
    place.command("sh").args(["-c", script]).status().is_ok_and(|s| s.success())
}

#[test]
fn tasks_are_done_beside_readers_and_writers() {
    if skipped() {
        return;
    }
    for task in ["grep", "checkout", "merge", "make"] {
        let place = Place::with_tree("true");
        let output = place.on_tree(&format!(
            "kernel-tasks --param task={task} --param readers=1 --param writers=1 --param file=1M --param changed=50"
        ));
        says(&output, 0, &[]);
        let json = place.text("out.json");
        let files = match task {
            // Sources, Makefile, Kconfig, the file with the word, and what was built.
            "grep" => 18,
            "make" => 12,
            // Half of the sources.
            _ => 6,
        };
        let tool = if task == "make" { "make" } else { "git" };
        assert!(json.contains(&format!("/{tool}\",\"program.tree\"")), "{task}: {json}");
        let figure = format!("\"name\":\"files\",\"value\":{files}.0");
        assert!(json.contains(&figure) && json.contains("\"done\""), "{task}: {json}");
        place.is_as_before();
    }
}

#[test]
fn a_make_is_ended_at_its_limit() {
    if skipped() {
        return;
    }
    // Five compilers begin at once and are not done at the limit.
    let place = Place::with_tree("sleep 5");
    says(&place.on_tree("kernel-tasks --param task=make --param limit=4"), 0, &[]);
    let json = place.text("out.json");
    let files = json.split("\"name\":\"files\",\"value\":").nth(1).unwrap();
    let files: f64 = files.split([',', '}']).next().unwrap().parse().unwrap();
    assert_eq!(files, 5.0);
    place.is_as_before();
}

/// A build in the middle of its work is gone with the run, however that ends.
#[test]
fn a_killed_run_takes_the_build_and_its_copy_with_it() {
    if skipped() {
        return;
    }
    let mark = mark("70137");
    for (signal, code) in [("KILL", 137), ("TERM", 4)] {
        let place = Place::with_tree(&format!("mktemp -t {mark}.XXXXXX >/dev/null; sleep {mark}"));
        let output = place.in_own_mounts(&format!(
            "{MOUNTED} {TOOLS} code=0; {RUN} --tree $PWD/tree kernel-compile --param jobs=2 & run=$!; \
             i=0; until pgrep -f '^sleep {mark}$' >found || [ $i = 600 ]; do sleep 0.1; i=$((i + 1)); done; \
             kill -{signal} $run; wait $run || code=$?; \
             i=0; while ls m | grep -q iosched && [ $i -lt 300 ]; do sleep 0.1; i=$((i + 1)); done {ENDED}"
        ));
        says(&output, code, &[]);
        assert!(!place.text("found").is_empty(), "the build never began");
        assert!(!sleeps(&mark), "{signal}: the build goes on");
        let temporary = format!("ls /tmp/{mark}.*");
        assert!(!works("sh", &["-c", &temporary]), "{signal}: its temporary files stay");
        place.is_as_before();
    }
}

/// While root writes, nobody else gets there: what is then a folder could be made a link.
#[test]
fn the_copy_is_made_before_it_is_given_away() {
    if skipped() {
        return;
    }
    let place = Place::with_tree("true");
    let asked = "printf '#!/bin/sh\\n[ $1 != -a ] || stat -c \"%%U %%a\" \"$(dirname \"$4\")\" . >>%s/asked\\nexec /bin/cp \"$@\"\\n' \
                 $PWD >tools/cp; chmod +x tools/cp; ";
    let output = place.in_own_mounts(&format!(
        "umask 0; {MOUNTED} {TOOLS} {asked} code=0; {RUN} --tree $PWD/tree kernel-compile --param jobs=2 || code=$? {ENDED}"
    ));
    says(&output, 0, &[]);
    // The folder of the copy, and the one with what programs are told.
    assert_eq!(place.text("asked"), "root 700\nroot 755\n");
    place.is_as_before();
}

/// A copy of a disk's node would be its builder's.
#[test]
fn a_tree_with_a_device_is_refused() {
    if skipped() {
        return;
    }
    let place = Place::with_tree("true");
    assert!(works_in(&place, "mknod -m 666 tree/src/disk b 7 251"));
    let output = place.on_tree("kernel-compile --param jobs=2");
    says(&output, 4, &["/tree has src/disk, which is no file, folder or link"]);
    place.is_as_before();
}

/// A repository's settings name commands that git runs when it writes files.
#[test]
fn what_a_repository_says_is_not_run_by_root() {
    if skipped() {
        return;
    }
    let place = Place::with_tree("true");
    let text = "cd tree && echo '*.c filter=x' >.gitattributes && git init -q && git add -f .gitattributes Makefile Kconfig \
                src/*.c && git config filter.x.smudge \"id -un >>$PWD/../ran; cat\" && git update-index --split-index";
    assert!(works_in(&place, text));
    says(&place.on_tree("kernel-compile --param jobs=2"), 0, &[]);
    assert_eq!(place.text("ran"), "", "it ran");
    place.is_as_before();
}

#[test]
fn what_cannot_be_built_is_told() {
    if skipped() {
        return;
    }
    let place = Place::with_tree("true");
    std::fs::write(place.path("no.txt"), "").unwrap();
    for (tree, why) in [
        ("none", "--tree: there is no "),
        ("tree/src", "is no kernel's source tree: it has no Makefile"),
        ("no.txt", "is neither a directory nor a .tar.xz"),
    ] {
        let args =
            ["run", "kernel-compile", "--backend", "real", "--device", "/tmp", "--tree", tree];
        let output = place.iosched(&args).output().unwrap();
        says(&output, 2, &[why, "--tree takes the top directory"]);
    }
    let tool = place.on_tree("kernel-compile --param files=3");
    says(&tool, 2, &["files=3: the real program takes the time that it takes", "--program text"]);
    let _ = std::fs::remove_dir(place.path("m"));
    let lacking = place.in_own_mounts(&format!(
        "{MOUNTED} rm -r tools; {TOOLS} rm tools/libelf.h tools/flex; code=0; \
         for t in make tar xz git sh setpriv unshare fio; do ln -s $(command -v $t) tools/$t; done; \
         usual=$PATH; PATH=$PWD/tools; {RUN} --tree $PWD/tree kernel-compile || code=$?; PATH=$usual {ENDED}"
    ));
    says(&lacking, 3, &["flex is not installed", "apt install flex"]);
    place.is_as_before();
}

#[test]
fn a_disk_without_room_for_a_tree_and_a_broken_build_are_told() {
    if skipped() {
        return;
    }
    let place = Place::with_tree("true");
    let file = std::fs::File::create(place.path("tree/large")).unwrap();
    file.set_len(7 << 30).unwrap();
    let small = place.on_tree("kernel-compile --param config=tinyconfig");
    says(&small, 2, &["kernel-compile needs at least 7.50 GiB, and", "/m has "]);
    place.is_as_before();
    let broken = Place::with_tree("echo no room for an eel >&2; exit 3");
    let output = broken.on_tree("kernel-compile --param jobs=1 --param config=allnoconfig");
    says(&output, 4, &["make failed", "no room for an eel"]);
    broken.is_as_before();
}
