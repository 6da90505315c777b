//! Where a job's files lie on the device.
//!
//! A name below `/dev/` is the device itself, or a part of it ([`super::disks`]). Any other file gets a place of its own: files follow one
//! another on the device in the order in which jobs name them, aligned to 1 MiB, as a freshly laid out
//! file system would have them.

use std::collections::BTreeMap;

use iosched_types::{Bytes, Diagnostic, SECTOR};

use super::disks::{self, Disk, is_device};
use super::file_options;
use super::iolog::IoLog;
use super::spec::{JobSet, JobSpec};
use super::taus::{StreamId, Taus88};

const ALIGN: Bytes = 1 << 20;

/// A file's place and the part of it the job works on, in bytes on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte of the region (file start + `offset`).
    pub start: Bytes,
    /// Length of the region (`io_size` of the file).
    pub len: Bytes,
    /// First byte of the file.
    pub origin: Bytes,
    /// Length of the file.
    pub size: Bytes,
}

impl Extent {
    /// Whether the file goes on behind the region.
    pub(crate) fn is_part(&self) -> bool {
        self.start - self.origin + self.len < self.size
    }
}

/// The extents of one job's files.
pub type Files = Vec<Extent>;

/// A file before it has a place.
struct Wanted {
    name: String,
    /// The region, relative to the file.
    offset: Bytes,
    len: Bytes,
    /// The size the file must have.
    reach: Bytes,
}

fn problem(job: &JobSpec, message: String, help: &str) -> Diagnostic {
    Diagnostic::file(job.place.clone(), format!("job \"{}\": {message}", job.name)).with_help(help)
}

fn percent(of: Bytes, p: u32) -> Bytes {
    (u128::from(of) * u128::from(p) / 100) as Bytes
}

/// Lays out every job's files on a device of `capacity` bytes.
///
/// # Errors
/// A region that reaches beyond the device's end, or one in which not even one block fits.
pub fn lay_out(set: &JobSet, capacity: Bytes) -> Result<Vec<Files>, Diagnostic> {
    lay_out_beside(set, capacity, &BTreeMap::new())
}

/// The same where some files are there already, with these lengths.
///
/// # Errors
/// See [`lay_out`].
pub fn lay_out_beside(
    set: &JobSet,
    capacity: Bytes,
    existing: &BTreeMap<String, Bytes>,
) -> Result<Vec<Files>, Diagnostic> {
    disks::check_disks(set).map_err(|mut all| all.remove(0))?;
    let disk = Disk::new(set, capacity);
    let mut known = existing.clone();
    let mut all = Vec::with_capacity(set.jobs.len());
    for job in &set.jobs {
        let mut files = wanted(job, &disk, existing)?;
        if job.file_options.append && job.replay.is_none() {
            append(&mut files, &known);
        }
        // What one job lays out is there for those after it.
        for w in files.iter().filter(|w| !is_device(&w.name)) {
            let end = known.entry(w.name.clone()).or_default();
            *end = w.reach.max(*end);
        }
        all.push(files);
    }
    let wanted: Vec<Vec<Wanted>> = all;
    // A file that several jobs use lies in one place, as large as the one that needs most.
    let mut reach: BTreeMap<&str, Bytes> = BTreeMap::new();
    for w in wanted.iter().flatten() {
        let r = reach.entry(&w.name).or_default();
        *r = w.reach.max(*r);
    }
    let mut origins: BTreeMap<&str, Bytes> = BTreeMap::new();
    let mut next: Bytes = 0;
    let mut out = Vec::new();
    for (job, files) in set.jobs.iter().zip(&wanted) {
        let mut extents = Files::new();
        for w in files {
            let size = reach[w.name.as_str()];
            let (first, room) = disk.place(&w.name);
            let origin = if is_device(&w.name) {
                first
            } else {
                *origins.entry(&w.name).or_insert_with(|| {
                    let origin = next;
                    next = next.saturating_add(size).next_multiple_of(ALIGN);
                    origin
                })
            };
            // A part of the device ends where the next one begins.
            let end = if is_device(&w.name) { first + room } else { capacity };
            if origin.saturating_add(size) > end {
                let message = format!(
                    "file \"{}\" would end at byte {}, beyond the device's end ({end} bytes)",
                    w.name,
                    u128::from(origin) + u128::from(size)
                );
                return Err(problem(job, message, "use a smaller size= or a larger device"));
            }
            let size = if is_device(&w.name) { room } else { size };
            extents.push(Extent { start: origin + w.offset, len: w.len, origin, size });
        }
        out.push(extents);
    }
    Ok(out)
}

