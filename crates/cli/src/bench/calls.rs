//! How fast programs and host are when every call is answered from memory.

use std::ops::ControlFlow;
use std::time::Instant;

use iosched_block::{CpuModel, DiskId, Queue, QueueConfig};
use iosched_experiment::{Trial, path_of};
use iosched_host::cpu::Costs;
use iosched_host::fs::{Files, Simple};
use iosched_host::programs::Programs;
use iosched_syscalls::{Birth, Done, OpenFlags, Program, Script, Sys};

use crate::fail::{Failure, Outcome};

use super::Row;

/// Bytes of the file: all of it is in memory.
const FILE: u64 = 16 << 20;

/// One task that reads and overwrites 4 KiB blocks of a file that is in memory.
async fn text(sys: Sys, calls: u64) -> Done {
    let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
    let fd = sys.open("file", flags).await?;
    sys.write(fd, FILE).await?;
    let mut at = 0;
    for i in 0..calls - 2 {
        match i % 4 {
            0 => sys.pwrite(fd, at, 4096).await?,
            _ => sys.pread(fd, at, 4096).await?,
        };
        at = (at + 40_960) % FILE;
    }
    Ok(())
}

/// A host without costs of its own above a disk of constant service time.
pub(super) fn host(trial: &Trial, files: impl FnOnce(u64) -> Files) -> Outcome<Programs> {
    let mut kernel = trial.kernel.clone();
    kernel.cpu.model = CpuModel::Zero;
    let device = trial.device.build().map_err(Failure::input)?;
    let bytes = device.capacity();
    let costs = Costs::new(&kernel.cpu, trial.scheduler.descriptor.name);
    let queue = Queue::new(QueueConfig {
        disk: DiskId::default(),
        profile: kernel,
        path: path_of(&trial.scheduler),
        scheduler: trial.scheduler.clone(),
        device,
        queue_depth: trial.device.queue_depth,
        at_once: 0,
        hw_queues: 1,
        rotational: false,
        write_cache: false,
        fua: false,
        budget: false,
        max_hw_sectors_kb: trial.device.max_hw_sectors_kb,
        zone_sectors: 0,
        settings: Vec::new(),
        tasks: Vec::new(),
        cgroups: vec![iosched_schedulers::Cgroup::default()],
        cpus: 1,
        tag_start: 0,
    })
    .map_err(Failure::input)?;
    let mut host = Programs::new(queue, files(bytes), costs);
    host.most_at_once(u64::MAX);
    Ok(host)
}

/// A task with this text.
pub(super) fn birth(text: impl AsyncFnOnce(Sys) -> Done + Send + 'static) -> Birth {
    Birth(Box::new(move || Box::new(Script::new(text)) as Box<dyn Program>))
}

/// Measures `calls` calls on the host of a trial.
pub(super) fn measure(trial: &Trial, calls: u64) -> Outcome<Row> {
    let mut host = host(trial, |bytes| Files::AtOnce(Box::new(Simple::new(bytes))))?;
    let birth = birth(async move |sys| text(sys, calls).await);
    let begun = Instant::now();
    host.run(birth, &mut |_| ControlFlow::Continue(())).map_err(Failure::input)?;
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Row {
        scheduler: "program".into(),
        device: "memory".into(),
        processes: 1,
        depth: 1,
        requests: calls,
        requests_per_second: calls as f64 / seconds,
        ns_per_request: seconds * 1e9 / calls as f64,
        checks: check(&host, calls),
    })
}

/// Every call was answered, in no virtual time, and no dirty byte is lost.
fn check(host: &Programs, calls: u64) -> String {
    let (m, c) = (host.measured(), host.counts());
    let reads = (calls - 2).div_ceil(4);
    let task = m.tasks.get(&0).cloned().unwrap_or_default();
    let moved = (task.write.0, task.read.0, task.read.1);
    if m.calls != calls {
        format!("{} of {calls} calls", m.calls)
    } else if m.elapsed != 0 {
        format!("{} ns of virtual time", m.elapsed)
    } else if moved != (reads + 1, calls - 2 - reads, (calls - 2 - reads) * 4096) {
        format!("moved {moved:?}")
    } else if (c.dirtied, c.dirty) != (FILE, FILE) {
        format!("dirty bytes: {c:?}")
    } else {
        "ok".into()
    }
}
