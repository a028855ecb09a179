//! Prefetches small files of a directory as a whole on their first miss, if readers waited longer
//! for each of the others than that takes.
//!
//! The tables of a database that are scanned in many small steps are an example. Each of them is
//! read to the end before the waits for it alone would justify priming, and often before an
//! interval ends. Therefore the back end prefetches at the miss itself. Waits for files that are
//! read at random, a little of each at a time, do not count: nobody knows whether they go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use units::{Nanos, Pages};

use super::action::NextFile;
use super::inputs::FileKey;
use super::prime::{FilePriming, Rent};
use crate::tuning::Tuning;
use policy::OpenFileId;

/// The files of the directory that was listed last.
#[derive(Clone, Debug, Default)]
pub(super) struct Siblings {
    files: BTreeSet<FileKey>,
    /// The open file through which the directory was found.
    key: OpenFileId,
    /// The sizes of those for which readers have waited.
    sizes: BTreeMap<FileKey, Pages>,
    /// Files that the back end prefetches on their first miss, and those that it has prefetched.
    awaited: BTreeSet<FileKey>,
    prefetched: BTreeSet<FileKey>,
    /// Whether the back end awaits files.
    backend_awaits: bool,
    /// Time of the last wait for one of the files.
    waited: Nanos,
    tuning: Arc<Tuning>,
}

/// How files were read, without prefetching.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    files: u64,
    pages: Pages,
    rent: Rent,
}

impl Siblings {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Takes the files of a directory.
    pub fn list(&mut self, key: OpenFileId, files: &[FileKey], now: Nanos) {
        if files.first().is_some_and(|file| !self.files.contains(file)) {
            self.stop();
            self.waited = now;
        }
        (self.key, self.files) = (key, files.iter().copied().collect());
    }

    /// Forgets the directory.
    pub fn stop(&mut self) {
        let (key, backend_awaits) = (self.key, self.backend_awaits);
        let tuning = Arc::clone(&self.tuning);
        *self = Self { key, backend_awaits, tuning, ..Self::default() };
    }

    /// Returns whether the directory may still be needed.
    pub fn is_at_work(&self) -> bool {
        !self.files.is_empty()
    }

    /// Records a miss: the back end prefetches an awaited file now.
    pub fn on_miss(&mut self, file: FileKey) {
        if self.awaited.remove(&file) {
            self.prefetched.insert(file);
        }
    }

    /// Records that readers waited for a file of this size over an interval.
    pub fn on_wait(&mut self, file: FileKey, pages: Pages, now: Nanos) {
        if self.files.contains(&file) {
            self.sizes.insert(file, pages);
            self.waited = now;
        }
    }

    /// Returns whether a file was prefetched as a whole.
    pub fn has_prefetched(&self, file: FileKey) -> bool {
        self.prefetched.contains(&file)
    }

    /// Returns the files to prefetch on their first miss from now on, in place of earlier ones, the
    /// open file through which they were found, and the reason; `None` if they stay the same.
    /// `rate` is that of the device when it reads in order, in pages per second.
    pub fn step(
        &mut self,
        primings: &BTreeMap<FileKey, FilePriming>,
        rate: f64,
        now: Nanos,
    ) -> Option<(OpenFileId, Vec<NextFile>, String)> {
        if now.saturating_sub(self.waited) > self.tuning.idle_timeout {
            self.stop();
        }
        let why = self.reason(self.usage(primings), rate);
        let is_new = why.is_some() && self.awaited.is_empty();
        if is_new {
            self.awaited = self.unread();
        } else if why.is_none() {
            self.awaited.clear();
        }
        let awaits = !self.awaited.is_empty();
        if !(is_new && awaits || self.backend_awaits && !awaits) {
            return None;
        }
        self.backend_awaits = awaits;
        let until = Pages::new(self.tuning.piece_pages);
        let next = |file: &FileKey| NextFile { file: *file, from: Pages::ZERO, until };
        let files = self.awaited.iter().map(next).collect();
        Some((self.key, files, why.filter(|_| awaits).unwrap_or_default()))
    }

    /// Returns why files should be prefetched; `None` if they should not.
    fn reason(&self, Usage { files, pages, rent }: Usage, rate: f64) -> Option<String> {
        if rent.stalls < self.tuning.few_samples || files < self.tuning.min_windows {
            return None;
        }
        let (pages, per_file) = (pages.get() / files, rent.stalled / files as f64);
        let price = pages as f64 / rate + rent.stalled / rent.stalls as f64;
        let is_worth =
            pages <= self.tuning.piece_pages && per_file >= self.tuning.clear_ratio() * price;
        is_worth.then(|| {
            format!(
                "readers waited {:.1} ms for each of {files} other files of its directory; a whole \
                 file comes in {:.1} ms",
                1e3 * per_file,
                1e3 * price,
            )
        })
    }

    fn usage(&self, primings: &BTreeMap<FileKey, FilePriming>) -> Usage {
        let mut usage = Usage::default();
        for (file, priming) in primings {
            if let Some(pages) = self.sizes.get(file).filter(|_| !self.has_prefetched(*file)) {
                usage.files += 1;
                usage.pages += *pages;
                usage.rent = usage.rent.and(priming.dense_rent());
            }
        }
        usage
    }

