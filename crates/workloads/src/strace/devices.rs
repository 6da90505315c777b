//! Calls on block devices. A replay has files only, so these are counted and said loudly; their time remains.

use super::names;
use super::read::{Call, Reader};
use super::{Act, Log};

/// Directories of `/dev` without block devices, names of others there, and (with `*`) what their names begin with. A name
/// may have a number behind it, or a dash and more.
const OTHERS: &[&str] = &[
    "autofs",
    "bsg/",
    "btrfs-control",
    "bus/",
    "char/",
    "console",
    "core",
    "cpu/",
    "cpu_dma_latency",
    "cuse",
    "dri/",
    "fd/",
    "full",
    "fuse",
    "hidraw",
    "hpet",
    "hugepages",
    "hwrng",
    "i2c",
    "infiniband/",
    "input/",
    "ipmi",
    "kfd",
    "kmsg",
    "kvm",
    "log",
    "loop-control",
    "mapper/control",
    "mem",
    "mqueue/",
    "net/",
    "ng*",
    "nst",
    "null",
    "nvidia*",
    "port",
    "ppp",
    "ptmx",
    "pts",
    "pts/",
    "random",
    "rtc",
    "serial/",
    "sg",
    "shm",
    "shm/",
    "snd/",
    "st",
    "stderr",
    "stdin",
    "stdout",
    "tap",
    "tpm*",
    "tty*",
    "udmabuf",
    "uinput",
    "urandom",
    "userfaultfd",
    "usb*",
    "vcs*",
    "vfio/",
    "vhost",
    "video",
    "vsock",
    "watchdog",
    "zero",
    "zfs",
];

/// Whether a name below `/dev` is one of them.
fn is_other(name: &str, other: &str) -> bool {
    if let Some(begin) = other.strip_suffix('*') {
        return name.starts_with(begin);
    }
    let Some(rest) = name.strip_prefix(other) else { return false };
    let number = |c: char| c.is_ascii_digit() || c == '-';
    other.ends_with('/') || rest.is_empty() || rest.starts_with(number)
}

/// Whether a path is that of a block device.
pub(super) fn is_device(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/").filter(|n| !n.is_empty()) else { return false };
    !OTHERS.iter().any(|other| is_other(name, other))
}

impl Reader {
    /// The device that a name leads to.
    pub(super) fn device(&self, path: &str) -> bool {
        names::elsewhere(path) && is_device(path) && self.part.is_none()
    }

    /// Whether an open file is a device.
    pub(super) fn is_device(&self, file: u32) -> bool {
        self.opened.get(file as usize).is_some_and(|path| is_device(path))
    }

    /// A call on a device.
    pub(super) fn on_device(&mut self, c: &Call<'_>, file: u32) {
        let path = self.opened[file as usize].clone();
        let moved = c.name.contains("read") || c.name.contains("write");
        if moved && c.ok().is_some_and(|n| n > 0) {
            self.lacks(&format!("{} on {path}", c.name), 1);
        }
        *self.log.elsewhere.entry(c.name.to_string()).or_default() += 1;
        self.log.devices.insert(path.into());
        let pause = c.end.took.filter(|_| self.options.think);
        self.push(c, pause.map_or(Act::Null, |time| Act::Pause { time }), None);
    }
}

impl Log {
    /// That block devices are left out; `None` where the log has none.
    #[must_use]
    pub fn remark_devices(&self) -> Option<String> {
        let all: Vec<&str> = self.devices.iter().map(|d| &**d).collect();
        (!all.is_empty()).then(|| {
            format!(
                "calls on block devices ({}) are not replayed, their time remains: replay a block trace of the device \
                 (blktrace, iosched trace), or write a fio job with filename={}",
                all.join(", "),
                all[0]
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::is_device;

    #[test]
    fn names_of_dev() {
        for name in [
            "sda",
            "nvme0n1p2",
            "nullb0",
            "storage/vm1",
            "mapper/root",
            "loop0",
            "network",
            "logs/lv",
        ] {
            assert!(is_device(&format!("/dev/{name}")), "{name}");
        }
        for name in [
            "null",
            "st0",
            "nst1",
            "log",
            "net/tun",
            "ttyS0",
            "tty",
            "fd/3",
            "stdin",
            "sg2",
            "i2c-1",
            "vhost-net",
            "usbmon0",
            "shm",
            "pts/4",
        ] {
            assert!(!is_device(&format!("/dev/{name}")), "{name}");
        }
    }
}
