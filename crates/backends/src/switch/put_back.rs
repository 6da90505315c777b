//! Putting a queue back as it was. The order matters: the scheduler first (it resets its tunables and
//! `nr_requests`), then what other writes reset, `read_ahead_kb` last.

use std::io;

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
fn restore_depth(
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
    fn a_vanished_disk_is_told() {
        let (_dir, root) = tree();
        let before = QueueState::read(&root, "sda");
        let e = put_back(&root, "sdz", &before, None).unwrap_err();
        assert!(matches!(e, Error::Gone { .. }), "{e:?}");
    }
}
