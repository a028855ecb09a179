//! All options of fio, and how they are handled here.
//!
//! The names are those of `options.c` and of the engines of fio 3.42, including old ones. fio
//! itself rejects options that the installed version does not know.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionUse {
    Own,
    /// Passed to fio; not supported by our own engine.
    Fio,
    /// Passed to fio; irrelevant for our own engine.
    Both,
    /// Ignored with a note: it does not affect measurements, or foreread does it differently.
    Ignored(&'static str),
    Refused(&'static str),
}

/// Options of one kind, by name; a name after `/` is an alias of the one before.
struct OptionClass {
    handling: OptionUse,
    names: &'static str,
}

const LOGS: &str = "foreread reads fio's JSON and keeps its own record";
const REPORTS: &str = "it only affects fio's own report";
const FILES: &str = "foreread creates and removes the files";
const TRIALS: &str = "foreread repeats trials itself";
const CHECKS: &str = "foreread measures and checks no data: run this file with fio itself";
const TRIMS: &str = "foreread does not trim";
const ENGINE: &str = "an option of unsupported ioengines: they read neither files nor block \
                      devices through the kernel";
const REPLAYS: &str = "give the log to foreread as a workload of its own: --workload trace:FILE";
const RIGHTS: &str = "foreread runs fio as its own user";
const COMMANDS: &str = "commands in a job file are not run: use --prepare with a workload cmd:…";
const ZONED: &str = "zoned block devices are not supported";
const OWN_SETTINGS: &str = "foreread sets the scheduler itself: --vary scheduler=…";
const OTHERS: &str = "this kind of job is not supported";

const SORTS: &[OptionClass] = &[
    OptionClass {
        handling: OptionUse::Own,
        names: "rw/readwrite bs/blocksize bsrange/blocksize_range ioengine iodepth direct buffered \
                size filesize io_size/io_limit offset/fileoffset offset_increment \
                nrfiles/nr_files filename directory filename_format numjobs runtime/timeout \
                time_based loops thinktime fadvise_hint norandommap random_distribution \
                percentage_random rwmixread rwmixwrite stonewall/wait_for_previous kb_base name \
                file_service_type pre_read invalidate ramp_time startdelay",
    },
    OptionClass {
        handling: OptionUse::Both,
        names: "thread clocksource mem/iomem iomem_align/mem_align gtod_reduce disable_lat \
                disable_clat disable_slat disable_bw_measurement/disable_bw gtod_cpu \
                randrepeat/allrandrepeat random_generator softrandommap nice prio prioclass \
                priohint cpus_allowed cpus_allowed_policy cpumask numa_cpu_nodes numa_mem_policy \
                lockmem exitall exit_what exitall_on_error create_serialize openfiles \
                allow_file_create job_start_clock_id thp hipri hipri_percentage userspace_reap \
                libaio_vectored fixedbufs registerfiles sqthread_poll sqthread_poll_cpu \
                nonvectored force_async hugepage-size iodepth_batch/iodepth_batch_submit \
                iodepth_batch_complete_min/iodepth_batch_complete iodepth_batch_complete_max \
                iodepth_low ba/blockalign rw_sequencer gpu_dev_id serialize_overlap zero_buffers \
                refill_buffers scramble_buffers buffer_pattern buffer_compress_percentage \
                buffer_compress_chunk dedupe_percentage dedupe_global dedupe_mode \
                dedupe_working_set_percentage write_hint fsync fdatasync write_barrier end_fsync \
                fsync_on_close end_syncfs create_fsync create_on_open sync sync_file_range",
    },
    OptionClass {
        handling: OptionUse::Fio,
        names: "bssplit bs_unaligned/blocksize_unaligned bs_is_seq_rand io_submit_mode \
                offset_align number_ios num_range atomic rate rate_min/ratemin rate_iops \
                rate_iops_min rate_process rate_cycle/ratecycle rate_ignore_thinktime max_latency \
                latency_target latency_window latency_percentile latency_run thinktime_spin \
                thinkcycles thinktime_blocks thinktime_blocks_type thinktime_iotime \
                random_sequence_stride ramp_size flow_id flow flow_watermark flow_sleep wait_for \
                zonemode zonesize zonecapacity zonerange zoneskip lockfile uncached nowait \
                cmdprio_percentage cmdprio_class cmdprio cmdprio_bssplit readfua writefua \
                percentage_sequential experimental_verify continue_on_error ignore_error \
                error_dump",
    },
    OptionClass {
        handling: OptionUse::Ignored(LOGS),
        names: "write_bw_log write_lat_log write_iops_log write_hist_log log_entries log_avg_msec \
                log_hist_msec log_hist_coarseness log_window_value/log_max_value log_offset \
                log_prio log_issue_time log_compression log_compression_cpus log_store_compressed \
                log_alternate_epoch/log_unix_epoch log_alternate_epoch_clock_id per_job_logs \
                write_iolog",
    },
    OptionClass {
        handling: OptionUse::Ignored(REPORTS),
        names: "description group_reporting new_group bwavgtime iopsavgtime stats \
                block_error_percentiles clat_percentiles lat_percentiles slat_percentiles \
                percentile_list significant_figures disk_util unified_rw_reporting unit_base \
                rwmixcycle clat_percentile",
    },
    OptionClass {
        handling: OptionUse::Ignored(FILES),
        names: "fallocate unlink unlink_each_loop unique_filename overwrite filetype \
                allow_mounted_write",
    },
    OptionClass {
        handling: OptionUse::Ignored(TRIALS),
        names: "steadystate/ss steadystate_duration/ss_dur steadystate_ramp_time/ss_ramp \
                steadystate_check_interval/ss_interval randseed",
    },
    OptionClass {
        handling: OptionUse::Refused(CHECKS),
        names: "verify do_verify verify_only verify_policy verifysort verifysort_nr \
                verify_interval verify_offset verify_pattern verify_pattern_interval verify_fatal \
                verify_dump verify_async verify_async_cpus verify_backlog verify_backlog_batch \
                verify_state_load verify_state_save verify_write_sequence verify_header_seed \
                trim_verify_zero",
    },
    OptionClass {
        handling: OptionUse::Refused(TRIMS),
        names: "trim_percentage trim_backlog trim_backlog_batch",
    },
    OptionClass {
        handling: OptionUse::Refused(REPLAYS),
        names: "read_iolog read_iolog_chunked replay_no_stall replay_redirect replay_scale \
                replay_align replay_time_scale replay_skip merge_blktrace_file \
                merge_blktrace_scalars merge_blktrace_iters",
    },
    OptionClass { handling: OptionUse::Refused(COMMANDS), names: "exec_prerun exec_postrun" },
    OptionClass {
        handling: OptionUse::Refused(RIGHTS),
        names: "uid gid cgroup cgroup_nodelete cgroup_weight",
    },
    OptionClass { handling: OptionUse::Refused(OWN_SETTINGS), names: "ioscheduler" },
    OptionClass {
        handling: OptionUse::Refused(ZONED),
        names: "read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits \
                zone_reset_threshold zone_reset_frequency recover_zbd_write_error \
                write_zone_remainder fdp dataplacement/data_placement plid_select/fdp_pli_select \
                plids/fdp_pli dp_scheme",
    },
    OptionClass {
        handling: OptionUse::Refused(OTHERS),
        names: "opendir file_append fill_device/fill_fs create_only profile sprandom \
                spr_num_regions spr_op spr_cs comm",
    },
    OptionClass {
        handling: OptionUse::Refused(ENGINE),
        names: "stat_type hostname port protocol/proto nodelay listen pingpong interface ttl \
                window_size mss netsplice namenode hdfsdirectory chunk_size/chunck_size \
                single_instance hdfs_use_direct no_completion_thread pool cont object_class svcl \
                gpu_dev_ids cuda_io rocm_io xnvme_be xnvme_mem xnvme_async xnvme_sync xnvme_admin \
                xnvme_dev_nsid xnvme_dev_subnqn xnvme_iovec md_per_io_size pi_act pi_chk apptag \
                apptag_mask clustername rbdname clientname busy_poll rbd_encryption_format \
                rbd_encryption_passphrase sg_write_mode stream_id libblkio_driver libblkio_path \
                libblkio_pre_connect_props libblkio_num_entries libblkio_queue_size \
                libblkio_pre_start_props libblkio_vectored libblkio_write_zeroes_on_trim \
                libblkio_wait_mode libblkio_force_enable_completion_eventfd conf touch_objects uri \
                bindname verb initiator donorname inplace cpuload cpumode cpuchunks \
                exit_on_io_done nfs_url https http_host http_user http_pass http_s3_key \
                http_s3_keyid http_s3_security_token http_swift_auth_token http_s3_region \
                http_s3_sse_customer_key http_s3_sse_customer_algorithm http_s3_storage_class \
                http_mode http_verbose http_object_mode volume brick single-instance skip_bad \
                cmd_type cdb_len verify_bytchk read_mode write_mode verify_mode deac program \
                arguments grace_time std_redirect",
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Main name.
    pub(crate) name: &'static str,
    pub(crate) handling: OptionUse,
}

fn entries() -> impl Iterator<Item = (&'static str, OptionUse)> {
    SORTS
        .iter()
        .flat_map(|sort| sort.names.split_ascii_whitespace().map(|names| (names, sort.handling)))
}

/// Returns the option with this name. fio's names are lower case.
pub(crate) fn find(name: &str) -> Option<Known> {
    let found = entries().find(|(names, _)| names.split('/').any(|known| known == name));
    found
        .map(|(names, handling)| Known { name: names.split('/').next().unwrap_or(names), handling })
}

/// Returns the most similar name of an option.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    units::text::nearest(name, entries().flat_map(|(names, _)| names.split('/')))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_name_is_there_once() {
        let names: Vec<&str> = entries().flat_map(|(names, _)| names.split('/')).collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), distinct.len());
        assert!(names.len() > 350);
    }

    #[test]
    fn other_names_lead_to_the_same_option() {
        assert_eq!(find("blocksize").unwrap().name, "bs");
        assert_eq!(find("bs").unwrap().handling, OptionUse::Own);
        assert_eq!(find("ss_dur").unwrap().name, "steadystate_duration");
        assert_eq!(find("blocksiz"), None);
    }

    #[test]
    fn what_is_misspelt_is_recognised() {
        assert_eq!(nearest("blocksiz"), Some("blocksize"));
        assert_eq!(nearest("fadvise_hints"), Some("fadvise_hint"));
        assert_eq!(nearest("RunTime"), Some("runtime"));
        assert_eq!(nearest("qqqqqqqq"), None);
    }
}
