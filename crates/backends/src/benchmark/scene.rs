//! Running the commands of a plan, as the user who runs them, beside their server.

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::User;

use super::{Limit, Recipe, Seen, Words};
use crate::error::{Error, Result};
use crate::load::child::{Load, on_its_own};
use crate::mounts::MEMORY;
use crate::sys;

/// A server, which stays in the foreground.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// Starts it.
    pub run: Words,
    /// Succeeds as soon as it answers.
    pub ready: Words,
    /// The signal on which it ends in good order.
    pub stop: Signal,
}

/// How long a server may take to start, and to end in good order.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks whether a server answers.
const LOOK: Duration = Duration::from_millis(50);

/// What a server says that finds another one at its address.
const TAKEN: &str = "Address already in use";

/// Whether to go on.
type Check<'a> = &'a mut dyn FnMut() -> Result<()>;

/// Where commands run, and as whom.
pub(crate) struct Scene<'a> {
    recipe: &'a Recipe,
    namespace: BorrowedFd<'a>,
    scratch: &'a Path,
    /// The programs' own directory, in the namespace.
    dir: &'a Path,
    user: Option<User>,
    /// Commands that have ended, and may have left others running.
    ended: RefCell<Vec<Load>>,
}

/// A server at work. Dropping it kills it with all that it has started.
pub(crate) struct Serving {
    load: Load,
    stop: Signal,
    /// What it said.
    errors: std::path::PathBuf,
    program: String,
}

