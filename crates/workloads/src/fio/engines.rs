//! `ioengine`: the simulated ones, and why the others are refused.

use super::spec::IoEngine;

/// Every engine of fio 3.33, whether built into Debian's binary or not, and its older names.
pub(crate) const ALL: &[&str] = &[
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "libaio",
    "linuxaio",
    "aio",
    "io_uring",
    "posixaio",
    "mmap",
    "splice",
    "null",
    "cpuio",
    "net",
    "netsplice",
    "ftruncate",
    "filecreate",
    "filestat",
    "filedelete",
    "exec",
    "falloc",
    "e4defrag",
    "gfapi",
    "gfapi_async",
    "mtd",
    "sg",
    "io_uring_cmd",
    "nbd",
    "rdma",
    "rados",
    "rbd",
    "pmemblk",
    "dev-dax",
    "libpmem",
    "libhdfs",
    "http",
    "ime_psync",
    "ime_psyncv",
    "ime_aio",
    "dfs",
    "nfs",
    "libiscsi",
    "libzbc",
    "libcufile",
    "librpma_apm_client",
    "librpma_apm_server",
    "librpma_gpspm_client",
    "librpma_gpspm_server",
    "xnvme",
    "libblkio",
    "cpp_null",
    "external",
    "guasi",
    "solarisaio",
    "windowsaio",
];

/// The simulated engine of this name, or why there is none.
pub(crate) fn engine(name: &str) -> Result<IoEngine, &'static str> {
    Ok(match name {
        "sync" => IoEngine::Sync,
        "psync" => IoEngine::Psync,
        "vsync" => IoEngine::Vsync,
        "pvsync" => IoEngine::Pvsync,
        "pvsync2" => IoEngine::Pvsync2,
        "libaio" | "linuxaio" | "aio" => IoEngine::Libaio,
        "io_uring" => IoEngine::IoUring,
        "posixaio" => IoEngine::Posixaio,
        "mmap" => IoEngine::Mmap,
        "filecreate" => IoEngine::FileCreate,
        "filestat" => IoEngine::FileStat,
        "filedelete" => IoEngine::FileDelete,
        "splice" => {
            return Err("it works through pipes, which are not simulated");
        }
        "null" | "cpp_null" => return Err("it does no I/O"),
        "cpuio" => return Err("it computes and does no I/O"),
        "exec" => return Err("it runs a program, whose I/O is unknown"),
        "net" | "netsplice" | "rdma" => return Err("it uses the network, not a block device"),
        "librpma_apm_client"
        | "librpma_apm_server"
        | "librpma_gpspm_client"
        | "librpma_gpspm_server" => return Err("it uses the network, not a block device"),
        "ftruncate" | "falloc" | "e4defrag" => {
            return Err("it changes the length or the place of files without moving data");
        }
        "sg" | "io_uring_cmd" | "xnvme" | "libblkio" | "libzbc" => {
            return Err("it passes commands by the I/O scheduler");
        }
        "mtd" | "pmemblk" | "dev-dax" | "libpmem" => {
            return Err("it works on memory or flash without a block layer");
        }
        "guasi" | "solarisaio" | "windowsaio" => return Err("Linux does not have it"),
        "external" => return Err("it is a plug-in whose I/O is unknown"),
        _ => return Err("it talks to a server or library, not to a block device"),
    })
}
