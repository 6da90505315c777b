//! The table of `docs/kernels.md` says what the profiles say. `BLESS=1 cargo test -p iosched-block` rewrites it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test reads the page it checks"
)]

use std::collections::BTreeSet;
use std::path::Path;

use iosched_block::KernelProfile;
use iosched_block::profile::{
    Basis, CpuModel, CpuProfile, LargeRequest, LegacyFlush, MergeScan, Paths, PlugKind,
    RequestClasses, SchedulerTags, ShallowDepth,
};

const BEGIN: &str = "<!-- profiles:begin -->\n\n";
const END: &str = "\n<!-- profiles:end -->";

fn yes(b: bool) -> String {
    if b { "yes" } else { "no" }.into()
}

/// Rows that differ between the profiles, and values that are the same in all that have one.
#[derive(Default)]
struct Rows {
    varied: String,
    same: Vec<String>,
}

fn row(out: &mut Rows, name: &str, all: &[KernelProfile], f: impl Fn(&KernelProfile) -> String) {
    let cells: Vec<String> = all.iter().map(f).collect();
    let values: BTreeSet<&String> = cells.iter().filter(|c| *c != "–").collect();
    match values.first() {
        Some(value) if values.len() == 1 => out.same.push(format!("{name}: {value}")),
        _ => out.varied.push_str(&format!("| {name} | {} |\n", cells.join(" | "))),
    }
}

/// A cell of the single-queue path, or a dash where there is none.
fn legacy(p: &KernelProfile, f: impl Fn(&KernelProfile) -> String) -> String {
    if p.path == Paths::Mq { "–".into() } else { f(p) }
}

/// A cell of blk-mq, or a dash where there is none.
fn mq(p: &KernelProfile, f: impl Fn(&KernelProfile) -> String) -> String {
    if p.path == Paths::Legacy { "–".into() } else { f(p) }
}

/// A cell of the plug per task, or a dash where the device has one.
fn task(p: &KernelProfile, f: impl Fn(&KernelProfile) -> String) -> String {
    if p.plug.kind == PlugKind::Device { "–".into() } else { f(p) }
}

fn general(out: &mut Rows, all: &[KernelProfile]) {
    row(out, "block layers (`path`)", all, |p| {
        let text = match p.path {
            Paths::Legacy => "single queue",
            Paths::Mq => "multi-queue",
            Paths::Both => "both",
        };
        text.into()
    });
    row(out, "exact beside (`basis`)", all, |p| match p.basis {
        Basis::Measured => "a real kernel".into(),
        Basis::Described => "descriptions".into(),
    });
    row(out, "ticks a second (`hz`)", all, |p| p.hz.to_string());
    row(out, "`nr_requests` without blk-mq", all, |p| legacy(p, |p| p.nr_requests.to_string()));
    row(out, "`max_sectors_kb`", all, |p| p.max_sectors_kb.to_string());
    row(out, "`max_segments`", all, |p| p.max_segments.to_string());
    row(out, "`read_ahead_kb`", all, |p| p.read_ahead_kb.to_string());
    row(out, "default scheduler, one hardware queue", all, |p| p.default_scheduler.clone());
    row(out, "default scheduler, several hardware queues", all, |p| {
        p.default_scheduler_multi_queue.clone()
    });
    row(out, "usable NCQ slots of 32 (`ncq_depth`)", all, |p| p.ncq_depth.to_string());
}

