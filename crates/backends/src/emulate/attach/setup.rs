//! Making a new disk look and answer like its model.

use std::time::{Duration, Instant};

use iosched_devices::{Device, DeviceSpec};
use iosched_types::Nanos;

use super::{EmulatedDisk, Options};
use crate::discover::{self, queue_dir};
use crate::emulate::clockwork::Lead;
use crate::emulate::limits::model_limits;
use crate::emulate::port::MAX_TRANSFER;
use crate::emulate::selfcheck::{self, Added, SelfCheck};
use crate::error::{Error, Result};
use crate::kernel_fs::KernelFs;
use crate::root::SysRoot;

impl EmulatedDisk {
    /// Makes the queue look like the modelled device's. Read-ahead comes last: the others reset it.
    pub(super) fn shape(&mut self, options: &Options) -> Result<()> {
        let root = SysRoot::default();
        let dir = queue_dir(&self.name());
        let set = |attribute: &str, value: &str| {
            let path = format!("{dir}/{attribute}");
            root.write(&path, value).map_err(|e| Error::io("writing", path, e))
        };
        set("scheduler", "none")?;
        set("rotational", if self.spec.rotational { "1" } else { "0" })?;
        let cache = if self.spec.write_cache { "write back" } else { "write through" };
        set("write_cache", cache)?;
        let transfer = self.spec.max_hw_sectors_kb.min(MAX_TRANSFER >> 10);
        set("max_sectors_kb", &transfer.to_string())?;
        if transfer < self.spec.max_hw_sectors_kb {
            self.notes.push(format!(
                "requests are at most {transfer} KiB here, not {} KiB",
                self.spec.max_hw_sectors_kb
            ));
        }
        // Under `none` this resizes the driver's own tags; the size stays when a scheduler comes.
        let (most, driver) = self.block.most();
        let depth = self.spec.queue_depth.clamp(1, most);
        if self.spec.queue_depth > most {
            self.notes.push(format!(
                "hardware queue depth is {most} ({driver}'s), not {}",
                self.spec.queue_depth
            ));
        }
        if driver == "loop" && depth < most {
            set("nr_requests", &depth.to_string())?;
        }
        self.verify_depth(depth);
        set("read_ahead_kb", &options.read_ahead_kb.to_string())?;
        Ok(())
    }

    fn verify_depth(&mut self, depth: u32) {
        let seen =
            KernelFs::debugfs().ok().and_then(|d| discover::tag_depth(d.root(), &self.name()));
        match seen {
            Some(d) if d == depth => {}
            Some(d) => self.notes.push(format!("hardware queue depth is {d}, not {depth}")),
            None => {
                self.notes.push("hardware queue depth could not be verified: no debugfs".into())
            }
        }
    }

    pub(super) fn self_check(&mut self, bytes: u64, options: &Options) -> Result<()> {
        let node = self.node();
        let check = || options.interrupt.check();
        let added = selfcheck::added(&node, bytes, &check)?;
        self.settle(probe(bytes, 1)?, Lead::default())?;
        let model = model_limits(&self.spec)?;
        let (iops, rate) = SelfCheck::wants(&model);
        let max_iops = selfcheck::most(iops, || selfcheck::rate(&node, bytes, 4096, &check))?;
        let large = (MAX_TRANSFER as usize).min(bytes as usize);
        let read = || Ok(selfcheck::rate(&node, bytes, large, &check)? * large as f64);
        let max_rate = selfcheck::most(rate, read)?;
        let compensated = added.is_steady();
        let Added { small, spread, per_mib, .. } = added;
        self.check = SelfCheck { added: small, per_mib, spread, compensated, max_iops, max_rate };
        if !compensated {
            self.notes.push("added latency is unsteady here and is not compensated".into());
        }
        match self.check.admit(&self.spec.name, &model) {
            Err(e @ Error::TooFast { .. }) if options.unchecked => {
                self.notes.push(format!("not as fast as the model: {e}"));
                Ok(())
            }
            verdict => verdict,
        }
    }

    pub(super) fn lead(&self) -> Lead {
        let SelfCheck { added, per_mib, compensated, .. } = self.check;
        if compensated { Lead { fixed: added, per_mib } } else { Lead::default() }
    }

    /// Puts a device in place once nothing is in flight (udev may look at a new disk).
    pub(in crate::emulate) fn settle(&self, device: Box<dyn Device>, lead: Lead) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut device = Some(device);
        while Instant::now() < deadline {
            if self.shared.work.served().in_flight == 0
                && let Some(d) = device.take()
            {
                match self.shared.work.replace(d, lead) {
                    Ok(()) => return Ok(()),
                    Err(back) => device = Some(back),
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(Error::Trial { message: format!("{} never became idle", self.node().display()) })
    }
}

/// A constant-time device for the self-check.
pub(in crate::emulate) fn probe(bytes: u64, latency: Nanos) -> Result<Box<dyn Device>> {
    let text = format!(
        "title = \"self-check\"\n[model]\nkind = \"fixed\"\ncap = {bytes}\nlat_ns = {latency}\npar = 4096\n"
    );
    DeviceSpec::from_toml("self-check", &text)
        .map_err(|e| Error::input(e.to_string(), String::new()))?
        .build()
        .map_err(|e| Error::input(e.to_string(), String::new()))
}
