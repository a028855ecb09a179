//! Pages of a file and the folios that hold them.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::Pages;

/// The index of a page within its file. The distance between two pages is in [`Pages`].
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

    /// Returns the page `count` pages later, or the last possible page.
    pub const fn plus(self, count: Pages) -> Self {
        Self(self.0.saturating_add(count.get()))
    }

    /// Returns the page `count` pages earlier, or the first page.
    pub const fn minus(self, count: Pages) -> Self {
        Self(self.0.saturating_sub(count.get()))
    }

    /// Returns the distance from `earlier` to this page; zero if this page is not after it.
    pub const fn since(self, earlier: Self) -> Pages {
        Pages::new(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("page {}", self.0))
    }
}

/// Consecutive pages: `[start, start + pages)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Extent {
    pub start: Page,
    pub pages: Pages,
}

impl Extent {
    pub const fn new(start: Page, pages: Pages) -> Self {
        Self { start, pages }
    }

    pub fn contains(self, page: Page) -> bool {
        self.start <= page && page < self.end()
    }

    pub const fn end(self) -> Page {
        self.start.plus(self.pages)
    }

    /// Returns the part before `end`, which may be empty.
    pub const fn before(self, end: Page) -> Self {
        let room = end.since(self.start);
        if self.pages.get() > room.get() { Self::new(self.start, room) } else { self }
    }
}

/// A unit of the page cache: 2^order pages, aligned to that size, with at most one mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folio {
    pub head: Page,
    /// Base-2 logarithm of the number of pages.
    pub order: u8,
    /// `PG_readahead` is set: an access to the folio triggers async read-ahead.
    pub marked: bool,
}

impl Folio {
    pub const fn pages(self) -> Pages {
        Pages::new(1 << self.order)
    }

    pub const fn end(self) -> Page {
        self.head.plus(self.pages())
    }
}
