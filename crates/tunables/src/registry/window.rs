//! The valid values of a read-ahead window.

use units::{Bytes, PageSize};

use super::tunable::ValidatedValue;
use crate::TunableError;

pub(super) const NAME: &str = "read_ahead";

/// The maximum: sixteen times the largest value seen in the field (64 MiB, on some cloud disks).
const MAX_WINDOW: Bytes = Bytes::from_gib(1);

/// Checks a window and rounds it down to whole pages.
pub(super) fn validate(window: Bytes, page: PageSize) -> Result<ValidatedValue, TunableError> {
    if window > MAX_WINDOW {
        return Err(TunableError::TooLarge { tunable: NAME, value: window, most: MAX_WINDOW });
    }
    if window.is_zero() {
        let note = "read_ahead=0 not only disables read-ahead: every read then goes to the device \
                    page by page";
        return Ok(ValidatedValue { value: window.into(), notes: vec![note.to_owned()] });
    }
    if window < page.bytes() {
        return Err(TunableError::BelowPage { tunable: NAME, value: window, page: page.bytes() });
    }
    let mut notes = Vec::new();
    let whole = window.to_pages_floor(page).to_bytes(page);
    if whole != window {
        notes.push(format!(
            "read_ahead={window} becomes {whole}: the kernel counts in pages of {}",
            page.bytes()
        ));
    }
    Ok(ValidatedValue { value: whole.into(), notes })
}
