use super::*;
use proptest::prelude::*;

const GOOD: &str = "name = \"n\"\ndevices = [\"hdd-7200\", \"mine.toml\"]\n\
    schedulers = [\"none\", { name = \"bfq\", tunables = { low_latency = false }, label = \"l\" }]\n\
    workloads = [\"desktop\", \"jobs/a.fio\", { name = \"w\", job = \"[r]\" }]\nruns = 3\nseed = 9\n\
    [queue]\nnr_requests = 64\n[set]\nruntime = 1.5\n";

#[test]
fn everything_is_read_and_paths_count_from_the_file() {
    let e = Experiment::from_toml("dir/e.toml", GOOD).unwrap();
    assert_eq!((e.name.as_str(), e.runs, e.seed), ("n", 3, 9));
    assert_eq!(e.devices[1].value, DeviceRef::Named("dir/mine.toml".into()));
    assert_eq!(e.schedulers[1].value.tunables[0].value, ("low_latency".into(), 0));
    assert_eq!(e.workloads[0].value.job, JobSource::File("desktop".into()));
    assert_eq!(e.workloads[1].value.job, JobSource::File("dir/jobs/a.fio".into()));
    assert_eq!(e.set[0].value, ("runtime".into(), "1.5".into()));
}

#[test]
fn a_device_state_is_read_and_its_words_are_checked() {
    let with =
        |state: &str| Experiment::from_toml("e.toml", &format!("{GOOD}[device_state]\n{state}\n"));
    let e = with("write_cache = \"full\"").unwrap();
    assert_eq!(e.device_state.unwrap().value.text(), "write_cache=full");
    let d = with("wcache = \"full\"").unwrap_err();
    assert!(d.line == 12 && d.message.contains("write_cache, slc"), "{d}");
    let d = with("slc = \"half\"").unwrap_err();
    assert!(d.line == 12 && d.message.contains("empty, full"), "{d}");
}

#[test]
fn everything_wrong_is_told_at_once_in_its_order() {
    let text = "devices = [\"hdd-7200\", 7]\nschedulers = [\"none\", { nme = \"bfq\" }]\nruns = 0\ntypo = 1\n\
        seed = \"x\"\n[set]\nruntime = [1]\n[collect]\nserie = true\n";
    let (e, errors) = Experiment::read("e.toml", text);
    let lines: Vec<usize> = errors.iter().map(|d| d.line).collect();
    assert_eq!(lines, [0, 1, 2, 3, 4, 5, 7, 9], "{errors:?}");
    assert!(errors[0].message.contains("names no workloads"));
    assert_eq!((e.devices.len(), e.schedulers.len()), (1, 1), "what can be read is read");
}

#[test]
fn stems_are_names() {
    assert_eq!((stem("a/b.c.toml"), stem("x"), stem(".hidden")), ("b.c", "x", ".hidden"));
}

proptest! {
    #[test]
    fn never_panics(at in 0usize..400, len in 0usize..40, junk in ".{0,20}") {
        let cut = |i: usize| (0..=i.min(GOOD.len())).rev().find(|i| GOOD.is_char_boundary(*i)).unwrap_or(0);
        let text = format!("{}{junk}{}", &GOOD[..cut(at)], &GOOD[cut(at + len)..]);
        let _ = Experiment::from_toml("e.toml", &text);
    }
}

#[test]
fn budget_and_warm_up_are_read_and_bad_ones_say_what_is_expected() {
    use crate::WarmUp;
    let bare = GOOD.replace("runs = 3\n", "");
    let with = |line: &str| Experiment::from_toml("e.toml", &format!("{line}\n{bare}"));
    let e = with("budget = \"2m\"\nwarm_up = 0").unwrap();
    assert_eq!((e.budget, e.warm_up), (Some(120_000_000_000), Some(WarmUp::None)));
    assert_eq!(with("warm_up = \"steady\"").unwrap().warm_up, Some(WarmUp::Steady));
    assert_eq!(with("").unwrap().warm_up, None);
    for (line, said) in [
        ("budget = \"soon\"", "\"soon\" is no time"),
        ("budget = \"0s\"", "\"0s\" is no time"),
        ("warm_up = \"long\"", "\"long\" is no warm-up"),
        ("budget = \"5s\"\nruns = 4", "budget chooses the repetitions, and so does runs"),
        ("budget = \"5s\"\nuntil_ci = \"3%\"", "and so does until_ci"),
    ] {
        let d = with(line).unwrap_err();
        assert!(d.line == 1 && d.message.contains(said) && !d.help.is_empty(), "{d}");
    }
}

/// The files of `strace -ff`, and jobs of one name in two directories.
#[test]
fn files_with_one_stem_are_told_apart() {
    let named = |files: &[&str]| {
        let place = crate::Place::file("x");
        let one = |f: &&str| {
            let job = JobSource::File((*f).into());
            Placed::new(WorkloadRef::new(stem(f), job), place.clone())
        };
        let mut all: Vec<_> = files.iter().map(one).collect();
        name_apart(&mut all);
        all.into_iter().map(|w| w.value.name).collect::<Vec<_>>()
    };
    assert_eq!(
        named(&["d/s.out.31395", "d/s.out.31505", "x.fio"]),
        ["s.out.31395", "s.out.31505", "x"]
    );
    assert_eq!(named(&["a/x.fio", "b/x.fio"]), ["a/x.fio", "b/x.fio"]);
    assert_eq!(named(&["x.fio", "x.fio"]), ["x.fio", "x.fio"], "the same twice is an error");
}
