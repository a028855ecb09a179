//! The settings that a sweep varies.

use std::str::FromStr;

use units::PageSize;

use crate::setting::split;
use crate::{Tunable, TunableError, Value, find};

/// A tunable and the values to try, as in `--vary read_ahead=4K,128K`.
#[derive(Clone, Debug)]
pub struct Vary {
    pub tunable: &'static Tunable,
    /// The distinct values, in the order of the list.
    pub values: Vec<Value>,
}

impl Vary {
    /// Checks all values and rounds them as the kernel does; returns notes for the user.
    pub fn validate(&mut self, page: PageSize) -> Result<Vec<String>, TunableError> {
        let mut notes = Vec::new();
        for value in &mut self.values {
            let checked = self.tunable.validate(value, page)?;
            *value = checked.value;
            notes.extend(checked.notes);
        }
        keep_first(&mut self.values);
        Ok(notes)
    }
}

impl FromStr for Vary {
    type Err = TunableError;

    fn from_str(text: &str) -> Result<Self, TunableError> {
        let (name, list) = split(text)?;
        let tunable = find(name)?;
        let mut values = Vec::new();
        for item in list.split(',').map(str::trim) {
            if item.is_empty() {
                let problem = "a value is missing: write NAME=VALUE,VALUE…".to_owned();
                return Err(TunableError::Syntax { text: text.to_owned(), problem });
            }
            values.push(tunable.parse(name, item)?);
        }
        keep_first(&mut values);
        Ok(Self { tunable, values })
    }
}

/// Removes duplicates and keeps the first of each.
fn keep_first(values: &mut Vec<Value>) {
    let mut kept = Vec::with_capacity(values.len());
    for value in values.drain(..) {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    *values = kept;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Bytes;

    use super::*;

    fn kib(vary: &Vary) -> Vec<u64> {
        let kib = |value: &Value| value.bytes().map(|bytes| bytes.to_kib_floor().get());
        vary.values.iter().filter_map(kib).collect()
    }

    #[test]
    fn a_list_keeps_its_order_and_loses_its_repeats() {
        let vary: Vary = "read_ahead=4K, 1M,128K,4KiB,256s".parse().expect("a list");
        assert_eq!(vary.tunable.name(), "read_ahead");
        assert_eq!(kib(&vary), [4, 1024, 128]);
        let vary: Vary = "read_ahead_kb=4,128".parse().expect("a list");
        assert_eq!(kib(&vary), [4, 128]);
    }

    #[test]
    fn values_that_the_kernel_rounds_together_are_one() {
        let mut vary: Vary = "ra=6K,4K,0".parse().expect("a list");
        let notes = vary.validate(PageSize::FOUR_KIB).expect("in range");
        assert_eq!((kib(&vary), notes.len()), (vec![4, 0], 2));
        let mut vary: Vary = "ra=4K,3K".parse().expect("a list");
        assert!(matches!(
            vary.validate(PageSize::FOUR_KIB),
            Err(TunableError::BelowPage { value, .. }) if value == Bytes::from_kib(3)
        ));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "ra", "ra=", "ra=4K,", "ra=,4K", "ra=4K;8K", "ra=128", "ra=-4K", "rx=4K"] {
            assert!(text.parse::<Vary>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_list_is_survived(text in "(ra|read_ahead_kb|\\PC{0,8})=?[0-9KMs,.\\PC]{0,40}") {
            if let Ok(mut vary) = text.parse::<Vary>() {
                let _ = vary.validate(PageSize::FOUR_KIB);
            }
        }
    }
}
