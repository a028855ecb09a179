//! Decisions of `auto` and `run`, told one by one.

use ::auto::{Became, Decision, Status, Told};
use host::{BdiId, page_size};
use report::clean::plain;
use units::{Bytes, Kib};

use crate::output;

/// How decisions are told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// As lines of JSON.
    pub json: bool,
    /// Not at all, but for the status.
    pub quiet: bool,
    /// Whether windows stay as they are at the end.
    pub leave: bool,
}

impl Manner {
    /// Tells of a decision, and keeps it in the status.
    pub fn tell(self, one: &Decision, became: Became, status: &mut Status) -> anyhow::Result<()> {
        let told = Told::of(one, became, page_size(), self.leave);
        let line = line(&told);
        status.decided(&line);
        match self {
            Self { quiet: true, .. } => Ok(()),
            Self { json: true, .. } => output::print_json_line(&told),
            _ => output::print(&line),
        }
    }

    /// Tells of the window of files that will be opened on a bdi, and keeps it in the status. As
    /// JSON it is not told: it is about no open file.
    pub fn tell_of_new(self, new: &NewFiles<'_>, status: &mut Status) -> anyhow::Result<()> {
        let NewFiles { bdi, before, after, own } = new;
        let bdi = plain(&bdi.to_string());
        let line = if after == own {
            format!("files opened from now on, bdi {bdi}: window {before} → {after}, its own\n")
        } else {
            format!(
                "files opened from now on, bdi {bdi}: window {before} → {after}, as streams win by \
                 it; undo: {own} again when nobody reads or foreread ends, never: --no-new-files\n"
            )
        };
        status.decided(&line);
        if self.quiet || self.json { Ok(()) } else { output::print(&line) }
    }
}

/// Files that will be opened get another window.
#[derive(Debug)]
pub(super) struct NewFiles<'a> {
    pub bdi: &'a BdiId,
    pub before: Bytes,
    pub after: Bytes,
    /// The bdi's own.
    pub own: Bytes,
}

/// One line: who, what, why, and how to undo it; or what came of it if it could not be done.
fn line(told: &Told) -> String {
    let comm = told.comm.as_deref().map(plain).unwrap_or_default();
    let who = told.pid.map_or_else(String::new, |pid| format!("{comm} ({pid}) "));
    let path = told.path.as_deref().map_or_else(|| format!("inode {}", told.inode), plain);
    let kib = |kib| Kib::new(kib).to_bytes();
    let what = match (told.act, told.window_kib, told.run_kib) {
        (_, Some(after), _) => {
            format!("set window {} → {}", kib(told.window_before_kib), kib(after))
        }
        (_, _, Some(run)) => format!("answer misses with runs of {}", kib(run)),
        ("answer", _, _) => "answer misses no more".to_owned(),
        _ => "read ahead".to_owned(),
    };
    let (why, undo) = (&told.why, &told.undo);
    match &told.problem {
        Some(problem) => format!("{who}{path}: {problem}; would {what}, as {why}\n"),
        None if told.became == "done" => {
            format!("{who}{path}: {what}, as {why}; undo: {undo}\n")
        }
        None => format!("{who}{path}: would {what}, as {why}\n"),
    }
}
