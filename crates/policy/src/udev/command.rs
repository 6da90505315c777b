//! Commands of `RUN`, as far as they write files of a disk.

/// Whether a command may set files of a queue.
pub(super) fn sets_queue(command: &str) -> bool {
    command.contains("/sys/") || command.contains("scheduler")
}

/// The files of a disk that a command writes, with the values: `sh -c 'echo bfq > /sys/block/sda/queue/scheduler'`. `None`: it may
/// write others, too.
pub(super) fn writes(command: &str, disk: &str) -> Option<Vec<(String, String)>> {
    let mut out = Vec::new();
    for part in command.split([';', '&']).filter(|p| sets_queue(p)) {
        out.extend(Some(write(part, disk)?));
    }
    Some(out)
}

fn write(command: &str, disk: &str) -> Option<(String, String)> {
    let (_, rest) = command.split_once("echo ").or_else(|| command.split_once("printf "))?;
    let tee = || rest.split_once("| tee ").or_else(|| rest.split_once("|tee "));
    let (value, rest) = rest.split_once('>').or_else(tee)?;
    let plain = |s: &str| s.trim().trim_matches(['\'', '"']).trim_end_matches("\\n").to_string();
    // `bfq 1> FILE`: a descriptor stands apart from the value and touches the sign.
    let value = value.strip_suffix(" 1").unwrap_or(value);
    let value = plain(value.trim().trim_start_matches("-n "));
    let path = plain(rest.trim_start_matches('>').trim().split([' ', '|']).next()?);
    let path = path.replace("$sys", "/sys").replace("%S", "/sys");
    let own = format!("/sys/block/{disk}/");
    let class = format!("/sys/class/block/{disk}/");
    let by_path = path.strip_prefix("/sys%p/").or_else(|| path.strip_prefix("/sys$devpath/"));
    let file = path.strip_prefix(&own).or_else(|| path.strip_prefix(&class)).or(by_path)?;
    Some((file.to_string(), value))
}
