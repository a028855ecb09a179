//! Observes readers through `/proc`, without the privileges that BPF needs.
//!
//! For the user's own processes, `/proc` shows the system call in which a thread waits and its
//! arguments (`/proc/PID/task/TID/syscall`), the position of a descriptor, and the number of read
//! calls of a thread. These are sampled. A thread that waits in a read of a file has a miss there.
//! Reads between two samples are known only if they were at equal distances. Page faults of
//! mappings are not system calls, so they are not observed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use host::{DevNo, Root, Storage, page_size};
use observe::{
    AccessEvent, EventKind, FileKind, Handle, Holder, OpenFile, OpenFileId, ProbeEvent, Window,
};
use units::{Bytes, Kib, Nanos, Pages};

use crate::Snapshot;
use crate::source::now;

/// The numbers of the system calls `read` and `pread64`.
const READ_SYSCALLS: (u64, u64) = if cfg!(target_arch = "x86_64") { (0, 17) } else { (63, 67) };
/// The maximum length of one read (`MAX_RW_COUNT`), and an offset that no file reaches.
const MAX_READ_BYTES: u64 = 0x7fff_f000;
const MAX_OFFSET_BYTES: u64 = 1 << 62;
/// Maximum number of reads between two samples that are filled in.
const MAX_FILLED_STEPS: u64 = 64;

/// A read call in which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReadCall {
    fd: u32,
    length: u64,
    /// The offset of `pread64`; `None` for `read`, which uses the position of the descriptor.
    offset: Option<u64>,
}

/// An open file on which a reader has waited.
#[derive(Clone, Debug)]
struct KnownFile {
    file: OpenFile,
    path: String,
    storage: Storage,
    /// True if it is read with `pread64`: then its position is meaningless.
    explicit: bool,
}

impl KnownFile {
    /// Returns whether a descriptor still refers to this file.
    fn is(&self, file: &fs::Metadata) -> bool {
        (self.file.device, self.file.inode) == (DevNo::from_raw(file.dev()), file.ino())
    }
}

/// Follows processes through `/proc`.
#[derive(Debug)]
pub struct Positions {
    root: Root,
    files: BTreeMap<(u32, u32), KnownFile>,
    /// The last observed read of each thread.
    threads: BTreeMap<(u32, u32), ThreadPosition>,
    met: u64,
    looked: Nanos,
}

impl Positions {
    pub fn new(root: &Root) -> Self {
        let (files, threads) = (BTreeMap::new(), BTreeMap::new());
        Self { root: root.clone(), files, threads, met: 0, looked: now() }
    }

    /// Samples processes. Returns the events of their readers and the state of their open files.
    pub fn look(&mut self, pids: &BTreeSet<u32>) -> (Vec<ProbeEvent>, Snapshot) {
        let at = now();
        let elapsed = at.saturating_sub(std::mem::replace(&mut self.looked, at));
        self.files.retain(|(pid, _), _| pids.contains(pid));
        let (mut events, mut seen) = (Vec::new(), BTreeSet::new());
        for pid in pids {
            for tid in self.root.names(format!("/proc/{pid}/task")) {
                let dir = format!("/proc/{pid}/task/{tid}");
                let Some(tid) = tid.parse::<u32>().ok() else { continue };
                seen.insert((*pid, tid));
                self.look_at(*pid, tid, &dir, at, elapsed, &mut events);
            }
        }
        self.threads.retain(|thread, _| seen.contains(thread));
        (events, self.snapshot(at))
    }

    /// Returns the storage of each open file.
    pub fn storages(&self) -> impl Iterator<Item = &Storage> {
        self.files.values().map(|known| &known.storage)
    }

