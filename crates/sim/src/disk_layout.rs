//! Maps pages of a file to device requests.

use std::collections::{BTreeSet, VecDeque};

use model::layout::{DiskExtent, FileLayout};
use policy::cache::PAGE;
use policy::{Extent, Page};
use units::{Bytes, Pages};

use crate::queue::{Item, PartPurpose};
use crate::scenario::FileOnDisk;

/// The location of a file on the device.
pub(crate) struct Placed {
    file: u32,
    disk: FileOnDisk,
    max_request: u64,
    known: BTreeSet<u64>,
}

impl Placed {
    pub(crate) fn new(file: u32, disk: FileOnDisk, max_request: u64) -> Self {
        Self { file, disk, max_request, known: BTreeSet::new() }
    }

    pub(crate) fn size(&self) -> Bytes {
        self.disk.size
    }

    /// Returns the first byte of the device after the file.
    pub(crate) fn end(&self) -> Bytes {
        let whole = self.disk.size.to_pages_ceil(PAGE).to_bytes(PAGE);
        match self.disk.pieces {
            None => self.disk.start + self.disk.layout.footprint(whole),
            Some((piece, step)) => {
                let pieces = whole.get().div_ceil(piece.get().max(1));
                self.disk.start + Bytes::new(step.get().saturating_mul(pieces))
            }
        }
    }

    /// Returns the number of pages from `page` that are contiguous on the device.
    pub(crate) fn contiguous(&self, page: Page) -> Pages {
        let whole = self.disk.size.to_pages_ceil(PAGE);
        let left = Page::FIRST.plus(whole).since(page);
        let at = Bytes::new(page.get() * PAGE.bytes().get());
        let run = match (self.disk.pieces, self.disk.layout) {
            (Some((piece, _)), _) => piece.get() - at.get() % piece.get().max(1),
            (None, FileLayout::Contiguous) => return left,
            (None, FileLayout::Ext3) => {
                let extents = self.disk.layout.extents(Bytes::ZERO, at, Bytes::from_mib(8));
                let data = extents.iter().find_map(|extent| match extent {
                    DiskExtent::Data { length, .. } => Some(length.get()),
                    DiskExtent::Metadata { .. } => None,
                });
                data.unwrap_or(0)
            }
        };
        Pages::new(run / PAGE.bytes().get()).min(left)
    }

    /// Returns the request for some pages of a contiguous file, if a single request suffices.
    #[inline]
    pub(crate) fn single(&self, extent: Extent) -> Option<Item> {
        let length = extent.pages.get() * 4096;
        let plain = self.disk.pieces.is_none() && self.disk.layout == FileLayout::Contiguous;
        if !plain || length > self.max_request {
            return None;
        }
        let offset = self.disk.start.get() + extent.start.get() * 4096;
        Some(Item { offset, length, purpose: PartPurpose::Data { file: self.file, extent } })
    }

    /// Appends the requests for some pages to `items`, in order.
    pub(crate) fn plan(&mut self, extent: Extent, items: &mut VecDeque<Item>) {
        let (at, length) = (extent.start.get() * 4096, extent.pages.get() * 4096);
        match (self.disk.pieces, self.disk.layout) {
            (Some((piece, step)), _) => {
                let (mut at, end) = (at, at + length);
                while at < end {
                    let within = at % piece.get();
                    let run = (piece.get() - within).min(end - at);
                    let offset = self.disk.start.get() + at / piece.get() * step.get() + within;
                    self.cut(offset, at, run, items);
                    at += run;
                }
            }
            (None, FileLayout::Contiguous) => {
                self.cut(self.disk.start.get() + at, at, length, items);
            }
            (None, FileLayout::Ext3) => {
                let (start, mut at) = (self.disk.start, at);
                for part in self.disk.layout.extents(start, Bytes::new(at), Bytes::new(length)) {
                    match part {
                        DiskExtent::Metadata { offset, length } => {
                            if self.known.insert(offset.get()) {
                                let (offset, length) = (offset.get(), length.get());
                                let purpose = PartPurpose::Metadata;
                                items.push_back(Item { offset, length, purpose });
                            }
                        }
                        DiskExtent::Data { offset, length } => {
                            self.cut(offset.get(), at, length.get(), items);
                            at += length.get();
                        }
                    }
                }
            }
        }
    }

    /// Splits a run into requests of at most the host's maximum size.
    fn cut(&self, mut offset: u64, mut at: u64, length: u64, items: &mut VecDeque<Item>) {
        let end = at + length;
        while at < end {
            let length = self.max_request.min(end - at);
            let extent = Extent::new(Page::new(at / 4096), Pages::new(length / 4096));
            let purpose = PartPurpose::Data { file: self.file, extent };
            items.push_back(Item { offset, length, purpose });
            offset += length;
            at += length;
        }
    }
}
