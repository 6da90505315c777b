//! Putting a queue back as it was. The order matters: the scheduler first (it resets its tunables and
//! `nr_requests`), then what other writes reset, `read_ahead_kb` last.

use std::io;
use std::os::unix::fs::MetadataExt;

use crate::discover::{QueueState, queue_dir, tag_depth};
use crate::error::{Error, Result};
use crate::kernel_fs::KernelFs;
use crate::root::SysRoot;

/// Attributes in the order in which they can be restored without undoing each other.
const ORDER: &[&str] = &[
    "rotational",
    "write_cache",
    "max_sectors_kb",
    "iostats",
    "add_random",
    "nomerges",
    "rq_affinity",
    "nr_requests",
    "io_timeout",
    // Only ever written when it differs: writing makes the throttle manual for good.
    "wbt_lat_usec",
    "read_ahead_kb",
];

/// What has become of a queue that a run changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Still {
    /// It is the same disk's.
    Same,
    /// The disk has gone, and its queue waits for the next or has it: a loop device was detached or given another file,
    /// a medium was changed.
    Outlived,
    /// It has gone with its disk. What has the name now was made anew.
    Gone,
}

/// Looks for the queue of a disk, of which the incarnation and the queue's number are known.
pub(crate) fn still(
    root: &SysRoot,
    device: &str,
    diskseq: Option<i64>,
    queue: Option<u64>,
) -> Still {
    let now = queue_number(root, device);
    let same_queue = queue.is_none() || queue == now;
    match incarnation(root, device) == diskseq {
        _ if now.is_none() => Still::Gone,
        true if same_queue => Still::Same,
        false if same_queue && queue.is_some() => Still::Outlived,
        _ => Still::Gone,
    }
}

/// The number of a disk's incarnation (Linux 5.15), which no other disk of its name will have.
pub(super) fn incarnation(root: &SysRoot, device: &str) -> Option<i64> {
    root.number(&format!("/sys/block/{}/diskseq", device.replace('/', "!")))
}

/// The number of the queue: that of its directory in sysfs, which the kernel makes with the queue and removes with it.
pub(super) fn queue_number(root: &SysRoot, device: &str) -> Option<u64> {
    std::fs::metadata(root.real(&queue_dir(device))).ok().map(|m| m.ino())
}

/// Restores a queue whose disk has gone, as far as the run has changed it, if it is as the run set it last.
///
/// # Errors
/// As [`put_back`]; [`Error::Trial`] when another program has set it since: it is left as it is.
pub(crate) fn put_back_if_ours(
    root: &SysRoot,
    device: &str,
    (before, set): (&QueueState, Option<&QueueState>),
    depth: Option<u32>,
) -> Result<Vec<String>> {
    // Without it nothing was set.
    let Some(set) = set else { return Ok(Vec::new()) };
    let now = QueueState::read(root, device);
    // The next disk brings the other attributes along (`write_cache`, `rotational`).
    let changed = |a: &(&String, &String)| set.attributes.get(a.0) != Some(a.1);
    let attributes = before.attributes.iter().filter(changed);
    let before = QueueState {
        attributes: attributes.map(|(k, v)| (k.clone(), v.clone())).collect(),
        ..before.clone()
    };
    let is = |state: &QueueState| {
        let agrees = |name: &String| now.attributes.get(name) == state.attributes.get(name);
        now.scheduler == state.scheduler
            && now.tunables == state.tunables
            && before.attributes.keys().all(agrees)
    };
    if is(set) {
        return put_back(root, device, &before, depth);
    }
    if is(&before) {
        return Ok(Vec::new());
    }
    Err(Error::Trial {
        message: format!(
            "/dev/{device} is another disk now, and its settings are not those that the run made: they are left as they \
             are (scheduler {})",
            now.scheduler.as_deref().unwrap_or("-")
        ),
    })
}

/// Restores a queue and reads everything back; what was changed, in words.
///
/// # Errors
/// [`Error::ReadBack`] when a value does not stick, [`Error::Gone`] when the disk is no more.
pub fn put_back(
    root: &SysRoot,
    device: &str,
    before: &QueueState,
    depth: Option<u32>,
) -> Result<Vec<String>> {
    let dir = queue_dir(device);
    if !root.exists(&dir) {
        return Err(Error::Gone { device: format!("/dev/{device}"), during: "restoring".into() });
    }
    let mut done = Vec::new();
    // What cannot be put back keeps nothing else from it.
    let mut failed = restore_depth(root, device, depth, &mut done).err();
    let mut set = |path: &str, value: &str| match write(root, path, value) {
        Ok(()) => true,
        Err(e) => {
            failed.get_or_insert(e);
            false
        }
    };
    let now = QueueState::read(root, device);
    if let Some(scheduler) = &before.scheduler
        && now.scheduler.as_ref() != Some(scheduler)
        && set(&format!("{dir}/scheduler"), scheduler)
    {
        done.push(format!("scheduler {} -> {scheduler}", now.scheduler.as_deref().unwrap_or("-")));
    }
    // A tunable may follow another attribute (mq-deadline's async_depth follows nr_requests). So the tunables are
    // written again after the attributes.
    let first = tunables(root, device, before, &mut done);
    for name in ORDER {
        let path = format!("{dir}/{name}");
        if let (Some(value), Some(now)) = (before.attributes.get(*name), root.get(&path))
            && now != *value
            && set(&path, value)
        {
            done.push(format!("{name} {now} -> {value}"));
        }
    }
    let again = tunables(root, device, before, &mut done);
    failed.map_or(Ok(()), Err).and(first).and(again)?;
    compare(root, device, before)?;
    Ok(done)
}

