//! Where an emulated disk keeps what is written to it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc;

/// How the data of an emulated disk is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataMode {
    /// In memory. Only written parts take room.
    Memory,
    /// In a file without a name in this directory. The file vanishes with the program.
    File(std::path::PathBuf),
    /// Nowhere: reads give zeros. Right for raw-device load, wrong below a file system.
    Discard,
}

impl DataMode {
    /// Reads `memory`, `file`, `file:DIR`, `discard`.
    #[must_use]
    pub fn parse(word: &str) -> Option<DataMode> {
        match word {
            "memory" => Some(DataMode::Memory),
            "discard" => Some(DataMode::Discard),
            "file" => Some(DataMode::File("/var/tmp".into())),
            _ => word
                .strip_prefix("file:")
                .filter(|d| !d.is_empty())
                .map(|d| DataMode::File(d.into())),
        }
    }
}

/// Bytes kept together.
const CHUNK: u64 = 64 << 10;
static ZEROS: [u8; CHUNK as usize] = [0; CHUNK as usize];
/// Locks over which the chunks are spread.
const SHARDS: usize = 16;

type Shard = RwLock<BTreeMap<u64, Box<[u8]>>>;

/// Chunks in memory, up to a limit: a disk larger than the machine's memory must not take all of it.
#[derive(Debug)]
pub(crate) struct Memory {
    shards: Vec<Shard>,
    held: AtomicU64,
    most: u64,
    /// Whether something was refused.
    full: AtomicBool,
}

impl Memory {
    fn new(most: u64) -> Memory {
        Memory {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            held: AtomicU64::new(0),
            most,
            full: AtomicBool::new(false),
        }
    }

    /// Takes room for one more chunk.
    fn grow(&self) -> io::Result<()> {
        let more = |held: u64| Some(held + CHUNK).filter(|h| *h <= self.most);
        match self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(_) => {
                self.full.store(true, Ordering::Relaxed);
                Err(io::Error::from_raw_os_error(libc::ENOSPC))
            }
        }
    }
}

/// Half of the memory that the system could give away now. The load, the page cache and others need some, too.
fn most_memory() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    available(&info).map_or(u64::MAX, |bytes| bytes / 2)
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The store. All methods may be called from any thread.
#[derive(Debug)]
pub(crate) enum DataStore {
    Memory(Memory),
    File(File),
    Discard,
}

impl DataStore {
    pub(crate) fn open(mode: &DataMode, bytes: u64) -> io::Result<Self> {
        Ok(match mode {
            DataMode::Memory => DataStore::Memory(Memory::new(most_memory())),
            DataMode::Discard => DataStore::Discard,
            DataMode::File(dir) => DataStore::File(unnamed(dir, bytes)?),
        })
    }

    /// The limit of the memory, once something was refused for it.
    pub(crate) fn is_full(&self) -> Option<u64> {
        match self {
            DataStore::Memory(m) if m.full.load(Ordering::Relaxed) => Some(m.most),
            _ => None,
        }
    }

    /// The file that must stay open, if there is one.
    pub(crate) fn file(&self) -> Option<RawFd> {
        match self {
            DataStore::File(f) => Some(f.as_raw_fd()),
            DataStore::Memory(_) | DataStore::Discard => None,
        }
    }

