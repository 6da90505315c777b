//! What a user's word names.

use std::path::{Path, PathBuf};

use super::file;
use crate::discover;
use crate::error::{Error, Result};
use crate::root::SysRoot;

/// The path that a name stands for: a path, or the kernel's name of a device.
///
/// # Errors
/// [`Error::Input`] for a name that could be both, [`Error::NoDevice`] for one that is neither.
pub fn resolve(root: &SysRoot, name: &str) -> Result<PathBuf> {
    if name.is_empty() {
        return Err(Error::input("a device without a name", "name a disk or a file on one"));
    }
    if name.contains('/') || name == "." || name == ".." {
        return Ok(name.into());
    }
    let device = root.exists(&format!("/sys/class/block/{name}/dev"));
    let file = Path::new(name).symlink_metadata().is_ok();
    match (device, file) {
        (true, true) => {
            let message = format!("\"{name}\" is a device and a file here");
            Err(Error::input(message, format!("write /dev/{name} or ./{name}")))
        }
        (true, false) => Ok(Path::new("/dev").join(name)),
        (false, true) => Ok(Path::new(".").join(name)),
        (false, false) if file::is_our_name(name) => Ok(Path::new(".").join(name)),
        (false, false) => Err(discover::no_device(root, name)),
    }
}

/// The size that an experiment is planned with: that of the device or file, or of the file that will be made.
///
/// # Errors
/// As [`resolve`]; [`Error::Io`].
pub fn planned_size(name: &str, size: Option<u64>) -> Result<u64> {
    use std::io::{Seek, SeekFrom};
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    let path = resolve(&SysRoot::default(), name)?;
    let exists = path.symlink_metadata().is_ok();
    if let (false, Some(size)) = (exists, size) {
        file::check_name(&path)?;
        return Ok(size);
    }
    if !exists && file::is_our_name(&path.to_string_lossy()) {
        let message = format!("there is no file {}", path.display());
        return Err(Error::input(message, "give --size to have it made"));
    }
    if !exists && !path.starts_with("/dev") {
        let folder = path.parent().unwrap_or(&path).display();
        let help = format!(
            "iosched makes files that are named DIR/iosched-NAME.img: --device {folder}/iosched-1.img --size 8G"
        );
        return Err(Error::input(format!("there is no file {}", path.display()), help));
    }
    let io = |e| Error::io("reading the size of", &path, e);
    // A pipe by this name must not hang us.
    let flags = nix::libc::O_NONBLOCK;
    let mut file =
        std::fs::OpenOptions::new().read(true).custom_flags(flags).open(&path).map_err(io)?;
    let kind = file.metadata().map_err(io)?.file_type();
    if kind.is_dir() {
        // Commands start from it, with any content.
        return Ok(MAX_SIZE);
    }
    if !kind.is_block_device() && !kind.is_file() {
        return Err(no_target(name));
    }
    file.seek(SeekFrom::End(0)).map_err(io)
}

/// Larger than any disk.
const MAX_SIZE: u64 = 1 << 62;

/// What is neither device, file nor folder.
pub(super) fn no_target(name: &str) -> Error {
    let message = format!("{name} is neither a block device nor a file");
    Error::input(message, "name a disk, or a file or folder on one")
}
