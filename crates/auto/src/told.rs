//! A decision as it is told: who, what, why, how to undo it, and what came of it.

use host::DevNo;
use serde::Serialize;
use units::{Bytes, PageSize};

use crate::{Act, Decision};

/// What became of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Became {
    /// It was read ahead.
    Read,
    /// Misses are answered, or are no more.
    Answered,
    /// The window was set.
    Set {
        /// The window that is given back: the first one, after several decisions, and never one
        /// that the bdi was only held at.
        back: Bytes,
    },
    /// It would be, if not only advice were asked for.
    Advised,
    /// It could not be, or must not.
    Missed(String),
}

/// A decision as it is told, for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The form of this.
    pub schema_version: u32,
    /// The process that holds the open file, if one still does.
    pub pid: Option<u32>,
    /// Its name.
    pub comm: Option<String>,
    /// The path, where it is known.
    pub path: Option<String>,
    /// The device of the file.
    pub device: DevNo,
    /// Its inode.
    pub inode: u64,
    /// `window`, `read_ahead` or `answer`.
    pub act: &'static str,
    /// The window before, in KiB.
    pub window_before_kib: u64,
    /// The window that is given, in KiB; none if something is read ahead.
    pub window_kib: Option<u64>,
    /// How long the runs are that misses are answered with, in KiB; none if they are answered no
    /// more, or if it is no `answer`.
    pub run_kib: Option<u64>,
    /// Why.
    pub why: String,
    /// How to undo it.
    pub undo: String,
    /// What became of it: `done`, `advised` or `missed`.
    pub became: &'static str,
    /// Why it was missed.
    pub problem: Option<String>,
}

impl Told {
    /// Tells of a decision; `leave`: windows stay as they are at the end.
    pub fn of(decision: &Decision, became: Became, page: PageSize, leave: bool) -> Self {
        let file = &decision.file;
        let holder = file.holders.first();
        let (act, window, run) = match &decision.act {
            Act::Window(pages) => ("window", Some(pages.to_bytes(page)), None),
            Act::Prefetch(_) | Act::Files(_) => ("read_ahead", None, None),
            Act::Answer(run) => ("answer", None, run.map(|pages| pages.to_bytes(page))),
        };
        let kib = |bytes: Bytes| bytes.to_kib_floor().get();
        let pid = holder.map(|holder| holder.pid);
        Self {
            schema_version: 1,
            pid,
            comm: holder.map(|holder| holder.comm.clone()),
            path: decision.path.clone(),
            device: file.device,
            inode: file.inode,
            act,
            window_before_kib: kib(file.window),
            window_kib: window.map(kib),
            run_kib: run.map(kib),
            why: decision.why.clone(),
            undo: undo(pid, &became, leave),
            became: match &became {
                Became::Read | Became::Answered | Became::Set { .. } => "done",
                Became::Advised => "advised",
                Became::Missed(_) => "missed",
            },
            problem: match became {
                Became::Missed(problem) => Some(problem),
                Became::Read | Became::Answered | Became::Set { .. } | Became::Advised => None,
            },
        }
    }
}

fn undo(pid: Option<u32>, became: &Became, leave: bool) -> String {
    let never = pid.map_or_else(String::new, |pid| format!(", never: --except pid:{pid}"));
    match became {
        Became::Advised | Became::Missed(_) => "nothing was done".to_owned(),
        Became::Read => "no need, it is cache".to_owned() + &never,
        Became::Answered => "it ends when foreread ends".to_owned() + &never,
        Became::Set { .. } if leave => {
            "its program opens it anew, or foreread apply --open-files".to_owned() + &never
        }
        Became::Set { back } => format!("{back} again when foreread ends{never}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undo_names_the_window_that_is_given_back() {
        let set = Became::Set { back: Bytes::from_kib(128) };
        let read = undo(Some(7), &Became::Read, false);
        assert_eq!(undo(None, &set, false), "128 KiB again when foreread ends");
        assert!(undo(Some(7), &set, false).ends_with("never: --except pid:7"));
        assert!(!undo(Some(7), &set, true).contains("128 KiB"), "it is left");
        assert!(
            read.starts_with("no need") && undo(None, &Became::Advised, false).contains("nothing")
        );
    }
}
