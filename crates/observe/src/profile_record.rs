//! Records of the profiler's programs: the Rust side of `bpf/profile.h`.

use crate::record::Plain;

/// Maximum number of frames of a stack.
pub(crate) const KERNEL_FRAMES: usize = 32;
pub(crate) const USER_FRAMES: usize = 48;
const STACK_WORDS: usize = 64;
/// Maximum number of components of a name, and of bytes of each.
pub(crate) const NAME_PARTS: usize = 16;
pub(crate) const NAME_BYTES: usize = 64;

/// `struct profile_record`: one event.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ProfileRecord {
    pub time_ns: u64,
    pub duration_ns: u64,
    /// For a request, this and the inode contain the name of its thread.
    pub file: u64,
    pub inode: u64,
    pub offset: u64,
    pub length: u64,
    pub stack: u64,
    pub result: i64,
    pub waited_ns: u64,
    pub size_bytes: u64,
    pub device: u32,
    pub pid: u32,
    pub tid: u32,
    pub kind: u32,
    pub mode: u32,
    pub flags: u32,
    pub ra_pages: u32,
    pub detail: u32,
    pub in_iowait: u32,
    pub extra: u32,
}

const _: () = assert!(size_of::<ProfileRecord>() == 120);

/// `struct cached_reads`: an entry that follows a record of cached reads.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CachedReads {
    pub offset: u64,
    pub bytes: u32,
    pub calls: u32,
    pub start_ns: u32,
    pub end_ns: u32,
}

const _: () = assert!(size_of::<CachedReads>() == 24);

/// `struct stack_record`: a stack, once for each process and key.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct StackRecord {
    pub key: u64,
    pub code_mappings: u64,
    pub user_ip: u64,
    pub pid: u32,
    pub tid: u32,
    pub kernel_count: u32,
    pub user_count: u32,
    pub kernel: [u64; KERNEL_FRAMES],
    pub user: [u64; USER_FRAMES],
    pub words: [u64; STACK_WORDS],
}

const _: () = assert!(size_of::<StackRecord>() == 1192);

/// `struct name_record`: the name of a file, once.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct NameRecord {
    pub inode: u64,
    pub size_bytes: u64,
    pub device: u32,
    pub pid: u32,
    pub kind: u32,
    pub zero: u32,
    pub parts: [[u8; NAME_BYTES]; NAME_PARTS],
}

const _: () = assert!(size_of::<NameRecord>() == 1056);

/// `struct thread_time`: how a thread spent its time.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ThreadTimeRecord {
    pub first_ns: u64,
    pub last_ns: u64,
    pub cpu_ns: u64,
    pub runnable_ns: u64,
    pub blocked_ns: u64,
    pub pid: u32,
    pub zero: u32,
    pub comm: [u8; 16],
}

const _: () = assert!(size_of::<ThreadTimeRecord>() == 64);

/// `struct profile_config`: the processes to profile.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ProfileConfig {
    pub spawner: u32,
    pub mode: u32,
}

// SAFETY: integers and byte arrays whose sizes add up to the structure's: no padding.
unsafe impl Plain for ProfileRecord {}
// SAFETY: as above.
unsafe impl Plain for CachedReads {}
// SAFETY: as above.
unsafe impl Plain for StackRecord {}
// SAFETY: as above.
unsafe impl Plain for NameRecord {}
// SAFETY: integers without padding, as in bpf/profile.h.
unsafe impl aya::Pod for ProfileConfig {}
// SAFETY: as above.
unsafe impl aya::Pod for ThreadTimeRecord {}
