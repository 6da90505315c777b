//! Outputs with something before each line: a host, or a time and a host, of what collected them (pdsh, journald, syslog),
//! or the mark of a mail that quotes them.

/// A text without the `> ` of a mail that quotes it. `None` where most lines have none. Lines keep their numbers.
pub(super) fn unquoted(text: &str) -> Option<String> {
    let bare = |l: &'_ str| l.trim_start().strip_prefix('>').map(str::len);
    let full = || text.lines().filter(|l| !l.trim().is_empty());
    let quoted = full().filter(|l| bare(l).is_some()).count();
    if quoted == 0 || 2 * quoted <= full().count() {
        return None;
    }
    let lines = text.lines().map(|l| {
        let rest = bare(l).map_or(l, |n| &l[l.len() - n..]);
        rest.strip_prefix(' ').unwrap_or(rest)
    });
    Some(lines.flat_map(|l| [l, "\n"]).collect())
}

/// The texts of a collected output by host, in the order in which these appear. `None` where not every line has a host.
pub(super) fn apart(text: &str) -> Option<Vec<(String, String)>> {
    let mut hosts: Vec<(String, String)> = Vec::new();
    let mut n = 0;
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        let (host, rest) = plain(line).or_else(|| logged(line))?;
        let place = match hosts.iter().position(|h| h.0 == host) {
            Some(place) => place,
            None => {
                hosts.push((host.into(), String::new()));
                hosts.len() - 1
            }
        };
        hosts[place].1.push_str(rest);
        hosts[place].1.push('\n');
        n += 1;
    }
    // Every host has several lines: a list of `name: value` has another name on each.
    (!hosts.is_empty() && n >= 4 * hosts.len()).then_some(hosts)
}

fn is_host(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-._@".contains(c))
}

/// `host1: text`, `host1 | text`, `[host1] text`.
fn plain(line: &str) -> Option<(&str, &str)> {
    if let Some((host, rest)) = line.strip_prefix('[').and_then(|l| l.split_once(']')) {
        return is_host(host).then(|| (host, rest.strip_prefix(' ').unwrap_or(rest)));
    }
    let end = line.find([':', '|'])?;
    let (host, rest) = (line[..end].trim_end(), &line[end + 1..]);
    let rest = match rest.strip_prefix([' ', '\t']) {
        Some(rest) => rest,
        None if rest.is_empty() => rest,
        None => return None,
    };
    is_host(host).then_some((host, rest))
}

/// `Nov 28 02:31:39 host1 program[12]: text`, `2026-11-28T02:31:39.123+00:00 host1 program: text`.
fn logged(line: &str) -> Option<(&str, &str)> {
    let (rest, clock) = match line.split_once(' ')? {
        (stamp, rest) if stamp.contains('T') && stamp.starts_with(|c: char| c.is_ascii_digit()) => {
            (rest, stamp)
        }
        (month, rest) if month.len() == 3 => {
            let (_, rest) = rest.trim_start().split_once(' ')?;
            let (clock, rest) = rest.split_once(' ')?;
            (rest, clock)
        }
        _ => return None,
    };
    let (host, rest) = rest.split_once(' ')?;
    let (_, rest) = rest.split_once(": ").or_else(|| Some((rest.strip_suffix(':')?, "")))?;
    (clock.matches(':').count() >= 2 && is_host(host)).then_some((host, rest))
}
