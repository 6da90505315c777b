//! I/O priorities (`ioprio_set(2)`).

use serde::{Deserialize, Serialize};

/// The four scheduling classes, in the kernel's numbering.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum PrioClass {
    /// Not set: schedulers derive best effort from the nice value.
    #[default]
    None = 0,
    /// Real time.
    Rt = 1,
    /// Best effort.
    Be = 2,
    /// Idle: served when no other process wants the disk.
    Idle = 3,
}

/// Class and level (0 is the most urgent, 7 the least).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct IoPrio {
    /// Class.
    pub class: PrioClass,
    /// Level 0..=7.
    pub level: u8,
}

impl IoPrio {
    /// Best effort 4: what a process of nice 0 gets.
    pub const DEFAULT_BE: IoPrio = IoPrio { class: PrioClass::Be, level: 4 };

    /// Parses `rt/0..7`, `be/0..7`, `idle`, `none`.
    #[must_use]
    pub fn parse(text: &str) -> Option<IoPrio> {
        let (class, level) = text.split_once('/').map_or((text, None), |(c, l)| (c, Some(l)));
        let class = match class {
            "rt" => PrioClass::Rt,
            "be" => PrioClass::Be,
            "idle" => PrioClass::Idle,
            "none" => PrioClass::None,
            _ => return None,
        };
        let level = match (class, level) {
            (PrioClass::Rt | PrioClass::Be, Some(l)) => l.parse::<u8>().ok().filter(|l| *l < 8)?,
            (PrioClass::Rt | PrioClass::Be, None) => 4,
            (_, None) => 0,
            (PrioClass::Idle, Some(l)) => l.parse::<u8>().ok().filter(|l| *l < 8)?,
            (PrioClass::None, Some(_)) => return None,
        };
        Some(IoPrio { class, level })
    }

    /// Itself, or where none was set best effort at the level of a nice value: (nice + 20) / 5.
    #[must_use]
    pub fn or_of_nice(self, nice: i8) -> IoPrio {
        match self.class {
            PrioClass::None => {
                let level = ((i16::from(nice) + 20) / 5).clamp(0, 7) as u8;
                IoPrio { class: PrioClass::Be, level }
            }
            _ => self,
        }
    }

    /// The kernel's "better of two" when a merge joins two priorities: none counts as best effort 4,
    /// the lower class number (then level) wins.
    #[must_use]
    pub fn best(self, other: IoPrio) -> IoPrio {
        let norm = |p: IoPrio| if p.class == PrioClass::None { IoPrio::DEFAULT_BE } else { p };
        if norm(self) <= norm(other) { self } else { other }
    }
}

impl std::fmt::Display for IoPrio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.class {
            PrioClass::None => f.write_str("none"),
            PrioClass::Rt => write!(f, "rt/{}", self.level),
            PrioClass::Be => write!(f, "be/{}", self.level),
            PrioClass::Idle => f.write_str("idle"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_set_follows_the_nice_value() {
        let of_nice = |nice| IoPrio::default().or_of_nice(nice).to_string();
        assert_eq!(
            [-20, -1, 0, 4, 5, 19].map(of_nice),
            ["be/0", "be/3", "be/4", "be/4", "be/5", "be/7"]
        );
        let idle = IoPrio { class: PrioClass::Idle, level: 0 };
        assert_eq!(idle.or_of_nice(-20), idle);
    }

    #[test]
    fn parses_what_it_prints_and_refuses_the_rest() {
        for p in ["rt/0", "rt/7", "be/0", "be/4", "idle", "none"] {
            assert_eq!(IoPrio::parse(p).unwrap().to_string(), p);
        }
        for p in ["", "be/8", "rt/-1", "BE/4", "idle/9", "none/1", "be/"] {
            assert_eq!(IoPrio::parse(p), None, "{p}");
        }
    }

    #[test]
    fn a_merge_keeps_the_more_urgent_priority() {
        let rt = IoPrio { class: PrioClass::Rt, level: 7 };
        let be0 = IoPrio { class: PrioClass::Be, level: 0 };
        assert_eq!(rt.best(be0), rt);
        assert_eq!(IoPrio::default().best(be0), be0);
    }
}
