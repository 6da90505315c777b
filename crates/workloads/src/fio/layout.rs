//! Where a job's files lie on the device.
//!
//! A name below `/dev/` is the device itself. Any other file gets a place of its own: files follow one
//! another on the device in the order in which jobs name them, aligned to 1 MiB, as a freshly laid out
//! file system would have them.

use iosched_types::{Bytes, Diagnostic};

use super::spec::{JobSet, JobSpec};

const ALIGN: Bytes = 1 << 20;

/// A file's place and the part of it the job works on, in bytes on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte of the region (file start + `offset`).
    pub start: Bytes,
    /// Length of the region (`io_size` of the file).
    pub len: Bytes,
}

/// The extents of one job's files.
pub type Files = Vec<Extent>;

/// Hands out places to files by name.
#[derive(Debug, Default)]
struct Allocator {
    known: Vec<(String, Extent)>,
    next: Bytes,
}

impl Allocator {
    fn place(&mut self, name: &str, size: Bytes) -> Extent {
        if let Some((_, e)) = self.known.iter_mut().find(|(n, e)| n == name && e.len >= size) {
            return *e;
        }
        let e = Extent { start: self.next, len: size };
        self.next = (self.next + size).next_multiple_of(ALIGN);
        self.known.push((name.to_string(), e));
        e
    }
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
    let mut files = Allocator::default();
    set.jobs.iter().map(|job| job_files(job, capacity, &mut files)).collect()
}

fn job_files(job: &JobSpec, capacity: Bytes, files: &mut Allocator) -> Result<Files, Diagnostic> {
    let t = &job.target;
    let names = if t.files.is_empty() {
        (0..t.nrfiles.max(1)).map(|i| format!("{}.{}.{i}", job.name, job.subjob)).collect()
    } else {
        t.files.clone()
    };
    let count = names.len() as u64;
    let device = |n: &String| n.starts_with("/dev/");
    names
        .iter()
        .map(|name| {
            let whole = if device(name) {
                Extent { start: 0, len: capacity }
            } else {
                let size = t.filesize.map(|(_, high)| high).or(t.size.map(|s| s / count.max(1)));
                let size = size.ok_or_else(|| {
                    problem(job, format!("file \"{name}\" has no size"), "add size= or filesize=")
                })?;
                let reach = t.offset + t.offset_increment * u64::from(job.subjob);
                files.place(name, size + if t.files.is_empty() { 0 } else { reach })
            };
            region(job, whole, count, capacity, name)
        })
        .collect()
}

/// The part of a file the job works on.
fn region(
    job: &JobSpec,
    whole: Extent,
    count: u64,
    capacity: Bytes,
    name: &str,
) -> Result<Extent, Diagnostic> {
    let t = &job.target;
    if whole.start + whole.len > capacity {
        let message = format!(
            "file \"{name}\" would end at byte {}, beyond the device's end ({capacity} bytes)",
            whole.start + whole.len
        );
        return Err(problem(job, message, "use a smaller size= or a larger device"));
    }
    let step = t.offset_increment_percent.map_or(t.offset_increment, |p| percent(whole.len, p));
    let first = t.offset_percent.map_or(t.offset, |p| percent(whole.len, p));
    let offset = first.saturating_add(step.saturating_mul(u64::from(job.subjob)));
    let smallest = (0..3).filter(|d| job.does(*d)).map(|d| job.bs.range[d].0).min().unwrap_or(512);
    // fio rounds offsets up, and only those that a percentage makes.
    let offset = if t.offset_percent.is_some() || t.offset_increment_percent.is_some() {
        offset.next_multiple_of(if t.offset_align > 0 { t.offset_align } else { smallest.max(1) })
    } else {
        offset
    };
    if offset >= whole.len {
        let message =
            format!("offset {offset} is beyond the end of \"{name}\" ({} bytes)", whole.len);
        return Err(problem(job, message, "use a smaller offset= or offset_increment="));
    }
    let room = whole.len - offset;
    let wanted = match (t.size, t.size_percent) {
        (Some(size), _) => size / if t.filesize.is_some() { 1 } else { count.max(1) },
        (None, Some(p)) => percent(whole.len, p).min(room),
        (None, None) => room,
    };
    if wanted > room {
        let message = format!(
            "size {wanted} from offset {offset} ends at byte {}, beyond the end of \"{name}\" ({} bytes)",
            u128::from(offset) + u128::from(wanted),
            whole.len
        );
        return Err(problem(job, message, "use a smaller size= or a larger device"));
    }
    if wanted < smallest {
        let message = format!("no block of {smallest} bytes fits in {wanted} bytes of \"{name}\"");
        return Err(problem(job, message, "use a larger size= or a smaller bs="));
    }
    Ok(Extent { start: whole.start + offset, len: wanted })
}

impl JobSpec {
    /// Whether the job does I/O in a direction (0 read, 1 write, 2 trim).
    #[must_use]
    pub fn does(&self, dir: usize) -> bool {
        [self.pattern.read, self.pattern.write, self.pattern.trim][dir]
    }
}