    /// Returns files that no reader has waited for. One of so many is left out, to show how the
    /// others would be read.
    fn unread(&self) -> BTreeSet<FileKey> {
        let among = self.tuning.growth_factor * self.tuning.growth_factor + 1;
        let is_unread =
            |file: &&FileKey| !self.sizes.contains_key(file) && !self.prefetched.contains(file);
        let unread = self.files.iter().filter(is_unread).zip(1_u64..);
        let chosen = unread.filter(|(_, number)| !number.is_multiple_of(among));
        chosen.map(|(file, _)| *file).take(self.tuning.max_followed()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 400 MB/s.
    const RATE: f64 = 100_000.0;
    const PAGES: Pages = Pages::new(500);
    const NOW: Nanos = Nanos::from_secs(1);

    fn key(inode: u64) -> FileKey {
        FileKey(1, inode)
    }

    /// A directory of 100 files and what their readers have waited for.
    struct Readers {
        siblings: Siblings,
        primings: BTreeMap<FileKey, FilePriming>,
    }

    impl Readers {
        fn new() -> Self {
            let mut siblings = Siblings::default();
            siblings.list(OpenFileId::default(), &(0..100).map(key).collect::<Vec<_>>(), NOW);
            Self { siblings, primings: BTreeMap::new() }
        }

        /// Files of this size are read with so many waits of 1 ms for each, one after another.
        fn read(self, files: std::ops::Range<u64>, waits: u64, pages: Pages) -> Self {
            self.read_slowly(files, (waits, Nanos::from_millis(2 * waits)), pages)
        }

        /// As `read`, but the waits for a file are spread over this time.
        fn read_slowly(
            mut self,
            files: std::ops::Range<u64>,
            (waits, time): (u64, Nanos),
            pages: Pages,
        ) -> Self {
            for file in files.map(key) {
                let mut priming = FilePriming::default();
                priming.waited(waits, Nanos::from_millis(waits), 1.0, time);
                self.primings.insert(file, priming);
                self.siblings.on_miss(file);
                self.siblings.on_wait(file, pages, NOW);
            }
            self
        }

        /// Returns the files of the next change; `None` if there is none.
        fn step(&mut self, now: Nanos) -> Option<Vec<u64>> {
            let (_, files, _) = self.siblings.step(&self.primings, RATE, now)?;
            Some(files.into_iter().map(|next| next.file.1).collect())
        }

        fn first_step(mut self) -> Option<Vec<u64>> {
            self.step(NOW)
        }
    }

    #[test]
    fn files_are_awaited_if_the_others_took_longer() {
        // A file takes 5 ms and a wait of 1 ms.
        let awaited = Readers::new().read(0..3, 8, PAGES).first_step().expect("a change");
        assert_eq!(awaited[..2], [3, 4]);
        assert!(awaited.len() < 97 && awaited.len() > 90, "some are left to show the difference");
        let none = |files, waits, pages| Readers::new().read(files, waits, pages).first_step();
        assert_eq!(none(0..3, 5, PAGES), None, "their readers waited less");
        assert_eq!(none(0..2, 8, PAGES), None, "two may be exceptions");
        assert_eq!(none(0..9, 1, PAGES), None, "only their starts were read");
        assert_eq!(none(0..3, 900, Pages::new(2000)), None, "large files are primed");
        let among_others = (8, Nanos::from_millis(80));
        let sparse = Readers::new().read_slowly(0..3, among_others, PAGES).first_step();
        assert_eq!(sparse, None, "most of the time, readers waited for other files");
    }

    #[test]
    fn what_was_prefetched_shows_nothing() {
        let mut readers = Readers::new().read(0..3, 8, PAGES);
        assert!(readers.step(NOW).is_some());
        let mut readers = readers.read(3..10, 1, PAGES);
        assert_eq!(readers.step(NOW), None, "it goes on");
        assert!(
            readers.siblings.has_prefetched(key(9)) && !readers.siblings.has_prefetched(key(2))
        );
        // One that was left out shows that the others are no longer read in many steps.
        let left =
            (0..100).find(|file| *file > 9 && !readers.siblings.awaited.contains(&key(*file)));
        let left = left.expect("a file");
        let mut readers = readers.read(left..left + 1, 1, PAGES).read(0..1, 1, PAGES);
        assert_eq!(readers.step(NOW), Some(Vec::new()));
        assert_eq!(readers.step(NOW), None, "that is said once");
    }

    #[test]
    fn it_ends_with_its_readers() {
        let mut readers = Readers::new().read(0..3, 8, PAGES);
        assert!(readers.step(NOW).is_some() && readers.siblings.is_at_work());
        assert_eq!(readers.step(Nanos::from_secs(9)), Some(Vec::new()));
        assert!(!readers.siblings.is_at_work());
    }

    #[test]
    fn files_of_other_directories_do_not_count() {
        let mut readers = Readers::new().read(0..3, 8, PAGES);
        readers.siblings.list(OpenFileId::default(), &[key(200), key(201)], NOW);
        assert_eq!(readers.step(NOW), None);
        let mut readers = Readers::new().read(0..3, 8, PAGES);
        assert!(readers.step(NOW).is_some());
        readers.siblings.list(OpenFileId::default(), &[key(200), key(201)], NOW);
        assert_eq!(readers.step(NOW), Some(Vec::new()), "the earlier ones are no longer awaited");
    }
}
