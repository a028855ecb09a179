//! A thread that opens and lists directories.
//!
//! The path of a directory may lead through a file system whose server does not answer, and then a
//! system call blocks without a limit. The control loop must not block with it.

use std::io;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};

use host::Root;
use observe::OpenFile;
use policy::TreeWalk;

use crate::{AccessRules, Directory};

/// A directory, and the path of the open file by which it was found, as its holder sees that path.
pub type FoundDirectory = (Directory, String);

/// Finds directories, one at a time, in a thread.
#[derive(Debug)]
pub struct Finder {
    ask: SyncSender<(OpenFile, String, bool)>,
    answers: Receiver<Option<FoundDirectory>>,
    /// True until the thread has answered the last request.
    is_pending: bool,
}

impl Finder {
    /// Starts the thread. It is never joined, because it may block without a limit.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(root: &Root, limits: &AccessRules) -> io::Result<Self> {
        let (root, limits) = (root.clone(), limits.clone());
        let (ask, questions) = mpsc::sync_channel::<(OpenFile, String, bool)>(1);
        let (answer, answers) = mpsc::channel();
        std::thread::Builder::new().name("directories".to_owned()).spawn(move || {
            let mut walk = TreeWalk::default();
            for (file, path, with_next) in questions {
                let directory = Path::new(&path).parent().unwrap_or(Path::new("/"));
                let before = walk.go(directory).filter(|_| with_next);
                let found = Directory::find(&root, &limits, &file, &path, before.as_deref());
                if answer.send(found.map(|directory| (directory, path))).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { ask, answers, is_pending: false })
    }

    /// Requests the directory of an open file; `path` is the path as its holder sees it. With
    /// `with_next`, also the directories that follow it if the reader walks through a tree. Does
    /// nothing while an earlier request is pending.
    pub fn ask(&mut self, file: &OpenFile, path: &str, with_next: bool) {
        if !self.is_pending {
            // If the thread has exited, no directory is found.
            self.is_pending = self.ask.try_send((file.clone(), path.to_owned(), with_next)).is_ok();
        }
    }

    /// Returns the requested directory, if the thread has found it.
    pub fn found(&mut self) -> Option<FoundDirectory> {
        let answer = self.answers.try_recv().ok()?;
        self.is_pending = false;
        answer
    }
}
