//! The values of read-ahead that a study measures.
//!
//! On filesystems with large folios a window that is a power of two ramps badly and loses its mark
//! when several streams share an open file; 17·2ⁿ pages do not. The default grid has both families,
//! from one page to 64 MiB. It excludes zero: without read-ahead a 64 KiB read becomes sixteen
//! I/Os, which slows all other programs during the study. To include zero, name it:
//! `--vary read_ahead=0,4K,…`.

use serde::{Deserialize, Serialize};
use units::{Bytes, Kib, PageSize};

/// The largest window of the default grid.
pub const FULL_GRID_TOP: Bytes = Bytes::from_mib(64);

/// The values of read-ahead to measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grid {
    /// Powers of two from a page to 64 MiB, 17·2ⁿ pages between them, and the current value.
    Full,
    /// One value per factor of four, and the current value: enough to show the shape.
    Coarse,
    /// Only the current value: read-ahead is not varied.
    Found,
    /// Only these values, without the current one.
    Values(Vec<Kib>),
}

impl Grid {
    /// Returns the values to measure, ascending and distinct. `found` is the current value, which
    /// the default grids contain because gains are relative to it.
    pub fn values(&self, page: PageSize, found: Option<Kib>) -> Vec<Kib> {
        let mut values = match self {
            Self::Full => {
                let mut values = family(page.bytes(), 2);
                values.extend(family(page.bytes() * 17, 2));
                values.extend(found);
                values
            }
            Self::Coarse => {
                let mut values = family(page.bytes(), 4);
                values.extend(found);
                values
            }
            Self::Found => found.into_iter().collect(),
            Self::Values(values) => values.clone(),
        };
        values.sort_unstable();
        values.dedup();
        values
    }
}

/// Returns `first`, `first` × `factor`, … up to the top of the grid.
fn family(first: Bytes, factor: u64) -> Vec<Kib> {
    std::iter::successors(Some(first), |size| Some(*size * factor))
        .take_while(|size| *size <= FULL_GRID_TOP)
        .map(Bytes::to_kib_floor)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kib(grid: &Grid, found: Option<u64>) -> Vec<u64> {
        let values = grid.values(PageSize::FOUR_KIB, found.map(Kib::new));
        values.into_iter().map(Kib::get).collect()
    }

    #[test]
    fn full_grid_has_both_families_from_a_page_to_64_mib() {
        let values = kib(&Grid::Full, None);
        assert_eq!(values.len(), 25);
        assert_eq!(&values[..7], [4, 8, 16, 32, 64, 68, 128]);
        assert_eq!(values.last(), Some(&65536));
        assert!(values.contains(&1088) && values.contains(&34816));
    }

    #[test]
    fn found_value_is_added_once() {
        assert!(kib(&Grid::Full, Some(5000)).contains(&5000));
        assert_eq!(kib(&Grid::Full, Some(128)).len(), 25);
        assert_eq!(kib(&Grid::Coarse, Some(128)), [4, 16, 64, 128, 256, 1024, 4096, 16384, 65536]);
    }

    #[test]
    fn a_named_grid_is_taken_as_it_is() {
        let grid = Grid::Values([128, 4, 128].map(Kib::new).to_vec());
        assert_eq!(kib(&grid, Some(64)), [4, 128]);
    }

    #[test]
    fn larger_pages_start_the_grid_at_one_page() {
        let page = PageSize::new(65536).unwrap();
        assert_eq!(Grid::Full.values(page, None).first(), Some(&Kib::new(64)));
    }
}
