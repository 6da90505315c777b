//! Runs small helper programs with a time limit, so that they cannot hang us.

use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::error::Result;
use crate::load::child::Load;
use crate::sys;

/// A disk that answers no read within this time must not be written to.
const LIMIT: Duration = Duration::from_secs(15);

/// Runs a program of util-linux on an open device. Returns its status and output, `None` when it took too long. The
/// program inherits the device and gets its descriptor's number, so no name is looked up again.
///
/// # Errors
/// [`crate::Error::NoTool`] when it is not installed.
pub(super) fn ask(
    tool: &str,
    args: &[&str],
    device: &impl AsFd,
) -> Result<Option<(ExitStatus, String)>> {
    let mut command = Command::new(tool);
    command.args(args).arg(format!("/proc/self/fd/{}", device.as_fd().as_raw_fd()));
    command.env("LC_ALL", "C").stdout(Stdio::piped()).stderr(Stdio::null());
    sys::inherits(&mut command, device.as_fd());
    let mut child = Load::start(&mut command, "util-linux")?;
    let Some(mut out) = child.output() else { return Ok(None) };
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        // The output that was read before an error counts.
        let _ = out.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let status = child.wait(LIMIT, &mut || Ok(()))?;
    if status.is_none() {
        child.kill();
    }
    let text = reader.join().unwrap_or_default();
    Ok(status.map(|s| (s, text)))
}
