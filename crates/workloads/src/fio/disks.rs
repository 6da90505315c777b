//! Block devices by their names: which of them are parts of one disk, and where those lie.
//!
//! A trial has one disk. Names of parts of it (partitions, volumes) are places of their own: they lie beside each other,
//! partitions by their numbers, then volumes in the order in which jobs name them. Each has an equal share of the disk;
//! one whose jobs ask for more has that, and the others share the rest. Beside the whole disk they lie behind a share that no part has,
//! so that none begins where the disk begins. Names of several disks are an error.

use std::collections::BTreeMap;

use iosched_types::{Bytes, Diagnostic};

use super::check::at_section;
use super::spec::{JobSet, JobSpec};

const ALIGN: Bytes = 1 << 20;

/// What a name below `/dev` stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    /// A whole disk.
    Disk(String),
    /// A partition of a disk.
    Partition(String, u32),
    /// A logical volume, or a file system by its label: on which disk it lies does not show.
    Volume,
}

/// Whether a file's name is that of a device.
pub(crate) fn is_device(name: &str) -> bool {
    name.starts_with("/dev/")
}

/// The name without `/dev/` and without doubled slashes.
fn below_dev(name: &str) -> String {
    let mut parts = name.split('/').filter(|p| !p.is_empty());
    parts.next();
    parts.collect::<Vec<_>>().join("/")
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// `sda1` and `nvme0n1p1` taken apart: the kernel puts a `p` between the name of a disk that ends in a digit and the
/// number of its partition.
fn partition(name: &str) -> Option<(&str, u32)> {
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let n = number(name.get(disk.len()..).filter(|n| !n.is_empty())?)?;
    if let Some(disk) = disk.strip_suffix('p')
        && disk.ends_with(|c: char| c.is_ascii_digit())
    {
        return Some((disk, n));
    }
    let lettered = ["sd", "hd", "vd", "xvd", "dasd"].into_iter().any(|kind| {
        let letters = disk.strip_prefix(kind).unwrap_or_default();
        !letters.is_empty() && letters.bytes().all(|b| b.is_ascii_lowercase())
    });
    lettered.then_some((disk, n))
}

fn node(name: &str) -> Node {
    let name = below_dev(name);
    if let Some(link) = name.strip_prefix("disk/") {
        return match link.split_once('/') {
            Some(("by-uuid" | "by-label" | "by-partuuid" | "by-partlabel" | "by-dname", _)) => {
                Node::Volume
            }
            _ => match name.rsplit_once("-part").and_then(|(disk, n)| Some((disk, number(n)?))) {
                Some((disk, n)) => Node::Partition(disk.into(), n),
                None => Node::Disk(name),
            },
        };
    }
    let of_dm = name.strip_prefix("dm-").is_some_and(|n| number(n).is_some());
    // Directories of drivers and of md; any other holds the volumes of a group.
    let directories = ["block/", "cciss/", "ida/", "rd/", "md/"];
    if of_dm || name.contains('/') && !directories.iter().any(|d| name.starts_with(d)) {
        return Node::Volume;
    }
    match partition(&name) {
        Some((disk, n)) => Node::Partition(disk.into(), n),
        None => Node::Disk(name),
    }
}

/// Why a name is that of no block device.
fn no_block_device(name: &str) -> Option<&'static str> {
    let name = below_dev(name);
    let numbered = |kind: &str| name.strip_prefix(kind).is_some_and(|n| number(n).is_some());
    if name.starts_with("shm/") {
        Some("it is a file in memory (tmpfs): no disk is below it")
    } else if ["null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "mem"]
        .contains(&name.as_str())
        || name.starts_with("fd/")
    {
        Some("it is a character device: no disk is below it")
    } else if numbered("nvme")
        || name.starts_with("ng")
            && name.contains('n')
            && !name.contains('/')
            && name[2..].starts_with(|c: char| c.is_ascii_digit())
    {
        Some(
            "it is the character device of a controller; its block devices are named like /dev/nvme0n1",
        )
    } else if numbered("sg") || name.starts_with("bsg/") {
        Some(
            "it passes commands by the block layer; name the disk's block device, such as /dev/sda",
        )
    } else {
        None
    }
}

/// The devices that jobs name, each once, with the first job that does.
fn named(set: &JobSet) -> Vec<(String, &JobSpec)> {
    let mut out: Vec<(String, &JobSpec)> = Vec::new();
    for job in &set.jobs {
        for name in job.file_names().into_iter().filter(|n| is_device(n)) {
            if !out.iter().any(|(known, _)| *known == name) {
                out.push((name, job));
            }
        }
    }
    out
}

/// Refuses jobs on several disks, and names of no disk.
///
/// # Errors
/// One diagnostic for each name of no disk; else one at the first job on a second disk.
pub fn check_disks(set: &JobSet) -> Result<(), Vec<Diagnostic>> {
    let named = named(set);
    let wrong: Vec<Diagnostic> = named
        .iter()
        .filter_map(|(name, job)| {
            let why = no_block_device(name)?;
            let message = format!("job \"{}\": \"{name}\" is no block device", job.name);
            Some(at_section(job, message).with_help(why))
        })
        .collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    // Each disk by the first name that leads to it.
    let mut disks: BTreeMap<String, &str> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    let mut second = None;
    let whole = named.iter().any(|(n, _)| matches!(node(n), Node::Disk(_)));
    for (name, job) in &named {
        let disk = match node(name) {
            Node::Disk(disk) | Node::Partition(disk, _) => disk,
            // Beside a whole disk it may be a part of it or lie elsewhere.
            Node::Volume if whole => name.clone(),
            Node::Volume => continue,
        };
        if disks.is_empty() || disks.contains_key(&disk) {
            disks.entry(disk).or_insert_with(|| {
                order.push(name);
                name
            });
            continue;
        }
        disks.insert(disk, name);
        order.push(name);
        second = second.or(Some(*job));
    }
    let Some(job) = second else { return Ok(()) };
    let (last, first) = order.split_last().map_or(("", &[][..]), |(last, first)| (*last, first));
    let message = format!(
        "the jobs work on {} disks, {} and {last}; a trial has one",
        order.len(),
        first.join(", ")
    );
    let help = format!(
        "run the sections of each disk alone, or put all jobs on one disk: --set filename={}",
        first.first().copied().unwrap_or("/dev/disk")
    );
    let help = match &job.replay {
        Some(_) => format!("{help} (a log: replay_redirect={})", first.first().unwrap_or(&last)),
        None => help,
    };
    Err(vec![at_section(job, message).with_help(help)])
}

/// The whole disk, where a job names it.
fn whole(set: &JobSet) -> Option<String> {
    named(set).into_iter().map(|(name, _)| name).find(|n| matches!(node(n), Node::Disk(_)))
}

/// Partitions and volumes that the jobs name, in the order in which they lie on the disk; none where there is only one and nothing else.
fn parts(set: &JobSet) -> Vec<String> {
    let mut parts: Vec<(u32, String)> = Vec::new();
    for (name, _) in named(set) {
        match node(&name) {
            Node::Disk(_) => {}
            Node::Partition(_, n) => parts.push((n, name)),
            Node::Volume => parts.push((u32::MAX, name)),
        }
    }
    parts.sort_by_key(|(n, _)| *n);
    let alone = parts.len() < 2 && whole(set).is_none();
    if alone { Vec::new() } else { parts.into_iter().map(|(_, name)| name).collect() }
}

/// What is assumed of where the jobs' devices lie; empty where nothing is.
#[must_use]
pub fn assumed(set: &JobSet) -> Option<String> {
    let parts = parts(set);
    let (last, first) = parts.split_last()?;
    if let Some(disk) = whole(set) {
        let list = parts.join(", ");
        return Some(format!(
            "{list} of {disk}: taken to lie in this order behind a share of the disk that no part has, with equal shares of it; \
             one whose jobs ask for more has that"
        ));
    }
    let (first, count) = (first.join(", "), parts.len());
    Some(format!(
        "{first} and {last} are taken as {count} parts of one disk beside each other in this order, with equal shares of \
         it; one whose jobs ask for more has that"
    ))
}

/// Where each device that jobs name lies on the disk.
pub(crate) struct Disk {
    parts: BTreeMap<String, (Bytes, Bytes)>,
    capacity: Bytes,
}

impl Disk {
    pub(crate) fn new(set: &JobSet, capacity: Bytes) -> Disk {
        let names = parts(set);
        let ahead = usize::from(!names.is_empty() && whole(set).is_some());
        let mut needs = vec![0; ahead];
        needs.extend(names.iter().map(|name| need(set, name)));
        let shares = shares(&needs, capacity);
        let mut disk = Disk { parts: BTreeMap::new(), capacity };
        let mut next = shares.iter().take(ahead).sum();
        for (name, size) in names.into_iter().zip(shares.into_iter().skip(ahead)) {
            disk.parts.insert(name, (next, size));
            next += size;
        }
        disk
    }

    /// First byte and size.
    pub(crate) fn place(&self, name: &str) -> (Bytes, Bytes) {
        self.parts.get(name).copied().unwrap_or((0, self.capacity))
    }
}

/// An equal share for each, but for those that need more; what does not fit is refused where the part ends.
fn shares(needs: &[Bytes], capacity: Bytes) -> Vec<Bytes> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(needs[*i]));
    let mut out = vec![0; needs.len()];
    let mut rest = capacity;
    for (done, i) in order.iter().enumerate() {
        let equal = rest / (needs.len() - done) as u64 / ALIGN * ALIGN;
        let need = needs[*i].checked_next_multiple_of(ALIGN).unwrap_or(Bytes::MAX);
        out[*i] = need.max(equal).min(rest);
        rest -= out[*i];
    }
    out
}

