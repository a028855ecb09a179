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

    /// The first segment in which, or right behind which, a byte may lie: surely not in any before.
    #[inline]
    pub(super) fn first(&self, offset: u64) -> Option<usize> {
        let at = block(offset);
        let mut of = self.first.iter().zip(&self.last);
        let touches = |(first, last): (&i32, &i32)| (*first <= at) & (at <= *last);
        // Mostly it is none, which is found out four by four.
        let any = of.clone().map(|pair| i32::from(touches(pair))).fold(0, |all, one| all | one);
        if any == 0 { None } else { of.position(touches) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_segment_or_right_behind_it_is_never_missed() {
        let mut roughly = Roughly::new(3);
        assert_eq!((roughly.first(0), roughly.first(4096)), (Some(0), None));
        roughly.set(1, 10_000, 20_480);
        roughly.set(2, 1 << 50, (1 << 50) + 1);
        for (offset, found) in
            [(8191, None), (8192, Some(1)), (20_480, Some(1)), (24_576, None), (1 << 50, Some(2))]
        {
            assert_eq!(roughly.first(offset), found, "{offset}");
        }
        assert_eq!(roughly.first(1 << 44), Some(2));
    }
}