fn plug(out: &mut Rows, all: &[KernelProfile]) {
    row(out, "plug of (`plug.kind`)", all, |p| {
        if p.plug.kind == PlugKind::Device { "the device" } else { "the task" }.into()
    });
    row(out, "plug ends at requests (`plug.max_requests`)", all, |p| {
        p.plug.max_requests.to_string()
    });
    row(out, "plug ends at a request of KiB (`plug.max_kb`)", all, |p| {
        task(p, |p| if p.plug.max_kb == 0 { "none".into() } else { p.plug.max_kb.to_string() })
    });
    row(out, "… if it is (`plug.large`)", all, |p| {
        task(p, |p| match p.plug.large {
            LargeRequest::Newest => "the newest".into(),
            LargeRequest::Oldest => "the oldest".into(),
        })
    });
    row(out, "a direct I/O of more KiB that is split has a plug (`plug.own_above_kb`)", all, |p| {
        task(p, |p| p.plug.own_above_kb.to_string())
    });
    row(out, "device plug ends after ms (`plug.delay_ms`)", all, |p| match p.plug.kind {
        PlugKind::Device => p.plug.delay_ms.to_string(),
        PlugKind::Task => "–".into(),
    });
    row(out, "plug hands over by sector (`plug.sorted`)", all, |p| task(p, |p| yes(p.plug.sorted)));
    row(out, "plug merges with (`plug.merge_scan`)", all, |p| {
        task(p, |p| match p.plug.merge_scan {
            MergeScan::All => "every request".into(),
            MergeScan::Newest => "the newest".into(),
        })
    });
    row(
        out,
        "requests keep the time of the first one until the task sleeps (`plug.keeps_clock`)",
        all,
        |p| task(p, |p| yes(p.plug.keeps_clock)),
    );
}

fn paths(out: &mut Rows, all: &[KernelProfile]) {
    row(out, "classes of the request pool", all, |p| {
        legacy(p, |p| match p.legacy.request_classes {
            RequestClasses::ReadWrite => "read, write".into(),
            RequestClasses::SyncAsync => "sync, async".into(),
        })
    });
    row(out, "one merge hash for all schedulers (`merge_hash`)", all, |p| {
        legacy(p, |p| yes(p.legacy.merge_hash))
    });
    row(out, "flushes without blk-mq", all, |p| {
        legacy(p, |p| match p.legacy.flush {
            LegacyFlush::Barrier => "barriers".into(),
            LegacyFlush::FlushFua => "flush, FUA".into(),
        })
    });
    row(out, "scheduler tags", all, |p| {
        mq(p, |p| match p.mq.scheduler_tags {
            SchedulerTags::Fixed256 => "256".into(),
            SchedulerTags::TwiceDepth => "2 × min(depth, 128)".into(),
            SchedulerTags::Exactly(n) => n.to_string(),
        })
    });
    row(out, "pulls many requests at once (`batch_dispatch`)", all, |p| {
        mq(p, |p| yes(p.mq.batch_dispatch))
    });
    row(out, "SCSI asks for a budget before it pulls (`budget_first`)", all, |p| {
        mq(p, |p| yes(p.mq.budget_first))
    });
    row(out, "a full queue pulls on (`pulls_past_parked`)", all, |p| {
        mq(p, |p| yes(p.mq.pulls_past_parked))
    });
    row(out, "a tag wake-up wakes a batch (`wake_all_in_batch`)", all, |p| {
        mq(p, |p| yes(p.mq.wake_all_in_batch))
    });
    row(
        out,
        "a flush waits for data under way, without a scheduler, too (`flush_apart`)",
        all,
        |p| mq(p, |p| yes(p.mq.flush_apart)),
    );
    row(out, "a sync is limited in its tags like a write (`limit_flushes`)", all, |p| {
        mq(p, |p| yes(p.mq.limit_flushes))
    });
    row(out, "tag limits make wake-ups smaller (`limits_shrink_batches`)", all, |p| {
        mq(p, |p| yes(p.mq.limits_shrink_batches))
    });
    row(out, "without `iostats` requests have no time of their own (`iostats_stamps`)", all, |p| {
        mq(p, |p| yes(p.mq.iostats_stamps))
    });
    row(out, "tag limits count over the (`shallow_depth`)", all, |p| {
        mq(p, |p| match p.mq.shallow_depth {
            ShallowDepth::Word => "word".into(),
            ShallowDepth::Map => "map".into(),
        })
    });
    row(out, "merges need equal I/O priority", all, |p| mq(p, |p| yes(p.mq.same_prio_merge)));
    row(out, "writeback throttle (`wbt`)", all, |p| mq(p, |p| yes(p.mq.wbt)));
}

