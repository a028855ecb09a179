//! The page size of the running kernel.

use units::PageSize;

pub fn page_size() -> PageSize {
    PageSize::new(rustix::param::page_size() as u64).unwrap_or(PageSize::FOUR_KIB)
}
