//! The few system calls that have no safe wrapper. Everything unsafe of this crate is in this module.
#![allow(unsafe_code)]

pub(crate) mod memory;
pub(crate) mod ring;
pub(crate) mod transfer;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;
use nix::sys::signal::Signal;

const LOOP_CTL_ADD: libc::c_ulong = 0x4C80;
const LOOP_CTL_REMOVE: libc::c_ulong = 0x4C81;
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
const BTRFS_IOC_FS_INFO: libc::c_ulong = 0x8400_941f;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64` of `linux/loop.h`.
#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl LoopInfo64 {
    fn zeroed() -> Self {
        LoopInfo64 {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            sizelimit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags: 0,
            file_name: [0; 64],
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        }
    }
}

/// `struct loop_config` of `linux/loop.h`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Opens `/dev/loop-control`.
///
/// # Errors
/// The system's.
pub(crate) fn loop_control() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/loop-control")
}

/// Creates the loop device of a number.
///
/// # Errors
/// `EEXIST` when there is one.
pub(crate) fn loop_add(control: &File, number: u32) -> io::Result<()> {
    // SAFETY: LOOP_CTL_ADD takes the number by value and touches no memory of ours.
    check(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_ADD, libc::c_long::from(number)) })
        .map(|_| ())
}

/// Removes an unbound loop device.
///
/// # Errors
/// `EBUSY` while it is bound or open.
pub(crate) fn loop_remove(control: &File, number: u32) -> io::Result<()> {
    // SAFETY: LOOP_CTL_REMOVE takes the number by value and touches no memory of ours.
    check(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_REMOVE, libc::c_long::from(number)) })
        .map(|_| ())
}

/// Binds a loop device to a file with direct I/O.
///
/// # Errors
/// The system's.
pub(crate) fn loop_bind(device: &File, file: impl AsFd, name: &str, block: u32) -> io::Result<()> {
    let mut info = LoopInfo64::zeroed();
    info.flags = LO_FLAGS_DIRECT_IO;
    for (slot, byte) in info.file_name.iter_mut().take(63).zip(name.bytes()) {
        *slot = byte;
    }
    let fd = u32::try_from(file.as_fd().as_raw_fd()).map_err(io::Error::other)?;
    let config = LoopConfig { fd, block_size: block, info, reserved: [0; 8] };
    // SAFETY: `config` is a live `struct loop_config` of the kernel's layout, only read by the call.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, std::ptr::from_ref(&config)) })
        .map(|_| ())
}

/// The name that [`loop_bind`] gave to a loop device.
///
/// # Errors
/// `ENXIO` when it is not bound.
pub(crate) fn loop_name(device: &File) -> io::Result<String> {
    let mut info = LoopInfo64::zeroed();
    // SAFETY: `info` is a live `struct loop_info64` of the kernel's layout, written by the call.
    check(unsafe {
        libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, std::ptr::from_mut(&mut info))
    })?;
    let end = info.file_name.iter().position(|b| *b == 0).unwrap_or(info.file_name.len());
    Ok(String::from_utf8_lossy(&info.file_name[..end]).into_owned())
}

/// What a bound loop device lies on: device number (a packed one) and inode of the file, and, for a block
/// device, that device's own number; 0 otherwise.
///
/// # Errors
/// `ENXIO` when it is not bound.
pub(crate) fn loop_backing(device: &File) -> io::Result<(u64, u64, u64)> {
    let mut info = LoopInfo64::zeroed();
    // SAFETY: `info` is a live `struct loop_info64` of the kernel's layout, written by the call.
    check(unsafe {
        libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, std::ptr::from_mut(&mut info))
    })?;
    Ok((info.device, info.inode, info.rdevice))
}

/// `struct btrfs_ioctl_fs_info_args` of `linux/btrfs.h`.
#[repr(C)]
struct BtrfsInfo {
    max_id: u64,
    devices: u64,
    id: [u8; 16],
    rest: [u64; 124],
}

/// The id of the btrfs on which a file is.
///
/// # Errors
/// `ENOTTY` on any other file system.
pub(crate) fn btrfs_id(file: &File) -> io::Result<[u8; 16]> {
    let mut info = BtrfsInfo { max_id: 0, devices: 0, id: [0; 16], rest: [0; 124] };
    // SAFETY: `info` is a live structure of the kernel's size (1024 bytes, as the number says), written by the call.
    check(unsafe {
        libc::ioctl(file.as_raw_fd(), BTRFS_IOC_FS_INFO, std::ptr::from_mut(&mut info))
    })?;
    Ok(info.id)
}

/// Whether no process has this file open for writing. The caller has it open for reading. The kernel grants a read
/// lease only if there is no writer, and it counts descriptors that no process shows, such as those on their way
/// through a socket. `None` where the file system has no leases.
pub(crate) fn nobody_writes(file: &File) -> Option<bool> {
    // SAFETY: F_SETLEASE takes a number and touches no memory of ours.
    let set =
        |lease: libc::c_int| unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, lease) };
    if set(libc::F_RDLCK) == 0 {
        // We only needed the answer. If we kept the lease, it would stop the next writer, and that is us.
        set(libc::F_UNLCK);
        return Some(true);
    }
    let busy = io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN);
    busy.then_some(false)
}

/// `FS_IOC_GETVERSION`. The kernel writes a number of 32 bits, whatever the call's name says.
const GET_VERSION: libc::c_ulong = nix::request_code_read!(b'v', 1, size_of::<libc::c_long>());

/// The generation of a file's inode, which is another one when its number is used again. `None` where the file system
/// keeps none.
pub(crate) fn generation(file: impl AsFd) -> Option<u32> {
    let mut answer = [0_u32; 2];
    // SAFETY: `answer` is a live buffer of the size that the call's number has, written by the call.
    let done = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), GET_VERSION, answer.as_mut_ptr()) };
    (done == 0 && answer[0] != 0).then_some(answer[0])
}

/// Lets the child inherit a descriptor, under its number.
pub(crate) fn inherits(command: &mut Command, file: BorrowedFd<'_>) {
    let number = file.as_raw_fd();
    let hook = move || {
        // SAFETY: F_SETFD takes a number and touches no memory of ours.
        check(unsafe { libc::fcntl(number, libc::F_SETFD, 0) }).map(|_| ())
    };
    // SAFETY: the hook makes one system call that is safe between fork and exec and allocates nothing.
    unsafe { command.pre_exec(hook) };
}

/// Unbinds a loop device; with others holding it open it unbinds when the last of them closes it.
///
/// # Errors
/// `ENXIO` when it is not bound.
pub(crate) fn loop_unbind(device: &File) -> io::Result<()> {
    // SAFETY: LOOP_CLR_FD takes no argument.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD) }).map(|_| ())
}

/// Gives the calling thread a table of open files of its own, with standard streams and `keep` only. Files that it
/// opens from now on close when the thread ends, even while other threads of a killed process cannot end because they
/// wait for this one.
pub(crate) fn own_files(keep: &[RawFd]) -> io::Result<()> {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_FILES)?;
    let open: Vec<RawFd> = std::fs::read_dir("/proc/thread-self/fd")?
        .filter_map(|f| f.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    open.into_iter().filter(|fd| *fd > 2 && !keep.contains(fd)).for_each(close_here);
    Ok(())
}

/// Closes the calling thread's copy of a file that belongs to a thread with [`own_files`].
pub(crate) fn close_here(fd: RawFd) {
    // SAFETY: the number is a copy that no object of this thread's table owns; a number that is not open
    // is no error.
    unsafe { libc::close(fd) };
}

/// Real-time priority for the calling thread: the emulated disk must answer when the model says so, not
/// when a busy machine finds time. Failing (no privilege, no real-time budget) is not an error.
pub(crate) fn real_time() -> bool {
    let param = libc::sched_param { sched_priority: 2 };
    // SAFETY: `param` is a live sched_param, only read; 0 names the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) == 0 }
}

/// Real-time priority for a load, below that of the emulated disk. Other programs must not delay the next request after
/// an answer: a scheduler would wait in vain for a process that only lacks a CPU. The I/O priority stays as it would be
/// without (a real-time process has real-time I/O priority unless it says otherwise). Failing is not an error.
pub(crate) fn urgent(command: &mut Command) -> &mut Command {
    const WHO_PROCESS: libc::c_int = 1;
    const BEST_EFFORT_4: libc::c_int = 2 << 13 | 4;
    let hook = || {
        let param = libc::sched_param { sched_priority: 1 };
        // SAFETY: `param` is a live sched_param, only read; 0 names the calling process in both calls.
        unsafe {
            if libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, BEST_EFFORT_4) == 0 {
                libc::sched_setscheduler(0, libc::SCHED_RR, &raw const param);
            }
        }
        Ok(())
    };
    // SAFETY: the hook makes two system calls that are safe between fork and exec and allocates nothing.
    unsafe { command.pre_exec(hook) }
}

/// The I/O priority that this process has been given, and gives to what it starts: class and level; 0 for none.
pub(crate) fn io_priority() -> (i64, i64) {
    const WHO_PROCESS: libc::c_int = 1;
    // SAFETY: the call takes two numbers and touches no memory of ours; 0 names the calling process.
    let found = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) };
    (found.max(0) >> 13, found.max(0) & 7)
}

/// Has the kernel send `signal` to the child when the calling thread dies, so that no load outlives the
/// program, and puts it into a process group of its own.
pub(crate) fn dies_with_us(command: &mut Command, signal: Signal) -> &mut Command {
    let parent = nix::unistd::getpid();
    let hook = move || {
        nix::sys::prctl::set_pdeathsig(signal)?;
        // The parent may have died before the call above.
        if nix::unistd::getppid() != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the hook makes two system calls that are safe between fork and exec and allocates nothing.
    unsafe { command.pre_exec(hook) }.process_group(0)
}

/// The priority of a load, as [`urgent`] gives it, for the calling thread until this is dropped.
#[derive(Debug)]
pub(crate) struct Urgent {
    before: (libc::c_int, libc::sched_param),
    _not_send: std::marker::PhantomData<*const ()>,
}

impl Urgent {
    /// Failing is not an error: the priority then stays as it was.
    pub(crate) fn here() -> Urgent {
        let mut param = libc::sched_param { sched_priority: 0 };
        // SAFETY: `param` is a live sched_param, written by the first call and only read by the others; 0 names the
        // calling thread.
        let policy = unsafe {
            libc::sched_getparam(0, &raw mut param);
            libc::sched_getscheduler(0)
        };
        let before = (policy.max(0), param);
        let urgent = libc::sched_param { sched_priority: 1 };
        // SAFETY: as above.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const urgent) };
        Urgent { before, _not_send: std::marker::PhantomData }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        let (policy, param) = &self.before;
        // SAFETY: `param` is a live sched_param, only read; 0 names the calling thread.
        unsafe { libc::sched_setscheduler(0, *policy, std::ptr::from_ref(param)) };
    }
}

/// Puts the child into a session of its own: no terminal stops it or sends it signals.
pub(crate) fn own_session(command: &mut Command) -> &mut Command {
    let hook = || nix::unistd::setsid().map(|_| ()).map_err(io::Error::from);
    // SAFETY: the hook makes one system call that is safe between fork and exec and allocates nothing.
    unsafe { command.pre_exec(hook) }
}

/// Has the child enter a mount namespace and see `root`, a path in that, as `/`. The namespace must be open
/// when the child starts.
pub(crate) fn in_root(command: &mut Command, namespace: BorrowedFd<'_>, root: std::path::PathBuf) {
    let number = namespace.as_raw_fd();
    let hook = move || {
        // SAFETY: the child has all files of its parent open, where the caller keeps this one open.
        let namespace = unsafe { BorrowedFd::borrow_raw(number) };
        nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNS)?;
        nix::unistd::chroot(&root)?;
        nix::unistd::chdir("/")?;
        Ok(())
    };
    // SAFETY: the hook makes three system calls that are safe between fork and exec; paths as short as
    // ours are converted on the stack.
    unsafe { command.pre_exec(hook) };
}

/// Has the child enter a mount namespace and start in `dir`, a path in that, with shared memory and semaphores (System V)
/// of its own, which go with it. The mount namespace must be open when the child starts.
pub(crate) fn in_mounts(command: &mut Command, namespace: BorrowedFd<'_>, dir: &std::path::Path) {
    let (number, dir) = (namespace.as_raw_fd(), dir.to_path_buf());
    let hook = move || {
        // SAFETY: the child has all files of its parent open, where the caller keeps this one open.
        let namespace = unsafe { BorrowedFd::borrow_raw(number) };
        nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNS)?;
        // A kernel without such namespaces has none to share them with others in.
        let _ = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWIPC);
        nix::unistd::chdir(&dir)?;
        Ok(())
    };
    // SAFETY: the hook makes three system calls that are safe between fork and exec; paths as short as ours are
    // converted on the stack.
    unsafe { command.pre_exec(hook) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!(size_of::<LoopInfo64>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
    }
}
