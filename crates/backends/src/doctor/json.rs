//! The report of `iosched doctor` for programs.

use serde_json::{Value, json};

use iosched_lab::machine::Requirement;

use super::report::Report;
use super::tools::Tool;
use super::who::{Setter, Setting};
use crate::discover::{Disk, Layer, LayerKind};

impl Report {
    /// Everything that was found, unabridged. What is not known is `null`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let stack = self.stack.as_ref();
        let disks = self.disks.iter().map(|(disk, settings)| device(disk, settings));
        json!({
            "kernel": self.kernel,
            "lockdown": known(&self.lockdown),
            "stack": stack.map(|s| json!({ "target": s.target, "top": layer(&s.top) })),
            "writing": self.verdict.as_ref().map(|v| match v {
                Ok(judgement) => json!(judgement),
                Err(why) => json!({ "unknown": why }),
            }),
            "disks": disks.collect::<Vec<_>>(),
            "requirements": self.requirements.iter().map(requirement).collect::<Vec<_>>(),
            "transports": self.ways.iter().map(|(way, state)| json!({
                "name": way.to_string(), "chosen": state.is_ok(), "why_not": state.as_ref().err(),
            })).collect::<Vec<_>>(),
            "tools": self.tools.iter().map(tool).collect::<Vec<_>>(),
            "state_files": self.states,
        })
    }
}

fn known(text: &str) -> Option<&str> {
    Some(text).filter(|t| !t.is_empty())
}

/// A layer with everything below it.
fn layer(l: &Layer) -> Value {
    let (kind, more) = match &l.kind {
        LayerKind::FileSystem { fstype, point } => {
            ("filesystem", json!({ "fstype": fstype, "mount_point": point }))
        }
        LayerKind::Partition => ("partition", json!({})),
        LayerKind::Loop { backing } => ("loop", json!({ "backing_file": backing })),
        LayerKind::Dm { kind, name } => ("dm", json!({ "dm_kind": kind, "dm_name": name })),
        LayerKind::Md { level } => ("md", json!({ "level": level })),
        LayerKind::NvmeMultipath => ("nvme-multipath", json!({})),
        LayerKind::Disk => ("disk", json!({})),
        LayerKind::Unknown { why, .. } => ("unknown", json!({ "why": why })),
    };
    let mut value = json!({
        "name": l.name, "kind": kind, "scheduler": l.scheduler, "offered": l.schedulers,
        "below": l.below.iter().map(layer).collect::<Vec<_>>(),
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
        all.extend(more);
    }
    value
}

fn device(d: &Disk, settings: &[Setting]) -> Value {
    json!({
        "name": d.name, "node": format!("/dev/{}", d.name), "model": known(&d.model),
        "firmware": known(&d.firmware), "by_id": d.by_id, "diskseq": d.diskseq, "bytes": d.bytes,
        "hw_queues": d.hw_queues, "tag_depth": d.tag_depth, "scheduler": d.queue.scheduler,
        "offered": d.queue.offered, "attributes": d.queue.attributes, "tunables": d.queue.tunables,
        "set_by": settings.iter().map(setting).collect::<Vec<_>>(),
    })
}

fn setting(s: &Setting) -> Value {
    let mut value = json!({ "scheduler": s.scheduler, "certain": s.certain });
    match &s.setter {
        Setter::Udev { file, line } => {
            value["by"] = json!("udev");
            value["file"] = json!(file);
            value["line"] = json!(line);
        }
        Setter::Tuned { profile } => {
            value["by"] = json!("tuned");
            value["profile"] = json!(profile);
        }
        Setter::CommandLine => value["by"] = json!("command-line"),
    }
    value
}

fn requirement(r: &Requirement) -> Value {
    match &r.state {
        Ok(found) => json!({ "what": r.what, "met": true, "found": known(found) }),
        Err(e) => {
            json!({ "what": r.what, "met": false, "problem": e.to_string(), "help": known(&e.help()) })
        }
    }
}

fn tool(t: &Tool) -> Value {
    json!({
        "name": t.name, "package": known(t.package), "purpose": t.purpose, "found": t.version.is_some(),
        "version": t.version.as_deref().and_then(known),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::{QueueState, Stack};
    use crate::emulate::Transport;
    use crate::error::Error;

    fn on(name: &str, kind: LayerKind, below: Vec<Layer>) -> Layer {
        Layer { name: name.into(), kind, schedulers: Vec::new(), scheduler: None, below }
    }

    #[test]
    fn every_layer_and_every_setter_is_there() {
        let disk = on("sda", LayerKind::Disk, Vec::new());
        let crypt = LayerKind::Dm { kind: "crypt".into(), name: "home".into() };
        let below = vec![on("dm-0", crypt, vec![on("sda2", LayerKind::Partition, vec![disk])])];
        let fs = LayerKind::FileSystem { fstype: "ext4".into(), point: "/home".into() };
        let queue = QueueState { scheduler: Some("bfq".into()), ..QueueState::default() };
        let udev = Setter::Udev { file: "/etc/udev/rules.d/60.rules".into(), line: 3 };
        let by = |setter| Setting { setter, scheduler: "bfq".into(), certain: true };
        let missing = Error::NotRoot { what: "emulating a disk".into() };
        let report = Report {
            kernel: "6.18".into(),
            lockdown: String::new(),
            stack: Some(Stack { target: "/home/x".into(), top: on("/home", fs, below) }),
            verdict: Some(Err("no such file".into())),
            disks: vec![(
                Disk { name: "sda".into(), queue, ..Disk::default() },
                vec![by(udev), by(Setter::Tuned { profile: "x".into() }), by(Setter::CommandLine)],
            )],
            requirements: vec![
                Requirement { what: "root", state: Err(missing) },
                Requirement { what: "fio", state: Ok("fio-3.33".into()) },
            ],
            ways: vec![(Transport::Ublk, Err("no ublk".into())), (Transport::Fuse, Ok(()))],
            tools: vec![Tool {
                name: "fio",
                package: "fio",
                purpose: "load".into(),
                version: None,
            }],
            states: vec!["/run/iosched/sda.json".into()],
        };
        let v = report.to_json();
        assert_eq!(v["lockdown"], Value::Null);
        assert_eq!(v["stack"]["top"]["mount_point"], "/home");
        assert_eq!(v["writing"]["unknown"], "no such file");
        let dm = &v["stack"]["top"]["below"][0];
        assert_eq!((&dm["kind"], &dm["dm_kind"]), (&json!("dm"), &json!("crypt")));
        assert_eq!(dm["below"][0]["below"][0]["name"], "sda");
        let set_by = &v["disks"][0]["set_by"];
        assert_eq!(set_by[0]["file"], "/etc/udev/rules.d/60.rules");
        assert_eq!(
            (&set_by[1]["profile"], &set_by[2]["by"]),
            (&json!("x"), &json!("command-line"))
        );
        assert_eq!(v["requirements"][0]["met"], false);
        assert_eq!(v["requirements"][1]["found"], "fio-3.33");
        assert_eq!(
            (&v["tools"][0]["found"], &v["tools"][0]["version"]),
            (&json!(false), &Value::Null)
        );
    }
}
