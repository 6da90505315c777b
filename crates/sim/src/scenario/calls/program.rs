//! The calls of a scenario as a program.

use std::sync::Arc;

use iosched_syscalls::{Advice, Answer, Birth, Call, Done, Errno, Fd, MapId, Program, Script, Sys};
use iosched_types::Bytes;
use iosched_workloads::programs::files;

use super::{Calls, Wanted, WantedCall};

/// A descriptor that no task has: calls on a file whose open failed are answered as they would be.
const NONE: Fd = Fd(u32::MAX);

/// What makes the files that are there before.
pub(super) fn preparation(calls: &Calls) -> Birth {
    let all = calls.files.clone();
    birth(async move |sys| {
        for (name, len) in &all {
            if let Some((directory, _)) = name.rsplit_once('/') {
                files::make_directory(&sys, directory).await?;
            }
            files::make(&sys, name, *len).await?;
        }
        Ok(())
    })
}

/// The tasks: the first one only makes the others and waits for them.
pub(super) fn measured(calls: &Arc<Calls>) -> Birth {
    let calls = calls.clone();
    birth(async move |sys| {
        let tasks = calls.tasks.len();
        for task in 0..tasks {
            let calls = calls.clone();
            sys.fork(async move |sys| run(sys, &calls, task).await).await?;
        }
        files::wait_for(&sys, tasks as u64).await?;
        let left = calls.until.saturating_sub(sys.now());
        if left > 0 { sys.sleep(left).await } else { Ok(()) }
    })
}

fn birth(text: impl AsyncFnOnce(Sys) -> Done + Send + 'static) -> Birth {
    Birth(Box::new(move || Box::new(Script::new(text)) as Box<dyn Program>))
}

async fn run(sys: Sys, calls: &Calls, task: usize) -> Done {
    let slots = calls.tasks[task].handles.len();
    let mut open = Open { fds: vec![NONE; slots], maps: vec![None; slots] };
    let mut first = true;
    for call in calls.calls.iter().filter(|c| c.task == task) {
        let early = call.at.saturating_sub(sys.now());
        if early > 0 {
            sys.sleep(early).await?;
        }
        for n in 0..call.times {
            if call.pause > 0 && !first && (n > 0 || early == 0) {
                sys.sleep(call.pause).await?;
            }
            first = false;
            // An error is an answer, too.
            let _ = open.call(&sys, call, n).await;
        }
    }
    Ok(())
}

/// What a task has open.
struct Open {
    fds: Vec<Fd>,
    maps: Vec<Option<MapId>>,
}

impl Open {
    async fn call(&mut self, sys: &Sys, call: &WantedCall, n: u64) -> Answer {
        let fd = |slot: &usize| self.fds[*slot];
        let moved = |at: &Bytes| call.moved(*at, n);
        let done = |done: Done| done.map(|()| 0);
        match &call.what {
            Wanted::Open { path, flags, slot } => {
                let fd = sys.open(path, *flags).await;
                self.fds[*slot] = fd.unwrap_or(NONE);
                fd.map(|fd| u64::from(fd.0))
            }
            Wanted::Close { slot } => done(sys.close(fd(slot)).await),
            Wanted::Read { slot, len } => sys.read(fd(slot), *len).await,
            Wanted::Pread { slot, at, len } => sys.pread(fd(slot), moved(at), *len).await,
            Wanted::Write { slot, len } => sys.write(fd(slot), *len).await,
            Wanted::Pwrite { slot, at, len } => sys.pwrite(fd(slot), moved(at), *len).await,
            Wanted::Truncate { slot, len } => done(sys.truncate(fd(slot), *len).await),
            Wanted::Fallocate { slot, at, len, keep_size } => {
                let (fd, at, len, keep_size) = (fd(slot), moved(at), *len, *keep_size);
                sys.call(Call::Fallocate { fd, at, len, keep_size }).await
            }
            Wanted::Advise { slot, at, len, advice } => {
                let advice: Advice = *advice;
                done(sys.fadvise(fd(slot), *at, *len, advice).await)
            }
            Wanted::Fsync { slot } => done(sys.fsync(fd(slot)).await),
            Wanted::Fdatasync { slot } => done(sys.fdatasync(fd(slot)).await),
            Wanted::SyncRange { slot, at, len, wait } => {
                done(sys.sync_file_range(fd(slot), moved(at), *len, *wait).await)
            }
            Wanted::SyncFs { slot } => done(sys.syncfs(fd(slot)).await),
            Wanted::List { slot } => sys.readdir(fd(slot)).await.map(|names| names.len() as u64),
            Wanted::Copy { from, to, len } => sys.copy_file_range(fd(from), fd(to), *len).await,
            Wanted::Map { slot, len } => {
                let map = sys.mmap(fd(slot), 0, *len).await;
                self.maps[*slot] = map.ok();
                map.map(|m| u64::from(m.0))
            }
            Wanted::AdviseMap { slot, advice } => done(sys.madvise(self.map(*slot), *advice).await),
            Wanted::Load { slot, at } => done(sys.load(self.map(*slot), moved(at)).await),
            Wanted::Store { slot, at } => done(sys.store(self.map(*slot), moved(at)).await),
            names => on_names(sys, names).await,
        }
    }

    fn map(&self, slot: usize) -> MapId {
        self.maps[slot].unwrap_or(MapId(u32::MAX))
    }
}

async fn on_names(sys: &Sys, wanted: &Wanted) -> Answer {
    let done = |done: Done| done.map(|()| 0);
    match wanted {
        Wanted::Sync => done(sys.sync().await),
        Wanted::DropCaches => done(sys.drop_caches().await),
        Wanted::Stat { path } => sys.stat(path).await.map(|s| s.bytes),
        Wanted::Lstat { path } => sys.lstat(path).await.map(|s| s.bytes),
        Wanted::Symlink { target, path } => done(sys.symlink(target, path).await),
        Wanted::ReadLink { path } => sys.readlink(path).await.map(|said| said.len() as u64),
        Wanted::Touch { path } => done(sys.utimensat(path).await),
        Wanted::Unlink { path } => done(sys.unlink(path).await),
        Wanted::Rename { from, to } => done(sys.rename(from, to).await),
        Wanted::Mkdir { path } => done(sys.mkdir(path).await),
        Wanted::Rmdir { path } => done(sys.rmdir(path).await),
        _ => Err(Errno::EINVAL),
    }
}
