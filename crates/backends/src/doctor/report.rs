//! The report of `iosched doctor`.

use iosched_lab::machine::{Backend, Interrupt, Requirement};

use super::tools::{Tool, find_tools};
use super::who::{Setting, who_set_it};
use crate::backend::{Emulated, LiveOptions};
use crate::discover::{self, Disk, Stack};
use crate::emulate::Transport;
use crate::error::Result;
use crate::kernel_fs::KernelFs;
use crate::root::SysRoot;
use crate::state::{STATE_DIR, list};
use crate::switch::running_kernel;
use crate::target::{self, Judgement, Leave};

/// What was found.
#[derive(Debug)]
pub struct Report {
    /// Kernel release.
    pub kernel: String,
    /// `/sys/kernel/security/lockdown`'s mode in force; empty without lockdown.
    pub lockdown: String,
    /// What lies below the target, if one was named.
    pub stack: Option<Stack>,
    /// Whether a run may write to the target, and why not; or why that cannot be judged.
    pub verdict: Option<std::result::Result<Judgement, String>>,
    /// The disks with a scheduler, and what sets it.
    pub disks: Vec<(Disk, Vec<Setting>)>,
    /// Whether disks can be emulated and real ones switched.
    pub requirements: Vec<Requirement>,
    /// The ways to an emulated disk, the fastest first: the one that is chosen, and why the others are not.
    pub ways: Vec<(Transport, std::result::Result<(), String>)>,
    /// Programs.
    pub tools: Vec<Tool>,
    /// State files of runs at work, or killed.
    pub states: Vec<String>,
}

/// What only jobs with `cgroup_weight` need.
const WEIGHTS: &str = "weights of groups";

/// Looks at the machine, or at what lies below `target`. Changes nothing.
///
/// # Errors
/// A target that is not there; [`crate::Error::Interrupted`] by a signal while a program is asked something.
pub fn examine(target: Option<&str>, interrupt: &Interrupt) -> Result<Report> {
    let root = SysRoot::default();
    let stack = target.map(|t| {
        let path = target::resolve(&root, t)?;
        discover::find(&root, &path.to_string_lossy())
    });
    let stack = stack.transpose()?;
    let judged = |t| target::judge(&root, t, &Leave::default()).map_err(|e| e.to_string());
    let names: Vec<String> = match &stack {
        Some(stack) => stack.queues().iter().map(|l| l.name.clone()).collect(),
        None => with_schedulers(&root),
    };
    let debugfs = KernelFs::debugfs().ok();
    let disks = names
        .iter()
        .map(|n| {
            let disk = Disk::read(&root, n, debugfs.as_ref().map(KernelFs::root));
            (disk, who_set_it(&root, n))
        })
        .collect();
    let lockdown = root.get("/sys/kernel/security/lockdown").unwrap_or_default();
    let lockdown = crate::parse::scheduler::parse(&lockdown).current.unwrap_or_default();
    let states = list(std::path::Path::new(STATE_DIR));
    // A program that does not answer is waited for, but for all of them at once.
    let (mut requirements, fio, tools) = std::thread::scope(|scope| {
        let requirements = scope.spawn(|| {
            let options = LiveOptions { interrupt: interrupt.clone(), ..LiveOptions::default() };
            Emulated::new(options, crate::emulate::Options::default()).requirements()
        });
        let fio = scope.spawn(|| crate::load::fio::found(interrupt).unwrap_or_default());
        let tools = find_tools(interrupt);
        (requirements.join().unwrap_or_default(), fio.join().unwrap_or_default(), tools)
    });
    interrupt.check()?;
    let weights = crate::cgroup::for_jobs(&root, true, &fio);
    requirements.push(Requirement { what: WEIGHTS, state: weights });
    Ok(Report {
        kernel: running_kernel(),
        lockdown,
        stack,
        verdict: target.map(judged),
        disks,
        requirements,
        ways: Transport::reasons(),
        tools,
        states: states.iter().map(|p| p.display().to_string()).collect(),
    })
}

/// Disks with a size above 0 and a choice of schedulers.
fn with_schedulers(root: &SysRoot) -> Vec<String> {
    root.list("/sys/block")
        .into_iter()
        .map(|n| n.replace('!', "/"))
        .filter(|n| {
            let size = root.number(&format!("/sys/block/{}/size", n.replace('/', "!")));
            size.is_some_and(|s| s > 0) && discover::QueueState::read(root, n).offered.len() > 1
        })
        .collect()
}

