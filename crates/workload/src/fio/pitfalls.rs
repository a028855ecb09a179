//! Detects properties that prevent a fio job from measuring read-ahead as intended.

use units::Bytes;

use super::job::{FioAccess, Job};
use super::job_file::{FioGroup, Note};
use super::meaning::{FioAdvice, FioEngine};

impl FioGroup {
    /// Returns notes on the interpretation of the results, each with its line.
    pub fn pitfalls(&self) -> Vec<Note> {
        let mut notes: Vec<Note> = self.jobs.iter().flat_map(Job::pitfalls).collect();
        notes.sort();
        notes.dedup();
        notes
    }
}

impl Job {
    fn pitfalls(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        let mut say = |option: &str, text: String| {
            notes.push(Note { place: self.place_of(option), option: option.to_owned(), text });
        };
        if self.direct {
            say(
                "direct",
                "direct I/O bypasses the page cache: read-ahead has no effect on this job"
                    .to_owned(),
            );
        }
        if !self.direct && self.access != FioAccess::Write {
            self.hints(&mut say);
        }
        if self.iodepth > 1 && self.engine != FioEngine::Async {
            say(
                "iodepth",
                "has no effect: this ioengine has only one request in \
                 flight"
                    .to_owned(),
            );
        }
        if self.iodepth > 1 && self.engine == FioEngine::Async && !self.direct {
            say(
                "iodepth",
                "without direct=1 most requests run one after another at any depth".to_owned(),
            );
        }
        if self.time_based || self.loops > 1 {
            let option = if self.time_based { "time_based" } else { "loops" };
            say(
                option,
                "data that is read again comes from the page cache: use files that are larger \
                 than a trial reads"
                    .to_owned(),
            );
        }
        if self.pre_read {
            say("pre_read", "the data is in the page cache before the measurement".to_owned());
        }
        if self.io_size.is_none() && self.postfix.is_some_and(|skip| !self.random && skip > 0) {
            say("rw", "at the end of the file it starts again with cached data".to_owned());
        }
        notes
    }

    /// By default, fio advises the kernel of its pattern, which most programs do not do.
    fn hints(&self, say: &mut dyn FnMut(&str, String)) {
        let is_set = self.setting("fadvise_hint").is_some();
        let given = if is_set { "" } else { "is 1 by default: " };
        let random = match self.advice {
            FioAdvice::None | FioAdvice::NoReuse => return,
            FioAdvice::Random => true,
            FioAdvice::Sequential => false,
            FioAdvice::Pattern => self.random,
        };
        let effect = match random {
            true => "fio advises the kernel that it reads at random, which disables read-ahead",
            false => "fio advises the kernel that it reads sequentially, which doubles the window",
        };
        say("fadvise_hint", format!("{given}{effect}; with 0 it behaves like most programs"));
    }

    pub(crate) fn largest_block(&self) -> Bytes {
        self.block.1
    }
}
