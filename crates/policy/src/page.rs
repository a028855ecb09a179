//! Pages of a file and the folios that hold them.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::Pages;

/// The index of a page within its file; the distance between two is a number of [`Pages`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Page(u64);

impl Page {
    /// The first page of a file.
    pub const FIRST: Self = Self(0);

    pub const fn new(index: u64) -> Self {
        Self(index)
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    /// The page `count` pages on, or the last page that there can be.
    pub const fn plus(self, count: Pages) -> Self {
        Self(self.0.saturating_add(count.get()))
    }

    /// The page `count` pages back, or the first page.
    pub const fn minus(self, count: Pages) -> Self {
        Self(self.0.saturating_sub(count.get()))
    }

    /// How far this page is beyond `earlier`; nothing if it is not.
    pub const fn since(self, earlier: Self) -> Pages {
        Pages::new(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("page {}", self.0))
    }
}

/// Pages that follow each other: `[start, start + pages)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Extent {
    pub start: Page,
    pub pages: Pages,
}

impl Extent {
    /// `[start, start + pages)`.
    pub const fn new(start: Page, pages: Pages) -> Self {
        Self { start, pages }
    }

    /// Whether this page is one of them.
    pub fn contains(self, page: Page) -> bool {
        self.start <= page && page < self.end()
    }

    pub const fn end(self) -> Page {
        self.start.plus(self.pages)
    }

    /// What of it lies before `end`; nothing if none does.
    pub const fn before(self, end: Page) -> Self {
        let room = end.since(self.start);
        if self.pages.get() > room.get() { Self::new(self.start, room) } else { self }
    }
}

/// A piece of the page cache: 2^order pages, aligned to their number, with at most one mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folio {
    pub head: Page,
    /// The power of two that it holds.
    pub order: u8,
    /// Whether touching it is to start the next read-ahead (PG_readahead).
    pub marked: bool,
}

impl Folio {
    /// How many pages it holds.
    pub const fn pages(self) -> Pages {
        Pages::new(1 << self.order)
    }

    pub const fn end(self) -> Page {
        self.head.plus(self.pages())
    }
}