impl Report {
    /// For people; sentences in lines of at most so many columns.
    #[must_use]
    pub fn render(&self, columns: usize) -> String {
        let mut out = format!("kernel {}\n", self.kernel);
        if !self.lockdown.is_empty() {
            out.push_str(&format!("lockdown {}\n", self.lockdown));
        }
        if let Some(stack) = &self.stack {
            out.push_str(&format!("\n{} lies on\n", stack.target));
            for line in stack.render().lines() {
                out.push_str(&format!("  {line}\n"));
            }
        }
        if let Some(verdict) = &self.verdict {
            out.push_str(&written(verdict, columns));
        }
        for (disk, settings) in &self.disks {
            out.push_str(&format!("\n/dev/{}\n{}", disk.name, disk.render()));
            if settings.is_empty() {
                out.push_str("  set by        the kernel's default, or by hand\n");
            }
            for s in settings {
                out.push_str(&format!("  set to        {}\n", s.render()));
            }
        }
        out.push_str("\nlive runs need\n");
        for r in &self.requirements {
            match &r.state {
                Ok(found) => out.push_str(&format!("  yes  {:<24}{found}\n", r.what)),
                Err(e) => {
                    out.push_str(&format!("  NO   {:<24}\n", r.what));
                    out.push_str(&wrapped(&format!("{e}; {}", e.help()), 7, columns));
                }
            }
        }
        out.push_str("\nways to an emulated disk, the fastest first\n");
        for (way, state) in &self.ways {
            let word = if state.is_ok() { "chosen" } else { "not chosen" };
            out.push_str(&format!("  {:<11} {word}\n", way.to_string()));
            if let Err(why) = state {
                out.push_str(&wrapped(why, 14, columns));
            }
        }
        out.push_str("\nprograms\n");
        for t in &self.tools {
            let state = match &t.version {
                Some(v) if v.is_empty() => "found".to_string(),
                Some(v) => v.clone(),
                None if t.package.is_empty() => "missing; not in Debian".to_string(),
                None => format!("missing: apt install {}", t.package),
            };
            out.push_str(&format!("  {:<13} {state:<35} {}\n", t.name, t.purpose));
        }
        if !self.states.is_empty() {
            out.push_str("\nstate files (runs at work, or killed: iosched restore)\n");
            self.states.iter().for_each(|s| out.push_str(&format!("  {s}\n")));
        }
        out
    }
}

/// Whether a run might write to the target.
fn written(verdict: &std::result::Result<Judgement, String>, columns: usize) -> String {
    let mut out = String::from("\nwriting to it\n");
    let mut line = |word: &str, text: &str| {
        out.push_str(&format!("  {word}\n"));
        out.push_str(&wrapped(text, 4, columns));
    };
    match verdict {
        Err(why) => line("UNKNOWN", why),
        Ok(j) if j.kind == "directory" => line("yes", "commands start from a folder made in it"),
        Ok(j) => {
            match (&j.refusal, j.refused_always) {
                (None, _) => line("yes", "nobody uses it, and it holds nothing that was found"),
                (Some(why), true) => line("REFUSED, whatever leave is given", why),
                (Some(why), false) => line("REFUSED", why),
            }
            if let Some(help) = &j.help {
                line("what to do", help);
            }
            j.notes.iter().for_each(|n| line("note", n));
        }
    }
    out
}

/// Text in lines of at most so many columns, indented.
fn wrapped(text: &str, indent: usize, columns: usize) -> String {
    let (mut out, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > columns {
            out.push_str(&format!("{:indent$}{line}\n", ""));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    out.push_str(&format!("{:indent$}{line}\n", ""));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_fits_the_page() {
        let text = examine(None, &Interrupt::default()).unwrap().render(80);
        assert!(text.starts_with("kernel "), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        assert!(text.contains("programs\n  fio "), "{text}");
        let chosen =
            text.lines().filter(|l| l.ends_with(" chosen") && !l.contains(" not ")).count();
        assert_eq!(chosen, 1, "one way: {text}");
    }

    #[test]
    fn advice_is_wrapped_and_not_cut() {
        let advice = "FUSE is not available in here ".repeat(9);
        let text = wrapped(&advice, 7, 80);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() > 1, "{text}");
        for (line, next) in lines.iter().zip(lines[1..].iter().map(Some).chain([None])) {
            let words = line.strip_prefix("       ").unwrap();
            assert!(line.len() <= 80 && !words.starts_with(' '), "{text}");
            // Full as far as it goes.
            let first = next.and_then(|l| l.split_whitespace().next());
            assert!(first.is_none_or(|w| line.len() + 1 + w.len() > 80), "{text}");
        }
        assert!(text.split_whitespace().eq(advice.split_whitespace()));
        // A word that is longer than a line stays whole.
        assert_eq!(wrapped("a much-too-long-word b", 2, 10), "  a\n  much-too-long-word\n  b\n");
    }
}
