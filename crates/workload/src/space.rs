//! The blocks of one reader, numbered across all its files.

use units::{Bytes, Nanos};

use crate::access::{Access, AccessClass};
use crate::zone::Zone;

/// A reader's part of one file.
#[derive(Clone, Copy, Debug)]
struct Segment {
    file: u32,
    start: u64,
    end: u64,
    /// Number of the segment's first block in the whole space.
    first: u64,
    /// Number of full-length blocks at its start.
    whole: u64,
}

/// Blocks of `block` bytes at every `step` bytes of some parts of files. The last block of a part
/// may be short.
#[derive(Clone, Debug)]
pub(crate) struct BlockSpace {
    segments: Vec<Segment>,
    block: u64,
    step: u64,
    len: u64,
}

impl BlockSpace {
    /// Returns part `part` of `parts` of each of these files, in whole blocks.
    pub(crate) fn of_files(sizes: &[Bytes], block: Bytes, part: u32, parts: u32) -> Self {
        let block = block.get();
        let mut space = Self { segments: Vec::new(), block, step: block, len: 0 };
        for (file, size) in (0..).zip(sizes) {
            let size = size.get();
            let blocks = size.div_ceil(block);
            let cut = |part: u32| share(blocks, part, parts).saturating_mul(block).min(size);
            space.push(file, cut(part), cut(part + 1));
        }
        space
    }

    /// Returns part `part` of `parts` of a zone of each of these files.
    pub(crate) fn of_zone(
        sizes: &[Bytes],
        block: Bytes,
        (part, parts): (u32, u32),
        zone: Zone,
    ) -> Self {
        let mut space =
            Self { segments: Vec::new(), block: block.get(), step: block.get(), len: 0 };
        for (file, size) in (0..).zip(sizes) {
            let (start, end) = zone.within(*size, block);
            let blocks = (end - start).div_ceil(block.get());
            let cut = |part: u32| {
                start
                    .saturating_add(share(blocks, part, parts).saturating_mul(block.get()))
                    .min(end)
            };
            space.push(file, cut(part), cut(part + 1));
        }
        space
    }

    fn push(&mut self, file: u32, start: u64, end: u64) {
        if start < end {
            let whole = (end - start) / self.block;
            self.segments.push(Segment { file, start, end, first: self.len, whole });
            self.len += (end - start).div_ceil(self.step);
        }
    }

    /// Returns the same parts with another block size and step.
    pub(crate) fn with_blocks(&self, block: Bytes, step: Bytes) -> Self {
        let (block, step) = (block.get(), step.get());
        let mut space = Self { segments: Vec::new(), block, step, len: 0 };
        for segment in &self.segments {
            space.push(segment.file, segment.start, segment.end);
        }
        space
    }

    /// Splits before block `at`.
    pub(crate) fn split(&self, at: u64) -> (Self, Self) {
        let empty = || Self { segments: Vec::new(), len: 0, ..*self };
        let (mut low, mut high) = (empty(), empty());
        for segment in &self.segments {
            let blocks = at.saturating_sub(segment.first);
            let cut = segment.start.saturating_add(blocks.saturating_mul(self.step));
            let cut = cut.min(segment.end);
            low.push(segment.file, segment.start, cut);
            high.push(segment.file, cut, segment.end);
        }
        (low, high)
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn size(&self) -> Bytes {
        Bytes::new(self.segments.iter().map(|segment| segment.end - segment.start).sum())
    }

    /// Returns the number of consecutive full-length blocks from this number on, at least 1 and at
    /// most `most`.
    #[inline]
    pub(crate) fn run(&self, number: u64, most: u64) -> u64 {
        let segment = self.segment(number);
        if self.step != self.block || segment.start == segment.end {
            return 1;
        }
        segment.whole.saturating_sub(number - segment.first).clamp(1, most.max(1))
    }

    #[inline]
    fn segment(&self, number: u64) -> &Segment {
        match self.segments.as_slice() {
            [only] => only,
            many => &many[many.partition_point(|segment| segment.first <= number) - 1],
        }
    }

    /// Returns the block with this number, which must be below [`BlockSpace::len`].
    #[inline]
    pub(crate) fn at(&self, number: u64, class: AccessClass) -> Access {
        debug_assert!(number < self.len, "{number} of {}", self.len);
        let segment = self.segment(number);
        let offset = segment.start + (number - segment.first) * self.step;
        Access {
            file: segment.file,
            offset: Bytes::new(offset),
            length: Bytes::new(self.block.min(segment.end - offset)),
            class,
            not_before: Nanos::ZERO,
            advice: None,
        }
    }
}

/// Returns the start of part `part` of `parts` nearly equal parts of `whole`.
pub(crate) fn share(whole: u64, part: u32, parts: u32) -> u64 {
    // The product fits 128 bits, so rounding errors do not accumulate.
    (u128::from(whole) * u128::from(part) / u128::from(parts)) as u64
}
