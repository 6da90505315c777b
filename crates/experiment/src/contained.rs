//! An experiment file with its job and device files in it: the same comparison in another folder, on another machine.

use std::ops::Range;

use crate::file::{DeviceRef, Experiment, JobSource, beside, is_path, stem};
use crate::load::{ProgramRef, TraceRef};
use crate::source::Source;

/// Before the options that a stored experiment was run with, in the first lines of its definition.
pub const OPTIONS_LINE: &str = "# iosched: options ";
/// Before the command line that a stored experiment without a file was run with.
pub const COMMAND_LINE: &str = "# iosched: run ";

/// The text of an experiment file, job and device files that it names replaced by what is in them. What cannot be read,
/// kernel profiles, and what is no job (a log of system calls) stay named.
#[must_use]
pub fn contained(file: &str, text: &str, read: &dyn Fn(&str) -> Result<String, String>) -> String {
    let src = Source { file, text };
    let Ok(root) = src.parse() else { return text.into() };
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for at in root.get_ref().get("devices").map(|list| src.list(list)).unwrap_or_default() {
        if let Some(path) = at.get_ref().as_str()
            && let Some(device) = device(path, &|path| read(&beside(file, path)))
        {
            edits.push((at.span(), device));
        }
    }
    let jobs = root.get_ref().get("workloads").map(|list| src.list(list)).unwrap_or_default();
    let job = |path: &str| {
        let beside = |path: &str| read(&beside(file, path));
        let named = !path.contains(['/', '.']) || TraceRef::is_log_of(path, &beside);
        let job = if named { None } else { beside(path).ok() };
        Some(format!("job = {}", literal(&job?)?))
    };
    for at in jobs {
        if let Some(path) = at.get_ref().as_str() {
            if ProgramRef::of_line(path).is_none()
                && let Some(job) = job(path)
            {
                edits.push((at.span(), format!("{{ name = {}, {job} }}", quoted(stem(path)))));
            }
        } else if let Some(table) = at.get_ref().as_table()
            && let Some((key, value)) = table.get_key_value("file")
            && let Some(path) = value.get_ref().as_str()
            && let Some(job) = job(path)
        {
            let inline = text.get(at.span()).is_some_and(|t| t.starts_with('{'));
            let gap = if inline { ", " } else { "\n" };
            let name = match table.contains_key("name") {
                true => String::new(),
                false => format!("name = {}{gap}", quoted(stem(path))),
            };
            edits.push((key.span().start..value.span().end, format!("{name}{job}")));
        }
    }
    // From the end on, so that the places before stay where they are.
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut out = text.to_string();
    for (range, new) in edits {
        out.replace_range(range, &new);
    }
    out
}

/// A device file as a table with its name.
fn device(path: &str, read: &dyn Fn(&str) -> Result<String, String>) -> Option<String> {
    let named = !is_path(path) || !path.ends_with(".toml");
    let mut table: toml::Table = if named { None } else { toml::from_str(&read(path).ok()?).ok() }?;
    table.insert("name".into(), stem(path).into());
    Some(toml::Value::Table(table).to_string())
}

/// The files that an experiment file still names, in its order.
#[must_use]
pub fn files_of(text: &str) -> Vec<String> {
    let (e, _) = Experiment::read("", text);
    let devices = e.devices.iter().filter_map(|d| match &d.value {
        DeviceRef::Named(name) => Some(name).filter(|n| is_path(n)),
        DeviceRef::Inline(..) => None,
    });
    let kernels = e.kernels.iter().map(|k| &k.value).filter(|k| is_path(k));
    let workloads = e.workloads.iter().filter_map(|w| match &w.value.job {
        JobSource::File(path) => Some(path).filter(|p| p.contains(['/', '.'])),
        JobSource::Trace(t) => Some(&t.file),
        JobSource::Replay(t) => Some(&t.file),
        _ => None,
    });
    let mut out: Vec<String> = Vec::new();
    for path in devices.chain(kernels).chain(workloads) {
        if !out.contains(path) {
            out.push(path.clone());
        }
    }
    out
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A text as a TOML string over several lines; `None` where it has signs that TOML does not take.
fn literal(text: &str) -> Option<String> {
    let control = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    if text.contains(control) || text.replace("\r\n", "").contains('\r') {
        return None;
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    Some(if text.contains("'''") {
        let escaped = text.replace('\\', "\\\\").replace("\"\"\"", "\"\"\\\"");
        format!("\"\"\"\n{escaped}{end}\"\"\"")
    } else {
        format!("'''\n{text}{end}'''")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Result<String, String> {
        match path {
            "dir/jobs/a.fio" => Ok("[a]\nrw=read\nfilename=C:\\'disk'\n".into()),
            "dir/my.toml" => {
                Ok("model = \"fixed\"\nlatency = 100 # us\n[more]\na = [1, 2]\n".into())
            }
            "dir/b.fio" => Ok("[b]\ndescription=''' and \"\"\" and \\".into()),
            _ => Err("no such file".into()),
        }
    }

    #[test]
    fn job_files_are_taken_in_and_everything_else_stays() {
        let text = "# mine\ndevices = [\"hdd-7200\", \"my.toml\", \"no.toml\", \"/dev/sdb\"]\nschedulers = [\"none\"]\nworkloads = [\n    \
                    \"jobs/a.fio\", # first\n    \"database\",\n    { file = \"b.fio\" },\n    \"gone.fio\",\n]\n\
                    [set]\nruntime = 3\n";
        let out = contained("dir/x.toml", text, &read);
        let (e, errors) = Experiment::read("", &out);
        assert!(errors.is_empty(), "{errors:?}\n{out}");
        let jobs: Vec<_> =
            e.workloads.iter().map(|w| (w.value.name.as_str(), &w.value.job)).collect();
        assert_eq!(jobs[0], ("a", &JobSource::Text(read("dir/jobs/a.fio").unwrap())));
        assert_eq!(jobs[1], ("database", &JobSource::File("database".into())));
        assert_eq!(jobs[2].0, "b");
        assert_eq!(
            jobs[2].1,
            &JobSource::Text("[b]\ndescription=''' and \"\"\" and \\\n".into()),
            "quotes and backslashes"
        );
        assert_eq!(jobs[3].1, &JobSource::File("gone.fio".into()));
        assert!(
            out.starts_with("# mine\n") && out.contains("# first") && out.contains("runtime = 3")
        );
        let DeviceRef::Inline(name, device) = &e.devices[1].value else { panic!("{out}") };
        let same = |a: &str, b: &str| toml::from_str::<toml::Table>(a) == toml::from_str(b);
        assert_eq!(name, "my");
        assert!(same(device, &read("dir/my.toml").unwrap()), "{device}");
        assert_eq!(files_of(&out), ["no.toml", "/dev/sdb", "gone.fio"]);
        assert_eq!(contained("dir/x.toml", &out, &read), out, "nothing is left to do");
    }

    #[test]
    fn tables_with_a_head_keep_their_names() {
        let text = "devices = \"hdd-7200\"\nschedulers = \"none\"\n[[workloads]]\nname = \"mine\"\n\
                    file = \"jobs/a.fio\"\n[[workloads]]\nfile = \"jobs/a.fio\"\n";
        let out = contained("dir/x.toml", text, &read);
        let (e, errors) = Experiment::read("", &out);
        assert!(errors.is_empty(), "{errors:?}\n{out}");
        let names: Vec<_> = e.workloads.iter().map(|w| w.value.name.as_str()).collect();
        assert_eq!(names, ["mine", "a"]);
        assert!(files_of(&out).is_empty());
    }
}
