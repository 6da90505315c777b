//! From the text of an experiment to its trials, and back from records to text.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests read the examples")]

use std::collections::BTreeSet;
use std::path::Path;

use iosched_block::CpuModel;
use iosched_experiment::record::{JobRecord, Record, TrialId};
use iosched_experiment::{Experiment, Sources, Trial, plan};
use iosched_schedulers::registry::Registry;
use iosched_types::Diagnostic;
use iosched_workloads::fio::NoLookup;
use proptest::prelude::*;

/// Plans with the files of `folder`, on a machine that offers `none` and `bfq`.
fn planned(text: &str, folder: &Path) -> Result<Vec<Trial>, Vec<Diagnostic>> {
    let sources = Sources {
        read: &|name| {
            std::fs::read_to_string(folder.join(name)).map_err(|e| format!("{name}: {e}"))
        },
        job: &shipped_job,
        offered: &|| vec!["none".into(), "bfq".into()],
        registry: Registry::builtin(),
        disk: &|name| Err(format!("no disk {name}")),
        env: &NoLookup,
        ..Sources::default()
    };
    let e = Experiment::from_toml("e.toml", text).map_err(|d| vec![d])?;
    plan(&e, &sources)
}

/// A job that comes with the program: the command line has its text, here the file is read.
fn shipped_job(name: &str) -> Result<&'static str, String> {
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/jobs");
    let text = std::fs::read_to_string(jobs.join(format!("{name}.fio")));
    text.map(|text| &*text.leak()).map_err(|_| format!("no job {name}"))
}

const JOB: &str = "[a]\\nrw=randread\\nbs=4k\\ndirect=1\\nsize=1m\\n";

fn text(rest: &str) -> String {
    format!("name = \"e\"\nworkloads = [{{ name = \"w\", job = \"{JOB}\" }}]\n{rest}\n")
}

#[test]
fn schedulers_of_a_round_get_the_same_seed_and_rounds_get_others() {
    let text = text(
        "devices = [\"fixed\", \"ssd-sata\"]\nschedulers = [\"none\", \"bfq\", \"kyber\"]\nruns = 4\nseed = 7",
    );
    let trials = planned(&text, Path::new(".")).unwrap();
    assert_eq!(trials.len(), 2 * 3 * 4);
    let ids: BTreeSet<&TrialId> = trials.iter().map(|t| &t.id).collect();
    assert_eq!(ids.len(), trials.len(), "no trial twice");
    // Round by round, so that what drifts hits all schedulers alike.
    for round in trials.chunks(3) {
        assert!(round.iter().all(|t| t.id.repetition == round[0].id.repetition));
        assert!(round.iter().all(|t| t.id.seed == round[0].id.seed));
        let order: Vec<&str> = round.iter().map(|t| t.kernel_name()).collect();
        assert_eq!(order, ["none", "bfq", "kyber"]);
    }
    let seeds: BTreeSet<u64> = trials.iter().map(|t| t.id.seed).collect();
    assert_eq!(seeds.len(), 4);
    assert_eq!(trials[0].id.seed, 7, "the first repetition has the seed that was given");
}

#[test]
fn core_time_is_switched_off_by_the_experiment() {
    let with = |cpu: &str| {
        let rest = format!("devices = [\"fixed\"]\nschedulers = [\"none\"]\n{cpu}");
        planned(&text(&rest), Path::new(".")).map(|t| t[0].kernel.cpu.model)
    };
    assert_eq!(with("").unwrap(), CpuModel::Cost);
    assert_eq!(with("[cpu]\nmodel = \"zero\"").unwrap(), CpuModel::Zero);
    let profile = |cpu: &str| {
        let rest = format!("devices = [\"fixed\"]\nschedulers = [\"none\"]\n{cpu}");
        planned(&text(&rest), Path::new(".")).unwrap()[0].kernel.cpu.clone()
    };
    let (own, twice) = (profile(""), profile("[cpu]\npercent = 200"));
    assert_eq!((twice.copy_ns, twice.slice_ns), (2 * own.copy_ns, own.slice_ns));
    assert_eq!(twice.scheduler, own.scheduler);
    let refused = |cpu: &str| with(cpu).unwrap_err()[0].to_string();
    assert!(refused("[cpu]\nmodel = \"zer\"").contains("did you mean \"zero\"?"));
    assert!(refused("[cpu]\ncores = 2").contains("cpus = N"));
    assert!(refused("[cpu]\npercnt = 50").contains("did you mean \"percent\"?"));
    assert!(refused("[cpus]\npercent = 50").contains("did you mean [cpu]?"));
    assert!(refused("[cpu]").contains("[cpu] needs model"));
    assert!(refused("[cpu]\npercent = 0").contains("percent"));
}

