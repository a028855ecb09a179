//! Submits the reads of a policy to the device.

use units::Nanos;

use super::reader::{Phase, RunningReader};
use super::{Flow, World};
use crate::queue::{Item, PartPurpose};

impl World {
    /// Handles the submissions of a policy call: makes room in the cache, and plans the reader's
    /// requests or issues a single one.
    pub(super) fn collect(&mut self, reader: &mut RunningReader) {
        if !self.batches.is_empty() && !self.issue_single(reader) {
            self.plan(reader);
        }
        let issues = !reader.to_issue.is_empty() || self.queue.undispatched(reader.number) > 0;
        let next = if reader.awaited.is_some() { Phase::Arrive } else { Phase::Walk };
        reader.phase = if issues { Phase::Issue } else { next };
    }

    /// Plans the requests for the policy's submissions.
    #[inline(never)]
    fn plan(&mut self, reader: &mut RunningReader) {
        let file = self.opens[reader.call.open as usize].file;
        let now = reader.clock.nanos();
        for batch in self.batches.drain(..) {
            self.queue.timeline_recorder().window(now, batch.pages);
            let first = reader.to_issue.len();
            self.placed[file as usize].plan(batch, &mut reader.to_issue);
            let single = self.cache.folio_limit(file).is_none();
            self.in_flight.note(reader.to_issue.range(first..), single);
        }
        self.make_room();
    }

    /// Issues the policy's request, if there is only one and it is the reader's turn. The effect is
    /// that of [`Self::plan`] and [`Self::issue`], without a list between them. No other event is
    /// due before this reader, so nothing happens in between. A request that is a whole window need
    /// not be noted: its pages arrive with it.
    #[inline]
    fn issue_single(&mut self, reader: &mut RunningReader) -> bool {
        let now = reader.clock.nanos();
        let file = self.opens[reader.call.open as usize].file;
        let [batch] = self.batches[..] else { return false };
        let Some(item) = self.placed[file as usize].single(batch) else { return false };
        if !reader.to_issue.is_empty() || now > self.others() {
            return false;
        }
        self.batches.clear();
        self.queue.timeline_recorder().window(now, batch.pages);
        self.make_room();
        self.hand_over(reader, now, item);
        true
    }

    /// Evicts pages from the cache and from mappings while the cache is too full.
    #[inline]
    pub(super) fn make_room(&mut self) {
        if self.cache.is_full() {
            self.reclaim();
        }
    }

    fn reclaim(&mut self) {
        self.cache.reclaim(self.policy.as_mut());
        for (file, extent) in self.cache.take_unmapped() {
            for open in self.opens.iter_mut().filter(|open| open.file == file) {
                if let Some(mapping) = &mut open.mapping {
                    mapping.unmap(extent);
                }
            }
        }
    }

    /// Submits the planned requests one by one.
    pub(super) fn issue(&mut self, reader: &mut RunningReader) -> Flow {
        loop {
            if reader.to_issue.is_empty() {
                if self.queue.undispatched(reader.number) > 0 {
                    reader.dispatch_since = Some(reader.clock.nanos());
                    return Flow::Wait;
                }
                reader.phase = if reader.awaited.is_some() { Phase::Arrive } else { Phase::Walk };
                return Flow::Go;
            }
            let now = reader.clock.nanos();
            if now > self.others() {
                return Flow::Yield;
            }
            let Some(item) = reader.to_issue.pop_front() else { return Flow::Go };
            self.hand_over(reader, now, item);
            if item.purpose == PartPurpose::Metadata {
                return Flow::Wait;
            }
        }
    }

    #[inline]
    fn hand_over(&mut self, reader: &mut RunningReader, now: Nanos, item: Item) {
        let cost = self.costs.submitted_byte.times(item.length);
        reader.clock = reader.clock.plus(cost);
        self.processor = self.processor.plus(cost);
        self.queue.submit(now, reader.number, item);
        self.device_wakes = self.queue.next_wake();
    }
}
