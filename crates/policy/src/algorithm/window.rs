//! Window sizes of Linux since 2.6.23, in pages.

/// The first window of a stream whose read asks for `request` pages: four times as much for small
/// requests, twice for larger ones, `max` beyond that.
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

/// The window after one of `current` pages.
pub(super) fn following(current: u64, max: u64) -> u64 {
    if current < max / 16 {
        current * 4
    } else if current <= max / 2 {
        current * 2
    } else {
        max
    }
}

/// The largest window for this request: a read that is larger than the read-ahead window may be
/// as large as one request to the device.
pub(super) fn largest(request: u64, read_ahead: u64, max_request: u64) -> u64 {
    if request > read_ahead && max_request > read_ahead {
        request.min(max_request)
    } else {
        read_ahead
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
    fn no_request_is_too_large() {
        assert_eq!(initial(u64::MAX, 32), 32);
        assert_eq!(
            (largest(1024, 32, 320), largest(1024, 512, 320), largest(8, 32, 320)),
            (320, 512, 32)
        );
    }
}