/// How far jobs reach in a part, as far as they say so in bytes.
fn need(set: &JobSet, name: &str) -> Bytes {
    let of_job = |job: &JobSpec| {
        let names = job.file_names();
        let file = names.iter().position(|n| n == name)?;
        if let Some(log) = &job.replay {
            let of_file = log.entries.iter().filter(|e| e.file as usize == file);
            return of_file.map(|e| e.offset.saturating_add(e.len)).max();
        }
        let t = &job.target;
        let offset = t.offset.saturating_add(t.offset_increment.saturating_mul(job.subjob.into()));
        Some(offset.saturating_add(t.size.unwrap_or(0) / names.len().max(1) as u64))
    };
    set.jobs.iter().filter_map(of_job).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::layout::lay_out;
    use crate::fio::{NoLookup, parse};

    #[test]
    fn names_of_disks_partitions_and_volumes() {
        let disk = |name: &str| assert_eq!(node(name), Node::Disk(below_dev(name)), "{name}");
        for name in [
            "/dev/sda",
            "/dev/sdaa",
            "/dev/nvme0n1",
            "/dev/mmcblk0",
            "/dev/mmcblk0boot0",
            "/dev/md0",
            "/dev/md127",
            "/dev/md/data",
            "/dev/loop7",
            "/dev/nbd12",
            "/dev/ram0",
            "/dev/zram1",
            "/dev/rbd0",
            "/dev/cciss/c0d0",
            "/dev/disk/by-id/ata-ST4000_1",
            "/dev/disk/by-path/pci-0000:00:17.0-ata-1",
            "/dev/disk",
            "/dev/disk0",
            "/dev//sda",
            "/dev/sd1",
        ] {
            disk(name);
        }
        for (name, of, n) in [
            ("/dev/sda1", "sda", 1),
            ("/dev/sdaa12", "sdaa", 12),
            ("/dev/vdb3", "vdb", 3),
            ("/dev/xvda1", "xvda", 1),
            ("/dev/hda2", "hda", 2),
            ("/dev/dasda1", "dasda", 1),
            ("/dev/nvme0n1p1", "nvme0n1", 1),
            ("/dev/mmcblk0p2", "mmcblk0", 2),
            ("/dev/loop5p2", "loop5", 2),
            ("/dev/md127p3", "md127", 3),
            ("/dev/cciss/c0d0p1", "cciss/c0d0", 1),
            ("/dev/disk/by-id/nvme-X_1-part2", "disk/by-id/nvme-X_1", 2),
        ] {
            assert_eq!(node(name), Node::Partition(of.into(), n), "{name}");
        }
        for name in ["/dev/mapper/vg-lv", "/dev/dm-0", "/dev/vg0/root", "/dev/disk/by-uuid/1-2"] {
            assert_eq!(node(name), Node::Volume, "{name}");
        }
    }

    fn set(text: &str) -> JobSet {
        parse("a.fio", text, &NoLookup, &|_| Err("none".into()), &[]).unwrap()
    }

    fn jobs(names: &[&str]) -> JobSet {
        let job = |(i, n): (usize, &&str)| format!("[j{i}]\nfilename={n}\ndirect=1\n");
        set(&names.iter().enumerate().map(job).collect::<String>())
    }

    #[test]
    fn several_disks_are_refused() {
        let refused = |names: &[&str]| check_disks(&jobs(names)).err().map(|e| e[0].to_string());
        for names in [
            &["/dev/sda", "/dev/sda1"][..],
            &["/dev/sda1", "/dev/sda2"],
            &["/dev/mapper/a", "/dev/mapper/b", "/dev/sda1"],
            &["/dev/sda1:/dev/sda2", "/dev//sda"],
        ] {
            assert_eq!(refused(names), None, "{names:?}");
        }
        for (names, list) in [
            (&["/dev/sdd", "/dev/sde", "/dev/sdf"][..], "3 disks, /dev/sdd, /dev/sde and /dev/sdf"),
            (&["/dev/sda:/dev/sdb"], "2 disks, /dev/sda and /dev/sdb"),
            (&["/dev/sda1", "/dev/sdb1"], "2 disks, /dev/sda1 and /dev/sdb1"),
            (&["/dev/nvme0n1", "/dev/nvme0n2"], "2 disks, /dev/nvme0n1 and /dev/nvme0n2"),
            (&["/dev/sda", "/dev/md0"], "2 disks, /dev/sda and /dev/md0"),
            (&["/dev/mapper/x", "/dev/sda"], "2 disks, /dev/mapper/x and /dev/sda"),
        ] {
            let e = refused(names).unwrap();
            assert!(e.contains(list) && e.contains("run the sections of each disk alone"), "{e}");
        }
        // A section's name is a device's where nothing else is named, as in fio.
        let e =
            check_disks(&set("[global]\ndirect=1\nsize=1m\n[/dev/sdd]\n[/dev/sde]\n")).unwrap_err();
        assert_eq!((e.len(), e[0].line), (1, 5), "{}", e[0]);
        for name in ["/dev/null", "/dev/shm/f", "/dev/nvme0", "/dev/ng0n1", "/dev/sg1"] {
            assert!(refused(&[name]).unwrap().contains("is no block device"), "{name}");
        }
    }

    #[test]
    fn parts_lie_beside_each_other() {
        const MIB: u64 = 1 << 20;
        let places = |set: &JobSet, mib: u64| -> Vec<(u64, u64, u64)> {
            let files = lay_out(set, mib * MIB).unwrap();
            files.iter().flatten().map(|f| (f.origin / MIB, f.start / MIB, f.len / MIB)).collect()
        };
        let two = jobs(&["/dev/sda2", "/dev/sda1"]);
        assert_eq!(places(&two, 1001), [(500, 500, 501), (0, 0, 500)]);
        assert!(assumed(&two).unwrap().contains("/dev/sda1 and /dev/sda2 are taken as 2 parts"));
        assert_eq!(assumed(&jobs(&["/dev/sda1"])), None);
        // A disk and its partition do not begin at the same place.
        let both = jobs(&["/dev/sda", "/dev/sda3"]);
        assert_eq!(places(&both, 1000), [(0, 0, 1000), (500, 500, 500)]);
        assert!(assumed(&both).unwrap().starts_with("/dev/sda3 of /dev/sda: taken to lie"));
        let list = jobs(&["/dev/sda1:/dev/sda2:/dev/sda3"]);
        assert_eq!(places(&list, 900), [(0, 0, 300), (300, 300, 300), (600, 600, 300)]);
        let text = "[global]\ndirect=1\n[a]\nfilename=/dev/nvme0n1p1\nsize=700m\noffset=100m\n\
                    [b]\nfilename=/dev/nvme0n1p2\nsize=50%\n[c]\nfilename=/dev/nvme0n1\n";
        assert_eq!(places(&set(text), 1000), [(100, 200, 700), (900, 900, 50), (0, 0, 1000)]);
        let e = lay_out(&set(text), 700 * MIB).unwrap_err();
        assert!(e.message.contains("beyond the end of \"/dev/nvme0n1p1\""), "{}", e.message);
    }
}