    fn look_at(
        &mut self,
        pid: u32,
        tid: u32,
        dir: &str,
        at: Nanos,
        elapsed: Nanos,
        events: &mut Vec<ProbeEvent>,
    ) -> Option<()> {
        let call = call(&self.root.read(format!("{dir}/syscall")).ok()?)?;
        let known = self.meet(pid, call.fd)?;
        known.explicit = call.offset.is_some();
        let file = known.file.clone();
        let offset = match call.offset {
            Some(offset) => offset,
            None => position(&self.root, pid, call.fd)?,
        };
        let reads = field(&self.root.read(format!("{dir}/io")).ok()?, "syscr:")?;
        let met = self.threads.entry((pid, tid)).or_default();
        let places = met.advance((pid, call.fd), offset, call.length, reads);
        let page = page_size().bytes().get();
        let event = |kind, index, request| ProbeEvent {
            access: AccessEvent { at, kind, file: Some(file.id), index, request, previous: None },
            device: file.device,
            inode: file.inode,
            limit: file.window.to_pages_floor(page_size()),
            pid,
            tid,
            comm: file.holders.first().map_or_else(String::new, |one| one.comm.clone()),
            cgroup: 0,
        };
        for (start, length) in places {
            let (first, end) = (start / page, start.saturating_add(length).div_ceil(page));
            let pages = Pages::new(end - first);
            let before = Window::default();
            events.push(event(EventKind::Miss { before }, first, pages));
            events.push(event(EventKind::Plain, first, pages));
        }
        events.push(event(EventKind::Stall { wait: elapsed }, offset / page, Pages::ZERO));
        Some(())
    }

    /// Returns the open file of a descriptor, if it is a regular file on a disk.
    fn meet(&mut self, pid: u32, fd: u32) -> Option<&mut KnownFile> {
        let link = self.root.path(format!("/proc/{pid}/fd/{fd}"));
        let file = fs::metadata(&link).ok().filter(fs::Metadata::is_file)?;
        if !self.files.get(&(pid, fd)).is_some_and(|known| known.is(&file)) {
            let path = fs::read_link(&link).ok()?.to_string_lossy().into_owned();
            let storage = host::resolve(&self.root, Path::new(&path)).ok()?;
            self.met += 1;
            let comm = self.root.read(format!("/proc/{pid}/comm")).unwrap_or_default();
            let kib = self.root.read(format!("/sys/class/bdi/{}/read_ahead_kb", storage.bdi));
            let window = Kib::new(kib.ok()?.trim().parse().ok()?).to_bytes();
            let file = OpenFile {
                id: OpenFileId::new(self.met),
                kind: FileKind::Regular,
                device: DevNo::from_raw(file.dev()),
                overlay: None,
                inode: file.ino(),
                bdi: Some(storage.bdi.clone()),
                size: Bytes::new(file.len()),
                position: Bytes::ZERO,
                previous: None,
                readable: true,
                writable: false,
                direct: false,
                window,
                bdi_window: window,
                random: false,
                holders: vec![Holder {
                    pid,
                    handle: Handle::Descriptor { fd },
                    comm: comm.trim().to_owned(),
                    uid: 0,
                    cgroup: 0,
                }],
            };
            self.files.insert((pid, fd), KnownFile { file, path, storage, explicit: false });
        }
        self.files.get_mut(&(pid, fd))
    }

    fn snapshot(&mut self, at: Nanos) -> Snapshot {
        let mut snapshot = Snapshot { at, ..Snapshot::default() };
        let root = &self.root;
        self.files.retain(|(pid, fd), known| {
            let now = fs::metadata(root.path(format!("/proc/{pid}/fd/{fd}")));
            let Some(now) = now.ok().filter(|now| known.is(now)) else {
                return false;
            };
            known.file.size = Bytes::new(now.len());
            if !known.explicit {
                known.file.previous = position(root, *pid, *fd).map(Bytes::new);
            }
            true
        });
        for known in self.files.values() {
            snapshot.files.push(known.file.clone());
            snapshot.paths.insert(known.file.id, known.path.clone());
        }
        snapshot
    }

    /// Records the window that an open file got from advice.
    pub fn set_window(&mut self, id: OpenFileId, window: Bytes) {
        for known in self.files.values_mut().filter(|known| known.file.id == id) {
            known.file.window = window;
        }
    }
}

