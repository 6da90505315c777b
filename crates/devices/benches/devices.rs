//! Time per command of each model, closed loop: a new command for every one that completes.
//!
//! `cargo bench -p iosched-devices`; the throughput column counts commands.

use divan::Bencher;
use divan::counter::ItemsCount;
use iosched_devices::{Command, Completion, Device, catalogue, truth};
use iosched_types::Op;

fn main() {
    divan::main();
}

const COMMANDS: u64 = 100_000;

struct Loop {
    device: Box<dyn Device>,
    done: Vec<Completion>,
    state: u64,
    blocks: u64,
    reads: u64,
}

impl Loop {
    fn next(&mut self, id: u32) -> Command {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let block = (u128::from(self.state) * u128::from(self.blocks)) >> 64;
        let op = if (self.state >> 8) % 100 < self.reads { Op::Read } else { Op::Write };
        Command { id, op, offset: block as u64 * 4096, len: 4096, fua: false }
    }

    fn start(mut device: Box<dyn Device>, depth: u32, reads: u64) -> Loop {
        let blocks = device.capacity() / 4096;
        device.advance(0, &mut Vec::new());
        let mut l = Loop { device, done: Vec::with_capacity(1024), state: 1, blocks, reads };
        for id in 0..depth {
            let c = l.next(id);
            l.device.submit(0, c);
        }
        l
    }

    fn run(&mut self, commands: u64) {
        let mut left = commands;
        while left > 0 {
            let now = self.device.next_wakeup().expect("commands are in flight");
            self.device.advance(now, &mut self.done);
            let mut done = std::mem::take(&mut self.done);
            for c in done.drain(..) {
                let c = self.next(c.id);
                self.device.submit(now, c);
                left = left.saturating_sub(1);
            }
            self.done = done;
        }
    }
}

fn measure(bencher: Bencher, device: Box<dyn Device>, depth: u32, reads: u64) {
    let mut l = Loop::start(device, depth, reads);
    l.run(COMMANDS);
    bencher.counter(ItemsCount::new(COMMANDS)).bench_local(|| l.run(COMMANDS));
}

fn reference(name: &str) -> Box<dyn Device> {
    let all = truth::parse("devices.toml", include_str!("../../../data/truth/devices.toml"));
    let all = all.expect("the reference devices are well formed");
    let d = all.iter().find(|d| d.spec.name == name).expect("the reference device exists");
    d.spec.build().expect("the reference device can be built")
}

#[divan::bench(args = ["fixed", "hdd7k_fifo", "hdd7k_ncq", "ssd_sata", "ssd_nvme"])]
fn random_reads_32(bencher: Bencher, name: &str) {
    measure(bencher, reference(name), 32, 100);
}

#[divan::bench(args = ["ssd_sata", "ssd_nvme"])]
fn half_writes_32(bencher: Bencher, name: &str) {
    measure(bencher, reference(name), 32, 50);
}

#[divan::bench(args = ["hdd-7200", "exos-x18", "nvme"])]
fn catalogue_half_writes_32(bencher: Bencher, name: &str) {
    let spec = catalogue::find(name).expect("the catalogue has it");
    measure(bencher, spec.build().expect("the catalogue's devices can be built"), 32, 50);
}
