//! `iosched list`.

use iosched_block::KernelProfile;
use iosched_block::profile::Basis;
use iosched_devices::catalogue;
use iosched_schedulers::{BlockPath, Descriptor, Generation, registry};
use iosched_types::units::show_bytes;
use iosched_workloads::programs::{self, PROGRAMS};
use serde_json::{Value, json};

use crate::args::{ListArgs, ListKind};
use crate::fail::Outcome;
use crate::files::print_json;
use crate::jobs::JOBS;
use crate::situations::SITUATIONS;
use crate::tables::{entry, print_fitted};

pub(crate) fn list(args: &ListArgs) -> Outcome {
    if args.json {
        let all: Vec<Value> = match args.what {
            ListKind::Schedulers => registry::SCHEDULERS.iter().map(|d| scheduler(d)).collect(),
            ListKind::Devices => catalogue::all().iter().map(|(_, d)| device(d)).collect(),
            ListKind::Kernels => kernels().iter().map(|k| json!(k)).collect(),
            ListKind::Workloads => {
                let jobs = JOBS.iter().map(|j| json!({"name": j.name, "summary": j.summary()}));
                jobs.chain(PROGRAMS.iter().map(|d| program(d))).collect()
            }
            ListKind::Situations => {
                SITUATIONS.iter().map(|s| json!({"name": s.name, "summary": s.summary()})).collect()
            }
        };
        return print_json(&all);
    }
    let mut out = String::new();
    match args.what {
        ListKind::Schedulers => schedulers(&mut out),
        ListKind::Devices => {
            for (name, d) in catalogue::all() {
                let size = show_bytes(d.capacity() as f64);
                let text = format!("{}, {size}, queue depth {}", d.title, d.queue_depth);
                out.push_str(&entry(name, 22, &text));
            }
        }
        ListKind::Kernels => {
            for k in kernels() {
                let basis = match k.basis {
                    Basis::Measured => "beside a real kernel",
                    Basis::Described => "from descriptions, else as the next measured one",
                };
                let text =
                    format!("{} ({basis}); default scheduler {}", k.title, k.default_scheduler);
                out.push_str(&entry(&k.version, 10, &text));
            }
        }
        ListKind::Workloads => {
            for j in JOBS {
                out.push_str(&entry(j.name, 22, &j.summary()));
            }
            for d in PROGRAMS {
                out.push_str(&entry(d.name, 22, d.text));
            }
        }
        ListKind::Situations => {
            for s in SITUATIONS {
                out.push_str(&entry(s.name, 22, s.summary()));
            }
        }
    }
    print_fitted(&out)
}

/// A program as JSON.
pub(crate) fn program(d: &programs::Descriptor) -> Value {
    let params = d.params.iter().map(|p| {
        json!({
            "name": p.name, "unit": p.unit(), "default": p.default, "bounds": p.bounds(), "help": p.text,
        })
    });
    json!({
        "name": d.name,
        "summary": d.text,
        "usage": d.usage(),
        "params": params.collect::<Vec<_>>(),
        "quick": d.quick.iter().map(|(n, v)| (n.to_string(), json!(v))).collect::<serde_json::Map<_, _>>(),
    })
}

/// A program for people.
pub(crate) fn program_text(d: &programs::Descriptor) -> String {
    let mut out = entry(d.name, d.name.chars().count() + 2, d.text);
    out.push_str(&format!("{}\n\nParameters (default, bounds)\n", d.usage()));
    for p in d.params {
        let text = format!("{} ({} {}). {}", p.default, p.bounds(), p.unit(), p.text);
        out.push_str(&entry(&format!("  {}", p.name), 14, &text));
    }
    if !d.quick.is_empty() {
        let quick: Vec<String> = d.quick.iter().map(|(n, v)| format!("{n}={v}")).collect();
        out.push_str(&entry("\n--quick", 9, &quick.join(", ")));
    }
    out
}

/// The built-in kernel profiles, oldest first.
pub(crate) fn kernels() -> Vec<KernelProfile> {
    KernelProfile::names().iter().filter_map(|n| KernelProfile::find(n).ok()).collect()
}

/// How to ask for a generation.
fn asked(d: &Descriptor, g: &Generation) -> String {
    if d.generations.len() > 1 { format!("{}@{}", d.name, g.name) } else { d.name.to_string() }
}

fn schedulers(out: &mut String) {
    for d in registry::SCHEDULERS {
        out.push_str(&entry(d.name, 14, d.summary));
        for g in d.generations {
            let name = format!("  {}", asked(d, g));
            out.push_str(&entry(&name, 24, &format!("Linux {}: {}", g.range(), d.told(g))));
        }
    }
}

pub(crate) fn path_word(path: BlockPath) -> &'static str {
    match path {
        BlockPath::Legacy => "legacy",
        BlockPath::Mq => "mq",
    }
}

/// A scheduler as JSON.
pub(crate) fn scheduler(d: &Descriptor) -> Value {
    let generation = |g: &Generation| {
        json!({
            "name": g.name,
            "ask_for": asked(d, g),
            "kernels": g.range(),
            "path": path_word(d.path_of(g)),
            "summary": g.summary,
            "origin": d.origin(g),
        })
    };
    let names = |list: &[u8]| -> Vec<&str> {
        d.generations.iter().filter(|g| list.contains(&g.index)).map(|g| g.name).collect()
    };
    let tunables: Vec<Value> = d
        .tunables
        .iter()
        .map(|t| {
            json!({
                "name": t.name, "unit": t.unit, "default": t.default_text,
                "min": t.min, "max": t.max, "generations": names(t.generations), "help": t.help,
            })
        })
        .collect();
    json!({
        "name": d.name,
        "aliases": d.aliases,
        "summary": d.summary,
        "generations": d.generations.iter().map(generation).collect::<Vec<_>>(),
        "tunables": tunables,
    })
}

fn device(d: &iosched_devices::DeviceSpec) -> Value {
    let kind = d.stack.as_ref().map_or_else(|| d.model.kind(), |s| s.kind.word());
    json!({
        "name": d.name, "title": d.title, "summary": d.summary, "kind": kind,
        "bytes": d.capacity(), "queue_depth": d.queue_depth, "hw_queues": d.hw_queues,
    })
}
