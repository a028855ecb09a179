//! Classifies waits by the kernel functions on the stack.
//!
//! The kernel's own flag for waits for I/O (`in_iowait`) is not set in waits for XFS buffers, FUSE
//! and `io_getevents`, so the functions take precedence.

use observe::WaitReason;

use crate::recording::WaitClass;

/// Kernel functions of each class, in order of precedence: the first class with a function on the
/// stack wins. A name that ends with `*` is a prefix.
const CLASSES: &[(WaitClass, &[&str])] = &[
    (
        WaitClass::Throttle,
        &[
            "blk_throtl*",
            "__blk_throtl*",
            "ioc_rqos_throttle",
            "blkcg_iolatency*",
            "iolatency*",
            "blkcg_maybe_throttle*",
        ],
    ),
    (WaitClass::Swap, &["swap_readpage", "swap_read_folio", "do_swap_page", "swapin_readahead"]),
    (
        WaitClass::WriteBack,
        &[
            "balance_dirty_pages*",
            "wbt_wait",
            "jbd2_log_wait_commit",
            "jbd2_complete_transaction",
            "xfs_log_force*",
            "xlog_wait*",
            "vfs_fsync*",
            "do_fsync",
            "__x64_sys_fsync",
            "file_write_and_wait_range",
            "filemap_write_and_wait*",
            "folio_wait_writeback",
            "wait_on_page_writeback",
            "__filemap_fdatawait_range",
            "sync_inodes_sb",
            "do_get_write_access",
            "wait_transaction_locked",
            "add_transaction_credits",
            "btrfs_commit_transaction",
            "ksys_sync",
            "blkdev_issue_flush",
        ],
    ),
    (WaitClass::Advice, &["generic_fadvise", "ksys_fadvise64_64", "do_madvise", "ksys_readahead"]),
    (
        WaitClass::Direct,
        &[
            "iomap_dio*",
            "__iomap_dio_rw",
            "__blkdev_direct_IO*",
            "blkdev_direct_IO",
            "btrfs_dio*",
            "ext4_dio*",
            "io_getevents*",
            "read_events",
            "do_io_getevents",
        ],
    ),
    (
        WaitClass::Metadata,
        &[
            "xfs_buf_iowait",
            "xfs_buf_submit*",
            "xfs_buf_read*",
            "ext4_bread*",
            "__bread*",
            "__wait_on_buffer",
            "ext4_read_bh*",
            "bh_read*",
            "ext4_get_inode_loc",
            "__ext4_get_inode_loc*",
            "ext4_find_entry",
            "__ext4_find_entry",
            "ext4_map_blocks",
            "ext4_sb_bread*",
            "read_tree_block",
            "btrfs_read_extent_buffer*",
            "read_extent_buffer*",
            "path_openat",
            "iterate_dir",
            "vfs_statx",
            "fuse_lookup*",
            "fuse_readdir*",
        ],
    ),
];

/// Functions that wait for a page of a file.
const PAGE_WAITS: &[&str] = &[
    "folio_wait_bit*",
    "__folio_lock*",
    "filemap_get_pages",
    "filemap_update_page",
    "filemap_fault",
    "filemap_read",
    "filemap_read_folio",
    "__lock_page*",
    "wait_on_page_bit*",
    "put_and_wait_on_page_locked",
    "folio_put_wait_locked",
    "page_cache_ra_unbounded",
    "page_cache_ra_order",
    "blk_mq_get_tag",
    "rq_qos_wait",
    "fuse_readahead",
    "request_wait_answer",
    "__fuse_request_send",
    "nfs_wait_bit*",
    "netfs_*",
];

/// Functions that read data of a file or of a mapping.
const FILE_READS: &[&str] = &[
    "vfs_read*",
    "do_iter_read*",
    "filemap_read*",
    "filemap_fault",
    "page_cache_ra*",
    "force_page_cache_ra*",
];

fn has(kernel: &[&str], name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(start) => kernel.iter().any(|function| function.starts_with(start)),
        None => kernel.contains(&name),
    }
}

/// Returns the class of a wait with these kernel functions on its stack. If the functions do not
/// decide, the kernel's flag and the last page event of the thread do.
pub(crate) fn classify(kernel: &[&str], in_iowait: bool, reason: WaitReason) -> WaitClass {
    for (class, functions) in CLASSES {
        if functions.iter().any(|function| has(kernel, function)) {
            return *class;
        }
    }
    let waits_for_page = PAGE_WAITS.iter().any(|function| has(kernel, function));
    if !waits_for_page && !in_iowait {
        return WaitClass::Other;
    }
    match reason {
        WaitReason::Miss => WaitClass::Miss,
        WaitReason::None | WaitReason::Mark | WaitReason::Fault => WaitClass::InFlight,
    }
}

/// Returns whether a thread with these kernel functions on its stack reads data of a file. Only
/// then does a wait for metadata belong to the file that the thread last used (its map of blocks),
/// and not to a path that is looked up.
pub(crate) fn reads_data(kernel: &[&str]) -> bool {
    FILE_READS.iter().any(|function| has(kernel, function))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_metadata_within_a_read_belong_to_its_file() {
        let opening = ["io_schedule", "xfs_buf_iowait", "xfs_lookup", "path_openat"];
        assert!(!reads_data(&opening));
        let listing = ["io_schedule", "__wait_on_buffer", "ext4_readdir", "iterate_dir"];
        assert!(!reads_data(&listing));
        let reading = ["io_schedule", "xfs_buf_iowait", "xfs_bmapi_read", "read_pages", "vfs_read"];
        assert!(reads_data(&reading));
        let mapping = ["io_schedule", "ext4_map_blocks", "filemap_fault", "handle_mm_fault"];
        assert!(reads_data(&mapping));
    }

    #[test]
    fn functions_decide_before_the_mark_of_the_kernel() {
        let class = |kernel: &[&str], in_iowait| classify(kernel, in_iowait, WaitReason::None);
        assert_eq!(
            class(&["schedule", "xfs_buf_iowait", "xfs_readdir"], false),
            WaitClass::Metadata
        );
        assert_eq!(class(&["schedule", "iomap_dio_rw"], true), WaitClass::Direct);
        assert_eq!(class(&["schedule", "futex_wait"], false), WaitClass::Other);
        assert_eq!(
            class(&["schedule", "vfs_fsync_range", "folio_wait_bit"], true),
            WaitClass::WriteBack
        );
        // Writes, which the kernel delays so that reads come first.
        let of_writes = ["io_schedule", "rq_qos_wait", "wbt_wait", "__rq_qos_throttle"];
        assert_eq!(class(&of_writes, true), WaitClass::WriteBack);
        let of_limit = ["io_schedule", "ioc_rqos_throttle", "__rq_qos_throttle"];
        assert_eq!(class(&of_limit, true), WaitClass::Throttle);
        assert_eq!(class(&["io_schedule", "folio_wait_bit_common"], false), WaitClass::InFlight);
        assert_eq!(class(&[], true), WaitClass::InFlight);
        assert_eq!(classify(&[], true, WaitReason::Miss), WaitClass::Miss);
    }
}
