//! Functions that all Linux algorithms since 2.6.23 share. Sizes are in pages.

use units::Pages;

use crate::cache::{Cache, PAGE, Submission};
use crate::page::Page;

/// Read-around of a mapping stops when misses exceed hits by more than this (MMAP_LOTSAMISS).
const LOTS_OF_MISSES: u16 = 100;
/// Explicitly requested reads are submitted in pieces of 2 MiB.
const FORCED_PIECE: u64 = (2 << 20) / PAGE.bytes().get();

/// Returns the first window after a request of `request` pages: four times the request if it is
/// small, twice if it is larger, `max` beyond that.
pub(super) fn initial(request: u64, max: u64) -> u64 {
    let rounded = request.checked_next_power_of_two().unwrap_or(u64::MAX);
    if rounded <= max / 32 {
        rounded * 4
    } else if rounded <= max / 4 {
        rounded * 2
    } else {
        max
    }
}

/// Returns the window after one of `current` pages.
pub(super) fn following(current: u64, max: u64) -> u64 {
    if current < max / 16 {
        current * 4
    } else if current <= max / 2 {
        current * 2
    } else {
        max
    }
}

/// Returns the largest window for this request: if the request is larger than the read-ahead
/// window, it may be as large as one device request.
pub(super) fn largest(request: u64, read_ahead: u64, max_request: u64) -> u64 {
    if request > read_ahead && max_request > read_ahead {
        request.min(max_request)
    } else {
        read_ahead
    }
}

/// `force_page_cache_ra`: reads the requested pages, silently limited to the larger of the window
/// and one device request.
pub(super) fn force(cache: &mut dyn Cache, page: Page, request: u64, read_ahead: u64) {
    let limit = read_ahead.max(cache.limits().max_request.get());
    force_all(cache, page, request.min(limit));
}

/// As [`force`], but without the limit, as in kernels before 4.10.
pub(super) fn force_all(cache: &mut dyn Cache, page: Page, request: u64) {
    let mut left = request.min(cache.file_pages().get().saturating_sub(page.get()));
    let mut at = page;
    while left > 0 {
        let piece = Pages::new(left.min(FORCED_PIECE));
        cache.submit(Submission::plain(at, piece));
        at = at.plus(piece);
        left -= piece.get();
    }
}

/// Misses minus hits among the faults of an open file's mappings (`mmap_miss`); at least 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MapMisses(u16);

impl MapMisses {
    /// Counts a miss. Returns whether to read around it.
    pub(super) fn worth_reading_around(&mut self) -> bool {
        self.0 = self.0.saturating_add(1).min(LOTS_OF_MISSES * 10);
        self.0 <= LOTS_OF_MISSES
    }

    pub(super) fn hit(&mut self, pages: Pages) {
        self.0 = self.0.saturating_sub(u16::try_from(pages.get()).unwrap_or(u16::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_kernels_table() {
        // 128 KiB: 16K for a page, 32K for two, 128K from nine pages on.
        let sizes: Vec<_> = [1, 2, 3, 5, 9, 40].map(|request| initial(request, 32)).into();
        assert_eq!(sizes, [4, 4, 8, 16, 32, 32]);
        let mut window = 4;
        let ramp: Vec<_> = std::iter::repeat_with(|| {
            window = following(window, 256);
            window
        })
        .take(6)
        .collect();
        assert_eq!(ramp, [16, 32, 64, 128, 256, 256]);
    }

    #[test]
    fn large_requests_do_not_overflow() {
        assert_eq!(initial(u64::MAX, 32), 32);
        assert_eq!(
            (largest(1024, 32, 320), largest(1024, 512, 320), largest(8, 32, 320)),
            (320, 512, 32)
        );
    }
}
