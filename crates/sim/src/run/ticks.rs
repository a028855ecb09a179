//! Ticks: a policy's work besides that of the readers.

use std::collections::VecDeque;

use policy::{Cache, DeviceCompletions, Extent, FileTree, Memory, StreamId, TickContext};
use units::Nanos;

use super::World;
use super::view::CacheView;
use super::view::NO_STEPS;
use crate::disk_layout::Placed;
use crate::queue::BlockQueue;

/// The machine as a policy sees it at a tick.
struct TickView<'a> {
    now: Nanos,
    cache: &'a mut crate::cache::PageCache,
    placed: &'a [Placed],
    file_tree: Option<&'a FileTree>,
    /// File of each open file.
    files: Vec<u32>,
    limits: policy::DeviceLimits,
    queue: &'a BlockQueue,
    rotates: bool,
    batches: &'a mut Vec<Extent>,
    /// Extents to read, by file.
    wanted: Vec<(u32, Extent)>,
}

impl TickContext for TickView<'_> {
    fn now(&self) -> Nanos {
        self.now
    }

    fn completions(&self) -> DeviceCompletions {
        self.queue.completions()
    }

    fn memory(&self) -> Memory {
        Memory {
            total: self.cache.capacity(),
            available: self.cache.available(),
            aged: self.cache.aged(),
            pending: self.cache.pending(),
        }
    }

    fn rotates(&self) -> bool {
        self.rotates
    }

    fn file_tree(&self) -> Option<&FileTree> {
        self.file_tree
    }

    fn with(&mut self, stream: StreamId, act: &mut dyn FnMut(&mut dyn Cache)) {
        let Some(&file) = self.files.get(stream.0 as usize) else { return };
        let mut view = CacheView {
            placed: &self.placed[file as usize],
            file,
            stream,
            limits: self.limits,
            now: self.now,
            congested: false,
            lookahead: &NO_STEPS,
            whole: false,
            cache: self.cache,
            batches: self.batches,
        };
        act(&mut view);
        self.wanted.extend(self.batches.drain(..).map(|batch| (file, batch)));
    }
}

impl World {
    /// Calls the policy without a reader, and submits the reads that it requests.
    pub(super) fn tick(&mut self) {
        let now = self.next_tick;
        let files = self.opens.iter().map(|open| open.file).collect();
        let mut ctx = TickView {
            now,
            cache: &mut self.cache,
            placed: &self.placed,
            file_tree: self.file_tree.as_deref(),
            files,
            limits: self.limits,
            queue: &self.queue,
            rotates: self.rotates,
            batches: &mut self.batches,
            wanted: Vec::new(),
        };
        self.policy.tick(&mut ctx);
        self.wants_call_events = self.policy.wants_call_events();
        // A policy that has ticks continues to have them.
        self.next_tick = self.policy.next_tick().unwrap_or(Nanos::MAX);
        let wanted = ctx.wanted;
        let mut items = VecDeque::new();
        for (file, extent) in wanted {
            self.placed[file as usize].plan(extent, &mut items);
        }
        let nobody = self.readers;
        for item in items {
            self.queue.submit(now, nobody, item);
        }
        self.device_wakes = self.queue.next_wake();
        self.make_room();
    }
}
