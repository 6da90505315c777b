//! The registry: schedulers by name.

use std::sync::OnceLock;

use iosched_types::nearest::did_you_mean;

use crate::descriptor::{Descriptor, Generation, KernelVersion, TunableError};

/// Every scheduler, in the order of the list in `lib.rs`.
pub static SCHEDULERS: &[&Descriptor] = crate::DESCRIPTORS;

/// An unknown scheduler name. The message says which names there are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No such family.
    #[error("unknown scheduler \"{name}\"; {help}")]
    Family {
        /// The family asked for.
        name: String,
        /// Nearest name, or the list.
        help: String,
    },
    /// The family has no such generation.
    #[error("{family} has no generation \"{generation}\"; it has {known}")]
    Generation {
        /// Family.
        family: String,
        /// What followed the `@`.
        generation: String,
        /// The generations there are.
        known: String,
    },
    /// The kernel profile never had the family.
    #[error("{family} does not exist in Linux {kernel}; {known}{hint}")]
    NotInKernel {
        /// Family.
        family: String,
        /// Kernel profile.
        kernel: String,
        /// Where it lived.
        known: String,
        /// How to ask for it anyway.
        hint: String,
    },
}

/// The schedulers that can be named: those of this program, and any that were added.
#[derive(Clone, Debug)]
pub struct Registry(Vec<&'static Descriptor>);

impl Default for Registry {
    fn default() -> Self {
        Registry(SCHEDULERS.to_vec())
    }
}

impl Registry {
    /// Those of this program.
    #[must_use]
    pub fn builtin() -> &'static Registry {
        static BUILTIN: OnceLock<Registry> = OnceLock::new();
        BUILTIN.get_or_init(Registry::default)
    }

    /// Adds one. A later one of the same name takes the place of an earlier one.
    pub fn add(&mut self, descriptor: &'static Descriptor) {
        self.0.retain(|d| d.name != descriptor.name);
        self.0.push(descriptor);
    }

    /// All of them, in the order in which people list them.
    pub fn families(&self) -> impl Iterator<Item = &'static Descriptor> + '_ {
        self.0.iter().copied()
    }

    /// The descriptor of a family (or one of its aliases).
    ///
    /// # Errors
    /// [`NameError::Family`] with the nearest name.
    pub fn family(&self, name: &str) -> Result<&'static Descriptor, NameError> {
        let found = self.families().find(|d| d.name == name || d.aliases.contains(&name));
        found.ok_or_else(|| {
            let near = did_you_mean(name, self.families().map(|d| d.name));
            let list = || self.families().map(|d| d.name).collect::<Vec<_>>().join(", ");
            let help = if near.is_empty() { format!("known are {}", list()) } else { near };
            NameError::Family { name: name.into(), help }
        })
    }

    /// Resolves `family[@generation or kernel]` under a kernel profile of version `kernel`.
    ///
    /// Without `@` the generation is the profile's own; a family the profile never had is refused.
    /// With `@` any generation may be named, by its own name or by any kernel version in its range.
    ///
    /// # Errors
    /// See [`NameError`].
    pub fn resolve(
        &self,
        name: &str,
        kernel: KernelVersion,
    ) -> Result<(&'static Descriptor, &'static Generation), NameError> {
        let (family, wanted) = name.split_once('@').map_or((name, None), |(f, g)| (f, Some(g)));
        let d = self.family(family)?;
        let found = match wanted {
            Some(w) => named(d, w).ok_or_else(|| NameError::Generation {
                family: d.name.into(),
                generation: w.into(),
                known: known(d),
            }),
            None => d.generations.iter().find(|g| g.covers(kernel)).ok_or_else(|| {
                NameError::NotInKernel {
                    family: d.name.into(),
                    kernel: kernel.to_string(),
                    known: match d.generations.iter().any(|g| d.origin(g).is_none()) {
                        true => format!("it lived in {}", known(d)),
                        false => format!("there is {}", known(d)),
                    },
                    hint: hint(d),
                }
            }),
        };
        found.map(|g| (d, g))
    }

    /// Checks one tunable of a generation; a name that only other families have is refused with theirs.
    ///
    /// # Errors
    /// See [`TunableError`].
    pub fn check_tunable(
        &self,
        d: &Descriptor,
        generation: u8,
        name: &str,
        value: i64,
    ) -> Result<(), TunableError> {
        d.check_tunable(generation, name, value).map_err(|mut e| {
            if let TunableError::Unknown { owners, .. } = &mut e
                && owners.is_empty()
            {
                let has = |d: &&Descriptor| d.tunables.iter().any(|t| t.name == name);
                owners.extend(self.families().filter(has).map(|d| d.name.to_string()));
            }
            e
        })
    }
}

