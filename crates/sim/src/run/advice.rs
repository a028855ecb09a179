//! Advice that readers give to the kernel (`mm/fadvise.c`, `mm/madvise.c`).

use policy::cache::PAGE;
use policy::{Advice, Extent, Page, StreamId};
use units::Bytes;
use workload::RangeAdvice;

use super::reader::{Phase, ReadCall, RunningReader};
use super::{Flow, World};
use crate::scenario::ReadStep;

/// Returns the pages that a range overlaps, or covers if `whole`; length 0 is to the end.
fn pages_of(step: &ReadStep, size: Bytes, whole: bool) -> Extent {
    let end = match step.length.is_zero() {
        true => Bytes::new(u64::MAX),
        false => Bytes::new(step.offset.get().saturating_add(step.length.get())),
    };
    let last = size.to_pages_ceil(PAGE);
    let (first, end) = match whole {
        true if end >= size => (step.offset.to_pages_ceil(PAGE), last),
        true => (step.offset.to_pages_ceil(PAGE), end.to_pages_floor(PAGE)),
        false => (step.offset.to_pages_floor(PAGE), end.min(size).to_pages_ceil(PAGE)),
    };
    Extent::new(Page::new(first.get()), end.saturating_sub(first))
}

impl World {
    /// Gives the pending advice once the reader is the earliest: it affects other readers.
    pub(super) fn advise(&mut self, reader: &mut RunningReader) -> Flow {
        if reader.clock.nanos() > self.others() {
            return Flow::Yield;
        }
        let Some((step, advice)) = reader.advised.take().and_then(|it| Some((it, it.advice?)))
        else {
            reader.phase = Phase::Between;
            return Flow::Go;
        };
        reader.clock = reader.clock.plus(self.costs.call);
        self.processor = self.processor.plus(self.costs.call);
        // Advice leaves nothing to read and is not a request.
        let call = ReadCall { open: step.open, length: Bytes::ZERO, ..reader.call };
        reader.call = ReadCall { fresh: false, position: 0, end: 0, ..call };
        reader.call.walk.page = reader.call.walk.stop;
        let open = &self.opens[step.open as usize];
        let (file, is_mapped) = (open.file, open.mapping.is_some());
        let drops = advice == RangeAdvice::DontNeed;
        let pages = pages_of(&step, self.placed[file as usize].size(), drops);
        match (advice, is_mapped) {
            (RangeAdvice::DontNeed, true) => self.advise_mapping(step.open, pages, advice),
            (RangeAdvice::DontNeed, false) => self.drop_pages(file, pages),
            (RangeAdvice::WillNeed, _) => self.tell_policy(reader, Advice::WillNeed(pages)),
            (_, true) => self.advise_mapping(step.open, pages, advice),
            (RangeAdvice::Normal, false) => self.tell_policy(reader, Advice::Normal),
            (RangeAdvice::Sequential, false) => self.tell_policy(reader, Advice::Sequential),
            (RangeAdvice::Random, false) => self.tell_policy(reader, Advice::Random),
        }
        self.collect(reader);
        Flow::Go
    }

    fn tell_policy(&mut self, reader: &RunningReader, advice: Advice) {
        let open = reader.call.open;
        let (policy, mut view) = self.view(open, reader.clock.nanos(), None);
        policy.advise(&mut view, StreamId(open), advice);
    }

    fn advise_mapping(&mut self, open: u32, pages: Extent, advice: RangeAdvice) {
        let Some(mapping) = &mut self.opens[open as usize].mapping else { return };
        match advice {
            RangeAdvice::DontNeed => mapping.unmap(pages),
            _ => mapping.advise(pages, |areas| {
                areas.random = advice == RangeAdvice::Random;
                areas.sequential = advice == RangeAdvice::Sequential;
            }),
        }
    }

    /// Drops cached pages that no process has mapped.
    fn drop_pages(&mut self, file: u32, pages: Extent) {
        let opens = &self.opens;
        let is_mapped = |page: Page| {
            let mapped = |open: &super::Open| {
                open.file == file && open.mapping.as_ref().is_some_and(|map| map.is_mapped(page))
            };
            opens.iter().any(mapped)
        };
        self.cache.drop_pages(file, pages, is_mapped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Start;
    use units::Nanos;
    use workload::AccessClass;

    #[test]
    fn ranges_are_rounded_as_the_kernel_does() {
        let step = |offset, length| ReadStep {
            open: 0,
            offset: Bytes::new(offset),
            length: Bytes::new(length),
            class: AccessClass::Stream,
            start: Start::After(Nanos::ZERO),
            advice: Some(RangeAdvice::DontNeed),
        };
        let pages = |offset, length, whole| {
            let pages = pages_of(&step(offset, length), Bytes::new(50_000), whole);
            (pages.start.get(), pages.pages.get())
        };
        assert_eq!(pages(100, 8192, false), (0, 3));
        assert_eq!(pages(100, 8192, true), (1, 1));
        assert_eq!(pages(4096, 0, true), (1, 12));
        assert_eq!(pages(4097, 100, true), (2, 0));
        assert_eq!(pages(0, 0, false), (0, 13));
    }
}
