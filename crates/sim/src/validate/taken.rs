//! How a folder of truth was taken: `truth.toml`.

use serde::Deserialize;

use iosched_block::{CpuModel, KernelProfile};
use iosched_types::{Diagnostic, Nanos};

use super::TruthRun;

/// The facts of a folder. Without `truth.toml` they are those of the reference measurements of Linux 6.12.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// Version of the kernel whose block layer and schedulers ran.
    pub kernel: String,
    /// Ticks a second.
    #[serde(default)]
    pub hz: Option<u32>,
    /// How the driver asked for requests.
    #[serde(default)]
    pub driver: Driver,
    /// What instructions cost.
    #[serde(default)]
    pub cpu: Cpu,
    /// From the reset of the device to the first command of the first process, in ns. 0: the block layer ran in a harness, in
    /// which a look at the clock takes no time. Otherwise a whole kernel ran, in which it takes one nanosecond.
    #[serde(default = "first_command")]
    pub start_ns: Nanos,
    /// The same from each process to the next, in ns.
    #[serde(default)]
    pub process_gap_ns: Option<Nanos>,
    /// From a tick of the timer to the reset of the device, in ns.
    #[serde(default)]
    pub reset_after_tick_ns: Option<Nanos>,
    /// Where the tag maps were first searched.
    #[serde(default)]
    pub tag_start: Option<u32>,
}

/// How the driver of a single queue asked for requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// It took a request, and then looked whether the device had room, as SCSI disks do.
    Scsi,
    /// It asked while the device had room.
    Room,
    /// blk-mq.
    #[default]
    Mq,
}

/// What instructions cost in the measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cpu {
    /// Nothing.
    #[default]
    None,
}

/// When fio's first command reached the device in the reference measurements, in ns after the device's reset: the same in
/// every dispatch log.
fn first_command() -> Nanos {
    165_998_018
}

/// Later by this for each further process.
const EACH_PROCESS: Nanos = 14_006;

/// How long after a tick of its timer the kernel reset the device in the reference measurements. The slots that BFQ cuts off
/// by the clock show it: only with ticks at this place three logs of thousands of commands agree to the last one
/// (`docs/fidelity-bfq.md`).
const RESET: Nanos = 409_000;

impl Default for Taken {
    fn default() -> Taken {
        Taken {
            kernel: "6.12".into(),
            hz: None,
            driver: Driver::Mq,
            cpu: Cpu::None,
            start_ns: first_command(),
            process_gap_ns: None,
            reset_after_tick_ns: None,
            tag_start: None,
        }
    }
}

