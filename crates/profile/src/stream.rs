//! The accesses of one open file, or of one mapped file, with their waits.

use std::collections::{BTreeMap, BTreeSet};

use units::{Bytes, Nanos};

use crate::recording::{
    AccessKind, AdviceRecord, FileAccess, ProfileRecording, StorageWait, WaitClass,
};
use crate::shape::AccessShape;

/// Key of a stream: the index of its file, and the address of its open file.
pub(crate) type StreamKey = (u32, u64);

/// Returns the time that the thread which waited longest for these streams waited.
pub(crate) fn in_longest_thread(recording: &ProfileRecording, streams: &[&FileStream]) -> Nanos {
    let mut threads: BTreeMap<u32, Nanos> = BTreeMap::new();
    for wait in streams.iter().flat_map(|stream| stream.waits(recording)) {
        *threads.entry(wait.tid).or_default() += wait.blocked;
    }
    threads.into_values().max().unwrap_or_default()
}

/// The accesses of one open file, or of all mappings of one file.
#[derive(Clone, Debug)]
pub struct FileStream {
    /// Address of the open file; 0 for mappings.
    pub file: u64,
    /// Index of the file in the recording.
    pub inode: u32,
    pub kind: AccessKind,
    /// Indexes of its accesses, by start time, and of its waits in the recording.
    pub accesses: Vec<u32>,
    pub waits: Vec<u32>,
    pub waited: Nanos,
    pub tids: BTreeSet<u32>,
    pub(crate) shape: AccessShape,
}

impl FileStream {
    /// Merges several open files of one file into one stream; `None` if there are none.
    pub(crate) fn merged(streams: &[&Self], recording: &ProfileRecording) -> Option<Self> {
        let (first, others) = streams.split_first()?;
        let mut all = (*first).clone();
        for one in others {
            all.accesses.extend(&one.accesses);
            all.waits.extend(&one.waits);
            all.waited += one.waited;
            all.tids.extend(&one.tids);
        }
        all.take_shape(recording);
        Some(all)
    }

    fn take_shape(&mut self, recording: &ProfileRecording) {
        self.accesses.sort_by_key(|place| recording.accesses[*place as usize].start);
        self.shape = AccessShape::new(self.accesses(recording));
    }

    pub(crate) fn key(&self) -> StreamKey {
        (self.inode, self.file)
    }

    pub fn accesses<'a>(
        &'a self,
        recording: &'a ProfileRecording,
    ) -> impl Iterator<Item = &'a FileAccess> {
        self.accesses.iter().map(|place| &recording.accesses[*place as usize])
    }

    pub fn waits<'a>(
        &'a self,
        recording: &'a ProfileRecording,
    ) -> impl Iterator<Item = &'a StorageWait> {
        self.waits.iter().map(|place| &recording.waits[*place as usize])
    }

    pub fn waited_as(&self, recording: &ProfileRecording, class: WaitClass) -> Nanos {
        self.waits(recording).filter(|wait| wait.class == class).map(|wait| wait.blocked).sum()
    }

    /// Returns the number of calls or faults.
    pub fn calls(&self) -> u64 {
        self.shape.calls
    }

    /// Returns the number of bytes that they returned.
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.shape.bytes)
    }

    /// Returns the advice on its file: by its own open file if `own`, otherwise by any.
    pub fn advice<'a>(
        &self,
        recording: &'a ProfileRecording,
        own: bool,
    ) -> impl Iterator<Item = &'a AdviceRecord> + use<'a> {
        let (inode, file) = (self.inode, self.file);
        let all = recording.advice.iter().filter(move |one| one.inode == Some(inode));
        all.filter(move |one| !own || one.file == file)
    }

    /// Returns the stack with the longest total wait.
    pub fn hottest_stack(&self, recording: &ProfileRecording) -> Option<u32> {
        self.waited_except(recording, &[]).1
    }

    /// Returns the total wait without these classes, and the stack with most of it.
    pub fn waited_except(
        &self,
        recording: &ProfileRecording,
        classes: &[WaitClass],
    ) -> (Nanos, Option<u32>) {
        let mut waited: BTreeMap<u32, Nanos> = BTreeMap::new();
        for wait in self.waits(recording).filter(|wait| !classes.contains(&wait.class)) {
            *waited.entry(wait.stack).or_default() += wait.blocked;
        }
        let total = waited.values().copied().sum();
        (total, waited.into_iter().max_by_key(|(_, waited)| *waited).map(|(stack, _)| stack))
    }

    /// Returns the number of accesses that were blocked.
    pub fn blocked_accesses(&self, recording: &ProfileRecording) -> usize {
        self.accesses(recording).filter(|access| access.blocked > Nanos::ZERO).count()
    }
}

/// Returns whether a wait happened in a fault.
fn in_fault(recording: &ProfileRecording, wait: &StorageWait) -> bool {
    let stack = recording.stacks.get(wait.stack as usize);
    stack.is_some_and(|stack| stack.kernel.iter().any(|frame| is_fault(&frame.function)))
}

fn is_fault(function: &str) -> bool {
    matches!(function, "handle_mm_fault" | "filemap_fault" | "do_user_addr_fault")
}

/// Groups accesses and waits into streams, sorted by descending wait time.
pub(crate) fn streams(recording: &ProfileRecording) -> Vec<FileStream> {
    let mut streams: BTreeMap<(u32, u64), FileStream> = BTreeMap::new();
    for (place, access) in recording.accesses.iter().enumerate() {
        let stream = streams.entry((access.inode, access.file)).or_insert_with(|| FileStream {
            file: access.file,
            inode: access.inode,
            kind: access.kind,
            accesses: Vec::new(),
            waits: Vec::new(),
            waited: Nanos::ZERO,
            tids: BTreeSet::new(),
            shape: AccessShape::default(),
        });
        stream.accesses.push(place as u32);
        stream.tids.insert(access.tid);
    }
    for (place, wait) in recording.waits.iter().enumerate() {
        let Some(inode) = wait.inode.filter(|_| wait.class.is_storage()) else { continue };
        let key = if in_fault(recording, wait) { (inode, 0) } else { (inode, wait.file) };
        let key = if streams.contains_key(&key) {
            key
        } else {
            let mut of_file = streams.range((inode, 0)..=(inode, u64::MAX));
            match of_file.find(|(_, one)| one.tids.contains(&wait.tid)) {
                Some((found, _)) => *found,
                None => continue,
            }
        };
        if let Some(stream) = streams.get_mut(&key) {
            stream.waits.push(place as u32);
            stream.waited += wait.blocked;
        }
    }
    let mut streams: Vec<FileStream> = streams.into_values().collect();
    for stream in &mut streams {
        stream.take_shape(recording);
    }
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.waited));
    streams
}
