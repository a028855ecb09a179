//! A part of each file, to measure a disk at its beginning, middle and end.

use strum::{EnumString, IntoStaticStr, VariantNames};
use units::Bytes;

/// A tenth of a file or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Zone {
    Beginning,
    Middle,
    End,
}

impl Zone {
    /// All zones, from the outer edge of a disk inward.
    pub const ALL: [Self; 3] = [Self::Beginning, Self::Middle, Self::End];

    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the zone's range in a file of this size, in whole blocks except at the end.
    pub(crate) fn within(self, size: Bytes, block: Bytes) -> (u64, u64) {
        let (size, block) = (size.get(), block.get().max(1));
        let tenths = |tenths: u64| {
            let at = (u128::from(size) * u128::from(tenths) / 20) as u64;
            at - at % block
        };
        match self {
            Self::Beginning => (0, tenths(2).max(block.min(size))),
            Self::Middle => (tenths(9), tenths(11).max((tenths(9) + block).min(size))),
            Self::End => (tenths(18), size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_tenths_at_whole_blocks() {
        let (size, block) = (Bytes::from_mib(100), Bytes::from_kib(64));
        let mib = |zone: Zone| {
            let (start, end) = zone.within(size, block);
            (start >> 20, end >> 20)
        };
        assert_eq!(mib(Zone::Beginning), (0, 10));
        assert_eq!(mib(Zone::Middle), (45, 55));
        assert_eq!(mib(Zone::End), (90, 100));
    }

    #[test]
    fn the_smallest_file_has_a_block_in_each() {
        for size in 1..200u64 {
            for zone in Zone::ALL {
                let (start, end) = zone.within(Bytes::new(size), Bytes::new(7));
                assert!(start < end && end <= size, "{zone:?} {size}: {start} {end}");
            }
        }
    }
}