impl<'a> Scene<'a> {
    /// For the commands of a recipe.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where none of the recipe's users is there.
    pub(crate) fn new(
        recipe: &'a Recipe,
        (namespace, dir): (BorrowedFd<'a>, &'a Path),
        scratch: &'a Path,
    ) -> Result<Scene<'a>> {
        let user = recipe.user()?;
        Ok(Scene { recipe, namespace, scratch, dir, user, ended: RefCell::default() })
    }

    /// Who runs the commands, if not root.
    pub(crate) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// Runs commands one after the other; what they printed.
    ///
    /// # Errors
    /// [`Error::Tool`] with the program's first words, what `check` says.
    pub(crate) fn run(&self, commands: &[Words], check: Check<'_>) -> Result<String> {
        self.run_within(commands, Limit::Own, check).map(|(printed, _)| printed)
    }

    /// Runs commands one after the other, for so long at most; what they printed, and the seconds that they took together.
    ///
    /// # Errors
    /// [`Error::Tool`] with the program's first words, what `check` says.
    pub(crate) fn run_within(
        &self,
        commands: &[Words],
        limit: Limit,
        check: Check<'_>,
    ) -> Result<(String, Seen)> {
        let (mut printed, mut seen) = (String::new(), Seen { seconds: 0.0, ended: true });
        let (most, may_end) = match limit {
            Limit::Own => (Duration::MAX / 4, false),
            Limit::Fails(most) => (most, false),
            Limit::Ends(most) | Limit::Tells(most) => (most, true),
        };
        for words in commands {
            let left = most.saturating_sub(Duration::from_secs_f64(seen.seconds));
            let (out, err) = (self.scratch.join("printed"), self.scratch.join("errors"));
            let began = Instant::now();
            let mut load = self.start(&self.as_user(words, &[]), &out, &err)?;
            let status = load.wait(left, check)?;
            seen.seconds += began.elapsed().as_secs_f64();
            seen.ended = status.is_some();
            if !seen.ended {
                load.kill();
            }
            // Looking for what it left running takes time, and may be in the middle of what is measured.
            self.ended.borrow_mut().push(load);
            if !status.map_or(may_end, |s| s.success()) {
                let late = || format!("no end within {} s", most.as_secs());
                let end = status.map_or_else(late, |s| s.to_string());
                let words_of = format!("{}\n{}", read(&err), read(&out));
                return Err(failed(&name(words), &end, &words_of));
            }
            printed += &read(&out);
            if !seen.ended {
                break;
            }
        }
        Ok((printed, seen))
    }

    /// Gives everything in `own` to the user of the commands, if that is not root.
    ///
    /// # Errors
    /// As [`lay`](Scene::lay).
    pub(crate) fn give(&self, own: &Path, check: Check<'_>) -> Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        let (who, where_to) = (format!("{}:{}", user.uid, user.gid), own.display().to_string());
        let words = ["chown", "-R", "--no-dereference", &who, &where_to].map(String::from);
        self.lay(&[words.into()], check)
    }

    /// Runs commands as root, who sees files where iosched itself does.
    ///
    /// # Errors
    /// [`Error::Tool`] with the program's first words, what `check` says.
    pub(crate) fn lay(&self, commands: &[Words], check: Check<'_>) -> Result<()> {
        for words in commands {
            let (out, err) = (self.scratch.join("printed"), self.scratch.join("errors"));
            let mut command = command(words)?;
            command.current_dir(self.scratch);
            for name in OF_ROOT {
                command.envs(std::env::var_os(name).map(|value| (name, value)));
            }
            let mut load = started(command, &out, &err, self.recipe.package())?;
            let status = load.wait(Duration::MAX / 4, check)?;
            if !status.is_some_and(|s| s.success()) {
                let end = status.map_or_else(String::new, |s| s.to_string());
                return Err(failed(&name(words), &end, &read(&err)));
            }
        }
        Ok(())
    }

    /// Ends what the commands so far left running; how many processes it were.
    pub(crate) fn end_left(&self) -> usize {
        Load::end_left(&mut self.ended.take())
    }

    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// [`Error::Tool`] with its first words if it ends, or does not answer for a minute; what `check` says.
    pub(crate) fn serve(&self, server: &Server, check: Check<'_>) -> Result<Serving> {
        let (out, err) = (self.scratch.join("server"), self.scratch.join("server.errors"));
        // What a server starts may leave its process group, its session and its parent. When the first process of a
        // namespace of process ids dies, the kernel kills the others.
        let words = self.as_user(&server.run, NAMESPACE);
        let load = self.start(&words, &out, &err)?;
        let program = name(&server.run);
        let mut serving = Serving { load, stop: server.stop, errors: err, program };
        let until = Instant::now() + PATIENCE;
        let (out, err) = (self.scratch.join("ready"), self.scratch.join("ready.errors"));
        loop {
            let mut ready = self.start(&self.as_user(&server.ready, &[]), &out, &err)?;
            if ready.wait(PATIENCE, check)?.is_some_and(|s| s.success()) {
                // It may be another's server that answered.
                return serving.own(check).map(|()| serving);
            }
            if serving.load.wait(LOOK, check)?.is_some() {
                return Err(serving.failed("it ended while it started"));
            }
            if Instant::now() > until {
                let why = format!("it did not answer within {} s", PATIENCE.as_secs());
                return Err(serving.failed(&why));
            }
        }
    }

    /// A command as the scene's user runs it, below other commands.
    fn as_user(&self, words: &[String], above: &[&str]) -> Words {
        let mut all: Words = above.iter().map(ToString::to_string).collect();
        if let Some(user) = &self.user {
            // A change of user takes the signal of the parent's death away.
            let set = ["setpriv", "--clear-groups", "--pdeathsig", "KILL"];
            all.extend(set.map(String::from));
            all.extend([format!("--reuid={}", user.uid), format!("--regid={}", user.gid)]);
            all.push("--".into());
        }
        all.extend_from_slice(words);
        all
    }

    fn start(&self, words: &[String], out: &Path, err: &Path) -> Result<Load> {
        let mut command = command(words)?;
        // Another user may be unable to look into the scratch directory.
        let at = if self.user.is_some() { self.dir } else { self.scratch };
        command.env("HOME", self.dir);
        if Path::new(MEMORY).is_dir() {
            // It is their own. In the machine's /tmp files of killed compilers stay.
            command.env("TMPDIR", MEMORY);
        }
        sys::in_mounts(&mut command, self.namespace, at);
        let package = if self.user.is_some() { "util-linux" } else { self.recipe.package() };
        started(command, out, err, package)
    }
}

/// A program with its arguments.
fn command(words: &[String]) -> Result<Command> {
    let [program, arguments @ ..] = words else {
        return Err(Error::Trial { message: "there is a command without words".into() });
    };
    let mut command = Command::new(program);
    command.args(arguments);
    on_its_own(&mut command);
    Ok(command)
}

/// By these git knows whose trees root may read.
const OF_ROOT: [&str; 2] = ["HOME", "SUDO_UID"];

fn started(mut command: Command, out: &Path, err: &Path, package: &str) -> Result<Load> {
    let create = |p: &Path| File::create(p).map_err(|e| Error::io("creating", p, e));
    command.stdout(create(out)?).stderr(create(err)?);
    Load::start(&mut command, package)
}

