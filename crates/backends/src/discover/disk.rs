//! One disk: identity and the state of its queue.

use std::collections::BTreeMap;

use iosched_experiment::record::{DEFAULT_SCHEDULER, Record};
use iosched_types::SECTOR;

use crate::parse::{scheduler, tags};
use crate::root::SysRoot;

/// Identity of a disk and the settings of its queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Kernel name.
    pub name: String,
    /// Vendor and model, blanks squeezed; empty when the device has none.
    pub model: String,
    /// Firmware revision.
    pub firmware: String,
    /// `/dev/disk/by-id` names that lead to it.
    pub by_id: Vec<String>,
    /// Sequence number of this incarnation of the disk.
    pub diskseq: Option<i64>,
    /// Size in bytes.
    pub bytes: u64,
    /// Hardware queues.
    pub hw_queues: usize,
    /// Depth of the driver's tags, from debugfs; `None` when that cannot be read.
    pub tag_depth: Option<u32>,
    /// Queue attributes.
    pub queue: QueueState,
}

/// Attributes of `queue/` and `queue/iosched/`, as sysfs prints them.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct QueueState {
    /// The scheduler in force; `None` for a device without a choice.
    pub scheduler: Option<String>,
    /// What the queue offers.
    pub offered: Vec<String>,
    /// `queue/*` attributes by name.
    pub attributes: BTreeMap<String, String>,
    /// `queue/iosched/*` by name.
    pub tunables: BTreeMap<String, String>,
}

/// The attributes that matter to a comparison and that an experiment may change.
pub const ATTRIBUTES: &[&str] = &[
    "rotational",
    "write_cache",
    "max_sectors_kb",
    "iostats",
    "add_random",
    "nomerges",
    "rq_affinity",
    "nr_requests",
    "io_timeout",
    "wbt_lat_usec",
    "read_ahead_kb",
];

impl QueueState {
    /// Reads the queue of a disk.
    #[must_use]
    pub fn read(root: &SysRoot, name: &str) -> QueueState {
        let dir = queue_dir(name);
        let list = scheduler::parse(&root.get(&format!("{dir}/scheduler")).unwrap_or_default());
        let attributes = ATTRIBUTES
            .iter()
            .filter_map(|a| Some(((*a).to_string(), root.get(&format!("{dir}/{a}"))?)))
            .collect();
        let tunables = root
            .list(&format!("{dir}/iosched"))
            .into_iter()
            .filter_map(|t| {
                let value = root.get(&format!("{dir}/iosched/{t}"))?;
                Some((t, value))
            })
            .collect();
        QueueState { scheduler: list.current, offered: list.names, attributes, tunables }
    }

    /// Notes its scheduler as the one that the disk had before a run: verdicts compare with it.
    pub fn note_as_base(&self, record: &mut Record) {
        if let Some(name) = self.scheduler.as_ref().filter(|n| !n.is_empty()) {
            record.provenance.insert(DEFAULT_SCHEDULER.into(), name.clone());
        }
    }
}

/// `/sys/block/NAME/queue`, hidden NVMe paths included.
#[must_use]
pub(crate) fn queue_dir(name: &str) -> String {
    format!("/sys/block/{}/queue", name.replace('/', "!"))
}

impl Disk {
    /// Reads a disk's description. `debugfs` is where debugfs can be seen, if anywhere.
    #[must_use]
    pub fn read(root: &SysRoot, name: &str, debugfs: Option<&SysRoot>) -> Disk {
        let dir = format!("/sys/block/{}", name.replace('/', "!"));
        let text = |f: &str| root.get(&format!("{dir}/{f}")).unwrap_or_default();
        let squeeze = |s: String| s.split_whitespace().collect::<Vec<_>>().join(" ");
        let model = squeeze(format!("{} {}", text("device/vendor"), text("device/model")));
        let firmware = [text("device/firmware_rev"), text("device/rev")];
        Disk {
            name: name.into(),
            // virtio's "vendor" is a PCI id, not a name.
            model: model.trim_start_matches("0x1af4").trim().to_string(),
            firmware: squeeze(firmware.into_iter().find(|f| !f.is_empty()).unwrap_or_default()),
            by_id: by_id(root, name),
            diskseq: root.number(&format!("{dir}/diskseq")),
            bytes: root.number(&format!("{dir}/size")).map_or(0, |s| s.max(0) as u64 * SECTOR),
            hw_queues: root.list(&format!("{dir}/mq")).len(),
            tag_depth: debugfs.and_then(|d| tag_depth(d, name)),
            queue: QueueState::read(root, name),
        }
    }

    /// A few lines for people, at most 80 columns.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        let mut line = |key: &str, value: String| {
            if !value.is_empty() {
                let text = format!("  {key:<14}{value}");
                out.extend(text.chars().take(80));
                out.push('\n');
            }
        };
        let attribute = |a: &str| self.queue.attributes.get(a).cloned().unwrap_or_default();
        line("model", self.model.clone());
        line("firmware", self.firmware.clone());
        line("by-id", self.by_id.first().cloned().unwrap_or_default());
        line("size", iosched_types::units::show_bytes(self.bytes as f64));
        line("hw queues", self.hw_queues.to_string());
        line(
            "tag depth",
            self.tag_depth.map_or("unknown (debugfs cannot be read)".into(), |d| d.to_string()),
        );
        line("rotational", attribute("rotational"));
        line("write cache", attribute("write_cache"));
        line("read-ahead", format!("{} KiB", attribute("read_ahead_kb")));
        line("nr_requests", attribute("nr_requests"));
        line("wbt", attribute("wbt_lat_usec"));
        line(
            "scheduler",
            format!(
                "{} (of {})",
                self.queue.scheduler.as_deref().unwrap_or("-"),
                self.queue.offered.join(" ")
            ),
        );
        out
    }
}

/// Depth of the driver's tags of the first hardware queue, below a debugfs root.
pub(crate) fn tag_depth(debugfs: &SysRoot, name: &str) -> Option<u32> {
    let text = debugfs.get(&format!("/block/{}/hctx0/tags", name.replace('/', "!")))?;
    tags::parse(&text).map(|t| t.depth)
}

fn by_id(root: &SysRoot, name: &str) -> Vec<String> {
    root.list("/dev/disk/by-id")
        .into_iter()
        .filter(|link| {
            root.canonical(&format!("/dev/disk/by-id/{link}"))
                .is_some_and(|p| p == format!("/dev/{name}"))
        })
        .collect()
}