/// `file_append`: parts of files begin where the files have ended so far. A device has no end to append to.
fn append(files: &mut [Wanted], known: &BTreeMap<String, Bytes>) {
    for w in files.iter_mut().filter(|w| !is_device(&w.name)) {
        let end = known.get(&w.name).copied().unwrap_or(0);
        w.offset = w.offset.saturating_add(end);
        w.reach = w.reach.max(w.offset.saturating_add(w.len));
    }
}

fn wanted(
    job: &JobSpec,
    disk: &Disk,
    existing: &BTreeMap<String, Bytes>,
) -> Result<Vec<Wanted>, Diagnostic> {
    aligned(job)?;
    let names = job.file_names();
    if let Some(log) = &job.replay {
        return Ok(replayed(job, log, names, disk));
    }
    let count = names.len() as u64;
    let mut sizes = Taus88::of_job(StreamId::FileSize, job);
    let wanted: Result<Vec<Wanted>, Diagnostic> = names
        .into_iter()
        .map(|name| match is_device(&name) {
            true => {
                let (_, room) = disk.place(&name);
                on_device(job, name, count, room)
            }
            false => in_file(job, name, count, existing, &mut sizes),
        })
        .collect();
    // Shares of a size may be too small for a block: then fio makes the files, and does no I/O.
    let (wanted, idle) = (wanted?, job.has_no_room());
    let small = wanted.iter().find(|w| !idle && w.len < job.smallest());
    small.map_or(Ok(()), |w| Err(no_block_fits(job, w)))?;
    Ok(wanted)
}

/// The real `O_DIRECT` refuses I/Os that are not whole sectors. Buffered I/Os may have any size.
fn aligned(job: &JobSpec) -> Result<(), Diagnostic> {
    let odd = |bytes: Bytes| job.direct && !bytes.is_multiple_of(SECTOR);
    let refuse = |what: String| {
        let message = format!("{what} is no multiple of {SECTOR} bytes, and direct I/O needs that");
        problem(job, message, "use multiples of 512")
    };
    if let Some(log) = &job.replay {
        let wrong = log.entries.iter().find(|e| odd(e.offset) || odd(e.len));
        return wrong.map_or(Ok(()), |e| {
            Err(refuse(format!("an I/O of the log, {} bytes at {},", e.len, e.offset)))
        });
    }
    for d in (0..3).filter(|d| job.does(*d)) {
        let (low, high) = job.bs.range[d];
        let sizes = job.bs.split[d].iter().map(|e| e.bs).chain([low, high]);
        if let Some(bs) = sizes.into_iter().find(|bs| odd(*bs)) {
            return Err(refuse(format!("a block size of {bs}")));
        }
        if job.direct && job.bs.unaligned && low < high {
            return Err(refuse("what bs_unaligned draws".into()));
        }
        if job.pattern.random && odd(job.bs.align[d]) {
            return Err(refuse(format!("blockalign={}", job.bs.align[d])));
        }
    }
    let t = &job.target;
    for (name, bytes) in [
        ("offset", t.offset),
        ("offset_increment", t.offset_increment),
        ("the number behind rw", job.pattern.stride.unsigned_abs()),
    ] {
        if odd(bytes) {
            return Err(refuse(format!("{name}={bytes}")));
        }
    }
    Ok(())
}

/// Files of a log are as large as its I/Os ask for.
fn replayed(job: &JobSpec, log: &IoLog, names: Vec<String>, disk: &Disk) -> Vec<Wanted> {
    let last = names.len() - 1;
    let mut ends = vec![job.smallest(); names.len()];
    for e in &log.entries {
        let end = &mut ends[(e.file as usize).min(last)];
        *end = (*end).max(e.offset + e.len);
    }
    let file = |(name, end): (String, Bytes)| {
        let len = if is_device(&name) { disk.place(&name).1 } else { end };
        Wanted { name, offset: 0, len, reach: end }
    };
    names.into_iter().zip(ends).map(file).collect()
}

/// A region of the device itself.
fn on_device(
    job: &JobSpec,
    name: String,
    count: u64,
    capacity: Bytes,
) -> Result<Wanted, Diagnostic> {
    let t = &job.target;
    let offset = job.offset_in(capacity);
    let room = room(job, &name, offset, capacity)?;
    let len = match (t.size, t.size_percent) {
        (Some(size), _) => size / count,
        (None, Some(p)) => percent(capacity, p).min(room),
        (None, None) => room,
    };
    if len > room {
        let message = format!(
            "size {len} from offset {offset} ends at byte {}, beyond the end of \"{name}\" ({capacity} bytes)",
            u128::from(offset) + u128::from(len),
        );
        return Err(problem(job, message, "use a smaller size= or a larger device"));
    }
    Ok(Wanted { name, offset, len, reach: offset + len })
}

