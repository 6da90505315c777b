//! Who uses a disk, on a machine of files: every kind of user that the kernel and `/proc` can show.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests make trees of files")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;

use iosched_backends::SysRoot;
use iosched_backends::inspect::{Finding, Weight, users};
use iosched_backends::root::{DevNum, Node, Thing};

/// A machine with a disk `sda` (8:0) and its partition `sda1` (8:1), and `sdb` (8:16).
struct Machine {
    dir: tempfile::TempDir,
    nodes: BTreeMap<PathBuf, Node>,
}

const SDA: Thing = Thing::Block(DevNum { major: 8, minor: 0 });
const SDA1: Thing = Thing::Block(DevNum { major: 8, minor: 1 });

impl Machine {
    fn new() -> Machine {
        let mut m = Machine { dir: tempfile::tempdir().unwrap(), nodes: BTreeMap::new() };
        for (name, minor, dir) in [
            ("sda", 0, "sys/devices/sda"),
            ("sda1", 1, "sys/devices/sda/sda1"),
            ("sdb", 16, "sys/devices/sdb"),
            ("loop0", 7, "sys/devices/loop0"),
        ] {
            let dev = DevNum { major: if name == "loop0" { 7 } else { 8 }, minor };
            m.put(&format!("{dir}/dev"), &dev.to_string());
            m.link(&format!("sys/dev/block/{dev}"), &format!("/{dir}"));
            if name != "sda1" {
                m.link(&format!("sys/block/{name}"), &format!("/{dir}"));
            }
            m.put(&format!("dev/{name}"), "");
            m.nodes.insert(format!("/dev/{name}").into(), Node::Block(dev));
        }
        m.put("sys/devices/sda/sda1/partition", "1");
        m
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A link to a place on this machine.
    fn link(&self, path: &str, to: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(format!("{}{to}", self.dir.path().display()), path).unwrap();
    }

    /// A process that has something open.
    fn process(&self, pid: u32, name: &str, open: &str) {
        self.put(&format!("proc/{pid}/comm"), name);
        self.put(&format!("proc/{pid}/stat"), &format!("{pid} ({name}) S 1"));
        self.put(&format!("proc/{pid}/maps"), "");
        self.link(&format!("proc/{pid}/fd/3"), open);
    }

    fn users(&self, thing: Thing) -> Vec<Finding> {
        let root = fs::canonicalize(self.dir.path()).unwrap();
        let mut found = users(&SysRoot::fixture(root, self.nodes.clone()), thing);
        found.retain(|f| !f.what.starts_with("it has partitions"));
        found
    }

    /// The one user that there is.
    #[track_caller]
    fn only(&self, thing: Thing, words: &str) {
        let found = self.users(thing);
        let [one] = found.as_slice() else { panic!("not one: {found:?}") };
        assert!(one.weight == Weight::Always && one.what.contains(words), "{one:?}");
    }
}

#[test]
fn a_disk_that_nobody_uses() {
    let m = Machine::new();
    assert_eq!(m.users(SDA), []);
    assert_eq!(m.users(SDA1), []);
}

#[test]
fn mounts_and_swap_of_the_disk_and_of_its_partition() {
    let m = Machine::new();
    m.put("proc/self/mountinfo", "30 1 8:1 / /home rw - ext4 /dev/sda1 rw\n");
    m.only(SDA, "/dev/sda1 is mounted on /home");
    m.only(SDA1, "/dev/sda1 is mounted on /home");
    m.put("proc/self/mountinfo", "30 1 0:40 / /data rw - btrfs /dev/sda1 rw\n");
    m.only(SDA, "mounted on /data");
    m.put("proc/self/mountinfo", "");
    m.put("proc/swaps", "Filename Type Size Used Priority\n/dev/sda1 partition 1 0 -2\n");
    m.only(SDA, "/dev/sda1 is swap space");
}

#[test]
fn a_mount_that_only_another_namespace_sees() {
    let m = Machine::new();
    m.process(7, "jail", "/dev/null");
    m.put("proc/7/mountinfo", "30 1 8:1 / /jail rw - ext4 /dev/sda1 rw\n");
    symlink("mnt:[4026532000]", m.dir.path().join("proc/7/ns-mnt")).unwrap();
    fs::create_dir_all(m.dir.path().join("proc/7/ns")).unwrap();
    symlink("mnt:[4026532000]", m.dir.path().join("proc/7/ns/mnt")).unwrap();
    m.only(SDA, "mounted on /jail, as jail (process 7) sees it");
}

#[test]
fn holders_members_and_exports() {
    let m = Machine::new();
    m.put("sys/devices/sda/sda1/holders/dm-0/dev", "253:0");
    m.only(SDA, "/dev/sda1 is part of dm-0");
    let m = Machine::new();
    m.put("sys/devices/sda/bcache/state", "clean");
    m.only(SDA, "registered with bcache");
    let m = Machine::new();
    m.put("sys/fs/btrfs/11-22/devices/sda1/dev", "8:1");
    m.only(SDA, "/dev/sda1 is part of btrfs 11-22");
    for (path, text, words) in [
        (
            "sys/kernel/config/nvmet/subsystems/s/namespaces/1/device_path",
            "/dev/sda\n",
            "over NVMe",
        ),
        ("sys/kernel/config/target/core/iblock_0/x/udev_path", "/dev/sda1\n", "SCSI target"),
        (
            "sys/kernel/config/target/core/fileio_0/x/info",
            "Status: ACTIVATED  TCM FILEIO ID: 0 File: /dev/sda  Size: 1\n",
            "SCSI target",
        ),
        ("sys/block/zram0/backing_dev", "/dev/sda1\n", "zram"),
    ] {
        let m = Machine::new();
        m.put(path, text);
        m.only(SDA, words);
    }
}

#[test]
fn loop_devices_over_it_and_beside_it() {
    let m = Machine::new();
    m.put("sys/devices/loop0/loop/backing_file", "/dev/sda1\n");
    m.put("sys/devices/loop0/loop/offset", "1048576\n");
    m.only(SDA, "/dev/sda1 backs /dev/loop0 from byte 1048576 on");
    m.only(SDA1, "/dev/sda1 backs /dev/loop0");
    // The loop device itself is not its own user; who has what is below it is.
    let loop0 = Thing::Block(DevNum { major: 7, minor: 7 });
    assert_eq!(m.users(loop0), []);
    m.put("proc/self/mountinfo", "30 1 8:1 / /home rw - ext4 /dev/sda1 rw\n");
    m.only(loop0, "/dev/sda1 is mounted on /home");
    // What it lies on cannot be seen: not a user, but nothing to be sure of either.
    let m = Machine::new();
    m.put("sys/devices/loop0/loop/backing_file", "/gone (deleted)\n");
    let found = m.users(SDA);
    assert!(found.len() == 1 && found[0].weight == Weight::Unknown, "{found:?}");
}

#[test]
fn processes_that_have_it_open() {
    let m = Machine::new();
    m.process(17, "smbd", "/dev/sda1");
    m.process(18, "other", "/dev/sdb");
    m.only(SDA, "/dev/sda1 is open in smbd (process 17)");
    // Its partition is in use when the whole disk is.
    let m = Machine::new();
    m.process(17, "qemu", "/dev/sda");
    m.only(SDA1, "/dev/sda is open in qemu (process 17)");
    // The first thread is dead, another one goes on.
    let m = Machine::new();
    m.put("proc/5/comm", "db");
    m.put("proc/5/stat", "5 (db) Z 1");
    m.link("proc/5/task/6/fd/9", "/dev/sda");
    m.only(SDA, "open in db (process 5)");
}

#[test]
fn files_that_are_open_mapped_or_behind_a_loop_device() {
    let m = Machine::new();
    m.put("data/file", "x");
    let meta = fs::metadata(m.dir.path().join("data/file")).unwrap();
    let file = Thing::Inode(DevNum::from_raw(meta.dev()), meta.ino());
    assert_eq!(m.users(file), []);
    m.process(9, "cat", "/data/file");
    m.only(file, "it is open in cat (process 9)");
    let m = Machine::new();
    m.put("data/file", "x");
    let meta = fs::metadata(m.dir.path().join("data/file")).unwrap();
    let file = Thing::Inode(DevNum::from_raw(meta.dev()), meta.ino());
    m.process(9, "cat", "/dev/null");
    m.put("proc/9/maps", &format!("7f00-7f01 rw-s 00000000 00:2a {} /data/file\n", meta.ino()));
    m.only(file, "it is mapped by cat (process 9)");
    m.put("proc/9/maps", "");
    m.put("sys/devices/loop0/loop/backing_file", "/data/file\n");
    m.link("sys/devices/loop0/loop/x", "/data/file");
    let found = m.users(file);
    // In a machine of files a loop device's file is looked up by name, below the machine's root.
    assert!(found.iter().any(|f| f.what.contains("it backs /dev/loop0")), "{found:?}");
}

#[test]
fn a_descriptor_on_its_way_through_a_socket_is_unknown() {
    let m = Machine::new();
    let socket = m.dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    m.process(3, "sender", "/socket");
    m.put("proc/3/fdinfo/3", "pos:\t0\nflags:\t02\nscm_fds: 1\n");
    let found = m.users(SDA);
    let [one] = found.as_slice() else { panic!("{found:?}") };
    assert!(one.weight == Weight::Unknown && one.what.contains("on their way"), "{one:?}");
    m.put("proc/3/fdinfo/3", "pos:\t0\nscm_fds: 0\n");
    assert_eq!(m.users(SDA), []);
}
