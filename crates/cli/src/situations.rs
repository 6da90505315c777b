//! Situations that come with the program: `data/situations/*.toml`, experiments that are usable by name without a checkout.

/// An experiment by name.
pub(crate) struct Situation {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! situations {
    ($($name:literal),* $(,)?) => {
        &[$(Situation {
            name: $name,
            text: include_str!(concat!("../../../data/situations/", $name, ".toml")),
        }),*]
    };
}

/// All of them.
pub(crate) static SITUATIONS: &[Situation] = situations![
    "desktop-copy",
    "card-copy",
    "upgrade",
    "game",
    "commits",
    "checkpoint",
    "guests",
    "build",
    "nas",
    "video-scratch",
    "phone",
    "home-hub",
    "noisy-neighbour",
    "idle-backup",
    "swap",
    "scattered-archive",
];

impl Situation {
    /// The first comment of the file.
    pub(crate) fn summary(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }
}

/// The situation of a name, unless there is a file of that name.
pub(crate) fn find(name: &str) -> Option<&'static Situation> {
    SITUATIONS.iter().find(|s| s.name == name && !std::path::Path::new(name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_experiment::Experiment;

    #[test]
    fn situations_are_experiments_under_their_names() {
        for s in SITUATIONS {
            let (e, errors) = Experiment::read(s.name, s.text);
            assert!(errors.is_empty(), "{}: {errors:?}", s.name);
            assert!(e.name == s.name && !s.summary().is_empty() && s.text.contains("# Source: "));
            crate::choose::plan(&e).unwrap_or_else(|e| panic!("{}: {:?}", s.name, e.messages));
        }
        assert!(find("nas").is_some() && find("nass").is_none());
    }
}
