//! Policies of distributions and vendors, written down from their facts with the source of each.

/// Name, name of the file of rules, and text.
pub type Shipped = (&'static str, &'static str, &'static str);

macro_rules! shipped {
    ($($name:literal $number:literal),* $(,)?) => {
        &[$((
            $name,
            concat!($number, "-", $name, ".rules"),
            include_str!(concat!("../../../data/policy/distributions/", $number, "-", $name, ".rules")),
        )),*]
    };
}

/// All of them, by name.
pub static SHIPPED: &[Shipped] = shipped![
    "45drives" "61",
    "arch-wiki" "60",
    "armbian" "99",
    "bazzite" "60",
    "btrfs-progs" "64",
    "cachyos" "60",
    "endless" "50",
    "fedora" "60",
    "google-cloud" "99",
    "omarchy" "60",
    "opensuse" "60",
    "pop-os" "60",
    "pure-storage" "99",
    "rocknix" "60",
    "starlingx" "60",
];

/// A policy by name.
#[must_use]
pub fn shipped(name: &str) -> Option<&'static Shipped> {
    SHIPPED.iter().find(|s| s.0 == name)
}

/// The first line of its text: what it is.
#[must_use]
pub fn title(policy: &Shipped) -> &'static str {
    policy.2.lines().next().unwrap_or_default().trim_start_matches("# ")
}

/// Where its facts are from.
#[must_use]
pub fn origin(policy: &Shipped) -> &'static str {
    let line = policy.2.lines().nth(1).unwrap_or_default().trim_start_matches("# Source: ");
    line.split(" (read").next().unwrap_or(line)
}
