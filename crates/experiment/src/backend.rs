//! The ways to run a trial, and what each is like.

use serde::{Deserialize, Serialize};

/// Who ran the trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// The simulator.
    #[default]
    Sim,
    /// The running kernel on an emulated disk.
    Emulated,
    /// The running kernel on a real disk.
    Real,
    /// The mock of the tests.
    Mock,
    /// Another tool's result, imported.
    Imported,
}

/// Which kernel schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsOn {
    /// The one of a kernel profile.
    Profile,
    /// The running one of a machine.
    Running,
}

/// Which disk serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// A device model.
    Model,
    /// A disk, file or directory of the machine, by its name.
    Named,
}

/// Which clock counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Virtual time.
    Virtual,
    /// Time of the wall clock.
    Wall,
}

/// What a backend is like. The rest of the program asks these and not for one of the backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// In experiment files, on the command line and in results.
    pub name: &'static str,
    /// Of its results, behind a comma.
    pub words: &'static str,
    /// Which kernel schedules.
    pub kernel: RunsOn,
    /// Which disk serves.
    pub disk: Disk,
    /// Which clock counts.
    pub clock: Clock,
    /// Whether it needs root, because it changes the machine.
    pub root: bool,
    /// Whether the same trial and seed give the same figures, which count as exact.
    pub deterministic: bool,
    /// Whether trials can run side by side.
    pub parallel: bool,
    /// Whether iosched runs its trials: an experiment can name it, and rounds are interleaved or share their seeds.
    pub ours: bool,
}

const SIM: Traits = Traits {
    name: "sim",
    words: "simulated",
    kernel: RunsOn::Profile,
    disk: Disk::Model,
    clock: Clock::Virtual,
    root: false,
    deterministic: true,
    parallel: true,
    ours: true,
};

const EMULATED: Traits = Traits {
    name: "emulated",
    words: "emulated disk",
    kernel: RunsOn::Running,
    disk: Disk::Model,
    clock: Clock::Wall,
    root: true,
    deterministic: false,
    parallel: false,
    ours: true,
};

const REAL: Traits = Traits { name: "real", words: "real disk", disk: Disk::Named, ..EMULATED };

/// It stands in for a live backend: its made-up figures vary, and its trials run in rounds.
const MOCK: Traits = Traits {
    name: "mock",
    words: "made-up figures",
    kernel: RunsOn::Profile,
    root: false,
    ..EMULATED
};

const IMPORTED: Traits =
    Traits { name: "imported", words: "imported", root: false, ours: false, ..REAL };

impl BackendKind {
    /// All.
    pub const ALL: [BackendKind; 5] = [
        BackendKind::Sim,
        BackendKind::Emulated,
        BackendKind::Real,
        BackendKind::Mock,
        BackendKind::Imported,
    ];

    /// What it is like.
    #[must_use]
    pub const fn traits(self) -> &'static Traits {
        match self {
            BackendKind::Sim => &SIM,
            BackendKind::Emulated => &EMULATED,
            BackendKind::Real => &REAL,
            BackendKind::Mock => &MOCK,
            BackendKind::Imported => &IMPORTED,
        }
    }

    /// Those that an experiment can name.
    pub fn nameable() -> impl Iterator<Item = BackendKind> {
        Self::ALL.into_iter().filter(|k| k.traits().ours)
    }

    /// The one of a name.
    #[must_use]
    pub fn find(name: &str) -> Option<BackendKind> {
        Self::ALL.into_iter().find(|k| k.traits().name == name)
    }

    /// Whether its trials run in virtual time on models.
    #[must_use]
    pub fn is_simulated(self) -> bool {
        self.traits().clock == Clock::Virtual
    }

    /// Whether the kernel is the running one of a machine.
    #[must_use]
    pub fn is_live(self) -> bool {
        self.traits().kernel == RunsOn::Running
    }

    /// Whether its disk is a device model.
    #[must_use]
    pub fn has_model(self) -> bool {
        self.traits().disk == Disk::Model
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results have the names in their JSON, too.
    #[test]
    fn every_backend_is_found_by_the_name_that_results_have() {
        for kind in BackendKind::ALL {
            assert_eq!(BackendKind::find(kind.traits().name), Some(kind));
            let json = serde_json::to_value(kind).expect("a name");
            assert_eq!(json, kind.traits().name);
        }
    }
}
