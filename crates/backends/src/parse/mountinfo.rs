//! `/proc/self/mountinfo`: file systems, and where they are mounted.

use crate::root::DevNum;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Device number of the file system.
    pub dev: DevNum,
    /// Where it is mounted.
    pub point: String,
    /// Type: `ext4`, `btrfs`, `overlay`, `fuse.x`.
    pub fstype: String,
    /// Source: `/dev/sda1`, `overlay`, …
    pub source: String,
    /// Mount options, then super block options, joined by commas.
    pub options: String,
}

impl Mount {
    /// A super block or mount option's value: `upperdir` of an overlay.
    #[must_use]
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options
            .split(',')
            .find_map(|o| o.split_once('=').filter(|(k, _)| *k == key))
            .map(|o| o.1)
    }
}

/// Reads the file; lines that make no sense are left out.
#[must_use]
pub fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let right: Vec<&str> = right.split(' ').collect();
    Some(Mount {
        dev: DevNum::parse(left.get(2)?)?,
        point: unescape(left.get(4)?),
        fstype: (*right.first()?).to_string(),
        source: unescape(right.get(1)?),
        options: format!(
            "{},{}",
            unescape(left.get(5)?),
            unescape(right.get(2).copied().unwrap_or_default())
        ),
    })
}

/// `\040` and its like back to characters.
pub(crate) fn unescape(word: &str) -> String {
    let bytes = word.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let octal = bytes
            .get(i + 1..i + 4)
            .filter(|d| bytes[i] == b'\\' && d.iter().all(|c| (b'0'..b'8').contains(c)));
        if let Some(d) = octal {
            out.push(d.iter().fold(0u8, |a, c| a.wrapping_mul(8).wrapping_add(c - b'0')));
            i += 4;
        } else {
            out.push(bytes[i]);
            i += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
        61 27 0:41 / /mnt/a\\040b rw,noatime shared:5 - btrfs /dev/loop5p2 rw,subvolid=5,subvol=/\n\
        62 61 0:42 / /mnt/a\\040b/mg rw - overlay overlay rw,lowerdir=/l,upperdir=/mnt/a\\040b/u,workdir=/w\n";

    #[test]
    fn reads_real_lines() {
        let mounts = parse(REAL);
        assert_eq!(mounts.len(), 3);
        assert_eq!((&*mounts[1].point, &*mounts[1].source), ("/mnt/a b", "/dev/loop5p2"));
        assert_eq!(mounts[2].option("upperdir"), Some("/mnt/a b/u"));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "([0-9:/ \\\\a-z-]{0,60}\n){0,5}") {
            let _ = parse(&text);
        }
    }
}
