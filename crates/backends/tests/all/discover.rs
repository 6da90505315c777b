//! Discovery on trees of files that look like the sysfs of machines we do not have.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests of what touches the machine"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use iosched_backends::discover::{Disk, LayerKind, find};
use iosched_backends::root::{DevNum, Node, SysRoot};
use iosched_backends::{Error, ExitClass};

struct Machine {
    dir: tempfile::TempDir,
    nodes: BTreeMap<PathBuf, Node>,
}

impl Machine {
    fn new() -> Self {
        Machine { dir: tempfile::tempdir().unwrap(), nodes: BTreeMap::new() }
    }

    fn file(&self, path: &str, text: &str) {
        let p = self.dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(p.parent().unwrap()).unwrap();
        fs::write(p, format!("{text}\n")).unwrap();
    }

    fn link(&self, from: &str, to: &str) {
        let p = self.dir.path().join(from.trim_start_matches('/'));
        fs::create_dir_all(p.parent().unwrap()).unwrap();
        let up = "../".repeat(from.trim_start_matches('/').matches('/').count());
        std::os::unix::fs::symlink(format!("{up}{}", to.trim_start_matches('/')), p).unwrap();
    }

    /// A device below `/sys/devices`; a parent makes it a partition.
    fn block(&mut self, name: &str, dev: &str, parent: Option<&str>, scheduler: Option<&str>) {
        let home =
            parent.map_or(format!("/sys/devices/{name}"), |p| format!("/sys/devices/{p}/{name}"));
        self.file(&format!("{home}/dev"), dev);
        match parent {
            Some(_) => self.file(&format!("{home}/partition"), "1"),
            None => self.link(&format!("/sys/block/{name}"), &home),
        }
        if let Some(s) = scheduler {
            self.file(&format!("{home}/queue/scheduler"), s);
        }
        self.link(&format!("/sys/dev/block/{dev}"), &home);
        self.link(&format!("/sys/class/block/{name}"), &home);
        self.node(
            &format!("/dev/{}", name.replace('!', "/")),
            Node::Block(DevNum::parse(dev).unwrap()),
        );
    }

    fn slave(&self, upper: &str, lower: &str) {
        self.link(
            &format!("/sys/devices/{upper}/slaves/{lower}"),
            &format!("/sys/class/block/{lower}"),
        );
    }

    fn node(&mut self, path: &str, node: Node) {
        self.nodes.insert(PathBuf::from(path), node);
    }

    fn mounts(&self, text: &str) {
        self.file("/proc/self/mountinfo", text);
    }

    fn root(&self) -> SysRoot {
        SysRoot::fixture(Path::new(self.dir.path()), self.nodes.clone())
    }
}

fn file_on(dev: &str) -> Node {
    Node::File(DevNum::parse(dev).unwrap())
}

const MQ: &str = "none [mq-deadline] kyber bfq";

fn queues(m: &Machine, what: &str) -> Vec<String> {
    find(&m.root(), what).unwrap().queues().iter().map(|l| l.name.clone()).collect()
}

/// What is switched together, or why not.
fn compared(m: &Machine, what: &str) -> Result<Vec<String>, String> {
    let stack = find(&m.root(), what).unwrap();
    stack
        .compared()
        .map(|all| all.iter().map(|l| l.name.clone()).collect())
        .map_err(|e| e.to_string())
}

#[test]
fn a_partition_leads_to_its_disk() {
    let mut m = Machine::new();
    m.block("sda", "8:0", None, Some(MQ));
    m.block("sda1", "8:1", Some("sda"), None);
    m.mounts("20 1 8:1 / /home rw - ext4 /dev/sda1 rw");
    m.node("/home/u/f", file_on("8:1"));
    for what in ["sda", "sda1", "/dev/sda1", "/home/u/f"] {
        assert_eq!(queues(&m, what), ["sda"], "{what}");
    }
    let stack = find(&m.root(), "/home/u/f").unwrap();
    assert_eq!(stack.render(), "/home  ext4\n  sda1  partition\n    sda  disk  [mq-deadline]\n");
}

#[test]
fn lvm_on_luks_on_raid_leads_to_both_disks() {
    let mut m = Machine::new();
    for (disk, dev) in [("sda", "8:0"), ("sdb", "8:16")] {
        m.block(disk, dev, None, Some(MQ));
    }
    m.block("md0", "9:0", None, Some("none"));
    m.file("/sys/devices/md0/md/level", "raid1");
    m.slave("md0", "sda");
    m.slave("md0", "sdb");
    for (dm, dev, name, uuid, lower) in [
        ("dm-0", "252:0", "crypt", "CRYPT-LUKS2-1", "md0"),
        ("dm-1", "252:1", "vg-lv", "LVM-abc", "dm-0"),
    ] {
        m.block(dm, dev, None, Some("none"));
        m.file(&format!("/sys/devices/{dm}/dm/name"), name);
        m.file(&format!("/sys/devices/{dm}/dm/uuid"), uuid);
        m.slave(dm, lower);
    }
    assert_eq!(queues(&m, "dm-1"), ["sda", "sdb"]);
    assert_eq!(compared(&m, "dm-1").unwrap(), ["sda", "sdb"]);
    // A mirror half in memory has no scheduler: the figures would be those of a mixture.
    m.block("ram0", "1:0", None, None);
    m.slave("md0", "ram0");
    let why = compared(&m, "dm-1").unwrap_err();
    assert!(why.contains("it lies on sda, sdb, and on ram0, where none can be set"), "{why}");
    let text = find(&m.root(), "dm-1").unwrap().render();
    assert!(
        text.starts_with("dm-1  lvm vg-lv  [none]\n  dm-0  crypt crypt  [none]\n    md0  md raid1"),
        "{text}"
    );
}

