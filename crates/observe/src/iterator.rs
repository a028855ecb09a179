//! Loads a BPF iterator, and runs it over all processes or over one (Linux 6.1).
//!
//! aya cannot select one process. It can load an iterator, but each of its loaders first reads all
//! types of the kernel, which takes 25 ms.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use aya_obj::generated::bpf_insn;

use crate::ObserveError;
use crate::object::{KernelTypes, Object, inflated, of_verifier, refused};

/// Commands of `bpf(2)`, and kinds of program and link (include/uapi/linux/bpf.h).
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_ITER_CREATE: libc::c_long = 33;
const BPF_PROG_TYPE_TRACING: u32 = 26;
const BPF_TRACE_ITER: u32 = 28;

/// The size of the log in bytes: enough for a program of some hundred instructions.
const LOG_LENGTH: usize = 1 << 20;

/// The part of `union bpf_attr` that loads a program.
#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_length: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_kind: u32,
    /// Descriptions of the program's own functions and lines, which are omitted.
    types_and_lines: [u32; 9],
    attach_type_id: u32,
    attach_program: u32,
    padding: u32,
}

/// The part of `union bpf_attr` that creates a link for an iterator.
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

/// The part of `union bpf_iter_link_info` that selects a process.
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
const _: () = assert!(std::mem::offset_of!(ProgramLoad, attach_type_id) == 108);

/// Loads the iterator `program` of a compiled object, which runs over `target` (`task_file`).
pub(crate) fn load(
    object: Object,
    types: &KernelTypes,
    program: &'static str,
    target: &str,
) -> Result<OwnedFd, ObserveError> {
    let missing = || ObserveError::Refused {
        program,
        problem: "it is not among the programs of this foreread".to_owned(),
    };
    let object = inflated(object)?;
    let mut object = aya_obj::Object::parse(&object).map_err(|error| refused(program, &error))?;
    object.relocate_btf(types.fields()).map_err(|error| refused(program, &error))?;
    let id = types.function(&format!("bpf_iter_{target}"));
    let id = id.map_err(|error| refused(program, &error))?;
    let found = object.programs.get(program).ok_or_else(missing)?;
    let code = object.functions.get(&found.function_key()).ok_or_else(missing)?;
    let attempt = |log: &mut [u8]| submit(program, &code.instructions, &found.license, id, log);
    attempt(&mut []).map_err(|error| {
        // The verifier is slower with a log, and an accepted program needs none.
        let mut log = vec![0; LOG_LENGTH];
        let again = attempt(&mut log).err().unwrap_or(error);
        let log = CStr::from_bytes_until_nul(&log).unwrap_or_default();
        of_verifier(program, &again, &log.to_string_lossy())
    })
}

fn submit(
    name: &str,
    instructions: &[bpf_insn],
    license: &CStr,
    attach_type_id: u32,
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    let mut short = [0; 16];
    // The last byte stays zero.
    short.iter_mut().take(15).zip(name.bytes()).for_each(|(to, from)| *to = from);
    // Exposed provenance, because the kernel writes the log, which the compiler cannot see.
    let address = |of: *const u8| of.expose_provenance() as u64;
    let attributes = ProgramLoad {
        kind: BPF_PROG_TYPE_TRACING,
        instruction_count: instructions.len() as u32,
        instructions: address(instructions.as_ptr().cast()),
        license: address(license.as_ptr().cast()),
        log_level: u32::from(!log.is_empty()),
        log_length: log.len() as u32,
        log: if log.is_empty() { 0 } else { address(log.as_mut_ptr()) },
        kernel_version: 0,
        flags: 0,
        name: short,
        interface: 0,
        attach_kind: BPF_TRACE_ITER,
        types_and_lines: [0; 9],
        attach_type_id,
        attach_program: 0,
        padding: 0,
    };
    bpf(BPF_PROG_LOAD, &attributes)
}

/// Runs the iterator `program` over all processes, and returns its output.
pub(crate) fn over_all(program: BorrowedFd<'_>) -> io::Result<File> {
    run(program, 0, 0)
}

/// Runs the iterator `program` over the process `pid` alone, and returns its output.
pub(crate) fn over_process(program: BorrowedFd<'_>, pid: u32) -> io::Result<File> {
    let chosen = ChosenTask { thread: 0, process: pid, pidfd: 0 };
    run(program, (&raw const chosen).addr() as u64, size_of::<ChosenTask>() as u32)
}

/// `choice` is the address of `length` bytes that select the processes, or 0 for all.
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

/// Executes a command that returns a descriptor.
fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    let size = size_of::<T>();
    // SAFETY: the kernel reads `size` bytes of the attributes, and what they point at, all of which
    // live until the call returns; it writes nothing but the log, which is borrowed mutably.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attributes, size) };
    match RawFd::try_from(result) {
        // SAFETY: the kernel has just created this descriptor, and no other code uses it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
