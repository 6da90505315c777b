//! Readers and writers beside a measured program, in the notation of the S suite.

use std::fmt;

/// How the load reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Through files, one after another.
    #[default]
    Sequential,
    /// Through files, at random.
    Random,
    /// From the device itself, direct, one after another.
    Raw,
}

/// Readers and writers: `0r`, `10r-seq`, `10r-rand`, `5r5w-seq`, `5r5w-rand`, `10r-raw`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// Readers.
    pub readers: u32,
    /// Writers.
    pub writers: u32,
    /// How.
    pub access: Access,
}

/// More processes than this measure the CPU.
const MAX: u32 = 256;

impl Mix {
    /// The loads that comparisons use.
    pub const USUAL: [&'static str; 6] =
        ["0r", "10r-seq", "10r-rand", "5r5w-seq", "5r5w-rand", "10r-raw"];

    /// How many there may be.
    pub const BOUNDS: &'static str = "readers and writers are 0 to 256 each";

    /// Whether a text is none only because there would be too many of them. Numbers may have any length.
    #[must_use]
    pub fn is_too_large(text: &str) -> bool {
        let (counts, how) = text.split_once('-').unwrap_or((text, ""));
        let large = |n: &str| n.parse::<u32>().map_or(true, |n| n > MAX);
        let number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
        let Some((readers, rest)) = counts.split_once('r') else { return false };
        let writers = rest.strip_suffix('w');
        let known = matches!(how, "seq" | "rand" | "raw");
        let right = number(readers) && (rest.is_empty() || writers.is_some_and(number));
        known && right && (large(readers) || writers.is_some_and(large))
    }

    /// Reads the notation; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Mix> {
        let (counts, how) = text.split_once('-').unwrap_or((text, ""));
        let (readers, rest) = counts.split_once('r')?;
        let readers: u32 = readers.parse().ok()?;
        let writers: u32 = match rest {
            "" => 0,
            w => w.strip_suffix('w')?.parse().ok()?,
        };
        let access = match how {
            "seq" => Access::Sequential,
            "rand" => Access::Random,
            // Raw writers would destroy the file system that the command starts from.
            "raw" if writers == 0 => Access::Raw,
            "" if readers + writers == 0 => Access::Sequential,
            _ => return None,
        };
        (readers <= MAX && writers <= MAX).then_some(Mix { readers, writers, access })
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}r", self.readers)?;
        if self.writers > 0 {
            write!(f, "{}w", self.writers)?;
        }
        match (self.readers + self.writers, self.access) {
            (0, _) => Ok(()),
            (_, Access::Sequential) => f.write_str("-seq"),
            (_, Access::Random) => f.write_str("-rand"),
            (_, Access::Raw) => f.write_str("-raw"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_notation_reads_back() {
        for text in Mix::USUAL {
            assert_eq!(Mix::parse(text).unwrap().to_string(), text);
        }
        for bad in
            ["", "r", "10r", "10r-", "-1r-seq", "5r5w-raw", "10w-seq", "9999r-seq", "5r5-seq"]
        {
            assert_eq!(Mix::parse(bad), None, "{bad}");
        }
        for (text, large) in [
            ("300r-seq", true),
            ("5r99999999999w-rand", true),
            ("256r-seq", false),
            ("300w-seq", false),
            ("300r5-seq", false),
            ("300r-x", false),
        ] {
            assert_eq!(Mix::is_too_large(text), large, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[0-9rw-]{0,12}(seq|rand|raw)?") {
            let _ = Mix::parse(&text);
        }
    }
}
