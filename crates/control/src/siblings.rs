//! Prefetches a small file as a whole when a reader waits for it, if readers waited longer for each
//! of the other files of its directory than that takes.
//!
//! The tables of a database that are read in many small steps are an example. Each of them is read
//! to the end before the waits for it alone would justify priming.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use policy::{Extent, Page};
use units::{Nanos, Pages};

use super::inputs::FileKey;
use super::prime::{FilePriming, Rent};
use crate::tuning::Tuning;

/// The files of the directory that was listed last.
#[derive(Clone, Debug, Default)]
pub(super) struct Siblings {
    files: BTreeSet<FileKey>,
    prefetched: BTreeSet<FileKey>,
    /// Time of the last prefetch.
    last: Option<Nanos>,
    tuning: Arc<Tuning>,
}

/// How other files of a directory were read, without prefetching.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    files: u64,
    rent: Rent,
}

impl Siblings {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Takes the files of a directory.
    pub fn list(&mut self, files: &[FileKey]) {
        if files.first().is_some_and(|file| !self.files.contains(file)) {
            self.prefetched.clear();
        }
        self.files = files.iter().copied().collect();
    }

    /// Returns whether files are being prefetched: the next one must be noticed soon.
    pub fn are_at_work(&self, now: Nanos) -> bool {
        self.last.is_some_and(|last| now.saturating_sub(last) <= self.tuning.idle_timeout)
    }

    /// Returns the extent to prefetch of a file of this size, for which readers waited in the last
    /// interval, and the reason; `None` if nothing is prefetched. `rate` is that of the device when
    /// it reads in order, in pages per second.
    pub fn prefetch(
        &mut self,
        (file, pages): (FileKey, Pages),
        primings: &BTreeMap<FileKey, FilePriming>,
        rate: f64,
        now: Nanos,
    ) -> Option<(Extent, String)> {
        let is_small = pages.get() <= self.tuning.piece_pages;
        if !is_small || !self.files.contains(&file) || self.prefetched.contains(&file) {
            return None;
        }
        let usage = self.usage(primings, file);
        // One of so many files is left as it is, to show how the others would be read.
        let most = usage.files * self.tuning.growth_factor * self.tuning.growth_factor;
        if usage.rent.stalls < self.tuning.few_samples
            || usage.files < self.tuning.min_windows
            || self.prefetched.len() as u64 >= most
        {
            return None;
        }
        let missing = pages.get().saturating_sub(primings.get(&file)?.touched());
        let per_file = usage.rent.stalled / usage.files as f64;
        let wait = usage.rent.stalled / usage.rent.stalls as f64;
        let price = missing as f64 / rate + wait;
        let rest = missing as f64 / pages.get().max(1) as f64;
        if missing == 0 || per_file * rest < price {
            return None;
        }
        self.prefetched.insert(file);
        self.last = Some(now);
        let why = format!(
            "readers waited {:.1} ms for each of {} other files of its directory; the rest \
             of this one comes in {:.1} ms",
            1e3 * per_file,
            usage.files,
            1e3 * price,
        );
        Some((Extent::new(Page::new(0), pages), why))
    }

    fn usage(&self, primings: &BTreeMap<FileKey, FilePriming>, except: FileKey) -> Usage {
        let mut usage = Usage::default();
        for (file, priming) in primings {
            let counts = *file != except
                && self.files.contains(file)
                && !self.prefetched.contains(file)
                && priming.rent().stalls > 0;
            if counts {
                usage.files += 1;
                usage.rent = usage.rent.and(priming.rent());
            }
        }
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 400 MB/s.
    const RATE: f64 = 100_000.0;
    const PAGES: Pages = Pages::new(500);

    fn key(inode: u64) -> FileKey {
        FileKey(1, inode)
    }

    /// Returns a file of which readers have read `pages`, with waits of 1 ms.
    fn read(pages: u64, waits: u64) -> FilePriming {
        let mut priming = FilePriming::default();
        priming.touch(0, pages);
        priming.waited(waits, Nanos::from_millis(waits), Nanos::from_secs(1));
        priming
    }

    /// Returns which of the files 10 to `end` are prefetched after `before` others, each read with
    /// so many waits.
    fn prefetched(before: u64, waits: u64, pages: Pages, end: u64) -> Vec<u64> {
        let mut siblings = Siblings::default();
        siblings.list(&(0..end).map(key).collect::<Vec<_>>());
        let mut primings: BTreeMap<_, _> =
            (0..before).map(|file| (key(file), read(500, waits))).collect();
        let now = Nanos::ZERO;
        let is_prefetched = |file: &u64| {
            primings.insert(key(*file), read(16, 1));
            let due = siblings.prefetch((key(*file), pages), &primings, RATE, now).is_some();
            // A file that is not prefetched is read in many steps, too.
            primings.insert(key(*file), read(500, if due { 1 } else { waits }));
            due
        };
        (10..end).filter(is_prefetched).collect()
    }

    #[test]
    fn a_file_is_prefetched_if_the_others_took_longer() {
        // The missing 484 pages take 4.84 ms and a wait of 1 ms.
        assert_eq!(prefetched(3, 8, PAGES, 12), [10, 11]);
        assert!(prefetched(3, 5, PAGES, 12).is_empty(), "their readers waited less");
        assert!(prefetched(2, 8, PAGES, 11).is_empty(), "two may be exceptions");
        assert!(prefetched(9, 1, PAGES, 12).is_empty(), "only their starts were read");
        assert!(prefetched(3, 900, Pages::new(2000), 12).is_empty(), "a large file is primed");
    }

    #[test]
    fn some_files_are_left_to_show_how_they_are_read() {
        let most = 3 * Tuning::DEFAULT.growth_factor.pow(2);
        let files = prefetched(3, 8, PAGES, 10 + most + 20);
        assert!(!files.contains(&(10 + most)), "{files:?}");
        assert!(files.contains(&(10 + most + 1)), "there is one more example");
    }

    #[test]
    fn files_of_other_directories_do_not_count() {
        let mut siblings = Siblings::default();
        siblings.list(&[key(5), key(6)]);
        let primings: BTreeMap<_, _> = (0..9).map(|file| (key(file), read(500, 50))).collect();
        let mut due = |file| siblings.prefetch((key(file), PAGES), &primings, RATE, Nanos::ZERO);
        assert_eq!(due(5), None, "its directory has one other file");
        assert_eq!(due(8), None);
    }
}