    /// Fills `buf` from `offset`. Bytes that were never written read as zeros.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        match self {
            DataStore::Discard => buf.fill(0),
            DataStore::File(f) => f.read_exact_at(buf, offset)?,
            DataStore::Memory(m) => {
                for (chunk, at, part) in parts(offset, buf.len()) {
                    let shard = read_lock(&m.shards[chunk as usize % SHARDS]);
                    let out = &mut buf[part.clone()];
                    match shard.get(&chunk) {
                        Some(data) => out.copy_from_slice(&data[at..at + part.len()]),
                        None => out.fill(0),
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores `data` at `offset`.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match self {
            DataStore::Discard => Ok(()),
            DataStore::File(f) => f.write_all_at(data, offset),
            DataStore::Memory(m) => {
                for (chunk, at, part) in parts(offset, data.len()) {
                    let mut shard = write_lock(&m.shards[chunk as usize % SHARDS]);
                    if !shard.contains_key(&chunk) {
                        // Zeros where nothing was written need no room: large files of a load cost none.
                        if data[part.clone()] == ZEROS[..part.len()] {
                            continue;
                        }
                        m.grow()?;
                    }
                    let slot = shard.entry(chunk).or_insert_with(|| vec![0; CHUNK as usize].into());
                    slot[at..at + part.len()].copy_from_slice(&data[part]);
                }
                Ok(())
            }
        }
    }

    /// Forgets a range; it reads as zeros.
    pub(crate) fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        match self {
            DataStore::Discard => Ok(()),
            DataStore::File(f) => {
                let flags =
                    FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
                let as_off = |n: u64| libc::off_t::try_from(n).map_err(io::Error::other);
                Ok(fallocate(f, flags, as_off(offset)?, as_off(len)?)?)
            }
            DataStore::Memory(m) => {
                let end = offset.saturating_add(len);
                let mut last = None;
                for (i, shard) in m.shards.iter().enumerate() {
                    let mut shard = write_lock(shard);
                    let held: Vec<u64> =
                        shard.range(offset / CHUNK..=end / CHUNK).map(|(c, _)| *c).collect();
                    for chunk in held {
                        let (from, to) = (chunk * CHUNK, (chunk + 1) * CHUNK);
                        if from >= offset && to <= end {
                            shard.remove(&chunk);
                            m.held.fetch_sub(CHUNK, Ordering::Relaxed);
                        } else if let Some(data) = shard.get_mut(&chunk) {
                            let a = offset.max(from).min(to) - from;
                            let b = end.min(to).max(from) - from;
                            data[a as usize..(b.max(a)) as usize].fill(0);
                        }
                    }
                    last = Some(i);
                }
                debug_assert_eq!(last, Some(SHARDS - 1));
                Ok(())
            }
        }
    }
}

/// If the holder of the lock panicked, the chunks are still whole: every write is one copy.
fn read_lock(shard: &Shard) -> std::sync::RwLockReadGuard<'_, BTreeMap<u64, Box<[u8]>>> {
    shard.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn write_lock(shard: &Shard) -> std::sync::RwLockWriteGuard<'_, BTreeMap<u64, Box<[u8]>>> {
    shard.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The pieces of a range, by chunk: (chunk, offset in it, range of the buffer).
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0usize;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let pos = offset + done as u64;
        let at = (pos % CHUNK) as usize;
        let n = (CHUNK as usize - at).min(len - done);
        let range = done..done + n;
        done += n;
        Some((pos / CHUNK, at, range))
    })
}

fn unnamed(dir: &Path, bytes: u64) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).open(dir)?;
    file.set_len(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        Discard(u64, u64),
        Read(u64, usize),
    }

    const SIZE: u64 = 5 * CHUNK;

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..SIZE, proptest::collection::vec(any::<u8>(), 1..2000), 1usize..60).prop_map(
                |(o, v, n)| {
                    let mut v = v.repeat(n);
                    v.truncate((SIZE - o) as usize);
                    Step::Write(o, v)
                }
            ),
            (0..SIZE, 1..3 * CHUNK).prop_map(|(o, n)| Step::Discard(o, n.min(SIZE - o))),
            (0..SIZE, 1usize..200_000).prop_map(|(o, n)| Step::Read(o, n.min((SIZE - o) as usize))),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn both_stores_behave_like_one_flat_array(steps in proptest::collection::vec(step(), 1..30)) {
            let dir = tempfile::tempdir().unwrap();
            let stores = [DataMode::Memory, DataMode::File(dir.path().into())]
                .map(|m| DataStore::open(&m, SIZE).unwrap());
            let mut flat = vec![0u8; SIZE as usize];
            for s in steps {
                match s {
                    Step::Write(o, v) => {
                        flat[o as usize..][..v.len()].copy_from_slice(&v);
                        stores.iter().for_each(|s| s.write(o, &v).unwrap());
                    }
                    Step::Discard(o, n) => {
                        flat[o as usize..(o + n) as usize].fill(0);
                        stores.iter().for_each(|s| s.discard(o, n).unwrap());
                    }
                    Step::Read(o, n) => for s in &stores {
                        let mut buf = vec![7; n];
                        s.read(o, &mut buf).unwrap();
                        prop_assert_eq!(&buf[..], &flat[o as usize..][..n]);
                    },
                }
            }
        }
    }

    #[test]
    fn memory_has_a_limit_that_is_told_and_discards_make_room() {
        let store = DataStore::Memory(Memory::new(2 * CHUNK));
        store.write(0, &[1; 4096]).unwrap();
        store.write(CHUNK, &[2; 4096]).unwrap();
        store.write(5 * CHUNK, &[0; 4096]).unwrap();
        assert_eq!(store.is_full(), None, "zeros take no room");
        let e = store.write(2 * CHUNK, &[3; 4096]).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(store.is_full(), Some(2 * CHUNK));
        // Existing chunks can be written again, and discarded ones are free.
        store.write(100, &[4; 4096]).unwrap();
        store.discard(CHUNK, CHUNK).unwrap();
        store.write(2 * CHUNK, &[3; 4096]).unwrap();
        let mut back = [9; 2];
        store.read(2 * CHUNK + 4095, &mut back).unwrap();
        assert_eq!(back, [3, 0]);
        assert_eq!(available("MemFree: 1 kB\nMemAvailable:   2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn modes_are_words() {
        assert_eq!(DataMode::parse("file:/x"), Some(DataMode::File("/x".into())));
        for bad in ["", "mem", "file:", "File"] {
            assert_eq!(DataMode::parse(bad), None, "{bad}");
        }
    }
}
