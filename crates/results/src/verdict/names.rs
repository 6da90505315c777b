//! Names of asks: short, and different from each other.

use super::asks::Asked;

/// A name of so many letters needs no shortening.
const SHORT: usize = 24;

/// Names the asks of a device.
pub(super) fn name(asked: &mut Vec<Asked<'_>>) {
    shorten(asked);
    tell_apart(asked);
}

/// `Dbench 4.0` of `Dbench 4.0: Client Count: 6`.
fn program(workload: &str) -> &str {
    workload.split_once(": ").map_or(workload, |(p, _)| p)
}

/// `Type: Sequential Read` without the word before the colon, unless the rest alone says nothing (`6`, `No`).
fn bare(part: &str) -> &str {
    let rest = part.split_once(": ").map_or(part, |(_, rest)| rest);
    if rest.chars().filter(|c| c.is_alphabetic()).count() > 3 { rest } else { part }
}

/// Figures of programs whose names are lists of options, as test suites have them: an only figure has the program's name,
/// others have the options by which they differ. The IOPS of a run whose bytes are there, too, are the same figure again.
fn shorten(asked: &mut Vec<Asked<'_>>) {
    let long = |a: &Asked<'_>| a.name.chars().count() > SHORT;
    let of = |a: &Asked<'_>| -> String {
        let same = || asked.iter().filter(|o| program(o.workload) == program(a.workload));
        if !long(a) || !same().all(|o| o.name.contains(": ")) {
            return a.name.clone();
        }
        let common = |part: &str| same().all(|o| o.name.split(" - ").any(|p| p == part));
        let own: Vec<&str> = a.name.split(" - ").filter(|p| !common(p)).map(bare).collect();
        match own[..] {
            [] => program(a.workload).into(),
            _ => own.join(", "),
        }
    };
    let names: Vec<String> = asked.iter().map(of).collect();
    asked.iter_mut().zip(names).for_each(|(a, n)| a.name = n);
    let key = |a: &Asked<'_>| (program(a.workload).to_string(), a.name.clone());
    let bytes: Vec<_> = asked.iter().filter(|a| a.unit().ends_with("B/s")).map(key).collect();
    asked.retain(|a| !a.unit().eq_ignore_ascii_case("iops") || !bytes.contains(&key(a)));
}

/// Jobs of one name in two workloads are called by both.
fn tell_apart(asked: &mut [Asked<'_>]) {
    let names: Vec<(String, &str)> = asked.iter().map(|a| (a.name.clone(), a.workload)).collect();
    for a in asked {
        if names.iter().any(|(n, w)| *n == a.name && *w != a.workload) && a.name != a.workload {
            a.name = format!("{}/{}", a.workload, a.name);
        }
    }
}
