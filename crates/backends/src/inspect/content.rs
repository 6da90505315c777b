//! The content of a device: libblkid's answer, and whether the places that were read are blank.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::Finding;
use super::limited::ask;
use crate::error::Error;

/// Read at either end.
const END: u64 = 1 << 20;
/// Read at each place between the ends.
const PIECE: u64 = 4096;
/// Places between the ends.
const PLACES: u64 = 64;

/// Signatures of file systems, volume managers, arrays and partition tables, by libblkid's own programs. If these are
/// missing or do not answer, nothing is known, and that counts as a finding.
#[must_use]
pub fn marks(device: &File) -> Vec<Finding> {
    let unknown = |why: &str| vec![Finding::unknown(format!("what it holds is unknown: {why}"))];
    // 2: nothing. 8: signatures that contradict each other.
    let (status, text) = match ask("blkid", &["-p", "-o", "export"], device) {
        Ok(Some(answer)) => answer,
        Ok(None) => return unknown("blkid does not come to an end"),
        Err(Error::NoTool { .. }) => return unknown("blkid (util-linux) is not installed"),
        Err(e) => return unknown(&e.to_string()),
    };
    let mut names = exported(&text);
    // wipefs sees every signature; blkid stops at one.
    match ask("wipefs", &["--no-act", "--json"], device) {
        Ok(Some((status, text))) if status.success() => names.extend(listed(&text)),
        _ => {}
    }
    if !names.is_empty() {
        let names: Vec<String> = names.into_iter().collect();
        return vec![Finding::content(format!("it holds {}", names.join(", ")))];
    }
    match status.code() {
        Some(2) => Vec::new(),
        Some(0) => vec![Finding::content("it holds something that blkid knows")],
        Some(8) => vec![Finding::content("it holds several things that contradict each other")],
        _ => unknown(&format!("blkid ended with {status}")),
    }
}

/// `KEY=value` lines of `blkid -o export`: what it is, and its label.
fn exported(text: &str) -> BTreeSet<String> {
    let value = |key: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('='));
        line.filter(|v| !v.is_empty())
    };
    let mut names = BTreeSet::new();
    if let Some(kind) = value("TYPE") {
        names.insert(word(kind));
    }
    if let Some(kind) = value("PTTYPE") {
        names.insert(format!("a {kind} partition table"));
    }
    names
}

/// Types in the JSON of `wipefs`.
fn listed(text: &str) -> BTreeSet<String> {
    let json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let all = json["signatures"].as_array().into_iter().flatten();
    all.filter_map(|s| s["type"].as_str()).map(word).collect()
}

/// libblkid's name, with an explanation where the name is not clear.
fn word(kind: &str) -> String {
    match kind {
        "gpt" | "dos" | "PMBR" | "mac" | "sun" | "bsd" | "sgi" => {
            format!("a {kind} partition table")
        }
        "LVM2_member" => "an LVM physical volume (LVM2_member)".into(),
        "linux_raid_member" => "a member of a Linux RAID (linux_raid_member)".into(),
        "swap" | "swsuspend" => format!("swap space ({kind})"),
        "ext2" | "ext3" | "ext4" | "xfs" | "btrfs" | "vfat" | "ntfs" | "f2fs" => {
            format!("a file system ({kind})")
        }
        other => format!("data of {other}"),
    }
}

/// Whether the ends and places spread over the device are zero. Data without a mark is still data.
#[must_use]
pub fn not_blank(device: &File, bytes: u64) -> Vec<Finding> {
    let mut buffer = vec![0u8; END as usize];
    let mut full = Vec::new();
    for (at, length) in places(bytes) {
        let buffer = &mut buffer[..length as usize];
        match device.read_exact_at(buffer, at) {
            Ok(()) => full.extend(buffer.iter().position(|b| *b != 0).map(|i| at + i as u64)),
            Err(e) => {
                let what = format!("what it holds is unknown: reading byte {at}: {e}");
                return vec![Finding::unknown(what)];
            }
        }
    }
    let Some(first) = full.first() else { return Vec::new() };
    let what = format!(
        "it is not blank: there is data at byte {first} ({} of {} places looked at)",
        full.len(),
        places(bytes).len()
    );
    vec![Finding::content(what)]
}

/// The places that are read: the first and the last MiB, and places of 4 KiB spread evenly between. A small device is
/// read as a whole.
fn places(bytes: u64) -> Vec<(u64, u64)> {
    if bytes <= 2 * END + PLACES * PIECE {
        let starts = (0..bytes).step_by(END as usize);
        return starts.map(|at| (at, END.min(bytes - at))).collect();
    }
    let mut places = vec![(0, END)];
    let between = bytes - 2 * END - PIECE;
    // In wide arithmetic: a device may have exabytes.
    let at = |i: u64| (u128::from(between) * u128::from(i) / u128::from(PLACES - 1)) as u64;
    places.extend((0..PLACES).map(|i| (END + at(i) / 512 * 512, PIECE)));
    places.push((bytes - END, END));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_cover_both_ends_and_stay_inside() {
        for bytes in [0, 1, 512, END, 3 * END, 64 << 20, 123_456_789_504, u64::MAX / 2] {
            let all = places(bytes);
            assert!(all.iter().all(|(at, n)| at + n <= bytes), "{bytes}");
            let covered: u64 = all.iter().map(|p| p.1).sum();
            if bytes < 2 * END {
                assert_eq!(covered, bytes);
            } else {
                assert_eq!((all[0].0, all[0].1), (0, END));
                assert_eq!(all.last().map(|(at, n)| at + n), Some(bytes));
            }
            assert!(all.windows(2).all(|w| w[0].0 < w[1].0), "{bytes}: in order");
        }
    }

    #[test]
    fn one_byte_at_any_place_is_seen() {
        let file = tempfile::tempfile().unwrap();
        let bytes = 64 << 20;
        file.set_len(bytes).unwrap();
        assert!(not_blank(&file, bytes).is_empty());
        for (at, n) in [places(bytes)[0], places(bytes)[1], places(bytes)[40], places(bytes)[65]] {
            file.write_all_at(&[1], at + n - 1).unwrap();
            let found = not_blank(&file, bytes);
            assert!(found[0].what.contains(&format!("byte {}", at + n - 1)), "{found:?}");
            file.write_all_at(&[0], at + n - 1).unwrap();
        }
    }

    #[test]
    fn the_programs_are_read() {
        let export = "DEVNAME=/dev/x\nLABEL=home\nTYPE=ext4\nPTTYPE=dos\n";
        let names: Vec<String> = exported(export).into_iter().collect();
        assert_eq!(names, ["a dos partition table", "a file system (ext4)"]);
        let json = r#"{"signatures": [{"device":"x","type":"LVM2_member"},{"type":"gpt"}]}"#;
        assert_eq!(listed(json).len(), 2);
        for junk in ["", "{", "[]", "{\"signatures\":3}"] {
            assert!(listed(junk).is_empty() && exported(junk).is_empty());
        }
    }
}
