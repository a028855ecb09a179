//! `read_ahead`: the window that a file gets when it is opened.
//!
//! The kernel stores it in pages (`ra_pages` of the bdi, `mm/backing-dev.c`), so sysfs rounds
//! written values down to whole pages: 6 becomes 4, and 3 becomes 0.

use super::tunable::{FileScope, Tunable, ValueForm};
use super::window::NAME;

/// Maximum amount that the kernel reads ahead, for files that are opened later.
pub(super) static READ_AHEAD: Tunable = Tunable {
    name: NAME,
    aliases: &["read_ahead_kb", "readahead", "readahead_kb", "ra"],
    json_key: "read_ahead_kib",
    // Last, because writing max_sectors_kb, rotational or the scheduler may change it.
    write_rank: 200,
    file_scope: FileScope::Bdi,
    form: ValueForm::Window,
    ..Tunable::PLAIN
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use units::{Bytes, PageSize};

    use super::*;
    use crate::{ValidatedValue, Value};

    fn parse(name: &str, text: &str) -> Result<Bytes, String> {
        READ_AHEAD.parse(name, text).map(|v| v.bytes().expect("bytes")).map_err(|e| e.to_string())
    }

    fn check(bytes: Bytes) -> Result<ValidatedValue, String> {
        READ_AHEAD.validate(&bytes.into(), PageSize::FOUR_KIB).map_err(|e| e.to_string())
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
        assert!(READ_AHEAD.validate(&Bytes::from_kib(32).into(), page).is_err());
        let checked = READ_AHEAD.validate(&Bytes::from_kib(130).into(), page).expect("two pages");
        assert_eq!(checked.value, Bytes::from_kib(128).into());
    }

    #[test]
    fn json_is_in_kib() {
        assert_eq!(READ_AHEAD.to_json(&Bytes::from_kib(1088).into()), 1088);
        assert_eq!(READ_AHEAD.read_json(&4.into()).expect("KiB"), Bytes::from_kib(4).into());
        for json in ["-1", "1.5", "\"4\"", "18446744073709551615", "null"] {
            let json = serde_json::from_str(json).expect("JSON");
            assert!(READ_AHEAD.read_json(&json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(bytes in 0..(1u64 << 40)) {
            let value = Value::from(Bytes::new(bytes));
            let shown = READ_AHEAD.show(&value);
            prop_assert_eq!(READ_AHEAD.parse(NAME, &shown).expect("as shown"), value);
        }

        #[test]
        fn what_is_valid_is_what_the_kernel_keeps(kib in 4..=(1u64 << 20)) {
            let checked = check(Bytes::from_kib(kib)).expect("in range");
            let text = READ_AHEAD.encode(&checked.value).expect("whole KiB");
            prop_assert_eq!(READ_AHEAD.decode(&format!("{text}\n")), Some(checked.value.clone()));
            let kept = checked.value.bytes().expect("bytes");
            prop_assert!(kept.get().is_multiple_of(4096) && kept <= Bytes::from_kib(kib));
        }

        #[test]
        fn any_text_is_survived(text in "\\PC*") {
            let _ = READ_AHEAD.parse("read_ahead_kb", &text);
            let _ = READ_AHEAD.decode(&text);
        }
    }
}