#[test]
fn files_of_a_log_have_to_fit_the_device() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let log = |at: u64| {
        let text = format!(
            "openat(AT_FDCWD, \"f\", O_RDONLY) = 3\npread64(3, \"x\"..., 4096, {at}) = 4096\n"
        );
        std::fs::write(dir.join("far.strace"), text).unwrap();
        let e = "workloads = [\"far.strace\"]\ndevices = [\"ssd-sata\"]\nschedulers = [\"none\"]";
        planned(e, dir)
    };
    assert!(log(1 << 30).is_ok());
    let e = log(1 << 40).unwrap_err()[0].to_string();
    assert!(
        e.contains("needs at least 1.00 TiB (the largest, work/f, 1.00 TiB), there are 466 GiB"),
        "{e}"
    );
}

/// fio without `randseed` has a seed of its own, and repeatable jobs treat a named seed differently.
#[test]
fn files_of_a_program_have_to_fit_the_file_system() {
    let with = |workload: &str, rest: &str| {
        let text = format!(
            "workloads = [{{ {workload} }}]\ndevices = [\"ssd-sata\"]\nschedulers = [\"none\"]\n{rest}"
        );
        planned(&text, Path::new("."))
    };
    let copy = "program = \"file-copy\", params = { size = \"700M\" }";
    assert!(with(copy, "[filesystem]\nsize = \"2G\"").is_ok());
    let e = with(copy, "[filesystem]\nsize = \"1G\"").unwrap_err()[0].to_string();
    assert!(e.contains("needs at least 1.37 GiB") && e.contains("there are 1.00 GiB"), "{e}");
    let start = "name = \"s\", startup = { command = \"bash\", load = \"300r-seq\" }";
    let e = with(start, "").unwrap_err()[0].to_string();
    assert!(e.contains("readers and writers are 0 to 256 each"), "{e}");
}

#[test]
fn a_single_run_without_a_seed_is_fios() {
    let planned = |more: &str| {
        let text = text(&format!("devices = [\"fixed\"]\nschedulers = [\"none\"]\n{more}"));
        let trials = planned(&text, Path::new(".")).unwrap();
        let job = &trials[0].jobs().jobs[0];
        (trials[0].id.seed, job.randseed, job.randrepeat)
    };
    assert_eq!(planned(""), (0x89, None, true));
    assert_eq!(planned("seed = 7"), (7, Some(7), true));
    assert_eq!(planned("runs = 2"), (0x89, Some(0x89), false));
}

/// Repeated runs of a program are draws of their own. A seed that is set is that of every run.
#[test]
fn repetitions_of_a_program_draw_other_numbers() {
    let seed = |t: &Trial| {
        let load = t.work.load().unwrap();
        load.program().unwrap().params.number("seed")
    };
    let seeds = |params: &str, more: &str| -> Vec<i64> {
        let text = format!(
            "name = \"e\"\ndevices = [\"ssd-sata\"]\nschedulers = [\"none\"]\n\
             workloads = [{{ program = \"pgbench\", params = {{ {params} }} }}]\n{more}"
        );
        let trials = planned(&text, Path::new(".")).unwrap();
        trials.iter().map(seed).collect()
    };
    assert_eq!(seeds("", ""), [1]);
    assert_eq!(seeds("", "runs = 3"), [1, 2, 3]);
    assert_eq!(seeds("", "seed = 140\nruns = 2"), [4, 5]);
    assert_eq!(seeds("seed = 9", "runs = 3"), [9, 9, 9]);
    // From a trial that is a repetition already.
    let text = "name = \"e\"\ndevices = [\"ssd-sata\"]\nschedulers = [\"none\"]\nworkloads = [{ program = \"pgbench\" }]";
    let t = planned(text, Path::new(".")).unwrap()[0].at_repetition(2, 0x89, true);
    assert_eq!(seed(&t.at_repetition(4, 0x89, true)), 4);
}

/// `queue/async_depth` came with 7.1, where mq-deadline's tunable of that name went.
#[test]
fn async_depth_is_the_queues_from_7_1_on() {
    let file = |kernel: &str| {
        format!(
            "name = \"a\"\ndevices = [\"hdd-7200\"]\nschedulers = [\"mq-deadline\"]\nkernel = [\"{kernel}\"]\n\
             workloads = [{{ job = \"[a]\\nrw=read\\nbs=4k\\ndirect=1\\nsize=1m\\n\" }}]\n[queue]\nasync_depth = 8\n"
        )
    };
    let errors = planned(&file("6.12"), Path::new("/nonexistent")).unwrap_err();
    assert!(errors[0].to_string().contains("Linux 6.12 has no queue/async_depth"), "{errors:?}");
    planned(&file("7.1"), Path::new("/nonexistent")).unwrap();
}