/// A file: as large as `filesize` says, whatever `size` is; else its share of `size` behind `offset`.
fn in_file(
    job: &JobSpec,
    name: String,
    count: u64,
    existing: &BTreeMap<String, Bytes>,
    sizes: &mut Taus88,
) -> Result<Wanted, Diagnostic> {
    let t = &job.target;
    let Some(range) = t.filesize else {
        let given = t.size.map(|s| s / count);
        let size = given.or_else(|| existing.get(&name).copied()).ok_or_else(|| {
            problem(job, format!("file \"{name}\" has no size"), "add size= or filesize=")
        })?;
        let offset = job.offset_in(size);
        return Ok(Wanted { name, offset, len: size, reach: offset.saturating_add(size) });
    };
    let whole = match range {
        (low, high) if low == high => low,
        (low, high) => {
            let drawn = sizes.between(low, high);
            drawn - drawn % smallest_of_all(job)
        }
    };
    let offset = job.offset_in(whole);
    let room = room(job, &name, offset, whole)?;
    let len = t.size_percent.map_or(room, |p| percent(whole, p).min(room));
    Ok(Wanted { name, offset, len, reach: whole })
}

/// The smallest block of all directions, used or not.
fn smallest_of_all(job: &JobSpec) -> Bytes {
    job.bs.range.iter().map(|r| r.0).min().unwrap_or(1).max(1)
}

fn room(job: &JobSpec, name: &str, offset: Bytes, whole: Bytes) -> Result<Bytes, Diagnostic> {
    whole.checked_sub(offset).filter(|room| *room > 0).ok_or_else(|| {
        let message = format!("offset {offset} is beyond the end of \"{name}\" ({whole} bytes)");
        problem(job, message, "use a smaller offset= or offset_increment=")
    })
}

fn no_block_fits(job: &JobSpec, w: &Wanted) -> Diagnostic {
    let smallest = job.smallest();
    let message = format!("no block of {smallest} bytes fits in {} bytes of \"{}\"", w.len, w.name);
    problem(job, message, "use a larger size= or a smaller bs=")
}

impl JobSpec {
    /// Whether the job does I/O in a direction (0 read, 1 write, 2 trim).
    #[must_use]
    pub fn does(&self, dir: usize) -> bool {
        [self.pattern.read, self.pattern.write, self.pattern.trim][dir]
    }

    /// Names of the job's files: the given ones, those of the log that it replays, or those that fio would make up.
    #[must_use]
    pub fn file_names(&self) -> Vec<String> {
        let t = &self.target;
        let names = match &self.replay {
            _ if !t.files.is_empty() => t.files.clone(),
            Some(log) if !log.files.is_empty() => log.files.clone(),
            // fio works on a section's name where that is a device.
            _ if is_device(&self.name) && t.nrfiles <= 1 && t.directory.is_none() => {
                vec![self.name.clone()]
            }
            _ => {
                let format = self.file_options.format.as_deref();
                let format = format.unwrap_or("$jobname.$jobnum.$filenum");
                (0..t.nrfiles.max(1)).map(|i| file_options::name(format, self, i)).collect()
            }
        };
        let inside = |n: String| match &t.directory {
            Some(d) if !n.starts_with('/') => format!("{}/{n}", d.trim_end_matches('/')),
            _ => n,
        };
        names.into_iter().map(inside).collect()
    }

    /// Whether it works behind the end of its files. A device has none to append to.
    #[must_use]
    pub(crate) fn appends(&self) -> bool {
        let device = self.target.files.iter().any(|n| is_device(n));
        self.file_options.append && self.replay.is_none() && !device
    }

    /// Whether its `size` is for several files, and too small for a block in each of them.
    #[must_use]
    pub(crate) fn has_no_room(&self) -> bool {
        let t = &self.target;
        let files = u64::from(t.nrfiles.max(1));
        let shared = t.filesize.is_none() && self.replay.is_none() && files > 1;
        let device = t.files.iter().any(|n| is_device(n));
        shared && !device && t.size.is_some_and(|size| size / files < self.smallest())
    }

    /// The smallest block it uses.
    fn smallest(&self) -> Bytes {
        let used = (0..3).filter(|d| self.does(*d)).map(|d| self.bs.range[d].0);
        used.min().unwrap_or(512).max(1)
    }

    /// Where its region begins in a file of `size` bytes.
    fn offset_in(&self, size: Bytes) -> Bytes {
        let t = &self.target;
        let step = t.offset_increment_percent.map_or(t.offset_increment, |p| percent(size, p));
        let first = t.offset_percent.map_or(t.offset, |p| percent(size, p));
        let offset = first.saturating_add(step.saturating_mul(u64::from(self.subjob)));
        if t.offset_percent.is_none() && t.offset_increment_percent.is_none() {
            return offset;
        }
        // fio rounds offsets up, and only those that a percentage makes.
        let align = if t.offset_align > 0 { t.offset_align } else { self.smallest() };
        offset.checked_next_multiple_of(align).unwrap_or(Bytes::MAX)
    }
}
