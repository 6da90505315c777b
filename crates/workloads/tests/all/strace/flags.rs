//! Flags of single writes, as strace 6.1 prints them.

use iosched_syscalls::OpenFlags;
use iosched_workloads::strace::Act;

use super::{acts, files, log};

const RW: &str = "openat(AT_FDCWD, \"a\", O_RDWR) = 3\n";

fn opened(l: &iosched_workloads::strace::Log) -> Vec<OpenFlags> {
    let flags = acts(l, 0).into_iter().filter_map(|a| match a {
        Act::Open { flags, .. } => Some(flags),
        _ => None,
    });
    flags.collect()
}

#[test]
fn a_file_with_flags_on_all_writes_is_opened_with_them() {
    let rw = OpenFlags::READ | OpenFlags::WRITE;
    for (word, flag) in [("RWF_DSYNC", OpenFlags::DSYNC), ("RWF_HIPRI|RWF_SYNC", OpenFlags::SYNC)] {
        let l = log(&format!(
            "{RW}pwritev2(3, [{{iov_base=\"a\", iov_len=100}}, {{iov_base=\"b\", iov_len=1}}], 2, 0, {word}) = 101\n\
             pwritev2(3, [{{iov_base=\"abc\", iov_len=3}}], 1, -1, {word}) = 3\n"
        ));
        let writes = [
            Act::Open { name: 0, flags: rw | flag, file: 0 },
            Act::Pwrite { file: 0, at: 0, len: 101 },
            Act::Write { file: 0, len: 3 },
        ];
        assert_eq!(acts(&l, 0), writes);
    }
    // One that was open before the log.
    let l = log("5 pwritev2(7</d/a>, [{iov_base=\"a\", iov_len=512}], 1, 512, RWF_DSYNC) = 512\n");
    assert!(l.inherited[0].flags.has(OpenFlags::DSYNC), "{:?}", l.inherited);
    let l = log(
        "5 io_submit(0x7f, 1, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=7</d/a>, aio_buf=\"x\"..., \
                 aio_nbytes=4096, aio_offset=8192, aio_rw_flags=RWF_DSYNC}]) = 1\n",
    );
    assert!(l.inherited[0].flags.has(OpenFlags::DSYNC), "{:?}", l.inherited);
}

#[test]
fn a_file_with_flags_on_some_writes_is_opened_twice() {
    let l = log(&format!(
        "{RW}pwrite64(3, \"x\"..., 4096, 0) = 4096\n\
         pwritev2(3, [{{iov_base=\"a\", iov_len=512}}], 1, 512, RWF_DSYNC) = 512\n\
         pwritev2(3, [{{iov_base=\"a\", iov_len=512}}], 1, -1, RWF_DSYNC) = 512\n\
         pwritev2(3, [{{iov_base=\"a\", iov_len=10}}], 1, 0, RWF_APPEND) = 10\n\
         close(3) = 0\n"
    ));
    let rw = OpenFlags::READ | OpenFlags::WRITE;
    let flags = opened(&l);
    assert_eq!(flags.len(), 3);
    assert!(flags.contains(&rw) && flags.contains(&(rw | OpenFlags::DSYNC)), "{flags:?}");
    assert!(flags.contains(&(rw | OpenFlags::APPEND)), "{flags:?}");
    let rest: Vec<Act> = acts(&l, 0)
        .into_iter()
        .filter(|a| !matches!(a, Act::Open { .. } | Act::Close { .. }))
        .collect();
    let wanted = [
        Act::Pwrite { file: 0, at: 0, len: 4096 },
        Act::Pwrite { file: 1, at: 512, len: 512 },
        Act::Write { file: 0, len: 512 },
        Act::Fdatasync { file: 0 },
        Act::Write { file: 2, len: 10 },
    ];
    assert_eq!(rest, wanted);
    let closed = acts(&l, 0).iter().filter(|a| matches!(a, Act::Close { .. })).count();
    assert_eq!(closed, 3);
    assert_eq!(l.opened, 3);
}

#[test]
fn the_position_minus_one_is_the_files_own() {
    let l = log(&format!("{RW}preadv2(3, [{{iov_base=\"aaa\", iov_len=3}}], 1, -1, 0) = 3\n"));
    assert_eq!(acts(&l, 0)[1], Act::Read { file: 0, len: 3 });
    assert_eq!(files(&l), [("work/a", 3)]);
}
