//! Finding directories on a thread of its own.
//!
//! On the way to a directory there may be a file system whose server does not answer, so that a
//! call waits for ever. Whoever decides must not wait with it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};

use host::Root;
use observe::OpenFile;

use crate::{AccessRules, Directory};

/// A directory, and the path of the open file that it is of, as its holder has it.
pub type FoundDirectory = (Directory, String);

/// Finds directories, one at a time.
#[derive(Debug)]
pub struct Finder {
    ask: SyncSender<(OpenFile, String)>,
    answers: Receiver<Option<FoundDirectory>>,
    /// Whether it has not answered yet.
    asked: bool,
}

impl Finder {
    /// Starts the thread, which keeps to these limits. Nobody waits for its end: it may be that it
    /// waits for ever.
    pub fn begin(root: &Root, limits: &AccessRules) -> io::Result<Self> {
        let (root, limits) = (root.clone(), limits.clone());
        let (ask, questions) = mpsc::sync_channel::<(OpenFile, String)>(1);
        let (answer, answers) = mpsc::channel();
        std::thread::Builder::new().name("directories".to_owned()).spawn(move || {
            let mut before = PathBuf::new();
            for (file, path) in questions {
                let directory = Path::new(&path).parent().unwrap_or(Path::new("/")).to_owned();
                let with_siblings = goes_on(&before, &directory);
                let found = Directory::of(&root, &limits, &file, &path, with_siblings);
                before = directory;
                if answer.send(found.map(|directory| (directory, path))).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { ask, answers, asked: false })
    }

    /// Asks for the directory of an open file, of which `path` is the path as its holder has it;
    /// not while it has not answered.
    pub fn ask(&mut self, file: &OpenFile, path: &str) {
        if !self.asked {
            // A thread that has ended does not answer: then there is none.
            self.asked = self.ask.try_send((file.clone(), path.to_owned())).is_ok();
        }
    }

    /// The directory that was asked for, if it was found by now.
    pub fn found(&mut self) -> Option<FoundDirectory> {
        let answer = self.answers.try_recv().ok()?;
        self.asked = false;
        answer
    }
}

/// Whether who read in a directory, and then in this one, goes through a tree.
fn goes_on(before: &Path, directory: &Path) -> bool {
    before != directory && before.parent().is_some_and(|above| directory.parent() == Some(above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_changes_to_a_directory_beside_the_last_goes_through_a_tree() {
        let goes_on = |a: &str, b: &str| goes_on(Path::new(a), Path::new(b));
        assert!(goes_on("/srv/a", "/srv/b"));
        assert!(!goes_on("/srv/a", "/srv/a"), "the same again");
        assert!(!goes_on("/srv/a", "/home/b") && !goes_on("/srv/a", "/srv/b/c"));
        assert!(!goes_on("", "/srv"), "nothing was read before");
    }
}