/// Has a command run in a namespace of process ids, which dies with it, and it with us.
const NAMESPACE: &[&str] = &["unshare", "--pid", "--fork", "--kill-child", "--"];

impl Serving {
    /// CPU ticks that it has used so far.
    pub(crate) fn ticks(&self) -> u64 {
        self.load.descendants_ticks()
    }

    /// Ends it in good order, and kills it if that takes too long.
    ///
    /// # Errors
    /// [`Error::Tool`] if it had ended before, or never had its address: then the answers were not its own. What `check`
    /// says; it is killed then.
    pub(crate) fn stop(mut self, check: Check<'_>) -> Result<()> {
        self.own(check)?;
        self.load.signal_children(self.stop);
        self.load.wait(PATIENCE, check).map(drop)
    }

    /// Whether what answers at its address can be this server.
    fn own(&mut self, check: Check<'_>) -> Result<()> {
        if self.load.wait(Duration::ZERO, check)?.is_some() {
            return Err(self.failed("it ended while it was to serve"));
        }
        // Some servers try for seconds to get an address that another has.
        if read(&self.errors).contains(TAKEN) {
            return Err(self.failed("another server has its address"));
        }
        Ok(())
    }

    fn failed(&mut self, why: &str) -> Error {
        self.end();
        failed(&self.program, "no usable end", &format!("{why}\n{}", read(&self.errors)))
    }

    /// Kills it and waits until nothing of it is left.
    fn end(&mut self) {
        // The kernel lets the parent know of this one's end when all others in its namespace have ended.
        self.load.signal_children(Signal::SIGKILL);
        // One that cannot be killed sleeps in the kernel. The load's own end comes when this value goes.
        let _ = self.load.wait(PATIENCE, &mut || Ok(()));
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end();
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The last part of a program's path.
fn name(words: &[String]) -> String {
    let program = words.first().map(Path::new).and_then(Path::file_name);
    program.unwrap_or_default().to_string_lossy().into_owned()
}

/// A program that went wrong, with its first words.
pub(super) fn failed(program: &str, status: &str, words: &str) -> Error {
    let lines = words.lines().map(str::trim).filter(|l| !l.is_empty()).take(3);
    let said = lines.collect::<Vec<_>>().join("; ");
    Error::Tool {
        tool: program.into(),
        status: status.into(),
        message: if said.is_empty() { "it printed nothing".into() } else { said },
    }
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "a skipped test says so")]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::benchmark::{Plan, Tool};

    const RECIPE: Recipe = Recipe {
        workload: "none",
        tools: &[Tool { name: "sh", folders: &[], package: "dash", version: ("", &[]) }],
        users: &["no-such-user", "nobody"],
        server: Some("sh"),
        tree: None,
        can: |_| Ok(()),
        plan: |_, _| Ok(Plan::default()),
        figures: |_, _, _| None,
    };

    fn shell(text: &str) -> Words {
        ["sh", "-c", text].map(String::from).to_vec()
    }

    fn server(run: &str, ready: &str) -> Server {
        Server { run: shell(run), ready: shell(ready), stop: Signal::SIGTERM }
    }

    /// Does something in a scene, where that can be made.
    fn on_scene(act: impl FnOnce(&Scene<'_>, &Path)) {
        let namespace = Command::new("unshare").args(["--pid", "--fork", "true"]).status();
        if !nix::unistd::geteuid().is_root() || !namespace.is_ok_and(|s| s.success()) {
            return println!("SKIPPED: no root, or no namespaces of process ids");
        }
        let scratch = tempfile::tempdir().unwrap();
        let mounts = File::open("/proc/self/ns/mnt").unwrap();
        let scene = Scene::new(&RECIPE, (mounts.as_fd(), Path::new("/")), scratch.path()).unwrap();
        act(&scene, scratch.path());
    }

    /// A word for a command line that no other process has, as tests of several checkouts may run at once.
    fn mark(word: &str) -> String {
        format!("{word}.{}", std::process::id())
    }

    /// Waits until something holds, but not for ever.
    fn until(what: &str, holds: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(LOOK);
        }
    }

