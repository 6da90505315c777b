//! Which device's I/O is recorded for a name, and what is known of it.

use iosched_types::SECTOR;

use crate::discover::{self, Disk, Layer, LayerKind, Stack};
use crate::error::{Error, Result};
use crate::root::SysRoot;

/// A device and remarks on the choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its kernel name.
    pub disk: String,
    /// What the user should know: of which level it is, what lies above and below.
    pub notes: Vec<String>,
}

/// Chooses the device: of a partition its disk, of a file the device whose scheduler works on it, else the one that is
/// named. Of a stack only one level is recorded, since the others show the same I/Os again.
///
/// # Errors
/// [`Error::NoDevice`]; [`Error::Input`] for a file on several disks.
pub fn choose(root: &SysRoot, name: &str) -> Result<Choice> {
    let stack = discover::find(root, name)?;
    let mut notes = Vec::new();
    let layer = match &stack.top.kind {
        LayerKind::FileSystem { .. } => below_file(root, &stack)?,
        LayerKind::Partition => whole(root, &stack.top, &mut notes).unwrap_or(&stack.top),
        _ => &stack.top,
    };
    if let LayerKind::Unknown { why, help } = &layer.kind {
        return Err(Error::input(format!("{name}: {why}"), help.clone()));
    }
    if !is_device(root, layer) {
        return Err(discover::no_device(root, name));
    }
    notes.extend(level(&stack, layer));
    let status = format!("/sys/block/{}/device/power/runtime_status", sys(&layer.name));
    if root.get(&status).is_some_and(|s| s == "suspended") {
        notes.push(format!(
            "{} is asleep: nothing is recorded before something uses it",
            layer.name
        ));
    }
    Ok(Choice { disk: layer.name.clone(), notes })
}

fn sys(name: &str) -> String {
    name.replace('/', "!")
}

fn is_device(root: &SysRoot, layer: &Layer) -> bool {
    root.exists(&format!("/sys/block/{}/dev", sys(&layer.name)))
}

/// The disk of a partition.
fn whole<'a>(root: &SysRoot, part: &'a Layer, notes: &mut Vec<String>) -> Option<&'a Layer> {
    let disk = part.below.first()?;
    let bytes = |file: &str| {
        let sectors = root.number(&format!("/sys/class/block/{}/{file}", sys(&part.name)))?;
        Some(u64::try_from(sectors).ok()? * SECTOR)
    };
    let mut note = format!("{} is a partition: all of {} is recorded", part.name, disk.name);
    if let Some((start, size)) = bytes("start").zip(bytes("size")) {
        let end = start.saturating_add(size);
        note += &format!("; `iosched trace filter --range {start}..{end}` takes its part");
    }
    notes.push(note);
    Some(disk)
}

/// The device below a file: the first with a scheduler, else the first.
fn below_file<'a>(root: &SysRoot, stack: &'a Stack) -> Result<&'a Layer> {
    let compared = stack.compared();
    match compared.as_deref() {
        Ok([one]) => return Ok(one),
        Ok(several) => {
            let names: Vec<&str> = several.iter().map(|l| l.name.as_str()).collect();
            return Err(Error::input(
                format!("{} lies on several disks: {}", stack.target, names.join(", ")),
                "name one of them, or the device above (iosched doctor PATH shows the stack)",
            ));
        }
        Err(_) => {}
    }
    let layers = stack.layers();
    let device = layers.iter().find(|l| is_device(root, l)).copied();
    match device
        .or_else(|| layers.into_iter().find(|l| matches!(l.kind, LayerKind::Unknown { .. })))
    {
        Some(layer) => Ok(layer),
        None => Err(Error::input(
            format!("{} lies on no block device that is known", stack.target),
            "name a device: iosched doctor lists them",
        )),
    }
}

fn word(layer: &Layer) -> String {
    match &layer.kind {
        LayerKind::FileSystem { fstype, .. } => format!("{fstype} on {}", layer.name),
        LayerKind::Dm { kind, name } => format!("{} ({kind} {name})", layer.name),
        LayerKind::Md { level } => format!("{} ({level})", layer.name),
        LayerKind::Loop { backing } => format!("{} (loop over {backing})", layer.name),
        LayerKind::NvmeMultipath => format!("{} (multipath)", layer.name),
        LayerKind::Partition => format!("{} (partition)", layer.name),
        LayerKind::Disk | LayerKind::Unknown { .. } => layer.name.clone(),
    }
}

/// Says which level is recorded, where there are several.
fn level(stack: &Stack, chosen: &Layer) -> Option<String> {
    let layers = stack.layers();
    let at = layers.iter().position(|l| std::ptr::eq(*l, chosen))?;
    let stacked = |l: &&&Layer| !matches!(l.kind, LayerKind::Partition);
    let above: Vec<String> = layers[..at].iter().filter(stacked).map(|l| word(l)).collect();
    let mut below = Vec::new();
    let mut next: Vec<&Layer> = chosen.below.iter().collect();
    while let Some(layer) = next.pop() {
        below.push(word(layer));
        next.extend(&layer.below);
    }
    if above.is_empty() && below.is_empty() {
        return None;
    }
    let mut note = format!("recorded is {}", word(chosen));
    if !above.is_empty() {
        note += &format!(", below {}", above.join(", "));
    }
    if !below.is_empty() {
        let works = chosen.schedulers.len() > 1;
        note += &format!(", above {}", below.join(", "));
        if !works {
            note += "; schedulers work there, on requests that may be others";
        }
    }
    Some(note)
}

