//! Tests that sizes, times and rates are parsed and printed with the right unit.

use proptest::prelude::*;
use units::{Bytes, BytesPerSecond, Kib, Nanos, ParseUnitError};

// The crate under test keeps its short name inside the workspace.
use foreread_units as units;

#[test]
fn sizes_mean_what_the_kernel_means() {
    for (text, bytes) in [
        ("128K", 131_072),
        ("128KiB", 131_072),
        ("256s", 131_072),
        ("1M", 1_048_576),
        ("1.5M", 1_572_864),
        (" 4096 B ", 4096),
        ("0", 0),
    ] {
        assert_eq!(text.parse::<Bytes>(), Ok(Bytes::new(bytes)), "{text}");
    }
}

#[test]
fn a_size_without_a_unit_is_refused() {
    assert!(matches!("128".parse::<Bytes>(), Err(ParseUnitError::NoUnit { .. })));
    assert!(matches!("-4K".parse::<Bytes>(), Err(ParseUnitError::NotANumber { .. })));
    assert!(matches!("4KB".parse::<Bytes>(), Err(ParseUnitError::Ambiguous { .. })));
    assert!(matches!("4Q".parse::<Bytes>(), Err(ParseUnitError::UnknownUnit { .. })));
    assert!(matches!("0.3K".parse::<Bytes>(), Err(ParseUnitError::NotWhole { .. })));
    assert!(matches!("99999999T".parse::<Bytes>(), Err(ParseUnitError::TooLarge { .. })));
    assert!(matches!("".parse::<Bytes>(), Err(ParseUnitError::NotANumber { .. })));
}

#[test]
fn times_and_rates() {
    assert_eq!("1.5ms".parse::<Nanos>(), Ok(Nanos::from_micros(1500)));
    assert_eq!("10min".parse::<Nanos>(), Ok(Nanos::from_secs(600)));
    assert!("5".parse::<Nanos>().is_err());
    let rate: BytesPerSecond = "107MB/s".parse().expect("a data-sheet rate");
    assert_eq!(rate.as_mb(), 107.0);
    assert_eq!(Nanos::from_micros(7450).to_string(), "7.45 ms");
}

#[test]
fn kib_and_sectors_stand_side_by_side() {
    assert_eq!(Kib::new(128).to_sectors().to_string(), "256 sectors");
    assert_eq!(Bytes::from_kib(1088).to_string(), "1088 KiB");
    assert_eq!(Bytes::from_mib(8).to_string(), "8 MiB");
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(bytes in 0u64..1 << 50) {
        let amount = Bytes::new(bytes);
        prop_assert_eq!(amount.to_string().parse::<Bytes>(), Ok(amount));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,24}") {
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Nanos>();
        let _ = text.parse::<BytesPerSecond>();
    }
}
