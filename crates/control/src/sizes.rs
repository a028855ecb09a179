//! Sizes of windows.
//!
//! On file systems with large folios, windows of 17 · 2ⁿ pages ramp well and powers of two do not:
//! the kernel aligns the end of each window down to the largest power of two in the largest window
//! (`page_cache_async_ra()` since 6.17), and loses marks of several streams on one open file. Small
//! windows are powers of two, because 17 · 2ⁿ is never less than 17 pages.

use units::Pages;

const ODD_FACTOR: u64 = 17;

/// Returns the largest good window of at most this many pages: 17 · 2ⁿ, or 2ⁿ if that is over 1.5
/// times as large or the window is small. At least one page.
pub fn at_most(most: Pages) -> Pages {
    let times = most.get() / ODD_FACTOR;
    let even = most.get().checked_ilog2().map_or(1, |power| 1 << power);
    let odd = times.checked_ilog2().map_or(0, |power| ODD_FACTOR << power);
    Pages::new(if even > odd + odd / 2 { even } else { odd })
}

/// Returns the largest window of 2ⁿ pages that is at most this large; at least one page. For a
/// single stream: its requests then align with the stripes of the device below, and none is split
/// into unequal ones.
pub fn even_at_most(most: Pages) -> Pages {
    Pages::new(most.get().checked_ilog2().map_or(1, |power| 1 << power))
}

/// Returns the smallest window of 17 · 2ⁿ pages, or 2ⁿ up to 16, that is at least this large.
pub fn at_least(least: Pages) -> Pages {
    let up = |count: u64| count.checked_next_power_of_two().unwrap_or(1 << 63);
    match least.get() {
        0..=16 => Pages::new(up(least.get())),
        large => Pages::new(ODD_FACTOR.saturating_mul(up(large.div_ceil(ODD_FACTOR)))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_families_are_there() {
        let sizes = [0, 1, 2, 3, 16, 17, 33, 34, 2176].map(|most| at_most(Pages::new(most)).get());
        assert_eq!(sizes, [1, 1, 2, 2, 16, 17, 32, 34, 2176]);
        assert_eq!(at_most(Pages::new(300)).get(), 272);
        assert_eq!(at_least(Pages::new(257)).get(), 272);
    }

    proptest! {
        #[test]
        fn a_size_is_near_what_was_wished_for(wish in 1_u64..1 << 40) {
            let (low, high) = (at_most(Pages::new(wish)).get(), at_least(Pages::new(wish)).get());
            prop_assert!(low <= wish && wish <= 2 * low);
            prop_assert!(wish <= high && high <= 2 * wish.max(9));
        }
    }
}
