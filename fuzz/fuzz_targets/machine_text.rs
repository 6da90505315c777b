#![no_main]
//! What the kernel and tools print, as the backends read it: any text, no panic.

use iosched_backends::parse::{
    diskstats, mountinfo, proc_stat, psi, scheduler, tags, trace, version,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let _ = scheduler::parse(&text);
    let _ = diskstats::find(&text, "sda");
    let _ = diskstats::parse_fields(&text);
    let _ = (proc_stat::parse_cpu(&text), proc_stat::parse_process(&text));
    let _ = (psi::parse(&text), tags::parse(&text), version::parse(&text));
    let _ = mountinfo::parse(&text);
    text.lines().for_each(|l| {
        let _ = trace::parse_line(l);
    });
    let _ = iosched_backends::state::parse(&text);
    let _ = iosched_experiment::Mix::parse(&text);
});
