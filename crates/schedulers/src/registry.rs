//! The registry: one line per scheduler.

use iosched_types::nearest::did_you_mean;

use crate::descriptor::{Descriptor, Generation, KernelVersion};

/// Every scheduler, in the order in which people list them. One line each.
#[rustfmt::skip]
pub static SCHEDULERS: &[&Descriptor] = &[
    &crate::noop::DESCRIPTOR,
    &crate::anticipatory::DESCRIPTOR,
    &crate::deadline::DESCRIPTOR,
    &crate::cfq::DESCRIPTOR,
    &crate::none::DESCRIPTOR,
    &crate::mq_deadline::DESCRIPTOR,
    &crate::kyber::DESCRIPTOR,
    &crate::bfq::DESCRIPTOR,
];

/// A scheduler name that means nothing; the message says what would.
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
    #[error("{family} does not exist in Linux {kernel}; it lived in {known}{hint}")]
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

/// The descriptor of a family (or one of its aliases).
///
/// # Errors
/// [`NameError::Family`] with the nearest name.
pub fn family(name: &str) -> Result<&'static Descriptor, NameError> {
    SCHEDULERS.iter().find(|d| d.name == name || d.aliases.contains(&name)).copied().ok_or_else(
        || {
            let near = did_you_mean(name, SCHEDULERS.iter().map(|d| d.name));
            let list = || SCHEDULERS.iter().map(|d| d.name).collect::<Vec<_>>().join(", ");
            let help = if near.is_empty() { format!("known are {}", list()) } else { near };
            NameError::Family { name: name.into(), help }
        },
    )
}

/// Resolves `family[@generation or kernel]` under a kernel profile of version `kernel`.
///
/// Without `@` the generation is the profile's own; a family the profile never had is refused.
/// With `@` any generation may be named, by its own name or by any kernel version in its range.
///
/// # Errors
/// See [`NameError`].
pub fn resolve(
    name: &str,
    kernel: KernelVersion,
) -> Result<(&'static Descriptor, &'static Generation), NameError> {
    let (fam, wanted) = name.split_once('@').map_or((name, None), |(f, g)| (f, Some(g)));
    let d = family(fam)?;
    let known = || {
        let list: Vec<String> = d
            .generations
            .iter()
            .map(|g| {
                if g.name == g.range() { g.range() } else { format!("{} ({})", g.name, g.range()) }
            })
            .collect();
        list.join(", ")
    };
    match wanted {
        Some(w) => {
            let version = KernelVersion::parse(w);
            d.generations
                .iter()
                .find(|g| g.name.eq_ignore_ascii_case(w))
                .or_else(|| d.generations.iter().find(|g| version.is_some_and(|v| g.covers(v))))
                .map(|g| (d, g))
                .ok_or_else(|| NameError::Generation {
                    family: d.name.into(),
                    generation: w.into(),
                    known: known(),
                })
        }
        None => d.generations.iter().find(|g| g.covers(kernel)).map(|g| (d, g)).ok_or_else(|| {
            NameError::NotInKernel {
                family: d.name.into(),
                kernel: kernel.to_string(),
                known: known(),
                hint: d.generations.last().map_or_else(String::new, |g| {
                    format!("; write {}@{} to run that generation", d.name, g.name)
                }),
            }
        }),
    }
}