fn tunables(
    root: &SysRoot,
    device: &str,
    before: &QueueState,
    done: &mut Vec<String>,
) -> Result<()> {
    let dir = queue_dir(device);
    let mut failed = None;
    for (name, value) in &before.tunables {
        let path = format!("{dir}/iosched/{name}");
        let Some(now) = root.get(&path) else { continue };
        if now == *value {
            continue;
        }
        match root.write(&path, value) {
            Ok(()) => done.push(format!("{name} {now} -> {value}")),
            // A twin in another unit (bfq's slice_idle_us) or a read-only value: the comparison decides.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
            Err(e) => {
                failed.get_or_insert(Error::io("writing", path, e));
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The driver's own tags. A write to `nr_requests` under `none` resizes them, and sysfs does not show them afterwards.
/// The kernel ignores a write of the number that sysfs already shows, so we write another number first.
pub(super) fn restore_depth(
    root: &SysRoot,
    device: &str,
    depth: Option<u32>,
    done: &mut Vec<String>,
) -> Result<()> {
    let Some(depth) = depth else { return Ok(()) };
    let Ok(debugfs) = KernelFs::debugfs() else { return Ok(()) };
    let seen = tag_depth(debugfs.root(), device);
    if seen.is_none_or(|d| d == depth) || depth < 2 {
        return Ok(());
    }
    let dir = queue_dir(device);
    write(root, &format!("{dir}/scheduler"), "none")?;
    let path = format!("{dir}/nr_requests");
    write(root, &path, &(depth - 1).to_string())?;
    write(root, &path, &depth.to_string())?;
    let now = tag_depth(debugfs.root(), device);
    if now != Some(depth) {
        return Err(Error::ReadBack {
            path: format!("/sys/kernel/debug/block/{device}/hctx0/tags").into(),
            wrote: depth.to_string(),
            reads: now.map_or("-".into(), |n| n.to_string()),
        });
    }
    done.push(format!("driver tags {} -> {depth}", seen.unwrap_or_default()));
    Ok(())
}

fn write(root: &SysRoot, path: &str, value: &str) -> Result<()> {
    root.write(path, value).map_err(|e| Error::io("writing", path, e))
}

fn compare(root: &SysRoot, device: &str, before: &QueueState) -> Result<()> {
    let now = QueueState::read(root, device);
    let dir = queue_dir(device);
    let wrong = |name: &str, wrote: &str, reads: &str| {
        Err(Error::ReadBack {
            path: format!("{dir}/{name}").into(),
            wrote: wrote.into(),
            reads: reads.into(),
        })
    };
    if now.scheduler != before.scheduler {
        let (wrote, reads) = (&before.scheduler, &now.scheduler);
        return wrong(
            "scheduler",
            wrote.as_deref().unwrap_or("-"),
            reads.as_deref().unwrap_or("-"),
        );
    }
    for (was, is, sub) in
        [(&before.attributes, &now.attributes, ""), (&before.tunables, &now.tunables, "iosched/")]
    {
        for (name, value) in was {
            match is.get(name) {
                Some(v) if v == value => {}
                other => {
                    let reads = other.map_or("-", String::as_str);
                    return wrong(&format!("{sub}{name}"), value, reads);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;

    fn tree() -> (tempfile::TempDir, SysRoot) {
        let dir = tempfile::tempdir().unwrap();
        let q = dir.path().join("sys/block/sda/queue");
        fs::create_dir_all(q.join("iosched")).unwrap();
        for (f, v) in [
            ("scheduler", "none [mq-deadline] bfq"),
            ("nr_requests", "96"),
            ("read_ahead_kb", "512"),
            ("wbt_lat_usec", "2000"),
            ("iosched/read_expire", "200"),
        ] {
            fs::write(q.join(f), format!("{v}\n")).unwrap();
        }
        let root = SysRoot::fixture(dir.path(), BTreeMap::new());
        (dir, root)
    }

    #[test]
    fn only_what_differs_is_written() {
        let (dir, root) = tree();
        let before = QueueState::read(&root, "sda");
        assert_eq!(put_back(&root, "sda", &before, None).unwrap(), Vec::<String>::new());
        fs::write(dir.path().join("sys/block/sda/queue/read_ahead_kb"), "64\n").unwrap();
        fs::write(dir.path().join("sys/block/sda/queue/iosched/read_expire"), "500\n").unwrap();
        let done = put_back(&root, "sda", &before, None).unwrap();
        assert_eq!(done, ["read_expire 500 -> 200", "read_ahead_kb 64 -> 512"]);
        assert_eq!(QueueState::read(&root, "sda"), before);
    }

    #[test]
    fn a_value_that_does_not_stick_is_told() {
        let (dir, root) = tree();
        let before = QueueState::read(&root, "sda");
        // A plain file takes any text, so the scheduler file does not follow the kernel's form.
        fs::write(dir.path().join("sys/block/sda/queue/scheduler"), "none mq-deadline [bfq]\n")
            .unwrap();
        let e = put_back(&root, "sda", &before, None).unwrap_err();
        assert!(matches!(e, Error::ReadBack { .. }) || e.to_string().contains("scheduler"), "{e}");
    }

    #[test]
    fn one_value_that_is_refused_keeps_no_other_from_being_put_back() {
        let (dir, root) = tree();
        let before = QueueState::read(&root, "sda");
        let queue = dir.path().join("sys/block/sda/queue");
        fs::write(queue.join("read_ahead_kb"), "64\n").unwrap();
        fs::write(queue.join("iosched/read_expire"), "500\n").unwrap();
        // A write to it fails, root or not.
        fs::remove_file(queue.join("nr_requests")).unwrap();
        std::os::unix::fs::symlink("/proc/version", queue.join("nr_requests")).unwrap();
        put_back(&root, "sda", &before, None).unwrap_err();
        assert_eq!(root.get("/sys/block/sda/queue/read_ahead_kb").unwrap(), "512");
        assert_eq!(root.get("/sys/block/sda/queue/iosched/read_expire").unwrap(), "200");
    }

    #[test]
    fn a_queue_that_outlives_its_disk_is_told_from_one_made_anew() {
        let (dir, root) = tree();
        let block = dir.path().join("sys/block/sda");
        let seq = |n: i64| fs::write(block.join("diskseq"), format!("{n}\n")).unwrap();
        seq(7);
        let queue = queue_number(&root, "sda");
        assert_eq!(still(&root, "sda", Some(7), queue), Still::Same);
        assert_eq!(still(&root, "sda", Some(7), None), Still::Same, "of an older iosched");
        seq(8);
        assert_eq!(still(&root, "sda", Some(7), queue), Still::Outlived);
        assert_eq!(still(&root, "sda", Some(7), None), Still::Gone);
        fs::rename(block.join("queue"), block.join("old")).unwrap();
        assert_eq!(still(&root, "sda", Some(7), queue), Still::Gone);
        fs::create_dir(block.join("queue")).unwrap();
        assert_eq!(still(&root, "sda", Some(7), queue), Still::Gone, "made anew");
        assert_eq!(still(&root, "sda", Some(8), queue), Still::Gone, "made anew");
    }

    #[test]
    fn what_the_run_set_goes_back_on_the_next_disk_and_nothing_else_is_touched() {
        let (dir, root) = tree();
        let queue = dir.path().join("sys/block/sda/queue");
        let put =
            |name: &str, value: &str| fs::write(queue.join(name), format!("{value}\n")).unwrap();
        let get = |name: &str| fs::read_to_string(queue.join(name)).unwrap().trim().to_string();
        put("write_cache", "write back");
        let before = QueueState::read(&root, "sda");
        put("read_ahead_kb", "64");
        put("iosched/read_expire", "500");
        let set = QueueState::read(&root, "sda");
        // The next disk has another cache. This is no setting of ours.
        put("write_cache", "write through");
        let back = |set| put_back_if_ours(&root, "sda", (&before, set), None);
        assert_eq!(back(None).unwrap(), Vec::<String>::new());
        assert_eq!(get("read_ahead_kb"), "64");
        let done = back(Some(&set)).unwrap();
        assert_eq!(done, ["read_expire 500 -> 200", "read_ahead_kb 64 -> 512"]);
        assert_eq!(get("write_cache"), "write through");
        assert_eq!(back(Some(&set)).unwrap(), Vec::<String>::new(), "it is as it was");
        put("read_ahead_kb", "77");
        let e = back(Some(&set)).unwrap_err().to_string();
        assert!(e.contains("is another disk now") && e.contains("left as they are"), "{e}");
        assert_eq!(get("read_ahead_kb"), "77");
    }

    #[test]
    fn a_vanished_disk_is_told() {
        let (_dir, root) = tree();
        let before = QueueState::read(&root, "sda");
        let e = put_back(&root, "sdz", &before, None).unwrap_err();
        assert!(matches!(e, Error::Gone { .. }), "{e:?}");
    }
}
