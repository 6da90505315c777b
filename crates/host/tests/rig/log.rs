//! Any text as a log of strace, for a test with fixed seeds and for a fuzz target.

use std::ops::ControlFlow;
use std::sync::Arc;

use iosched_host::HostError;
use iosched_workloads::strace::{Options, Replay, parse};

use super::host;

/// Reads a text, and plays what it takes for a log.
pub(crate) fn check(text: &str) {
    for (refuse, think, cores) in [(true, true, true), (false, false, true), (false, true, false)] {
        let options = Options { refuse_unknown: refuse, think };
        let log = match parse("fuzz.strace", text, options) {
            Ok(log) => log,
            Err(e) => {
                assert!(!e.message.is_empty());
                drop(e.to_string());
                continue;
            }
        };
        let calls = log.replayed();
        let replay = Replay::new(Arc::new(log));
        let mut h = host("mq-deadline", 2, 64 << 20, cores);
        let go_on = &mut |_| ControlFlow::Continue(());
        let result = match h.prepare(replay.preparation(None), go_on) {
            // Files that are larger than the disk, and names that are files and directories.
            Err(HostError::Program { .. }) => continue,
            Err(e) => panic!("{e}"),
            Ok(()) => h.run(replay.measured(), go_on),
        };
        match result {
            // A log may end in the middle: its tasks then wait for what it does not show.
            Ok(()) | Err(HostError::Program { .. } | HostError::Deadlock { .. }) => {}
            Err(e) => panic!("{e}"),
        }
        let differ = replay.answered_otherwise().map_or(0, |(n, _)| n);
        assert!(differ <= calls, "{differ} of {calls}");
    }
}
