//! Folded stacks: one line per stack, as flame graph programs read them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use units::Nanos;

use crate::recording::{ProfileRecording, StackTrace};

/// Returns the function names, the outermost first and the kernel's last.
pub(crate) fn frames(stack: &StackTrace) -> Vec<&str> {
    let user = stack.user.iter().rev().map(|frame| frame.function.as_str());
    user.chain(stack.kernel.iter().rev().map(|frame| frame.function.as_str())).collect()
}

/// Returns the waits by thread name, stack and file, in microseconds.
pub fn folded(recording: &ProfileRecording) -> String {
    let mut lines: BTreeMap<String, Nanos> = BTreeMap::new();
    for wait in recording.waits.iter().filter(|wait| wait.class.is_storage()) {
        let Some(stack) = recording.stacks.get(wait.stack as usize) else { continue };
        let comm = recording.threads.iter().find(|thread| thread.tid == wait.tid);
        let mut parts = vec![comm.map_or("?", |thread| thread.comm.as_str())];
        parts.extend(frames(stack));
        let file = wait.inode.map(|inode| recording.files[inode as usize].path.as_str());
        parts.extend(file);
        // A semicolon separates frames.
        let parts: Vec<String> = parts.iter().map(|part| part.replace(';', ",")).collect();
        *lines.entry(parts.join(";")).or_default() += wait.blocked;
    }
    let mut text = String::new();
    for (line, blocked) in lines {
        let _ = writeln!(text, "{line} {}", blocked.get() / 1000);
    }
    text
}
