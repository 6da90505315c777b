//! What stands around a fio command in a post: fences of Markdown with prose outside of them, and the output of fio below it.

use super::cmdline::{begins, is_fio};

/// Where the lines of a post are.
pub(super) struct Pasted {
    /// The command is in code: outside of it is prose.
    fenced: bool,
    inside: bool,
    /// Below the first line of the output of fio.
    output: bool,
}

impl Pasted {
    pub(super) fn of(text: &str) -> Pasted {
        let mut inside = false;
        let fenced = text.lines().any(|line| {
            inside ^= is_fence(line);
            inside && has_command(line)
        });
        Pasted { fenced, inside: false, output: false }
    }

    /// Whether a line, the next one, is none of a shell.
    pub(super) fn is_no_command(&mut self, line: &str) -> bool {
        if is_fence(line) {
            self.inside = !self.inside;
            self.output = false;
            return true;
        }
        let command = has_command(line) || is_prompt(line);
        self.output = !command && (self.output || is_output(line));
        // Of JSON, and of a function: no commands either.
        let brace = matches!(line.trim(), "{" | "}");
        self.output || brace || self.fenced && !self.inside
    }
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// Whether fio with an option is on a line.
fn has_command(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(2).any(|pair| is_fio(pair[0]) && begins(pair[1]))
}

/// `$ ls`, `# ls`, `root@nas:~# ls`.
fn is_prompt(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    matches!(first, "$" | "#") || first.contains('@') && first.ends_with(['$', '#'])
}

/// A line with which the output of fio begins: normal, JSON or terse.
fn is_output(line: &str) -> bool {
    let line = line.trim();
    let begins = [
        "Starting ",
        "Jobs: ",
        "Run status group",
        "note: both iodepth",
        "fio: ",
        "\"fio version\"",
    ];
    let holds = [": (g=", "(groupid=", ": Laying out IO file"];
    line.strip_prefix("fio-")
        .is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()) && !v.contains(' '))
        || line.contains(";fio-")
        || begins.iter().any(|b| line.starts_with(b))
        || holds.iter().any(|h| line.contains(h))
}

#[cfg(test)]
mod tests {
    use crate::fio::{NoLookup, parse};

    const COMMAND: &str = "fio --name=t --rw=randread --size=1m --bs=4k";
    /// Of fio 3.33.
    const OUTPUT: &str = "\
t: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=4
fio-3.33
Starting 1 process
t: Laying out IO file (1 file / 1MiB)
note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1

t: (groupid=0, jobs=1): err= 0: pid=25887: Sat Nov 28 18:59:29 2026
  read: IOPS=17.1k, BW=66.7MiB/s (69.9MB/s)(1024KiB/15msec)
    clat (usec): min=48, max=232, avg=54.24, stdev=14.59

Run status group 0 (all jobs):
   READ: bw=66.7MiB/s (69.9MB/s), io=1024KiB (1049kB), run=15-15msec

Disk stats (read/write):
  vda: ios=0/0, merge=0/0, ticks=0/0, in_queue=0, util=0.00%
";

    fn warnings(text: &str) -> Vec<String> {
        let set = parse("a.txt", text, &NoLookup, &|_| Err("none".into()), &[]);
        let set = set.unwrap_or_else(|e| panic!("{text}: {}", e[0]));
        assert_eq!(set.jobs.len(), 1, "{text}");
        set.warnings
    }

    #[test]
    fn fences_prose_and_output_are_no_commands() {
        let json = "{\n  \"fio version\" : \"fio-3.33\",\n  \"jobs\" : [\n  ]\n}\n";
        let terse = "3;fio-3.33;t;0;0;1024;66000;17100;15\n";
        let lone = "fio: this platform does not support process shared mutexes\n";
        for text in [
            format!("```bash\n{COMMAND}\n```\n"),
            format!("~~~\n$ {COMMAND}\n{OUTPUT}~~~\n"),
            format!(
                "I ran this:\n\n```sh\n{COMMAND}\n```\nIt said\n```\n{OUTPUT}```\nwhich is slow.\n"
            ),
            format!("root@nas:~# {COMMAND}\n{OUTPUT}"),
            format!("{COMMAND}\n{lone}{OUTPUT}"),
            format!("{COMMAND} --bs=8k\n{json}"),
            format!("{COMMAND}\n{terse}"),
            format!("run()\n{{\n{COMMAND}\n}}\n").replace("run()\n", ""),
        ] {
            assert_eq!(warnings(&text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn commands_around_the_output_are_told() {
        let w = warnings(&format!("sync\n{COMMAND}\n{OUTPUT}root@nas:~# ls /x\n"));
        assert!(w.len() == 2 && w[0].contains("not run: sync") && w[1].contains("ls /x"), "{w:?}");
        let w = warnings(&format!("```\nsync\n{COMMAND}\n```\n"));
        assert!(
            w.len() == 1 && w[0].contains("a.txt:2: a command beside fio is not run: sync"),
            "{w:?}"
        );
        let two = format!("$ {COMMAND}\n{OUTPUT}$ {COMMAND}\n{OUTPUT}");
        let e = parse("a.txt", &two, &NoLookup, &|_| Err("none".into()), &[]).unwrap_err();
        assert!(e[0].to_string().contains("a second fio command"), "{}", e[0]);
    }
}
