//! However a live run ends, its threads end and nobody waits for ever.

use std::fs::File;
use std::time::{Duration, Instant};

use iosched_backends::Error;
use iosched_backends::program::{self, How};
use iosched_syscalls::{Birth, Done, Errno, OpenFlags, Program, Script, Sys};

fn birth(text: impl AsyncFnOnce(Sys) -> Done + Send + 'static) -> Birth {
    Birth(Box::new(move || Box::new(Script::new(text)) as Box<dyn Program>))
}

/// Four tasks that wait in four ways.
async fn waits(sys: Sys) -> Done {
    let (reads, writes) = sys.pipe().await?;
    sys.fork(async move |sys| sys.read(reads, 1).await.map(drop)).await?;
    sys.fork(async move |sys| sys.barrier(1, 99).await).await?;
    sys.fork(async move |sys| {
        loop {
            sys.write(writes, 1 << 20).await?;
        }
    })
    .await?;
    sys.fork(async move |sys| sys.sleep(1 << 60).await).await?;
    sys.wait().await.map(drop)
}

#[test]
fn an_interrupt_ends_whoever_waits() {
    let dir = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let mut check = || match began.elapsed() > Duration::from_millis(300) {
        true => Err(Error::Interrupted { signal: "SIGINT".into() }),
        false => Ok(()),
    };
    let file = File::open(dir.path()).unwrap();
    let e = program::run(&file, How::default(), birth(waits), &mut check).unwrap_err();
    assert!(matches!(e, Error::Interrupted { .. }), "{e}");
}

#[test]
fn a_task_that_fails_ends_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let text = async |sys: Sys| {
        let nowhere = async |sys: Sys| sys.open("no/such", OpenFlags::READ).await.map(drop);
        sys.fork(async |sys| sys.barrier(1, 2).await).await?;
        sys.fork(nowhere).await?;
        sys.wait().await?;
        sys.wait().await.map(drop)
    };
    let file = File::open(dir.path()).unwrap();
    let e = program::run(&file, How::default(), birth(text), &mut || Ok(())).unwrap_err();
    let words = "task 2 of the program ended with ENOENT (No such file or directory) in open";
    assert_eq!(e.to_string(), words);
}

#[test]
fn tasks_that_wait_for_each_other_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = async |sys: Sys| {
        let (reads, _writes) = sys.pipe().await?;
        sys.fork(async move |sys| sys.read(reads, 1).await.map(drop)).await?;
        sys.wait().await.map(drop)
    };
    let file = File::open(dir.path()).unwrap();
    let e = program::run(&file, How::default(), birth(text), &mut || Ok(())).unwrap_err();
    assert!(e.to_string().contains("task 0 for a child, task 1 for something in a pipe"), "{e}");
}

#[test]
fn no_name_leads_out() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("secret"), "kept").unwrap();
    let inside = dir.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::os::unix::fs::symlink("../secret", inside.join("link")).unwrap();
    let text = async |sys: Sys| {
        let write = OpenFlags::WRITE | OpenFlags::TRUNCATE;
        for name in ["../secret", "/etc/passwd", "link", "a/../../secret"] {
            assert!(sys.open(name, write).await.is_err(), "{name}");
            assert!(sys.unlink(name).await.is_err() || name == "link", "{name}");
            assert!(sys.rename("link", name).await.is_err(), "{name}");
        }
        assert_eq!(sys.mkdir("../up").await, Err(Errno::EXDEV));
        // A link of the program's own leads no further.
        sys.symlink("..", "up").await?;
        for name in ["up/secret", "up/inside/up/secret"] {
            assert_eq!(sys.unlink(name).await, Err(Errno::EXDEV), "{name}");
            assert_eq!(sys.rename("up", name).await, Err(Errno::EXDEV), "{name}");
            assert_eq!(sys.stat(name).await.err(), Some(Errno::EXDEV), "{name}");
            assert_eq!(sys.open(name, write).await, Err(Errno::EXDEV), "{name}");
        }
        sys.unlink("up").await?;
        Ok(())
    };
    let file = File::open(&inside).unwrap();
    program::run(&file, How::default(), birth(text), &mut || Ok(())).unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join("secret")).unwrap(), "kept");
}
