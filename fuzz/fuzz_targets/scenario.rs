//! The scenario parser on any text, and the runner on whatever it takes.
#![no_main]

use iosched_devices::catalogue;
use iosched_sim::scenario::{Driver, Scenario, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let scenario = match Scenario::from_toml("fuzz.toml", text) {
        Ok(scenario) => scenario,
        Err(e) => {
            drop(e.to_string());
            return;
        }
    };
    // A long list of times is valid and slow, which is not what is looked for here.
    if matches!(&scenario.driver, Driver::Pull { at, .. } if at.len() > 1000) {
        return;
    }
    let lookup = |name: &str| catalogue::find(name).map_err(|e| e.to_string());
    let Ok(explanation) = run(&scenario, &lookup) else { return };
    drop(explanation.to_string());
    // Nothing is lost and nothing comes from nowhere.
    assert!(explanation.dispatched.is_sorted_by_key(|d| d.t_ns));
    let mut seen = vec![false; scenario.requests.len()];
    explanation.dispatched.iter().flat_map(|d| &d.requests).for_each(|i| seen[*i] = true);
    assert!(explanation.pending.iter().all(|i| !seen[*i]));
    assert!(explanation.idle.iter().all(|i| i.from_ns < i.to_ns));
});
