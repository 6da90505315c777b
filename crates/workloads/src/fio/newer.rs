//! What people write that fio 3.33 does not have: options of later versions, and engines from elsewhere.

/// What an option of a fio after 3.33 is for.
pub(crate) fn option(name: &str) -> Option<&'static str> {
    Some(match name {
        "fdp" | "fdp_pli" | "fdp_pli_select" | "dataplacement" | "plids" | "plid_select"
        | "dp_scheme" => "places data by hints of NVMe commands, which pass by the I/O scheduler",
        "md_per_io_size" | "pi_act" | "pi_chk" | "apptag" | "apptag_mask" => {
            "is for metadata of NVMe commands, which pass by the I/O scheduler"
        }
        "readfua" | "writefua" | "write_mode" | "verify_mode" | "deac" => {
            "is for ioengine=io_uring_cmd, which passes by the I/O scheduler"
        }
        "num_range" => "trims several ranges by one command",
        "cmdprio_hint" | "priohint" => "gives I/Os a hint of duration limits",
        "thinkcycles" => "thinks in cycles of the CPU; thinktime is simulated",
        "job_start_clock_id" | "log_window_value" | "log_issue_time" => {
            "changes only logs and reports"
        }
        "steadystate_check_interval" | "ss_interval" => {
            "goes with steadystate, which is not simulated"
        }
        "verify_write_sequence" | "verify_header_seed" => {
            "goes with verify, which is not simulated"
        }
        "recover_zbd_write_error" => "goes with zonemode, which is not simulated",
        "ramp_size" => "ends the ramp by bytes; ramp_time is simulated",
        "sprandom" | "spr_op" | "spr_num_regions" => "fills a drive to its steady state",
        "libaio_vectored" => "makes vectored calls",
        _ => return None,
    })
}

/// Why there is no engine of this name, which fio 3.33 does not have either.
pub(crate) fn engine(name: &str) -> Option<&'static str> {
    Some(match name {
        "spdk" | "spdk_bdev" | "spdk_nvme" => {
            "SPDK drives the device from user space, so no scheduler of the kernel sees its I/O (fio loads it as \
             ioengine=external:PATH)"
        }
        "dircreate" | "dirstat" | "dirdelete" => "it is of a fio newer than 3.33",
        "syslet-rw" | "binject" | "fusion-aw-sync" | "rdma_client" => "fio 3.33 no longer has it",
        "io_uring_nvme" | "nvme" => "commands to an NVMe drive pass by the I/O scheduler",
        _ => return None,
    })
}
