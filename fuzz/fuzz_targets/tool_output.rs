//! What real programs print, as their recipes read it: any text, no panic, and no figure that is no number.
#![no_main]

use iosched_backends::{figures_in, real_programs};
use iosched_workloads::programs::{Descriptor, Params};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for workload in real_programs() {
        let Ok(program) = Descriptor::find(workload) else { panic!("{workload}") };
        let Ok(params) = Params::of(program, &[]) else { panic!("{workload}") };
        for ended in [true, false] {
            match figures_in(&text, workload, &params, ended) {
                Some(Ok(figures)) => assert!(figures.iter().all(|(_, v)| v.is_finite())),
                Some(Err(e)) => drop(e.to_string()),
                None => panic!("{workload} has no recipe"),
            }
        }
    }
});
