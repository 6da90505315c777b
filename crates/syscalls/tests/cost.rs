//! A call takes no memory: not to name a file, not to make a call, not to answer it.
#![allow(clippy::disallowed_methods, reason = "a child runs on a thread, as it does live")]

use iosched_syscalls::{Answer, Call, Errno, Fd, OpenFlags, Program, Script};
use iosched_testing::Counting;

#[global_allocator]
static GLOBAL: Counting = Counting;

fn answer(call: &Call) -> Answer {
    match call {
        Call::Open { .. } => Ok(3),
        Call::Write { len, .. } | Call::Pread { len, .. } => Ok(*len),
        _ => Ok(0),
    }
}

/// Runs `calls` calls; how many times memory was taken.
fn allocations(program: &mut Script, calls: u32, last: &mut Answer) -> u64 {
    let before = iosched_testing::allocations();
    for n in 0..calls {
        let call = program.resume(u64::from(n), *last).expect("it never ends");
        *last = answer(&call);
    }
    iosched_testing::allocations() - before
}

#[test]
fn no_call_takes_memory_in_steady_state() {
    let mut program = Script::new(async |sys| {
        for i in 0u64.. {
            let flags = OpenFlags::WRITE | OpenFlags::CREATE;
            let fd = sys.open(format_args!("d{}/f{i:08}", i % 10), flags).await?;
            sys.write(fd, 4096).await?;
            sys.pread(fd, 0, 512).await?;
            sys.fdatasync(fd).await?;
            sys.stat(format_args!("f{i:08}")).await?;
            sys.close(fd).await?;
            sys.rename(format_args!("f{i:08}"), format_args!("g{i:08}")).await?;
            sys.unlink(format_args!("g{i:08}")).await?;
            sys.reap(1, |_| ()).await?;
            sys.barrier(0, 1).await?;
        }
        Ok(())
    });
    let mut last = Ok(0);
    assert!(allocations(&mut program, 100, &mut last) > 0, "the names' memory, once");
    assert_eq!(allocations(&mut program, 10_000, &mut last), 0);
}

#[test]
fn a_call_is_small() {
    assert!(size_of::<Call>() <= 40, "{} bytes", size_of::<Call>());
    assert!(size_of::<Answer>() <= 16);
}

#[test]
fn an_error_ends_the_program_with_its_number() {
    let mut program = Script::new(async |sys| {
        let fd = sys.open("nothing", OpenFlags::READ).await?;
        sys.fsync(fd).await
    });
    assert!(matches!(program.resume(0, Ok(0)), Some(Call::Open { .. })));
    assert!(program.resume(5, Err(Errno::ENOENT)).is_none());
    assert_eq!(program.status(), Err(Errno::ENOENT));
    assert!(program.resume(6, Ok(0)).is_none(), "and stays ended");
}

#[test]
fn the_time_and_the_answer_reach_the_program() {
    let mut program = Script::new(async |sys| {
        assert_eq!(sys.now(), 7);
        assert_eq!(sys.pread(Fd(4), 8, 9).await, Ok(5));
        assert_eq!(sys.now(), 11);
        assert_eq!(sys.add(0, -3).await, Ok(-3));
        let (r, w) = sys.pipe().await?;
        assert_eq!((r, w), (Fd(3), Fd(4)));
        Ok(())
    });
    let first = program.resume(7, Ok(0));
    assert!(matches!(first, Some(Call::Pread { fd: Fd(4), at: 8, len: 9 })));
    assert!(matches!(program.resume(11, Ok(5)), Some(Call::Add { by: -3, .. })));
    assert!(matches!(program.resume(12, Ok((-3i64).cast_unsigned())), Some(Call::Pipe)));
    assert!(program.resume(13, Ok(4 << 32 | 3)).is_none());
    assert_eq!(program.status(), Ok(()));
}

#[test]
fn a_program_that_waits_for_nothing_ends() {
    let mut program = Script::new(async |_| std::future::pending().await);
    assert!(program.resume(0, Ok(0)).is_none());
    assert_eq!(program.status(), Err(Errno::EDEADLK));
}

#[test]
fn children_are_made_on_the_thread_that_runs_them() {
    let mut parent = Script::new(async |sys| {
        let text = String::from("captured");
        let child = sys
            .fork(async move |sys| {
                sys.mkdir(&text).await?;
                Ok(())
            })
            .await?;
        sys.join(child).await
    });
    let Some(Call::Spawn { birth, .. }) = parent.resume(0, Ok(0)) else { panic!("no child") };
    let made = std::thread::spawn(move || {
        let mut child = (birth.0)();
        matches!(child.resume(0, Ok(0)), Some(Call::Mkdir { path }) if &*path == "captured")
    });
    assert!(made.join().expect("the child's thread"));
    assert!(matches!(parent.resume(0, Ok(9)), Some(Call::Join { task: 9 })));
}

#[test]
fn every_name_of_an_error_leads_back_to_it() {
    for name in Errno::names() {
        let e = Errno::from_name(name).expect(name);
        assert_eq!(e.name(), Some(name));
    }
    assert_eq!(Errno::from_name("EWOULDBLOCK"), Some(Errno::EAGAIN));
    assert_eq!(Errno::ENOSPC.to_string(), "ENOSPC (No space left on device)");
    assert_eq!(Errno(4000).to_string(), "error 4000");
}