/// What a recording says of its disk: keys and values.
#[must_use]
pub fn facts(root: &SysRoot, disk: &str) -> Vec<(String, String)> {
    let of = Disk::read(root, disk, None);
    let number = root.get(&format!("/sys/block/{}/dev", sys(disk))).unwrap_or_default();
    let mut out: Vec<(String, String)> = Vec::new();
    let mut put = |key: &str, value: String| {
        if !value.is_empty() {
            out.push((key.into(), value.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    };
    put("disk", disk.into());
    put("number", number.replace(':', ","));
    put("model", of.model);
    put("size_bytes", of.bytes.to_string());
    put("hardware_queues", of.hw_queues.to_string());
    put("scheduler", of.queue.scheduler.unwrap_or_else(|| "none to choose".into()));
    let tunables = of.queue.tunables.iter().map(|(k, v)| format!("{k}={v}"));
    put("tunables", tunables.collect::<Vec<_>>().join(", "));
    for (key, value) in of.queue.attributes {
        put(&key, value);
    }
    put("kernel", root.get("/proc/sys/kernel/osrelease").unwrap_or_default());
    put("cpus", root.get("/sys/devices/system/cpu/online").unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, kind: LayerKind, below: Vec<Layer>, queue: bool) -> Layer {
        let schedulers = if queue { vec!["none".into(), "bfq".into()] } else { Vec::new() };
        Layer { name: name.into(), kind, schedulers, scheduler: None, below }
    }

    fn dm(name: &str, kind: &str, below: Layer) -> Layer {
        let kind = LayerKind::Dm { kind: kind.into(), name: format!("{kind}-a") };
        layer(name, kind, vec![below], false)
    }

    #[test]
    fn the_level_of_a_stack_is_told() {
        let disk = layer("sda", LayerKind::Disk, Vec::new(), true);
        let lvm = dm("dm-1", "lvm", dm("dm-0", "crypt", disk.clone()));
        let stack = Stack { target: "/dev/dm-1".into(), top: lvm.clone() };
        let note = level(&stack, &stack.top).unwrap();
        assert!(note.starts_with("recorded is dm-1 (lvm lvm-a), above dm-0 (crypt"), "{note}");
        assert!(note.contains("sda; schedulers work there"), "{note}");
        let fs = LayerKind::FileSystem { fstype: "ext4".into(), point: "/home".into() };
        let top = layer("/home", fs, vec![lvm], false);
        let stack = Stack { target: "/home/a".into(), top };
        let chosen = below_file(&SysRoot::default(), &stack).unwrap();
        assert_eq!(chosen.name, "sda");
        let note = level(&stack, chosen).unwrap();
        assert!(note.starts_with("recorded is sda, below ext4 on /home, dm-1"), "{note}");
        let plain = Stack { target: "sda".into(), top: disk };
        assert_eq!(level(&plain, &plain.top), None);
    }

    #[test]
    fn a_file_on_several_disks_is_refused_with_their_names() {
        let disk = |n: &str| layer(n, LayerKind::Disk, Vec::new(), true);
        let md = LayerKind::Md { level: "raid1".into() };
        let top = layer("md0", md, vec![disk("sda"), disk("sdb")], false);
        let fs = LayerKind::FileSystem { fstype: "xfs".into(), point: "/".into() };
        let stack = Stack { target: "/a".into(), top: layer("/", fs, vec![top], false) };
        let e = below_file(&SysRoot::default(), &stack).unwrap_err().to_string();
        assert!(e.contains("several disks: sda, sdb"), "{e}");
    }

    #[test]
    fn facts_are_those_of_the_queue() {
        let dir = tempfile::tempdir().unwrap();
        let queue = dir.path().join("sys/block/sda/queue");
        std::fs::create_dir_all(queue.join("iosched")).unwrap();
        std::fs::write(dir.path().join("sys/block/sda/dev"), "8:0\n").unwrap();
        std::fs::write(queue.join("scheduler"), "none [bfq]\n").unwrap();
        std::fs::write(queue.join("nr_requests"), "64\n").unwrap();
        std::fs::write(queue.join("iosched/slice_idle"), "8\n").unwrap();
        let facts = facts(&SysRoot::at(dir.path()), "sda");
        let has = |k: &str, v: &str| facts.contains(&(k.to_string(), v.to_string()));
        assert!(has("number", "8,0") && has("scheduler", "bfq"), "{facts:?}");
        assert!(has("tunables", "slice_idle=8") && has("nr_requests", "64"), "{facts:?}");
    }
}
