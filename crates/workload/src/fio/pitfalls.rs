//! What makes a job of fio measure something else than it seems to, where read-ahead is concerned.

use units::Bytes;

use super::job::{FioAccess, Job};
use super::job_file::{FioGroup, Note};
use super::meaning::{FioAdvice, FioEngine};

impl FioGroup {
    /// What whoever reads the figures should know, each with the line that it comes from.
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
                "direct I/O goes past the page cache: read-ahead does nothing to this \
                 job, whatever it is set to"
                    .to_owned(),
            );
        }
        if !self.direct && self.access != FioAccess::Write {
            self.hints(&mut say);
        }
        if self.iodepth > 1 && self.engine != FioEngine::Async {
            say("iodepth", "has no effect: this ioengine has one request under way".to_owned());
        }
        if self.iodepth > 1 && self.engine == FioEngine::Async && !self.direct {
            say(
                "iodepth",
                "without direct=1 most requests are made one after another, whatever \
                 the depth"
                    .to_owned(),
            );
        }
        if self.time_based || self.loops > 1 {
            let option = if self.time_based { "time_based" } else { "loops" };
            say(
                option,
                "what is read a second time comes from the page cache: use files that the \
                 trial does not get through"
                    .to_owned(),
            );
        }
        if self.pre_read {
            say(
                "pre_read",
                "the data are in the page cache before anything is measured".to_owned(),
            );
        }
        if self.io_size.is_none() && self.postfix.is_some_and(|skip| !self.random && skip > 0) {
            say(
                "rw",
                "at the end of the file it begins again, with what it has read already".to_owned(),
            );
        }
        notes
    }

    /// fio tells the kernel what it is about to do unless it is told not to, and most programs do
    /// not.
    fn hints(&self, say: &mut dyn FnMut(&str, String)) {
        let told = self.setting("fadvise_hint").is_some();
        let given = if told { "" } else { "is 1 unless told otherwise: " };
        let random = match self.advice {
            FioAdvice::None | FioAdvice::NoReuse => return,
            FioAdvice::Random => true,
            FioAdvice::Sequential => false,
            FioAdvice::Pattern => self.random,
        };
        let effect = match random {
            true => {
                "fio tells the kernel that it reads in no order, and there is no read-ahead \
                     at all"
            }
            false => "fio tells the kernel that it reads in order, which doubles the window",
        };
        say("fadvise_hint", format!("{given}{effect}; with 0 it behaves as most programs do"));
    }

    pub(crate) fn largest_block(&self) -> Bytes {
        self.block.1
    }
}
