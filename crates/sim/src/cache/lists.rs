//! Lists of pages by age, stored as runs of pages that entered together.
//!
//! A page that leaves its run does not split it: the page's own state names its entry, and the
//! entry counts its remaining pages.

/// Index of an entry in the table. It is reused after the entry becomes empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryId(u32);

impl EntryId {
    pub(super) const NONE: Self = Self(u32::MAX);

    /// Returns the ID as a word, which is zero for [`Self::NONE`].
    #[inline]
    pub(super) fn word(self) -> u32 {
        !self.0
    }

    #[inline]
    pub(super) fn of_word(word: u32) -> Self {
        Self(!word)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Inactive,
    /// Pages that were used more than once.
    Active,
}

/// A run of pages of one file, oldest first. Some pages may have left the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListEntry {
    pub(super) file: u32,
    pub(super) list: List,
    pub(super) start: u64,
    pub(super) end: u64,
    live: u64,
    older: EntryId,
    newer: EntryId,
}

#[derive(Debug)]
pub(super) struct Lists {
    entries: Vec<ListEntry>,
    free: Vec<EntryId>,
    oldest: [EntryId; 2],
    newest: [EntryId; 2],
    pages: [u64; 2],
    count: u64,
}

impl Lists {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            oldest: [EntryId::NONE; 2],
            newest: [EntryId::NONE; 2],
            pages: [0; 2],
            count: 0,
        }
    }

    /// Returns the number of pages in a list.
    pub(super) fn pages(&self, list: List) -> u64 {
        self.pages[list as usize]
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the entry at the old end of a list.
    pub(super) fn oldest(&self, list: List) -> Option<EntryId> {
        let id = self.oldest[list as usize];
        (id != EntryId::NONE).then_some(id)
    }

    pub(super) fn get(&self, id: EntryId) -> ListEntry {
        self.entries[id.0 as usize]
    }

    /// Adds pages at the young end of a list: to the youngest entry if they follow its last page.
    pub(super) fn push(&mut self, list: List, file: u32, start: u64, pages: u64) -> EntryId {
        let newest = self.newest[list as usize];
        self.pages[list as usize] += pages;
        if newest != EntryId::NONE {
            let entry = &mut self.entries[newest.0 as usize];
            if entry.file == file && entry.end == start {
                entry.end += pages;
                entry.live += pages;
                return newest;
            }
        }
        let (older, newer) = (newest, EntryId::NONE);
        let entry = ListEntry { file, list, start, end: start + pages, live: pages, older, newer };
        let id = match self.free.pop() {
            Some(id) => {
                self.entries[id.0 as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                EntryId(self.entries.len() as u32 - 1)
            }
        };
        self.count += 1;
        match newest {
            EntryId::NONE => self.oldest[list as usize] = id,
            before => self.entries[before.0 as usize].newer = id,
        }
        self.newest[list as usize] = id;
        id
    }

    /// Returns whether all pages between the ends of an entry are still in it.
    #[inline]
    pub(super) fn is_whole(&self, id: EntryId) -> bool {
        let entry = &self.entries[id.0 as usize];
        entry.live == entry.end - entry.start
    }

    /// Returns whether `page` is the last of the youngest entry, and so the youngest in the list.
    #[inline]
    pub(super) fn is_youngest(&self, list: List, id: EntryId, page: u64) -> bool {
        self.newest[list as usize] == id
            && id != EntryId::NONE
            && self.entries[id.0 as usize].end == page + 1
    }

    /// Removes pages from an entry. Frees the entry if it has no pages left.
    pub(super) fn take(&mut self, id: EntryId, pages: u64) {
        let entry = &mut self.entries[id.0 as usize];
        entry.live -= pages;
        self.pages[entry.list as usize] -= pages;
        if entry.live == 0 {
            let entry = *entry;
            self.unlink(entry);
            self.free.push(id);
            self.count -= 1;
        }
    }

    /// Records that an entry has no pages before `page` any more.
    pub(super) fn begin_at(&mut self, id: EntryId, page: u64) {
        self.entries[id.0 as usize].start = page;
    }

    /// Moves an entry to the young end of its list.
    pub(super) fn renew(&mut self, id: EntryId) {
        let entry = self.entries[id.0 as usize];
        let list = entry.list as usize;
        if self.newest[list] == id {
            return;
        }
        self.unlink(entry);
        let newest = self.newest[list];
        let this = &mut self.entries[id.0 as usize];
        (this.older, this.newer) = (newest, EntryId::NONE);
        match newest {
            EntryId::NONE => self.oldest[list] = id,
            before => self.entries[before.0 as usize].newer = id,
        }
        self.newest[list] = id;
    }

    fn unlink(&mut self, entry: ListEntry) {
        let list = entry.list as usize;
        match entry.older {
            EntryId::NONE => self.oldest[list] = entry.newer,
            older => self.entries[older.0 as usize].newer = entry.newer,
        }
        match entry.newer {
            EntryId::NONE => self.newest[list] = entry.older,
            newer => self.entries[newer.0 as usize].older = entry.older,
        }
    }
}
