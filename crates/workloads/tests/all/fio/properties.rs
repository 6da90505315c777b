//! The parser on arbitrary text.

use iosched_workloads::fio::{MAX_JOBS, check_files, find_option, iolog, options};
use proptest::prelude::*;

use super::support::{job, try_parse};

fn line() -> impl Strategy<Value = String> {
    let names: Vec<&str> =
        options().flat_map(|o| std::iter::once(o.name).chain(o.aliases.iter().copied())).collect();
    let value = prop_oneof![
        "[0-9]{1,3}[kmgKMGsuh%]?(ib|b|s)?",
        "[0-9]{1,2}[k]?[-:,/][0-9]{1,2}[k]?([-:,/][0-9]{0,3}){0,2}",
        "(rand)?(read|write|trim|rw|trimwrite)(:[0-9]{1,2}k?)?",
        "(zipf|zoned|normal|pareto|zoned_abs|libaio|psync|none)(:[0-9./:]{0,9})?",
        "[ -~]{0,12}",
    ];
    let option = (prop::sample::select(names), value).prop_map(|(n, v)| format!("{n}={v}"));
    prop_oneof![
        8 => option,
        1 => "\\[[a-z ]{0,6}\\]?",
        1 => "\\PC{0,20}",
        1 => "include [a-z./]{0,5}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC*") {
        if let Err(e) = try_parse(&text) {
            prop_assert!(!e.is_empty());
            e.iter().for_each(|d| drop(d.to_string()));
        }
        let _ = iolog::parse("l", &text);
    }

    #[test]
    fn likely_text_is_parsed_or_refused(lines in prop::collection::vec(line(), 0..12)) {
        let text = format!("[a]\n{}\n", lines.join("\n"));
        match try_parse(&text) {
            Ok(set) => {
                prop_assert!(!set.jobs.is_empty() && set.jobs.len() <= MAX_JOBS);
                for (i, j) in set.jobs.iter().enumerate() {
                    prop_assert_eq!(j.thread as usize, i + 1);
                    prop_assert!(j.iodepth >= 1 && j.batch_submit >= 1);
                    prop_assert!(j.batch_submit <= j.iodepth && j.iodepth_low <= j.iodepth);
                    for d in 0..3 {
                        let (lo, hi) = j.bs.range[d];
                        prop_assert!(1 <= lo && lo <= hi);
                        let sum: u32 = j.bs.split[d].iter().map(|e| e.percent).sum();
                        prop_assert!(j.bs.split[d].is_empty() || sum == 100);
                    }
                }
                let _ = check_files(&set);
            }
            Err(e) => {
                for d in &e {
                    prop_assert!(d.line <= lines.len() + 2);
                    let _ = d.to_string();
                }
            }
        }
    }

    #[test]
    fn sizes_read_back_what_was_written(n in 1u64..1 << 20, power in 0usize..6, upper: bool) {
        let suffix = ["", "k", "m", "g", "t", "p"][power];
        let suffix = if upper { suffix.to_uppercase() } else { suffix.to_string() };
        let bytes = u128::from(n) * 1024u128.pow(power as u32);
        if !(4096..1 << 63).contains(&bytes) {
            return Ok(());
        }
        let j = job(&format!("size={n}{suffix}"));
        prop_assert_eq!(j.target.size.map(u128::from), Some(bytes));
    }
}

#[test]
fn every_simulated_option_is_implemented() {
    use iosched_workloads::fio::{Effect, Kind};
    for o in options().filter(|o| o.effect == Effect::Simulated) {
        let value = match (o.name, o.kind) {
            ("bssplit", _) => "4k/50:8k".to_string(),
            ("random_distribution", _) => "zipf".into(),
            ("replay_align" | "size" | "io_size", _) => "4k".into(),
            ("replay_skip", _) => "read".into(),
            ("sync_file_range", _) => "write:8".into(),
            ("thinktime_spin", _) => "0".into(),
            ("time_based", _) => "0".into(),
            ("cgroup_weight", _) => "100\ncgroup=x".into(),
            ("exec_prerun" | "exec_postrun", _) => "sync".into(),
            ("read_iolog", _) => continue,
            (_, Kind::Word(w) | Kind::WordAnd(w)) => w[0].into(),
            (_, Kind::Text) => "x".into(),
            (_, Kind::SizeRange(_) | Kind::Three(Kind::SizeRange(_))) => "4k-8k".into(),
            _ => "1".into(),
        };
        for name in std::iter::once(o.name).chain(o.aliases.iter().copied()) {
            job(&format!("{name}={value}"));
            assert_eq!(find_option(name), Some(o));
        }
    }
}
