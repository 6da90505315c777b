//! Simulated requests through everything a request goes through: `cargo bench -p iosched`.
//!
//! One iteration is a whole run of [`REQUESTS`] requests; divan prints requests per second.

use divan::counter::ItemsCount;
use iosched_block::KernelProfile;
use iosched_devices::truth;
use iosched_experiment::{Trial, choose_scheduler};
use iosched_schedulers::registry::Registry;
use iosched_workloads::fio::{NoLookup, parse};

const REQUESTS: u64 = 100_000;

fn main() {
    divan::main();
}

fn trial(scheduler: &str, device: &str, depth: u32) -> Trial {
    let devices = truth::parse("devices.toml", include_str!("../../../data/truth/devices.toml"));
    let devices = devices.expect("the reference devices parse (tested)").into_iter();
    let device = devices.map(|d| d.spec).find(|d| d.name == device).expect("a reference device");
    let kernel = KernelProfile::find("6.12").expect("a built-in profile");
    let job = format!(
        "[bench]\nfilename=/dev/disk\ndirect=1\nioengine=libaio\nrw=randread\nbs=4k\nnorandommap\n\
         iodepth={depth}\nnumber_ios={REQUESTS}\nio_size=1p\n"
    );
    let jobs = parse("bench.fio", &job, &NoLookup, &|_| Err("no includes".into()), &[]);
    Trial {
        settings: vec![("wbt_lat_usec".into(), 0)],
        first_run_late: false,
        ..Trial::new(
            device,
            choose_scheduler(scheduler, &[], &kernel, Registry::builtin())
                .expect("a scheduler of 6.12"),
            kernel,
            jobs.expect("the job parses"),
        )
    }
}

fn simulate(bencher: divan::Bencher<'_, '_>, trial: &Trial) {
    bencher.counter(ItemsCount::new(REQUESTS)).bench(|| {
        let record = iosched_sim::simulate(trial).expect("the trial runs");
        // A figure without a correct run says nothing.
        assert_eq!(record.jobs[0].read.ios, REQUESTS);
        record
    });
}

#[divan::bench]
fn none_on_fixed_depth_32(bencher: divan::Bencher<'_, '_>) {
    simulate(bencher, &trial("none", "fixed", 32));
}

#[divan::bench]
fn mq_deadline_on_hdd_depth_64(bencher: divan::Bencher<'_, '_>) {
    simulate(bencher, &trial("mq-deadline", "hdd7k_ncq", 64));
}