#[test]
fn request_based_multipath_keeps_its_own_scheduler_and_bio_based_nvme_does_not() {
    let mut m = Machine::new();
    m.block("sdc", "8:32", None, Some(MQ));
    m.block("dm-2", "252:2", None, Some("[none] mq-deadline"));
    m.file("/sys/devices/dm-2/dm/name", "mpatha");
    m.file("/sys/devices/dm-2/dm/uuid", "mpath-360");
    m.slave("dm-2", "sdc");
    assert_eq!(queues(&m, "/dev/dm-2"), ["dm-2"]);
    assert_eq!(compared(&m, "/dev/dm-2").unwrap(), ["dm-2"]);

    m.block("nvme1n1", "259:1", None, None);
    m.file("/sys/devices/nvme1n1/multipath/nvme1c1n1/queue/scheduler", "[none] mq-deadline kyber");
    m.file("/sys/devices/nvme1n1/multipath/nvme1c2n1/queue/scheduler", "[none] mq-deadline kyber");
    assert_eq!(queues(&m, "nvme1n1"), ["nvme1c1n1", "nvme1c2n1"]);
    assert_eq!(compared(&m, "nvme1n1").unwrap(), ["nvme1c1n1", "nvme1c2n1"]);
}

const ID: [u8; 16] = [0x11; 16];
const ID_TEXT: &str = "11111111-1111-1111-1111-111111111111";

/// The kernel says of which btrfs a file is. The source of the mount is a word of the day when it was mounted.
#[test]
fn btrfs_shows_every_member_whatever_its_source_names_now() {
    let mut m = Machine::new();
    for (d, dev) in [("sda", "8:0"), ("sdb", "8:16"), ("sdc", "8:32")] {
        m.block(d, dev, None, Some(MQ));
    }
    for d in ["sda", "sdb"] {
        m.link(&format!("/sys/fs/btrfs/{ID_TEXT}/devices/{d}"), &format!("/sys/devices/{d}"));
    }
    m.link("/sys/fs/btrfs/other/devices/sdc", "/sys/devices/sdc");
    m.mounts("30 1 0:41 / /pool rw - btrfs /dev/sdc rw");
    m.node("/pool/f", Node::Btrfs(ID));
    m.node("/pool/not told", file_on("0:41"));
    assert_eq!(queues(&m, "/pool/f"), ["sda", "sdb"]);
    assert_eq!(compared(&m, "/pool/f").unwrap(), ["sda", "sdb"]);
    let why = compared(&m, "/pool/not told").unwrap_err();
    assert!(why.contains("does not tell the disks of this btrfs"), "{why}");
}

#[test]
fn btrfs_whose_members_are_not_listed_is_refused() {
    let mut m = Machine::new();
    m.block("sda", "8:0", None, Some(MQ));
    m.mounts("30 1 0:41 / /pool rw - btrfs /dev/sda rw");
    m.node("/pool/f", Node::Btrfs(ID));
    let why = compared(&m, "/pool/f").unwrap_err();
    assert!(why.contains("does not list the members"), "{why}");
    // One that is gone is not passed over.
    m.link(&format!("/sys/fs/btrfs/{ID_TEXT}/devices/sda"), "/sys/devices/sda");
    m.file(&format!("/sys/fs/btrfs/{ID_TEXT}/devices/missing/x"), "");
    let why = compared(&m, "/pool/f").unwrap_err();
    assert!(why.contains("lists missing, which has no device number"), "{why}");
}

/// Seen: from a directory that has an `up` of its own the disk of that one would have been switched.
#[test]
fn no_path_among_mount_options_leads_to_a_disk() {
    let mut m = Machine::new();
    m.block("sda", "8:0", None, Some(MQ));
    m.block("sdb", "8:16", None, Some(MQ));
    let here = std::path::absolute("up").unwrap();
    m.node(here.to_str().unwrap(), file_on("8:0"));
    m.node("/up", file_on("8:0"));
    for options in
        ["lowerdir=lo,upperdir=up,workdir=wk", "lowerdir=/up", "lowerdir=/l,upperdir=/up"]
    {
        m.mounts(&format!(
            "20 1 8:0 / / rw - ext4 /dev/sda rw\n31 20 0:42 / /x rw - overlay overlay rw,{options}"
        ));
        m.node("/x/f", file_on("0:42"));
        let why = compared(&m, "/x/f").unwrap_err();
        assert!(why.contains("it is on an overlay"), "{why}");
        let e = find(&m.root(), "/x/f").unwrap().compared().map(drop).unwrap_err();
        assert!(e.help().contains("its upperdir"), "{}", e.help());
        assert!(queues(&m, "/x/f").is_empty());
    }
    for mount in
        ["xfs /dev/sda rw,logdev=/dev/sdb,noquota", "ext4 /dev/sda rw,journal_path=/dev/sdb"]
    {
        m.mounts(&format!("30 1 8:0 / /data rw - {mount}"));
        m.node("/data/f", file_on("8:0"));
        let why = compared(&m, "/data/f").unwrap_err();
        assert!(why.contains("was named /dev/sdb when it was mounted"), "{why}");
    }
}

