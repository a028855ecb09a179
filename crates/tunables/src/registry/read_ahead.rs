//! `read_ahead`: the window that a file gets when it is opened.
//!
//! The kernel keeps it in pages (`ra_pages` of the bdi, `mm/backing-dev.c`), so sysfs rounds
//! written values down to whole pages: 6 gives 4, and 3 gives 0.

use std::path::PathBuf;

use units::{Bytes, Kib, PageSize};

use crate::{Tunable, TunableError, TunableScope, ValidatedValue, Value};

/// Read-ahead, at `/sys/class/bdi/<bdi>/read_ahead_kb` in KiB.
pub(super) struct ReadAhead;

const NAME: &str = "read_ahead";

/// Sixteen times the largest value seen in the field (64 MiB, on some cloud disks).
const MAX_WINDOW: Bytes = Bytes::from_gib(1);

impl ReadAhead {
    fn amount(value: &Value) -> Result<Bytes, TunableError> {
        value.bytes().ok_or_else(|| TunableError::WrongSort { tunable: NAME, value: value.clone() })
    }
}

impl Tunable for ReadAhead {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["read_ahead_kb", "readahead", "readahead_kb", "ra"]
    }

    fn json_key(&self) -> &'static str {
        "read_ahead_kib"
    }

    fn summary(&self) -> &'static str {
        "maximum amount that the kernel reads ahead, for files opened from now on"
    }

    fn write_rank(&self) -> u8 {
        // Last: writing max_sectors_kb, rotational or the scheduler may change it.
        200
    }

    fn parse(&self, name: &str, text: &str) -> Result<Value, TunableError> {
        let text = text.trim();
        let name = name.trim().to_ascii_lowercase();
        // The name `read_ahead_kb` implies a unit: `read_ahead_kb=128`.
        let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let text = if bare && (name.ends_with("_kb") || name.ends_with("_kib")) {
            format!("{text}K")
        } else {
            text.to_owned()
        };
        let bytes: Bytes =
            text.parse().map_err(|source| TunableError::Amount { tunable: NAME, source })?;
        Ok(bytes.into())
    }

    fn show(&self, value: &Value) -> String {
        super::form::show_bytes(value.bytes().unwrap_or_default())
    }

    fn to_json(&self, value: &Value) -> serde_json::Value {
        value.bytes().unwrap_or_default().to_kib_floor().get().into()
    }

    fn read_json(&self, json: &serde_json::Value) -> Result<Value, TunableError> {
        let bytes = json.as_u64().and_then(|kib| kib.checked_mul(1024)).map(Bytes::new);
        bytes.map(Value::from).ok_or_else(|| TunableError::Syntax {
            text: json.to_string(),
            problem: format!("{} must be a whole number of KiB", self.json_key()),
        })
    }

    fn validate(&self, value: &Value, page: PageSize) -> Result<ValidatedValue, TunableError> {
        let bytes = Self::amount(value)?;
        if bytes > MAX_WINDOW {
            return Err(TunableError::TooLarge { tunable: NAME, value: bytes, most: MAX_WINDOW });
        }
        if bytes.is_zero() {
            let note = "read_ahead=0 not only disables read-ahead: every read then goes to the \
                        device page by page";
            return Ok(ValidatedValue { value: value.clone(), notes: vec![note.to_owned()] });
        }
        if bytes < page.bytes() {
            let page = page.bytes();
            return Err(TunableError::BelowPage { tunable: NAME, value: bytes, page });
        }
        let whole = bytes.to_pages_floor(page).to_bytes(page);
        let rounded = whole != bytes;
        let notes = rounded.then(|| {
            format!(
                "read_ahead={bytes} becomes {whole}: the kernel counts in pages of {}",
                page.bytes()
            )
        });
        Ok(ValidatedValue { value: whole.into(), notes: notes.into_iter().collect() })
    }

    fn candidates(&self, site: &TunableScope) -> Vec<PathBuf> {
        vec![site.bdi.dir().join("read_ahead_kb")]
    }

    fn encode(&self, value: &Value) -> Result<String, TunableError> {
        let kib = Self::amount(value)?.to_kib_exact();
        let kib =
            kib.ok_or_else(|| TunableError::WrongSort { tunable: NAME, value: value.clone() })?;
        Ok(kib.get().to_string())
    }

    fn decode(&self, text: &str) -> Option<Value> {
        let kib: u64 = text.lines().next()?.trim().parse().ok()?;
        kib.checked_mul(1024)?;
        Some(Kib::new(kib).to_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(name: &str, text: &str) -> Result<Bytes, String> {
        ReadAhead.parse(name, text).map(|v| v.bytes().expect("bytes")).map_err(|e| e.to_string())
    }

    fn check(bytes: Bytes) -> Result<ValidatedValue, String> {
        ReadAhead.validate(&bytes.into(), PageSize::FOUR_KIB).map_err(|e| e.to_string())
    }

    #[test]
    fn a_unit_is_needed_behind_or_in_front() {
        assert_eq!(parse("read_ahead", "128K"), Ok(Bytes::from_kib(128)));
        assert_eq!(parse("ra", "256s"), Ok(Bytes::from_kib(128)));
        assert_eq!(parse("read_ahead_kb", "128"), Ok(Bytes::from_kib(128)));
        assert_eq!(parse("read_ahead_kib", "1M"), Ok(Bytes::from_mib(1)));
        assert_eq!(parse("ra", "0"), Ok(Bytes::ZERO));
        assert!(parse("ra", "128").expect_err("no unit").contains("has no unit"));
        for text in ["", "-1", "-4K", "K", "4Q", "nan", "99999999999999999999"] {
            assert!(parse("read_ahead_kb", text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn values_are_floored_to_pages_and_bounded() {
        let checked = check(Bytes::from_kib(6)).expect("two pages and a half");
        assert_eq!(checked.value, Bytes::from_kib(4).into());
        assert_eq!(
            checked.notes,
            ["read_ahead=6 KiB becomes 4 KiB: the kernel counts in pages of 4 KiB"]
        );
        assert!(check(Bytes::from_kib(1088)).expect("17·2⁴ pages").notes.is_empty());
        assert_eq!(check(Bytes::ZERO).expect("off").notes.len(), 1);
        let below = check(Bytes::from_kib(3)).expect_err("below a page");
        assert!(below.contains("less than a memory page (4 KiB)"), "{below}");
        assert!(check(Bytes::from_gib(1)).is_ok());
        assert!(check(Bytes::new((1 << 30) + 4096)).is_err());
    }

    #[test]
    fn pages_may_be_large() {
        let page = PageSize::new(65536).expect("a page");
        assert!(ReadAhead.validate(&Bytes::from_kib(32).into(), page).is_err());
        let checked = ReadAhead.validate(&Bytes::from_kib(130).into(), page).expect("two pages");
        assert_eq!(checked.value, Bytes::from_kib(128).into());
    }

    #[test]
    fn json_is_in_kib() {
        assert_eq!(ReadAhead.to_json(&Bytes::from_kib(1088).into()), 1088);
        assert_eq!(ReadAhead.read_json(&4.into()).expect("KiB"), Bytes::from_kib(4).into());
        for json in ["-1", "1.5", "\"4\"", "18446744073709551615", "null"] {
            let json = serde_json::from_str(json).expect("JSON");
            assert!(ReadAhead.read_json(&json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(bytes in 0..(1u64 << 40)) {
            let value = Value::from(Bytes::new(bytes));
            let shown = ReadAhead.show(&value);
            prop_assert_eq!(ReadAhead.parse(NAME, &shown).expect("as shown"), value);
        }

        #[test]
        fn what_is_valid_is_what_the_kernel_keeps(kib in 4..=(1u64 << 20)) {
            let checked = check(Bytes::from_kib(kib)).expect("in range");
            let text = ReadAhead.encode(&checked.value).expect("whole KiB");
            prop_assert_eq!(ReadAhead.decode(&format!("{text}\n")), Some(checked.value.clone()));
            let kept = checked.value.bytes().expect("bytes");
            prop_assert!(kept.get().is_multiple_of(4096) && kept <= Bytes::from_kib(kib));
        }

        #[test]
        fn any_text_is_survived(text in "\\PC*") {
            let _ = ReadAhead.parse("read_ahead_kb", &text);
            let _ = ReadAhead.decode(&text);
        }
    }
}