    /// Whether a process has this word in its command line.
    fn alive(word: &str) -> bool {
        fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.split(|b| *b == 0).any(|w| w == word.as_bytes())
        })
    }

    #[test]
    fn what_a_server_has_started_dies_with_it_and_runs_as_nobody() {
        on_scene(|scene, scratch| {
            // One in a session of its own whose parent is gone, as daemons are.
            let (far, near) = (mark("70123"), mark("70124"));
            let run =
                format!("trap 'exit 0' TERM; id -un; (setsid sleep {far} &); sleep {near} & wait");
            for orderly in [false, true] {
                let serving = scene.serve(&server(&run, "true"), &mut || Ok(())).unwrap();
                until("both begin", || alive(&far) && alive(&near));
                if orderly {
                    serving.stop(&mut || Ok(())).unwrap();
                } else {
                    drop(serving);
                }
                assert!(!alive(&far) && !alive(&near), "in good order: {orderly}");
                assert_eq!(read(&scratch.join("server")).trim(), "nobody");
            }
        });
    }

    #[test]
    fn what_a_command_leaves_running_is_ended() {
        on_scene(|scene, _| {
            let left = mark("70133");
            let run = format!("(setsid sleep {left} >/dev/null 2>&1 &); echo done");
            scene.run(&[shell(&run), shell("true")], &mut || Ok(())).unwrap();
            assert_eq!(scene.end_left(), 1);
            assert!(!alive(&left));
            assert_eq!(scene.end_left(), 0);
        });
    }

    /// As when a program is killed in the middle: it does not get to remove them.
    #[test]
    fn shared_memory_of_a_program_goes_with_it() {
        on_scene(|scene, scratch| {
            scene.run(&[shell("ipcmk -M 4096; ipcs -m")], &mut || Ok(())).unwrap();
            let said = read(&scratch.join("printed"));
            let Some(id) = said.lines().find_map(|l| l.strip_prefix("Shared memory id: ")) else {
                return println!("SKIPPED: no ipcmk: {said}");
            };
            let key = said.lines().find(|l| l.split_whitespace().nth(1) == Some(id));
            let key = key.and_then(|l| l.split_whitespace().next()).unwrap();
            let ours = Command::new("ipcs").arg("-m").output().unwrap();
            assert!(!String::from_utf8_lossy(&ours.stdout).contains(key), "{key} is left");
        });
    }

    #[test]
    fn a_server_that_ends_at_once_is_told_with_its_words() {
        on_scene(|scene, _| {
            let broken = server("echo no disk >&2; exit 3", "false");
            let e = scene.serve(&broken, &mut || Ok(())).map(drop).unwrap_err().to_string();
            assert!(e.contains("sh failed") && e.contains("while it started; no disk"), "{e}");
            // A run that is interrupted does not wait for it.
            let word = mark("70125");
            let asleep = server(&format!("exec sleep {word}"), "false");
            let stop = || Err(Error::Interrupted { signal: "SIGINT".into() });
            assert!(scene.serve(&asleep, &mut { stop }).is_err());
            until("the server ends", || !alive(&word));
        });
    }

    /// Between the choice of a free port and the server's start somebody else may take it.
    #[test]
    fn answers_of_another_server_do_not_count() {
        on_scene(|scene, _| {
            // One tries again and again, the others give up: before they are asked for, or later.
            let word = mark("70126");
            for (run, why) in [
                (format!("echo Address already in use >&2; exec sleep {word}"), "another server"),
                ("exit 1".into(), "it ended while"),
                ("sleep 0.3".into(), "it ended while"),
            ] {
                let served = scene.serve(&server(&run, "sleep 0.1"), &mut || Ok(()));
                std::thread::sleep(Duration::from_millis(600));
                let e = served.and_then(|s| s.stop(&mut || Ok(()))).unwrap_err().to_string();
                assert!(e.contains(why), "{run}: {e}");
                until("the server ends", || !alive(&word));
            }
        });
    }

    #[test]
    fn without_any_of_its_users_it_does_not_run() {
        const NONE: Recipe = Recipe { users: &["no-such-user", "nor-this"], ..RECIPE };
        let mounts = File::open("/proc/self/ns/mnt").unwrap();
        let place = (mounts.as_fd(), Path::new("/"));
        let e = Scene::new(&NONE, place, Path::new("/")).map(drop).unwrap_err();
        assert!(e.to_string().contains("neither no-such-user nor nor-this"), "{e}");
        assert!(e.help().contains("adduser --system no-such-user"));
    }
}