/// The generation of this name, or of a kernel version in its range.
fn named(d: &'static Descriptor, wanted: &str) -> Option<&'static Generation> {
    let version = KernelVersion::parse(wanted);
    let by_name = d.generations.iter().find(|g| g.name.eq_ignore_ascii_case(wanted));
    by_name.or_else(|| d.generations.iter().find(|g| version.is_some_and(|v| g.covers(v))))
}

/// How to run a family under a kernel that never had it. The newest generation of the kernel's own is nearest; of several
/// releases of a patch for the same kernels the first is the one that counts without a name.
fn hint(d: &Descriptor) -> String {
    let newest = d.generations.last();
    let same = |g: &&Generation| newest.is_some_and(|n| (n.first, n.last) == (g.first, g.last));
    let of = |g: &Generation| match d.origin(g) {
        None => format!("; write {}@{} to run that generation", d.name, g.name),
        Some(_) => format!(
            "; write {}@{} to run release {1} on this kernel's block layer all the same",
            d.name, g.name
        ),
    };
    d.generations.iter().find(same).map_or_else(String::new, of)
}

/// The generations with their kernels, for messages.
fn known(d: &Descriptor) -> String {
    let of = |g: &Generation| match g.range() {
        // The release of a patch has a number of its own, which looks like a kernel's.
        range if d.origin(g).is_some() && KernelVersion::parse(g.name).is_some() => {
            format!("release {} for Linux {range}", g.name)
        }
        range if g.name == range => range,
        range => format!("{} ({range})", g.name),
    };
    d.generations.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// [`Registry::family`] among those of this program.
///
/// # Errors
/// The same.
pub fn family(name: &str) -> Result<&'static Descriptor, NameError> {
    Registry::builtin().family(name)
}

/// [`Registry::resolve`] among those of this program.
///
/// # Errors
/// The same.
pub fn resolve(
    name: &str,
    kernel: KernelVersion,
) -> Result<(&'static Descriptor, &'static Generation), NameError> {
    Registry::builtin().resolve(name, kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunable_of_somebody_else_says_whose_it_is() {
        let refused = |scheduler: &str, name: &str| {
            let (d, g) = resolve(scheduler, KernelVersion(6, 12, 0)).unwrap();
            Registry::builtin().check_tunable(d, g.index, name, 1).unwrap_err().to_string()
        };
        for (scheduler, name, owner) in [
            ("bfq@6.12", "slice_sync", "\"slice_sync\"; cfq has one; it has fifo_expire_sync"),
            ("bfq@6.12", "quantum", "; bfq@v7r3 has one; it has"),
            ("bfq@6.12", "wr_coeff", "; bfq@v7r3 has one; it has"),
            ("kyber", "fifo_batch", "; deadline and mq-deadline have one; it has read_lat_nsec"),
            ("bfq", "nonsense", "\"nonsense\"; it has"),
        ] {
            let text = refused(scheduler, name);
            assert!(text.contains(owner), "{text}");
        }
    }

    #[test]
    fn a_scheduler_that_is_added_is_found_and_takes_the_place_of_its_name() {
        static OWN: Descriptor =
            Descriptor { name: "own", aliases: &["mine"], ..crate::none::DESCRIPTOR };
        static NONE: Descriptor = Descriptor { summary: "another", ..crate::none::DESCRIPTOR };
        let mut registry = Registry::default();
        let before = registry.families().count();
        assert!(registry.family("own").is_err());
        registry.add(&OWN);
        assert_eq!(registry.resolve("mine@3.13", KernelVersion(6, 12, 0)).unwrap().0.name, "own");
        registry.add(&NONE);
        assert_eq!(registry.families().count(), before + 1);
        assert_eq!(registry.family("none").unwrap().summary, "another");
        assert_eq!(Registry::builtin().families().count(), before, "only this one has it");
    }
}