impl Taken {
    /// Parses `truth.toml`.
    ///
    /// # Errors
    /// Where the file is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Taken, Diagnostic> {
        let taken: Taken = toml::from_str(text).map_err(|e| {
            let span = e.span().unwrap_or(0..0);
            Diagnostic::at_span(file, text, span, e.message().to_string()).with_help(
                "it has kernel, and may have hz, driver (scsi, room, mq), cpu (none), start_ns, process_gap_ns, \
                 reset_after_tick_ns, tag_start",
            )
        })?;
        taken.profile().map_err(|why| Diagnostic::file(file, why))?;
        Ok(taken)
    }

    /// The same of a row that names its kernel.
    pub(super) fn by(&self, kernel: Option<&str>) -> Taken {
        let kernel = kernel.unwrap_or(&self.kernel).to_string();
        Taken { kernel, ..self.clone() }
    }

    /// Whether only the block layer ran, without a kernel around it.
    fn in_harness(&self) -> bool {
        self.start_ns == 0
    }

    /// The profile of its kernel, as it ran there.
    ///
    /// # Errors
    /// The kernel has no profile.
    pub(super) fn profile(&self) -> Result<KernelProfile, String> {
        let mut kernel = KernelProfile::find(&self.kernel).map_err(|e| e.to_string())?;
        kernel.hz = match self.hz {
            Some(hz) if !(1..=10_000).contains(&hz) => {
                return Err(format!("hz is {hz}, not a number of ticks from 1 to 10000"));
            }
            hz => hz.unwrap_or(kernel.hz),
        };
        // In the measurements each scheduler was selected after none.
        kernel.default_scheduler = "none".into();
        kernel.legacy.look_ahead = self.driver == Driver::Scsi;
        kernel.cpu.model = if self.in_harness() { CpuModel::Zero } else { CpuModel::Looks };
        Ok(kernel)
    }

    /// A scheduler's name in the rows, with the generation where the folder has one that its kernel never had.
    pub(super) fn scheduler<'a>(&self, name: &'a str) -> &'a str {
        // BFQ of the 3.14 folders is the last set of patches before it came to blk-mq.
        if name == "bfq" && self.in_harness() { "bfq@v7r3" } else { name }
    }

    /// When the device was reset, in ns after a tick.
    pub(super) fn reset(&self, run: &TruthRun) -> Nanos {
        let told = run.reset_after_tick_ns.or(self.reset_after_tick_ns);
        told.unwrap_or(if self.in_harness() { 0 } else { RESET })
    }

    /// From the reset to the first command of so many processes.
    pub(super) fn first_command(&self, processes: usize) -> Nanos {
        let each = self.process_gap_ns.unwrap_or(if self.in_harness() { 0 } else { EACH_PROCESS });
        self.start_ns + each * (processes as u64).saturating_sub(1)
    }

    /// Whether the kernel's first run of its queues came late: in the oldest measurements, which do not note the reset.
    pub(super) fn first_run_late(&self, run: &TruthRun) -> bool {
        !self.in_harness() && run.reset_after_tick_ns.or(self.reset_after_tick_ns).is_none()
    }

    /// In which order so many processes of a job began, as positions in the order in which fio starts them. The CPU
    /// scheduler of 4.12 decided it: all logs of 3, 4, 5 and 8 processes show that the first three come last, in reverse.
    pub(super) fn start_order(&self, processes: usize) -> Vec<u32> {
        let n = u32::try_from(processes).unwrap_or(0);
        if self.kernel == "4.12" { (3..n).chain((0..n.min(3)).rev()).collect() } else { Vec::new() }
    }

    /// What looks at the clock add before the first command.
    pub(super) fn first_looks(&self) -> Nanos {
        if self.in_harness() { 0 } else { iosched_host::FIRST_LOOKS }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn impossible_ticks_and_kernels_are_refused() {
        for (text, why) in [
            ("kernel = \"6.12\"\nhz = 0\n", "hz is 0"),
            ("kernel = \"9.x\"\n", "9.x"),
            ("kernel = \"6.12\"\nnonsense = 1\n", "nonsense"),
        ] {
            let e = Taken::parse("truth.toml", text).unwrap_err();
            assert!(e.message.contains(why), "{e}");
        }
    }

    /// Programs on files run under the kernel that the folder names, and the rest of it is not passed over.
    #[test]
    fn a_folder_of_programs_on_files_names_its_kernel() {
        let folder = || {
            let none = |_: &str| None;
            crate::validate::FileFolder::parse(("devices.toml", ""), ("results.json", "[]"), &none)
        };
        let with = |text: &str| folder().unwrap().taken(("truth.toml", text));
        assert!(with("kernel = \"4.12\"\n").is_ok());
        assert!(with("kernel = \"9.x\"\n").is_err());
        let e = with("kernel = \"6.12\"\nhz = 250\n").unwrap_err();
        assert!(e.message.contains("the kernel alone"), "{e}");
    }

    #[test]
    fn a_folder_says_how_it_was_taken() {
        let text = "kernel = \"3.14\"\nhz = 250\ndriver = \"scsi\"\ncpu = \"none\"\nstart_ns = 0\n";
        let taken = Taken::parse("truth.toml", text).unwrap();
        let kernel = taken.profile().unwrap();
        assert_eq!((kernel.version.as_str(), kernel.hz), ("3.14", 250));
        assert_eq!(kernel.cpu.model, CpuModel::Zero);
        assert_eq!(taken.scheduler("bfq"), "bfq@v7r3");
        assert_eq!(taken.first_command(3), 0);
        assert_eq!(Taken::default().first_command(3), 165_998_018 + 2 * 14_006);
    }

    #[test]
    fn a_wrong_fact_has_its_place() {
        for (text, place) in [
            ("kernel = \"3.14\"\ndriver = \"ide\"\n", Some(2)),
            ("kernel = \"3.14\"\nspeed = 1\n", Some(2)),
            ("kernel = \"9.9x\"\n", None),
        ] {
            let e = Taken::parse("truth.toml", text).unwrap_err();
            assert_eq!(e.file, "truth.toml");
            if let Some(line) = place {
                assert_eq!(e.line, line, "{e}");
            }
        }
    }
}
