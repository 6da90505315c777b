//! Options of single I/O engines.

use super::option::{Kind, OptionDef};

const MAX: i64 = u32::MAX as i64;
const CPU: &str = "a submission takes the same core time with and without it";
const OTHER: &str = "it belongs to an ioengine that is refused";
const PRIO: &str = "priorities of single I/Os are not simulated; `prio` and `prioclass` are";

const fn row(name: &'static str, kind: Kind, why: &'static str, help: &'static str) -> OptionDef {
    OptionDef::noop(name, &[], kind, why, help)
}

const fn no(
    name: &'static str,
    kind: Kind,
    harmless: &'static [&'static str],
    reason: &'static str,
    help: &'static str,
) -> OptionDef {
    OptionDef::refuse(name, kind, harmless, reason, help)
}

const fn poll(name: &'static str, kind: Kind, why: &'static str, help: &'static str) -> OptionDef {
    OptionDef::unmodelled(name, kind, why, help)
}

const fn other(name: &'static str, help: &'static str) -> OptionDef {
    OptionDef::refuse(name, Kind::Own("as the engine defines it"), &[], OTHER, help)
}

/// The rows.
#[rustfmt::skip] // one option, one line
pub(crate) const ENGINE_OPTIONS: &[OptionDef] = &[
    row("userspace_reap", Kind::Flag, CPU, "libaio: reaps completions without a system call."),
    row("fixedbufs", Kind::Flag, CPU, "io_uring: registers the buffers."),
    row("registerfiles", Kind::Flag, CPU, "io_uring: registers the files."),
    row("nonvectored", Kind::Int(0, 1), CPU, "io_uring: plain instead of vectored calls."),
    poll("sqthread_poll_cpu", Kind::Int(0, MAX), "there is no submitting thread", "io_uring: CPU of the submitting thread."),
    row("thp", Kind::Int(0, 1), "it belongs to mmap", "mmap: transparent huge pages."),
    poll("hipri", Kind::Flag, "an I/O ends by an interrupt, and takes the core time of that", "Polls for completions."),
    poll("hipri_percentage", Kind::Int(0, 100), "an I/O ends by an interrupt, and takes the core time of that", "pvsync2: share of polled I/Os."),
    poll("sqthread_poll", Kind::Flag, "the job submits its I/Os itself, and takes the core time of that", "io_uring: a kernel thread submits."),
    no("force_async", Kind::Int(0, MAX), &["0"], "submission by kernel workers is not simulated", "io_uring: hands I/Os to kernel workers."),
    no("uncached", Kind::Int(0, 1), &["0"], "no simulated file system knows it (Linux 6.14)", "Buffered I/O that leaves nothing in the cache."),
    no("nowait", Kind::Bool, &["0"], "I/Os that fail instead of waiting are not simulated", "Fails instead of waiting."),
    no("cmdprio_percentage", Kind::Three(&Kind::Int(0, 100)), &["0"], PRIO, "Share of I/Os with their own priority."),
    no("cmdprio_bssplit", Kind::Text, &[], PRIO, "Priorities by block size."),
    row("cmdprio_class", Kind::Three(&Kind::Int(0, 3)), "it matters only together with `cmdprio_percentage`, which is refused", "Class of prioritised I/Os."),
    row("cmdprio", Kind::Three(&Kind::Int(0, 7)), "it matters only together with `cmdprio_percentage`, which is refused", "Level of prioritised I/Os."),
    other("cmd_type", "io_uring_cmd: type of command."),
    other("hostname", "net, rdma: address."),
    other("port", "net, rdma: port."),
    other("protocol", "net: protocol.").also(&["proto"]),
    other("nodelay", "net: TCP_NODELAY."),
    other("listen", "net: waits for a connection."),
    other("pingpong", "net: echoes messages."),
    other("interface", "net: interface for multicast."),
    other("ttl", "net: lifetime of multicast packets."),
    other("window_size", "net: socket buffers."),
    other("mss", "net: largest segment."),
    other("bindname", "rdma: local address."),
    other("verb", "rdma: operation."),
    other("program", "exec: program."),
    other("arguments", "exec: arguments."),
    other("grace_time", "exec: time before SIGKILL."),
    other("std_redirect", "exec: redirects output."),
    other("cpuload", "cpuio: load in percent."),
    other("cpuchunks", "cpuio: length of a cycle."),
    other("cpumode", "cpuio: how to load the CPU."),
    other("exit_on_io_done", "cpuio: ends with the I/O jobs."),
    other("donorname", "e4defrag: donor file."),
    other("inplace", "e4defrag: allocation mode."),
    other("volume", "gfapi: volume."),
    other("brick", "gfapi: brick."),
    other("single-instance", "gfapi: one instance."),
    other("skip_bad", "mtd: skips bad blocks."),
    other("readfua", "sg: reads with FUA."),
    other("writefua", "sg: writes with FUA."),
    other("sg_write_mode", "sg: kind of write command."),
    other("stream_id", "sg: write stream."),
    other("uri", "nbd: server."),
    other("clustername", "rados, rbd: cluster."),
    other("pool", "rados, rbd, dfs: pool."),
    other("clientname", "rados, rbd: user."),
    other("rbdname", "rbd: image."),
    other("busy_poll", "rados, rbd: polls."),
    other("touch_objects", "rados: creates objects."),
    other("conf", "rados: configuration file."),
    other("cont", "dfs: container."),
    other("chunk_size", "dfs, libhdfs: chunk size."),
    other("object_class", "dfs: class of objects."),
    other("namenode", "libhdfs: name node."),
    other("hdfsdirectory", "libhdfs: directory."),
    other("http_host", "http: host."),
    other("http_user", "http: user."),
    other("http_pass", "http: password."),
    other("https", "http: TLS."),
    other("http_mode", "http: protocol."),
    other("http_s3_region", "http: S3 region."),
    other("http_s3_key", "http: S3 secret."),
    other("http_s3_keyid", "http: S3 key."),
    other("http_s3_sse_customer_key", "http: S3 encryption key."),
    other("http_s3_sse_customer_algorithm", "http: S3 encryption."),
    other("http_s3_storage_class", "http: S3 storage class."),
    other("http_swift_auth_token", "http: Swift token."),
    other("http_verbose", "http: logs requests."),
    other("nfs_url", "nfs: server."),
    other("gpu_dev_ids", "libcufile: GPUs.").also(&["gpu_dev_id"]),
    other("cuda_io", "libcufile: transfer mode."),
    other("serverip", "librpma: server."),
    other("direct_write_to_pmem", "librpma: writes to persistent memory."),
    other("busy_wait_polling", "librpma: polls."),
    other("xnvme_async", "xnvme: asynchronous interface."),
    other("xnvme_sync", "xnvme: synchronous interface."),
    other("xnvme_admin", "xnvme: admin interface."),
    other("xnvme_dev_nsid", "xnvme: namespace."),
    other("xnvme_iovec", "xnvme: vectored commands."),
];
