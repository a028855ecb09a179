//! The standard suite of workloads.

use units::Bytes;

use crate::{AccessMethod, Pattern, Sharing, Workload, WorkloadError};

/// The block of streams: a page. A larger one would hide small windows, because a read larger than
/// the window is served in full. With a page, only read-ahead determines the request size.
const STREAM_BLOCK: Bytes = Bytes::from_kib(4);
/// The block of the strided reader.
const STRIDE_BLOCK: Bytes = Bytes::from_kib(64);
/// The block of random reads: a page.
const RANDOM_BLOCK: Bytes = Bytes::from_kib(4);
/// The number of concurrent readers, as in the tables published in 2008.
const READER_COUNT: u32 = 8;

/// The block of writers, as in bonnie++.
const WRITE_BLOCK: Bytes = Bytes::from_kib(8);

/// Workloads that write, in addition to the suite, which only reads.
const WRITING: &[&str] = &["seq-write", "rewrite"];

const NAMES: &[&str] = &["seq-1", "seq-8", "rand-pread", "rand-mmap", "mixed", "stride"];

fn build(name: &str) -> Option<Workload> {
    let stream = |pattern| Workload::new(name, pattern, STREAM_BLOCK);
    let random = || Workload {
        readers: READER_COUNT,
        ..Workload::new(name, Pattern::Uniform, RANDOM_BLOCK)
    };
    let workload = match name {
        "seq-1" => stream(Pattern::Sequential),
        "seq-8" => Workload { readers: READER_COUNT, ..stream(Pattern::Sequential) },
        "rand-pread" => random(),
        "rand-mmap" => Workload { access: AccessMethod::Mmap, ..random() },
        "mixed" => {
            let pattern = Pattern::Mixed {
                random_fraction: 0.1,
                random_block: RANDOM_BLOCK,
                same_open_file: false,
            };
            Workload { readers: READER_COUNT, ..stream(pattern) }
        }
        "stride" => {
            Workload::new(name, Pattern::Stride { step: Bytes::from_kib(256) }, STRIDE_BLOCK)
        }
        "seq-write" => Workload::new(name, Pattern::Write, WRITE_BLOCK),
        "rewrite" => Workload::new(name, Pattern::Rewrite, WRITE_BLOCK),
        _ => return None,
    };
    debug_assert_eq!(workload.sharing, Sharing::OwnFile);
    Some(workload)
}

impl Workload {
    /// Returns the standard suite, in the order of its tables:
    ///
    /// | name | question |
    /// |---|---|
    /// | `seq-1` | what does one reader of one file get? |
    /// | `seq-8` | what do eight concurrent readers of eight files get? |
    /// | `rand-pread` | what do random reads cost? |
    /// | `rand-mmap` | what do random faults of mapped files cost? |
    /// | `mixed` | what do eight streams get alongside random reads? |
    /// | `stride` | what does a reader get that skips? |
    pub fn suite() -> Vec<Self> {
        NAMES.iter().filter_map(|name| build(name)).collect()
    }

    /// Returns the workloads that write to their own files: `seq-write` (how fast is block output?)
    /// and `rewrite` (how fast is reading, changing and writing back?).
    pub fn writing() -> Vec<Self> {
        WRITING.iter().filter_map(|name| build(name)).collect()
    }

    /// Returns the workload with this name, of the suite or among those that write.
    pub fn named(name: &str) -> Result<Self, WorkloadError> {
        build(name).ok_or_else(|| {
            let known = || NAMES.iter().chain(WRITING).copied();
            WorkloadError::UnknownName {
                name: name.to_owned(),
                near: units::text::nearest(name, known()),
                known: known().collect::<Vec<_>>().join(", "),
            }
        })
    }
}