fn cpu(out: &mut Rows, all: &[KernelProfile]) {
    let charged = |p: &KernelProfile, ns: u64| match p.cpu.model {
        CpuModel::Zero | CpuModel::Looks => "–".into(),
        CpuModel::Cost => ns.to_string(),
    };
    type Piece = fn(&CpuProfile) -> u64;
    let pieces: [(&str, Piece); 20] = [
        ("handing over a request in ns (`cpu.submit_ns`)", |c| c.submit_ns),
        ("… of it in the program (`user_ns`)", |c| c.user_ns),
        ("a look for completions (`reap_ns`)", |c| c.reap_ns),
        ("an interrupt (`irq_ns`)", |c| c.irq_ns),
        ("a completion in it (`complete_ns`)", |c| c.complete_ns),
        ("a wake-up from it (`wake_ns`)", |c| c.wake_ns),
        ("leaving idle (`idle_exit_ns`)", |c| c.idle_exit_ns),
        ("sleeping and coming back (`switch_ns`)", |c| c.switch_ns),
        ("time slice where others are ready (`slice_ns`)", |c| c.slice_ns),
        ("a program's system call (`call_ns`)", |c| c.call_ns),
        ("copying 4 KiB in it (`copy_ns`)", |c| c.copy_ns),
        ("a write through a file system, more (`write_ns`)", |c| c.write_ns),
        ("a page into the page cache (`page_ns`)", |c| c.page_ns),
        ("a page written back (`writeback_ns`)", |c| c.writeback_ns),
        ("a page given back (`free_ns`)", |c| c.free_ns),
        ("finding a name (`path_ns`)", |c| c.path_ns),
        ("changing a directory (`change_ns`)", |c| c.change_ns),
        ("coming back, more per doubling of processes (`pollution_ns`)", |c| c.pollution_ns),
        ("… from so many processes on (`pollution_from`)", |c| u64::from(c.pollution_from)),
        ("scheduler with cold caches, % (`cold_percent`)", |c| c.cold_percent),
    ];
    for (name, value) in pieces {
        row(out, name, all, |p| charged(p, value(&p.cpu)));
    }
    let families: BTreeSet<&String> = all.iter().flat_map(|p| p.cpu.scheduler.keys()).collect();
    for family in families {
        row(out, &format!("{family}: outside the lock + under it"), all, |p| {
            let cost = p.cpu.scheduler.get(family).cloned().unwrap_or_default();
            match p.cpu.model {
                CpuModel::Zero | CpuModel::Looks => "–".into(),
                CpuModel::Cost => format!("{} + {}", cost.outside_ns, cost.hold_ns),
            }
        });
    }
}

fn table() -> String {
    let find = |n: &&str| KernelProfile::find(n).unwrap();
    let all: Vec<KernelProfile> = KernelProfile::names().iter().map(find).collect();
    let mut out = Rows::default();
    row(&mut out, "", &all, |p| p.version.clone());
    out.varied =
        format!("{}|{}\n", out.varied.replacen("|  |", "| |", 1), "---|".repeat(all.len() + 1));
    general(&mut out, &all);
    plug(&mut out, &all);
    paths(&mut out, &all);
    cpu(&mut out, &all);
    let same: Vec<String> = out.same.iter().map(|s| format!("* {s}\n")).collect();
    let which = "The same in all profiles that have it (one path, one model of the CPU):";
    format!("{}\n{which}\n\n{}", out.varied, same.concat())
}

#[test]
fn the_page_holds_the_profiles() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kernels.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page marks the table");
    let (_, after) = rest.split_once(END).expect("the page marks the end of the table");
    let wanted = format!("{before}{BEGIN}{}{END}{after}", table());
    iosched_testing::golden(&path, &wanted);
}
