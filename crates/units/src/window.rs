//! The page cache that read-ahead uses.

use crate::Bytes;

/// How many full windows of one stream can be in the page cache and not yet read.
///
/// Linux marks the first page of a window that has its full size: `page_cache_async_ra()` in
/// `mm/readahead.c` sets `ra->async_size = ra->size`, so the mark, page `start + size -
/// async_size`, is the window's first page. When the reader touches that page, none of window N
/// has been read, and the kernel submits window N + 1. The recorded decisions of Linux 6.18 in
/// `policy/tests/data` reach this bound and never pass it.
pub const WINDOWS_PER_STREAM: u64 = 2;

/// Returns the maximum page cache for read-ahead with this window and number of sequential streams:
/// [`WINDOWS_PER_STREAM`] × window × streams, or the largest amount if that overflows.
///
/// The only formula for the memory cost of read-ahead. It omits two cases: an open file under
/// `POSIX_FADV_SEQUENTIAL` has twice the window (`mm/fadvise.c`), and one read call larger than the
/// window is read in requests of up to `max_sectors_kb`.
pub const fn read_ahead_memory(window: Bytes, streams: u64) -> Bytes {
    Bytes::new(window.get().saturating_mul(WINDOWS_PER_STREAM).saturating_mul(streams))
}

/// The largest window of which this many streams fit in `memory`: the inverse of
/// [`read_ahead_memory`], rounded down. 0 streams count as one.
pub const fn largest_window(memory: Bytes, streams: u64) -> Bytes {
    let streams = if streams == 0 { 1 } else { streams };
    Bytes::new(memory.get() / WINDOWS_PER_STREAM / streams)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn eight_streams_at_one_mib_take_sixteen() {
        assert_eq!(read_ahead_memory(Bytes::from_mib(1), 8), Bytes::from_mib(16));
        assert_eq!(read_ahead_memory(Bytes::from_mib(1), 0), Bytes::ZERO);
        assert_eq!(read_ahead_memory(Bytes::new(u64::MAX), 8), Bytes::new(u64::MAX));
    }

    proptest! {
        #[test]
        fn the_largest_window_fits_and_a_larger_one_does_not(
            memory in 0..(1u64 << 50), streams in 1..(1u64 << 20)
        ) {
            let window = largest_window(Bytes::new(memory), streams);
            prop_assert!(read_ahead_memory(window, streams).get() <= memory);
            let larger = Bytes::new(window.get() + 1);
            prop_assert!(read_ahead_memory(larger, streams).get() > memory);
        }
    }
}
