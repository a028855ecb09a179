//! Finds callers that left no frame on the stack.
//!
//! Most functions of the C library keep no frame pointer. A frame-pointer stack therefore skips
//! from the wrapper of a system call to its caller's caller, or stops at the wrapper. The missing
//! caller is the first word above the stack pointer that is a return address outside the library. A
//! stale address may be mistaken for it.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::maps::{CodeMapping, find};
use crate::recording::is_runtime_module;

/// Length of the longest call instruction that is recognised, in bytes.
const MAX_CALL_BYTES: usize = 7;

/// Maximum number of open files; all are closed when it is reached.
const MAX_OPEN_FILES: usize = 256;

/// Open executables and libraries, to check the instructions before return addresses.
#[derive(Debug, Default)]
pub(crate) struct CodeFiles {
    files: HashMap<Arc<str>, Option<File>>,
}

impl CodeFiles {
    /// Inserts the caller after the innermost frame, unless another frame has it, and removes
    /// frames outside code. `words` are the words of the stack from the stack pointer on.
    pub(crate) fn insert_caller(
        &mut self,
        user: &mut Vec<u64>,
        words: &[u64],
        maps: &[CodeMapping],
    ) {
        let Some(innermost) = user.first().and_then(|at| find(maps, *at)) else { return };
        // If the program itself calls the kernel, only a function without a frame can be missing.
        let searched = if is_runtime_module(&innermost.path) { words.len() } else { 1 };
        let caller = words.iter().take(searched).find(|word| {
            find(maps, **word).is_some_and(|map| {
                !is_runtime_module(&map.path) && self.is_return_address(map, **word)
            })
        });
        let first = user[0];
        user.retain(|at| *at == first || find(maps, *at).is_some());
        if let Some(caller) = caller.filter(|caller| !user.contains(caller)) {
            user.insert(1, *caller);
        }
    }

    fn is_return_address(&mut self, map: &CodeMapping, address: u64) -> bool {
        if self.files.len() >= MAX_OPEN_FILES {
            self.files.clear();
        }
        let open = || File::open(&*map.path).ok();
        let Some(file) = self.files.entry(Arc::clone(&map.path)).or_insert_with(open) else {
            return false;
        };
        let mut before = [0; MAX_CALL_BYTES];
        let offset = (address - map.start + map.offset).checked_sub(MAX_CALL_BYTES as u64);
        offset.is_some_and(|offset| file.read_exact_at(&mut before, offset).is_ok())
            && ends_with_call(&before)
    }
}

/// Returns whether machine code ends with a call instruction.
#[cfg(target_arch = "x86_64")]
fn ends_with_call(code: &[u8; MAX_CALL_BYTES]) -> bool {
    // E8 with a displacement, or FF /2 whose length matches its operand.
    code[2] == 0xe8
        || (2..=MAX_CALL_BYTES).any(|length| {
            let call = &code[MAX_CALL_BYTES - length..];
            call[0] == 0xff && (call[1] >> 3) & 7 == 2 && length == indirect_call_length(call)
        })
}

/// Returns the length of `FF /2`, given its ModRM byte and its SIB byte, if any.
#[cfg(target_arch = "x86_64")]
fn indirect_call_length(call: &[u8]) -> usize {
    let (mode, base) = (call[1] >> 6, call[1] & 7);
    let has_sib = mode != 3 && base == 4;
    let base = if has_sib { call.get(2).copied().unwrap_or_default() & 7 } else { base };
    let displacement = match mode {
        0 if base == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    2 + usize::from(has_sib) + displacement
}

/// Returns whether machine code ends with BL or BLR.
#[cfg(target_arch = "aarch64")]
fn ends_with_call(code: &[u8; MAX_CALL_BYTES]) -> bool {
    let word = u32::from_le_bytes([code[3], code[4], code[5], code[6]]);
    word & 0xfc00_0000 == 0x9400_0000 || word & 0xffff_fc1f == 0xd63f_0000
}

/// Other architectures rely on frame pointers only.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn ends_with_call(_code: &[u8; MAX_CALL_BYTES]) -> bool {
    false
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::maps::parse_maps;

    fn code(bytes: &[u8]) -> [u8; MAX_CALL_BYTES] {
        let mut code = [0x90; MAX_CALL_BYTES];
        code[MAX_CALL_BYTES - bytes.len()..].copy_from_slice(bytes);
        code
    }

    #[test]
    fn calls_are_told_from_other_instructions() {
        let calls: [&[u8]; 7] = [
            &[0xe8, 1, 2, 3, 4],             // near
            &[0xff, 0xd0],                   // *%rax
            &[0xff, 0x15, 1, 2, 3, 4],       // *disp(%rip)
            &[0xff, 0x14, 0xc5, 1, 2, 3, 4], // *table(,%rax,8)
            &[0xff, 0x50, 0x18],             // *0x18(%rax)
            &[0xff, 0x54, 0x24, 8],          // *8(%rsp)
            &[0xff, 0x90, 1, 2, 0, 0],       // *0x201(%rax)
        ];
        assert!(calls.iter().all(|call| ends_with_call(&code(call))));
        let others: [&[u8]; 3] = [&[0xff, 0xe0], &[0x48, 0x89, 0xc7], &[0xff, 0x50]];
        assert!(!others.iter().any(|other| ends_with_call(&code(other))));
    }

    #[test]
    fn the_first_return_address_outside_the_library_is_the_caller() {
        let dir = tempfile::tempdir().unwrap();
        let (program, library) = (dir.path().join("program"), dir.path().join("libc.so.6"));
        // Calls end at 0x105 and at 0x205.
        let mut bytes = vec![0x90; 0x1000];
        (bytes[0x100], bytes[0x200]) = (0xe8, 0xe8);
        std::fs::write(&program, &bytes).unwrap();
        std::fs::write(&library, &bytes).unwrap();
        let maps = parse_maps(&format!(
            "10000-11000 r-xp 0 00:00 0 {}\n20000-21000 r-xp 0 00:00 0 {}\n\
             80000-90000 rw-p 0 00:00 0 [stack]",
            program.display(),
            library.display()
        ));
        let with = |user: &[u64], words: &[u64]| {
            let mut user = user.to_vec();
            CodeFiles::default().insert_caller(&mut user, words, &maps);
            user
        };
        let in_library = 0x20300;
        let words = [0x80010, 0x10106, 0x20105, 0x10105, 0x10205];
        assert_eq!(with(&[in_library, 0x10205], &words), [in_library, 0x10105, 0x10205]);
        assert_eq!(with(&[in_library, 0x10105], &words), [in_library, 0x10105], "has a frame");
        assert_eq!(with(&[in_library, 0x42], &words[..3]), [in_library], "neither is code");
        assert_eq!(with(&[0x10300], &words), [0x10300], "the program calls the kernel itself");
        assert_eq!(with(&[0x10300], &words[3..]), [0x10300, 0x10105], "without a frame");
    }
}