/// The last observed read of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadPosition {
    file: (u32, u32),
    offset: u64,
    /// Number of reads that the thread had made before.
    reads: u64,
}

impl ThreadPosition {
    /// Updates the position. Returns the offset and length of each range that was read since.
    fn advance(
        &mut self,
        file: (u32, u32),
        offset: u64,
        length: u64,
        reads: u64,
    ) -> Vec<(u64, u64)> {
        let before = std::mem::replace(self, Self { file, offset, reads });
        let calls = reads.saturating_sub(before.reads);
        if before.file != file {
            return vec![(offset, length)];
        }
        if calls == 0 {
            return Vec::new(); // the thread still waits in the same call
        }
        let way = offset.wrapping_sub(before.offset).cast_signed();
        let count = calls.cast_signed();
        if calls.checked_mul(length).map(u64::cast_signed) == Some(way) {
            return vec![(before.offset + length, calls * length)];
        }
        if calls > MAX_FILLED_STEPS || way % count != 0 || way == 0 {
            return vec![(offset, length)];
        }
        let place = |call| before.offset.wrapping_add_signed(way / count * call);
        (1..=count).map(|call| (place(call), length)).collect()
    }
}

/// Parses the read in which a thread waits, in the format of `/proc/PID/task/TID/syscall`.
fn call(text: &str) -> Option<ReadCall> {
    let mut words = text.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let mut word = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
    let (fd, _, length, offset) = (word()?, word()?, word()?, word()?);
    let explicit = number == READ_SYSCALLS.1;
    let reads = explicit || number == READ_SYSCALLS.0;
    // `read` has no fourth argument, so its register holds an arbitrary value.
    let offset = if explicit { offset } else { 0 };
    let fd = u32::try_from(fd).ok().filter(|_| reads && length > 0 && offset < MAX_OFFSET_BYTES)?;
    Some(ReadCall { fd, length: length.min(MAX_READ_BYTES), offset: explicit.then_some(offset) })
}

fn position(root: &Root, pid: u32, fd: u32) -> Option<u64> {
    field(&root.read(format!("/proc/{pid}/fdinfo/{fd}")).ok()?, "pos:")
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reads_are_told() {
        let read = format!("{} 0x3 0x7f00 0x1000 0x0 0x0 0x0 0x7ffd 0x7f11", READ_SYSCALLS.0);
        assert_eq!(call(&read), Some(ReadCall { fd: 3, length: 4096, offset: None }));
        let pread = format!("{} 0x4 0x7f00 0x2000 0x10000 0x0 0x0 0x7ffd 0x7f11", READ_SYSCALLS.1);
        let there = ReadCall { fd: 4, length: 8192, offset: Some(65_536) };
        assert_eq!(call(&pread), Some(there));
        let all = format!("{} 0x3 0x7f 0xffffffffffffffff 0x0 0x0 0x0 0x1 0x2", READ_SYSCALLS.0);
        assert_eq!(call(&all).map(|call| call.length), Some(MAX_READ_BYTES));
        for text in ["running", "-1 0x7ffd 0x7f11", "", "232 0x3 0x7f 0x10 0x0 0x0 0x0 0x1 0x2"] {
            assert_eq!(call(text), None, "{text}");
        }
    }

    #[test]
    fn steps_between_two_looks_are_filled_in() {
        let mut met = ThreadPosition::default();
        assert_eq!(met.advance((1, 3), 40_960, 4096, 10), [(40_960, 4096)]);
        assert_eq!(met.advance((1, 3), 40_960, 4096, 10), [], "the same call");
        let back = [(36_864, 4096), (32_768, 4096), (28_672, 4096)];
        assert_eq!(met.advance((1, 3), 28_672, 4096, 13), back);
        assert_eq!(met.advance((1, 3), 28_672 + 8192, 4096, 15), [(32_768, 8192)], "in a run");
        assert_eq!(met.advance((1, 3), 5, 4096, 22), [(5, 4096)], "no steps");
        assert_eq!(met.advance((1, 4), 0, 4096, 23), [(0, 4096)], "another file");
    }
}
