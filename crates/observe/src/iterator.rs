//! Running an iterator, over all processes or over one only (Linux 6.1), which the loader cannot
//! ask for.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Commands of `bpf(2)` and the kind of link (include/uapi/linux/bpf.h).
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_ITER_CREATE: libc::c_long = 33;
const BPF_TRACE_ITER: u32 = 28;

/// The part of `union bpf_attr` that makes a link for an iterator.
#[repr(C)]
struct LinkCreate {
    program: u32,
    target: u32,
    kind: u32,
    flags: u32,
    iterator: u64,
    iterator_length: u32,
    padding: u32,
}

/// The part of `union bpf_iter_link_info` that chooses a process.
#[repr(C)]
struct ChosenTask {
    thread: u32,
    process: u32,
    pidfd: u32,
}

/// The part of `union bpf_attr` that starts an iterator.
#[repr(C)]
struct IterCreate {
    link: u32,
    flags: u32,
}

const _: () = assert!(size_of::<LinkCreate>() == 32 && size_of::<ChosenTask>() == 12);

/// The output of the iterator `program`, run over all processes.
pub(crate) fn over_all(program: BorrowedFd<'_>) -> io::Result<File> {
    run(program, 0, 0)
}

/// The output of the iterator `program`, run over the process `pid` alone.
pub(crate) fn over_process(program: BorrowedFd<'_>, pid: u32) -> io::Result<File> {
    let chosen = ChosenTask { thread: 0, process: pid, pidfd: 0 };
    run(program, (&raw const chosen).addr() as u64, size_of::<ChosenTask>() as u32)
}

/// `choice` is the address of `length` bytes that say over what, or 0.
fn run(program: BorrowedFd<'_>, choice: u64, length: u32) -> io::Result<File> {
    let attributes = LinkCreate {
        program: number(program.as_raw_fd()),
        target: 0,
        kind: BPF_TRACE_ITER,
        flags: 0,
        iterator: choice,
        iterator_length: length,
        padding: 0,
    };
    let link = bpf(BPF_LINK_CREATE, &attributes)?;
    let start = IterCreate { link: number(link.as_raw_fd()), flags: 0 };
    bpf(BPF_ITER_CREATE, &start).map(File::from)
}

fn number(descriptor: RawFd) -> u32 {
    u32::try_from(descriptor).unwrap_or(u32::MAX)
}

/// A command that gives a descriptor.
fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    let size = size_of::<T>();
    // SAFETY: the kernel reads `size` bytes of the attributes, and what they point at, all of which
    // live until the call returns; it writes nothing.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size) };
    match RawFd::try_from(result) {
        // SAFETY: the kernel has just made this descriptor, and nobody else knows of it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
