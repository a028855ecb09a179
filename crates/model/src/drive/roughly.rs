//! Where the segments of a cache are, to a block of 4 KiB.
//!
//! Which of thirty segments holds a byte cannot be foretold, so all are looked at; in 32 bits each
//! and without branches, four of them are compared at once.

/// Bytes of a block, as a power of two.
const SHIFT: u32 = 12;

/// First and last block of each segment.
#[derive(Clone, Debug)]
pub(super) struct Roughly {
    first: Vec<i32>,
    last: Vec<i32>,
}

/// The block of a byte; beyond 8 TiB all blocks are one.
fn block(offset: u64) -> i32 {
    i32::try_from(offset >> SHIFT).unwrap_or(i32::MAX)
}

impl Roughly {
    /// So many segments, all of them empty.
    pub(super) fn new(count: usize) -> Self {
        Self { first: vec![0; count], last: vec![0; count] }
    }

    /// Notes where a segment is; the byte behind it counts as part of it.
    pub(super) fn set(&mut self, index: usize, start: u64, end: u64) {
        (self.first[index], self.last[index]) = (block(start), block(end));
    }

    /// Whether a byte may lie in a segment or right behind it; if not, it surely does not.
    pub(super) fn touches(&self, offset: u64) -> bool {
        let at = block(offset);
        let of = |(first, last): (&i32, &i32)| i32::from((*first <= at) & (at <= *last));
        self.first.iter().zip(&self.last).map(of).fold(0, |all, one| all | one) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_segment_or_right_behind_it_is_never_missed() {
        let mut roughly = Roughly::new(3);
        assert!(roughly.touches(0) && !roughly.touches(4096));
        roughly.set(1, 10_000, 20_480);
        roughly.set(2, 1 << 50, (1 << 50) + 1);
        for (offset, touches) in [(8191, false), (8192, true), (20_480, true), (24_576, false)] {
            assert_eq!(roughly.touches(offset), touches, "{offset}");
        }
        assert!(roughly.touches(1 << 50) && roughly.touches(1 << 44));
    }
}
