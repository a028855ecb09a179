//! Runs commands without the effect of their advice: a seccomp filter fakes success.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Advice values for which the filter returns success without executing the call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MutedAdvice {
    /// Advice values of `posix_fadvise(2)`.
    pub fadvise: Vec<u32>,
    /// Advice values of `madvise(2)`. Memory allocators use other values than readers of files.
    pub madvise: Vec<u32>,
}

impl MutedAdvice {
    pub fn is_empty(&self) -> bool {
        self.fadvise.is_empty() && self.madvise.is_empty()
    }
}

/// The architecture in `struct seccomp_data`. System call numbers depend on it.
#[cfg(target_arch = "x86_64")]
const MACHINE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const MACHINE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: Option<u32> = None;

/// Offsets in `struct seccomp_data` (include/uapi/linux/seccomp.h).
const CALL_OFFSET: u32 = 0;
const MACHINE_OFFSET: u32 = 4;
const ARGUMENTS_OFFSET: u32 = 16;
const ARGUMENT_BYTES: u32 = 8;
/// Index of the advice among the arguments.
const FADVISE_ARGUMENT: u32 = 3;
const MADVISE_ARGUMENT: u32 = 2;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN_VALUE: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

fn load(offset: u32) -> libc::sock_filter {
    libc::sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: offset }
}

/// Skips `equal` instructions if the loaded word equals `value`, otherwise `unequal`.
fn compare(value: u32, equal: u8, unequal: u8) -> libc::sock_filter {
    libc::sock_filter { code: JUMP_IF_EQUAL, jt: equal, jf: unequal, k: value }
}

fn answer(value: u32) -> libc::sock_filter {
    libc::sock_filter { code: RETURN_VALUE, jt: 0, jf: 0, k: value }
}

/// Returns a filter that compares the call and then the value of each muted advice. Calls of other
/// architectures pass.
fn filter(machine: u32, muted: &MutedAdvice) -> Vec<libc::sock_filter> {
    let allow = answer(libc::SECCOMP_RET_ALLOW);
    // Errno 0 means success.
    let succeed = answer(libc::SECCOMP_RET_ERRNO);
    let fadvise = muted.fadvise.iter().map(|value| (libc::SYS_fadvise64, FADVISE_ARGUMENT, *value));
    let madvise = muted.madvise.iter().map(|value| (libc::SYS_madvise, MADVISE_ARGUMENT, *value));
    let mut program = vec![load(MACHINE_OFFSET), compare(machine, 1, 0), allow];
    for (call, argument, value) in fadvise.chain(madvise) {
        program.extend([
            load(CALL_OFFSET),
            compare(call as u32, 0, 3),
            load(ARGUMENTS_OFFSET + argument * ARGUMENT_BYTES),
            compare(value, 0, 1),
            succeed,
        ]);
    }
    program.push(allow);
    program
}

/// Suppresses this advice of the command and its children. These can no longer gain privileges from
/// set-user-ID programs (`no_new_privs`).
///
/// # Errors
///
/// If the system calls of this architecture are unknown.
pub fn mute_advice(command: &mut Command, muted: &MutedAdvice) -> io::Result<()> {
    let machine = MACHINE.ok_or(io::ErrorKind::Unsupported)?;
    let mut program = filter(machine, muted);
    let install = move || {
        let length = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let filter = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
        // SAFETY: both calls only read their arguments, and the program lives until they return.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
                    == 0
        };
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec, the closure only makes two system calls. It takes no lock and
    // allocates only on failure.
    unsafe { command.pre_exec(install) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the filter's result from an interpreter of the three instructions that it uses.
    fn run(program: &[libc::sock_filter], machine: u32, call: i64, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend((call as u32).to_le_bytes());
        data.extend(machine.to_le_bytes());
        data.extend([0; 8]);
        arguments.iter().for_each(|argument| data.extend(argument.to_le_bytes()));
        let (mut at, mut word) = (0, 0);
        loop {
            let one = program[at];
            at += 1;
            match one.code {
                LOAD_WORD => {
                    let start = one.k as usize;
                    word = u32::from_le_bytes(data[start..start + 4].try_into().unwrap());
                }
                JUMP_IF_EQUAL => at += usize::from(if word == one.k { one.jt } else { one.jf }),
                _ => return one.k,
            }
        }
    }

    #[test]
    fn chosen_advice_succeeds_and_all_else_passes() {
        let muted = MutedAdvice { fadvise: vec![1, 4], madvise: vec![1] };
        let program = filter(7, &muted);
        let fadvise = |advice| run(&program, 7, libc::SYS_fadvise64, [3, 0, 0, advice, 0, 0]);
        let madvise = |advice| run(&program, 7, libc::SYS_madvise, [9, 9, advice, 0, 0, 0]);
        let (allow, succeed) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_ERRNO);
        assert_eq!([0, 1, 2, 3, 4].map(fadvise), [allow, succeed, allow, allow, succeed]);
        assert_eq!([0, 1, 4].map(madvise), [allow, succeed, allow]);
        assert_eq!(run(&program, 7, libc::SYS_read, [1, 1, 1, 1, 1, 1]), allow);
        assert_eq!(run(&program, 8, libc::SYS_fadvise64, [3, 0, 0, 1, 0, 0]), allow);
    }

    #[test]
    fn a_command_with_the_filter_runs() {
        let mut command = Command::new("true");
        let muted = MutedAdvice { fadvise: vec![1], madvise: vec![1] };
        if mute_advice(&mut command, &muted).is_ok() {
            assert!(command.status().unwrap().success());
        }
    }
}