#[test]
fn the_source_of_a_file_system_without_a_device_is_a_word() {
    let mut m = Machine::new();
    m.block("sda", "8:0", None, Some(MQ));
    for fstype in ["tmpfs", "fuse.x", "zfs", "nfs4"] {
        m.mounts(&format!("25 24 0:23 / /m rw - {fstype} /dev/sda rw"));
        m.node("/m/f", file_on("0:23"));
        let why = compared(&m, "/m/f").unwrap_err();
        assert!(why.contains("no block device with a request queue"), "{why}");
        assert!(queues(&m, "/m/f").is_empty());
    }
}

#[test]
fn a_loop_device_has_two_schedulers_in_series() {
    let mut m = Machine::new();
    m.block("vda", "254:0", None, Some(MQ));
    m.block("loop3", "7:3", None, Some("[none] mq-deadline kyber bfq"));
    m.file("/sys/devices/loop3/loop/backing_file", "/img");
    m.mounts("27 1 254:0 / / rw - ext4 /dev/vda rw");
    m.node("/img", file_on("254:0"));
    assert_eq!(queues(&m, "loop3"), ["loop3", "vda"]);
    assert_eq!(compared(&m, "loop3").unwrap(), ["loop3"], "the disk below stays as it is");
    let stack = find(&m.root(), "loop3").unwrap();
    assert!(matches!(&stack.top.kind, LayerKind::Loop { backing } if backing == "/img"));
}

#[test]
fn exclamation_marks_stand_for_slashes() {
    let mut m = Machine::new();
    m.block("cciss!c0d0", "104:0", None, Some(MQ));
    assert_eq!(queues(&m, "/dev/cciss/c0d0"), ["cciss/c0d0"]);
    assert_eq!(
        Disk::read(&m.root(), "cciss/c0d0", None).queue.scheduler.as_deref(),
        Some("mq-deadline")
    );
}

#[test]
fn a_memory_file_system_has_no_queue() {
    let mut m = Machine::new();
    m.mounts("25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw");
    m.node("/dev/shm/f", file_on("0:23"));
    let stack = find(&m.root(), "/dev/shm/f").unwrap();
    assert_eq!(stack.queue().unwrap_err().class(), ExitClass::Missing);
}

#[test]
fn a_wrong_name_gets_the_nearest() {
    let mut m = Machine::new();
    m.block("nvme0n1", "259:0", None, Some(MQ));
    for what in ["nvme0n2", "/dev/nvme0n2"] {
        let e = find(&m.root(), what).unwrap_err();
        assert!(matches!(e, Error::NoDevice { .. }), "{e:?}");
        assert_eq!(e.help(), "did you mean \"nvme0n1\"?");
        assert_eq!(e.class(), ExitClass::BadInput);
    }
}

#[test]
fn a_disk_is_described() {
    let mut m = Machine::new();
    m.block("sda", "8:0", None, Some(MQ));
    for (f, v) in [
        ("size", "2048"),
        ("diskseq", "9"),
        ("device/vendor", "ATA     "),
        ("device/model", "ST4000  "),
        ("device/rev", "SC60"),
        ("queue/rotational", "1"),
        ("queue/nr_requests", "256"),
        ("queue/iosched/read_expire", "500"),
        ("mq/0/cpu_list", "0"),
    ] {
        m.file(&format!("/sys/devices/sda/{f}"), v);
    }
    m.file("/dev/sda", "");
    m.link("/dev/disk/by-id/ata-ST4000_1", "/dev/sda");
    m.file("/sys/kernel/debug/block/sda/hctx0/tags", "nr_tags=32\nbitmap_tags:\ndepth=31\nbusy=0");
    let debug = SysRoot::fixture(m.dir.path().join("sys/kernel/debug"), BTreeMap::new());
    let d = Disk::read(&m.root(), "sda", Some(&debug));
    assert_eq!((d.model.as_str(), d.firmware.as_str()), ("ATA ST4000", "SC60"));
    assert_eq!((d.bytes, d.diskseq, d.hw_queues, d.tag_depth), (1 << 20, Some(9), 1, Some(31)));
    assert_eq!(d.by_id, ["ata-ST4000_1"]);
    assert_eq!(d.queue.tunables["read_expire"], "500");
    assert!(d.render().lines().all(|l| l.chars().count() <= 80));
}
