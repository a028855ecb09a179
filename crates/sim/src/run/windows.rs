//! Windows in flight whose pages arrive all at once, with the last of their requests.

use policy::Extent;
use units::Pages;

use crate::machine::Arrival;
use crate::queue::{Item, PartPurpose};

/// Pieces of memory that a bio may have (BIO_MAX_VECS), each a folio.
const BIO_MAX_FOLIOS: u64 = 256;

#[derive(Clone, Copy, Debug)]
struct Window {
    file: u32,
    extent: Extent,
    /// The byte of the device behind them.
    end: u64,
    /// Pages that have not come yet.
    left: Pages,
}

/// The windows of several requests that are under way, a handful at a time; of none if each
/// request is for itself.
#[derive(Debug)]
pub(super) struct WindowsInFlight {
    arrival: Arrival,
    open: Vec<Window>,
}

impl WindowsInFlight {
    pub(super) fn new(arrival: Arrival) -> Self {
        Self { arrival, open: Vec::new() }
    }

    /// Notes what was planned for one batch, in the order of its pages. Data that lie together on
    /// the device arrive together; of single pages, no more than a bio has pieces for.
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

    /// Some pages have come from the device: which can be read now, if any can.
    pub(super) fn arrive(&mut self, file: u32, extent: Extent) -> Option<Extent> {
        let holds = |window: &Window| {
            let of = window.extent;
            window.file == file && of.start <= extent.start && extent.start < of.end()
        };
        // What nobody noted arrives by itself.
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
