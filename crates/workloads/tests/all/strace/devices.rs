//! Calls on block devices have no replay: they are named, not taken for calls on files.

use iosched_syscalls::OpenFlags;
use iosched_workloads::strace::{Act, Log};

use super::{acts, log};

fn said(l: &Log) -> String {
    assert!(l.devices.iter().all(|d| d.starts_with("/dev/")), "{:?}", l.devices);
    l.warnings.join("\n")
}

#[test]
fn calls_on_block_devices_are_named() {
    let forms = [
        "read(7</dev/sdb>, \"\"..., 65536) = 65536\nlseek(7</dev/sdb>, 1073741824, SEEK_SET) = 1073741824\n",
        "pread64(7</dev/sdb<block 8:16>>, \"\"..., 65536, 0) = 65536\nfsync(7</dev/sdb<block 8:16>>) = 0\n",
        "openat(AT_FDCWD, \"/dev/sdb\", O_RDWR|O_DIRECT|O_CLOEXEC) = 3\npwrite64(3, \"\"..., 4096, 8192) = 4096\nclose(3) = 0\n",
        "chdir(\"/dev\") = 0\nopen(\"sdb\", O_RDWR) = 3\ndup(3) = 4\nclose(3) = 0\nwrite(4, \"\"..., 512) = 512\n",
        "openat(AT_FDCWD, \"/dev/sdb\", O_RDONLY|O_DIRECT) = 3\nio_submit(0x7f, 1, [{aio_data=1, \
         aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3, aio_buf=0x55, aio_nbytes=4096, aio_offset=8192}]) = 1\n\
         io_getevents(0x7f, 1, 2, [{data=1, obj=1, res=4096, res2=0}], NULL) = 1\n",
    ];
    for text in forms {
        let l = log(text);
        assert!(!l.has_io(), "{text}: {:?}", acts(&l, 0));
        assert!(
            l.warnings[0].starts_with("MOST OF THIS LOG'S I/O IS NOT REPLAYED: 1 of 1"),
            "{}",
            said(&l)
        );
        assert!(said(&l).contains("block devices (/dev/sdb) are not replayed"), "{}", said(&l));
        assert!(l.files.is_empty() && l.inherited.is_empty());
    }
}

#[test]
fn files_beside_a_device_are_replayed() {
    let l = log("1 1700000000.1 openat(AT_FDCWD, \"/dev/vg/lv\", O_RDONLY) = 3 <0.0001>\n\
                 1 1700000000.2 openat(AT_FDCWD, \"image\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 4 <0.0001>\n\
                 1 1700000000.3 read(3, \"\"..., 65536) = 65536 <0.02>\n\
                 1 1700000000.4 write(4, \"\"..., 65536) = 65536 <0.0001>\n\
                 1 1700000000.5 copy_file_range(3, NULL, 4, NULL, 4096, 0) = -1 EINVAL (Invalid) <0.1>\n\
                 1 1700000000.6 close(3) = 0 <0.0001>\n");
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    let wanted = [
        Act::Open { name: 0, flags, file: 1 },
        Act::Pause { time: 20_000_000 },
        Act::Write { file: 1, len: 65536 },
    ];
    assert_eq!(acts(&l, 0), wanted);
    assert!(
        l.warnings[0].starts_with("1 of 2 I/Os are left out (read on /dev/vg/lv 1)"),
        "{}",
        said(&l)
    );
}

#[test]
fn other_nodes_of_dev_are_no_block_devices() {
    for name in [
        "null",
        "zero",
        "urandom",
        "tty1",
        "pts/0",
        "shm/x",
        "ptmx",
        "kmsg",
        "input/event0",
        "mapper/control",
    ] {
        let l = log(&format!(
            "sync() = 0\nopen(\"/dev/{name}\", O_RDWR) = 3\nwrite(3, \"\"..., 512) = 512\n"
        ));
        assert!(l.devices.is_empty(), "{name}");
        assert!(acts(&l, 0).contains(&Act::Elsewhere { bytes: 512 }));
    }
    for name in [
        "nvme0n1p2",
        "md127",
        "dm-0",
        "mapper/vg-lv",
        "disk/by-id/x",
        "mmcblk0",
        "zvol/a/b",
        "zd0",
        "loop7",
    ] {
        let l = log(&format!(
            "sync() = 0\nopen(\"/dev/{name}\", O_RDWR) = 3\nwrite(3, \"\"..., 512) = 512\n"
        ));
        assert_eq!(l.devices.len(), 1, "{name}");
    }
}