#[test]
fn every_mistake_of_a_file_is_told_at_once_with_its_place() {
    let text = "name = \"bad\"\ndevices = [\"hdd-7200\", \"hdd-7201\"]\nschedulers = [\"none\", \"bfqq\", \"cfq\"]\n\
                workloads = [{ job = \"[a]\\nrw=raed\\nbs=4k\\n\" }, \"absent.fio\"]\n[queue]\nnr_requests = 0\n";
    let errors = planned(text, Path::new("/nonexistent")).unwrap_err();
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    for (place, words) in [
        ("e.toml:2:", "hdd-7201"),
        ("e.toml:3:", "bfqq"),
        ("e.toml:3:", "cfq does not exist in Linux 7.1"),
        // A job that is written in place has lines of its own.
        ("job-1:2:4", "raed"),
        ("e.toml:4:", "absent.fio"),
        ("e.toml:6:", "nr_requests"),
    ] {
        let found = all.iter().find(|e| e.contains(words));
        let found = found.unwrap_or_else(|| panic!("{words}: {all:#?}"));
        assert!(found.contains(place), "{found}");
    }
    assert_eq!(errors.len(), 6, "{all:#?}");
}

/// What the kernel lacks is told where it was said, with a help that fits it.
#[test]
fn a_misfit_of_the_machine_has_its_place_and_help() {
    let job = "[a]\\nrw=read\\nsize=1m\\n";
    let told = |kernel: &str, machine: &str| {
        let text = format!(
            "name = \"e\"\nkernel = \"{kernel}\"\ndevices = [\"hdd-7200\"]\nschedulers = [\"deadline\"]\n\
             workloads = [{{ name = \"w\", job = \"{job}\" }}]\n{machine}"
        );
        let errors = planned(&text, Path::new("/nonexistent")).unwrap_err();
        errors.iter().map(ToString::to_string).collect::<String>()
    };
    let fs = "[filesystem]\ntype = \"ext3\"\noptions = \"data=journal\"\n";
    let got = told(
        "2.6.18",
        &format!("{fs}[sysctl]\n\"vm.dirty_ratio\" = 5\n\"vm.dirty_bytes\" = 8192\n"),
    );
    assert!(got.contains("vm.dirty_bytes came with Linux 2.6.29"), "{got}");
    assert!(got.contains("e.toml:11:") && got.contains("vm.dirty_ratio"), "{got}");
    let got = told("4.12", "[filesystem]\ntype = \"ext4\"\noptions = \"data=journal,delalloc\"\n");
    assert!(got.contains("e.toml:6:") && got.contains("leave the mount option out"), "{got}");
    assert!(!got.contains("least size"), "{got}");
}

#[test]
fn on_a_machine_its_own_schedulers_count() {
    let of = |scheduler: &str| {
        let rest = format!(
            "backend = \"emulated\"\ndevices = [\"fixed\"]\nschedulers = [\"{scheduler}\"]\nruns = 1"
        );
        planned(&text(&rest), Path::new("."))
    };
    assert_eq!(of("bfq").unwrap()[0].kernel_name(), "bfq");
    // There may be a module with an unknown name.
    let e = of("bfqq").unwrap_err();
    assert!(e[0].to_string().contains("bfqq"), "{e:?}");
}

#[test]
fn the_examples_are_planned_with_their_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|x| x == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            // Here is no machine to emulate on.
            let text = text.replace("backend = \"emulated\"", "");
            match planned(&text, &folder) {
                Ok(trials) => assert!(!trials.is_empty(), "{path:?}"),
                Err(e) => {
                    let words: String = e.iter().map(ToString::to_string).collect();
                    assert!(words.contains("--backend emulated"), "{path:?}: {words}");
                }
            }
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen}");
}

proptest! {
    /// A record survives writing and reading, whatever its figures.
    #[test]
    fn a_record_comes_back_from_its_text(
        latencies in proptest::collection::vec(1u64..10_000_000_000, 0..40),
        bytes in any::<u64>(),
        seed in any::<u64>(),
        name in "[ -~]{0,20}",
    ) {
        let mut job = JobRecord { name: name.clone(), ..JobRecord::default() };
        job.read.bytes = bytes;
        latencies.iter().for_each(|l| job.read.clat.record(*l));
        let trial = TrialId { seed, workload: name, ..TrialId::default() };
        let record = Record { trial, jobs: vec![job], ..Record::default() };
        let text = serde_json::to_string(&record).unwrap();
        let again: Record = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&again, &record);
        prop_assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }
}
