//! Windows in flight whose pages arrive together, with the last of their requests.

use policy::Extent;
use units::Pages;

use crate::machine::Arrival;
use crate::queue::{Item, PartPurpose};

/// Maximum number of memory segments of a bio (BIO_MAX_VECS), each a folio.
const BIO_MAX_FOLIOS: u64 = 256;

#[derive(Clone, Copy, Debug)]
struct Window {
    file: u32,
    extent: Extent,
    /// Device offset after the last byte of the window.
    end: u64,
    /// Number of pages that have not arrived yet.
    left: Pages,
}

/// The windows in flight that need several requests, usually a handful; none if the pages of each
/// request arrive on their own.
#[derive(Debug)]
pub(super) struct WindowsInFlight {
    arrival: Arrival,
    open: Vec<Window>,
}

impl WindowsInFlight {
    pub(super) fn new(arrival: Arrival) -> Self {
        Self { arrival, open: Vec::new() }
    }

    /// Records the requests planned for one batch, in the order of its pages. Data that are
    /// contiguous on the device arrive together; of single pages, at most as many as a bio holds.
    pub(super) fn note<'a>(&mut self, planned: impl Iterator<Item = &'a Item>, single: bool) {
        if self.arrival == Arrival::Requests {
            return;
        }
        let first = self.open.len();
        for item in planned {
            let PartPurpose::Data { file, extent } = item.purpose else { continue };
            let end = item.offset + item.length;
            if let Some(window) = self.open[first..].last_mut() {
                let pages = window.extent.pages + extent.pages;
                if window.end == item.offset && (!single || pages.get() <= BIO_MAX_FOLIOS) {
                    window.extent.pages = pages;
                    (window.left, window.end) = (pages, end);
                    continue;
                }
            }
            self.open.push(Window { file, extent, end, left: extent.pages });
        }
    }

    /// Records the arrival of pages. Returns the pages that become readable, if any.
    pub(super) fn arrive(&mut self, file: u32, extent: Extent) -> Option<Extent> {
        let holds = |window: &Window| {
            let of = window.extent;
            window.file == file && of.start <= extent.start && extent.start < of.end()
        };
        // Pages that were not recorded arrive on their own.
        let Some(place) = self.open.iter().position(holds) else { return Some(extent) };
        let window = &mut self.open[place];
        window.left = window.left.saturating_sub(extent.pages);
        window.left.is_zero().then(|| self.open.swap_remove(place).extent)
    }
}

#[cfg(test)]
mod tests {
    use policy::Page;

    use super::*;

    fn item(offset: u64, pages: u64) -> Item {
        let extent = Extent::new(Page::new(offset / 4096), Pages::new(pages));
        Item { offset, length: pages * 4096, purpose: PartPurpose::Data { file: 0, extent } }
    }

    #[test]
    fn the_last_request_of_a_window_brings_it() {
        let mut windows = WindowsInFlight::new(Arrival::Windows);
        let items = [item(0, 64), item(64 << 12, 64), item(200 << 12, 10)];
        windows.note(items.iter(), false);
        let pages = |start, count| Extent::new(Page::new(start), Pages::new(count));
        assert_eq!(windows.arrive(0, pages(64, 64)), None);
        assert_eq!(windows.arrive(0, pages(200, 10)), Some(pages(200, 10)));
        assert_eq!(windows.arrive(0, pages(0, 64)), Some(pages(0, 128)));
        assert_eq!(windows.arrive(0, pages(0, 64)), Some(pages(0, 64)), "of none that is open");
    }

    #[test]
    fn single_pages_fill_a_bio() {
        let mut windows = WindowsInFlight::new(Arrival::Windows);
        let items = [item(0, 200), item(200 << 12, 100)];
        windows.note(items.iter(), true);
        let first = Extent::new(Page::FIRST, Pages::new(200));
        assert_eq!(windows.arrive(0, first), Some(first));
        let mut each = WindowsInFlight::new(Arrival::Requests);
        each.note(items.iter(), false);
        assert_eq!(each.arrive(0, first), Some(first));
    }
}
