//! An index of the segments of a cache, in blocks of 4 KiB.
//!
//! Any of thirty segments may contain a byte, so all are compared. With 32 bits each and without
//! branches, the processor compares four at once.

/// The base-2 logarithm of the block size in bytes.
const BLOCK_SHIFT: u32 = 12;

/// The first and last block of each segment.
#[derive(Clone, Debug)]
pub(super) struct SegmentIndex {
    first: Vec<i32>,
    last: Vec<i32>,
}

/// Returns the block of a byte; all bytes beyond 8 TiB are in one block.
fn block(offset: u64) -> i32 {
    i32::try_from(offset >> BLOCK_SHIFT).unwrap_or(i32::MAX)
}

impl SegmentIndex {
    /// Creates an index of `count` empty segments.
    pub(super) fn new(count: usize) -> Self {
        Self { first: vec![0; count], last: vec![0; count] }
    }

    /// Sets the range of a segment; the byte after it counts as part of it.
    pub(super) fn set(&mut self, index: usize, start: u64, end: u64) {
        (self.first[index], self.last[index]) = (block(start), block(end));
    }

    /// Returns the first segment that may contain the byte or end right before it.
    #[inline]
    pub(super) fn first(&self, offset: u64) -> Option<usize> {
        let at = block(offset);
        let mut of = self.first.iter().zip(&self.last);
        let touches = |(first, last): (&i32, &i32)| (*first <= at) & (at <= *last);
        // Usually no segment matches, which this vectorized loop detects.
        let any = of.clone().map(|pair| i32::from(touches(pair))).fold(0, |all, one| all | one);
        if any == 0 { None } else { of.position(touches) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_in_a_segment_or_right_behind_it_is_found() {
        let mut index = SegmentIndex::new(3);
        assert_eq!((index.first(0), index.first(4096)), (Some(0), None));
        index.set(1, 10_000, 20_480);
        index.set(2, 1 << 50, (1 << 50) + 1);
        for (offset, found) in
            [(8191, None), (8192, Some(1)), (20_480, Some(1)), (24_576, None), (1 << 50, Some(2))]
        {
            assert_eq!(index.first(offset), found, "{offset}");
        }
        assert_eq!(index.first(1 << 44), Some(2));
    }
}
