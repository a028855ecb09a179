//! Decisions as reported: the process, the action, the reason, how to undo it, and the result.

use std::fmt;

use control::ActionKind;
use host::{BdiId, DevNo, page_size};
use observe::OpenFile;
use serde::Serialize;
use units::text::plain;
use units::{Bytes, Kib};

use crate::Status;
use crate::status::unix_s;

/// An action, with the open file as it was last sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDecision {
    pub file: OpenFile,
    /// The path of the file, if it is known.
    pub path: Option<String>,
    pub kind: ActionKind,
    /// The reason in one line; empty if the action only continues an earlier decision.
    pub why: String,
}

impl FileDecision {
    pub(crate) fn window(&self) -> Option<Bytes> {
        match self.kind {
            ActionKind::SetWindow(pages) => Some(pages.to_bytes(page_size())),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionResult {
    WindowSet {
        /// The window that foreread restores on exit: the one before the first decision, never a
        /// temporary window of the bdi.
        first: Bytes,
    },
    /// Pages are prefetched, or prefetching on misses has started or stopped.
    Prefetching,
    /// The measured gain of an earlier decision was reported; there was no other action.
    Reported,
    /// The action was reported in a dry run and not carried out.
    Advised,
    /// The action failed or was not allowed; the text is the reason.
    Failed(String),
}

/// A decision as reported to programs; `Display` prints the line for users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionRecord {
    pub schema_version: u32,
    pub unix_s: u64,
    /// A process that holds the open file; `None` if it is closed.
    pub pid: Option<u32>,
    pub comm: Option<String>,
    /// The path, if it is known.
    pub path: Option<String>,
    pub device: DevNo,
    pub inode: u64,
    /// `set_window`, `prefetch`, `prefetch_misses`, `prefetch_calls`, `prefetch_files_on_miss` or
    /// `report_gain`.
    pub action: &'static str,
    pub window_before_kib: u64,
    pub window_kib: Option<u64>,
    /// The length of the runs that are prefetched on a miss.
    pub prefetch_run_kib: Option<u64>,
    /// The predicted gain of an earlier decision; 540 is ×5.4.
    pub predicted_gain_percent: Option<u64>,
    pub measured_gain_percent: Option<u64>,
    pub why: String,
    /// How to undo the action.
    pub undo: String,
    /// `applied`, `advised` or `failed`.
    pub result: &'static str,
    pub problem: Option<String>,
}

impl DecisionRecord {
    /// With `leave`, windows are not restored on exit.
    pub fn new(decision: &FileDecision, result: ActionResult, leave: bool) -> Self {
        let file = &decision.file;
        let holder = file.holders.first();
        let kib = |bytes: Bytes| bytes.to_kib_floor().get();
        let (action, run) = match &decision.kind {
            ActionKind::SetWindow(_) => ("set_window", None),
            ActionKind::Prefetch(_) | ActionKind::PrefetchFiles(_) => ("prefetch", None),
            ActionKind::PrefetchMisses(run) => ("prefetch_misses", *run),
            ActionKind::PrefetchCalls(_) => ("prefetch_calls", None),
            ActionKind::AwaitFiles(_) => ("prefetch_files_on_miss", None),
            ActionKind::Report { .. } => ("report_gain", None),
        };
        let (predicted_gain_percent, measured_gain_percent) = match decision.kind {
            ActionKind::Report { predicted_percent, measured_percent } => {
                (Some(predicted_percent), Some(measured_percent))
            }
            _ => (None, None),
        };
        let pid = holder.map(|holder| holder.pid);
        Self {
            schema_version: Status::SCHEMA_VERSION,
            unix_s: unix_s(),
            pid,
            comm: holder.map(|holder| holder.comm.clone()),
            path: decision.path.clone(),
            device: file.device,
            inode: file.inode,
            action,
            window_before_kib: kib(file.window),
            window_kib: decision.window().map(kib),
            prefetch_run_kib: run.map(|pages| kib(pages.to_bytes(page_size()))),
            predicted_gain_percent,
            measured_gain_percent,
            why: decision.why.clone(),
            undo: undo(pid, decision, &result, leave),
            result: match &result {
                ActionResult::WindowSet { .. }
                | ActionResult::Prefetching
                | ActionResult::Reported => "applied",
                ActionResult::Advised => "advised",
                ActionResult::Failed(_) => "failed",
            },
            problem: match result {
                ActionResult::Failed(problem) => Some(problem),
                _ => None,
            },
        }
    }
}

fn undo(pid: Option<u32>, decision: &FileDecision, result: &ActionResult, leave: bool) -> String {
    let disable = pid.map_or_else(String::new, |pid| format!("; disable with --except pid:{pid}"));
    match (result, &decision.kind) {
        (_, ActionKind::Report { .. }) => "nothing to undo".to_owned(),
        (ActionResult::Advised | ActionResult::Failed(_) | ActionResult::Reported, _) => {
            "nothing was done".to_owned()
        }
        (ActionResult::WindowSet { .. }, _) if leave => {
            format!("reopen the file, or foreread apply --open-files{disable}")
        }
        (ActionResult::WindowSet { first }, _) => format!("reverts to {first} on exit{disable}"),
        (
            ActionResult::Prefetching,
            ActionKind::PrefetchMisses(_)
            | ActionKind::PrefetchCalls(_)
            | ActionKind::AwaitFiles(_),
        ) => format!("stops on exit{disable}"),
        (ActionResult::Prefetching, _) => format!("only cached data, nothing to undo{disable}"),
    }
}

impl fmt::Display for DecisionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pid) = self.pid {
            let comm = self.comm.as_deref().map(plain).unwrap_or_default();
            write!(f, "{comm} ({pid}) ")?;
        }
        match &self.path {
            Some(path) => write!(f, "{}: ", plain(path))?,
            None => write!(f, "inode {}: ", self.inode)?,
        }
        let kib = |kib| Kib::new(kib).to_bytes();
        let what = match (self.action, self.window_kib, self.prefetch_run_kib) {
            (_, Some(after), _) => {
                format!("set window {} → {}", kib(self.window_before_kib), kib(after))
            }
            (_, _, Some(run)) => format!("prefetch runs of {} on a miss", kib(run)),
            ("report_gain", ..) => return write!(f, "{}", self.why),
            ("prefetch_calls", ..) => "prefetch the rest of its calls on a miss".to_owned(),
            ("prefetch_misses", ..) => "stop prefetching on misses".to_owned(),
            ("prefetch_files_on_miss", ..) => {
                "prefetch each file of its directory on the first miss".to_owned()
            }
            _ => "prefetch".to_owned(),
        };
        let why = &self.why;
        match &self.problem {
            Some(problem) => write!(f, "could not {what} ({why}): {problem}"),
            None if self.result == "applied" => write!(f, "{what} ({why}); {}", self.undo),
            None => write!(f, "would {what} ({why})"),
        }
    }
}

/// A change of the window of files that are opened later on a bdi.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFileWindow {
    pub bdi: BdiId,
    pub before: Bytes,
    pub after: Bytes,
    pub own: Bytes,
}

impl fmt::Display for NewFileWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bdi, before, after, own } = self;
        let bdi = plain(&bdi.to_string());
        write!(f, "bdi {bdi}: window {before} → {after} for newly opened files ")?;
        if after == own {
            f.write_str("(the bdi's own)")
        } else {
            write!(f, "(streams are faster with it); reverts to {own} when idle or on exit")
        }
    }
}

pub trait Reporter {
    fn decision(&mut self, record: &DecisionRecord);

    fn new_file_window(&mut self, change: &NewFileWindow);

    fn note(&mut self, text: &str);
}

/// Reports decisions, counts them, and adds them to the status.
pub struct DecisionLog {
    pub status: Status,
    reporter: Box<dyn Reporter>,
    leave: bool,
}

impl DecisionLog {
    /// With `leave`, windows are not restored on exit.
    pub fn new(status: Status, reporter: Box<dyn Reporter>, leave: bool) -> Self {
        Self { status, reporter, leave }
    }

    pub fn decision(&mut self, decision: &FileDecision, result: ActionResult) {
        match result {
            ActionResult::WindowSet { .. } => self.status.windows_set += 1,
            ActionResult::Failed(_) => self.status.failed_actions += 1,
            ActionResult::Prefetching | ActionResult::Reported | ActionResult::Advised => {}
        }
        let record = DecisionRecord::new(decision, result, self.leave);
        self.status.push_decision(record.unix_s, &record.to_string());
        self.reporter.decision(&record);
    }

    /// Reports decisions of a dry run. Skips those without a reason, which continue earlier ones.
    pub fn advice(&mut self, decisions: &[FileDecision]) {
        for decision in decisions.iter().filter(|decision| !decision.why.is_empty()) {
            self.decision(decision, ActionResult::Advised);
        }
    }

    pub fn new_file_window(&mut self, change: &NewFileWindow) {
        self.status.push_decision(unix_s(), &change.to_string());
        self.reporter.new_file_window(change);
    }

    pub fn note(&mut self, text: &str) {
        self.status.push_decision(unix_s(), text);
        self.reporter.note(text);
    }
}

#[cfg(test)]
mod tests {
    use policy::{Extent, Page};
    use units::Pages;

    use super::*;

    fn decision(kind: ActionKind) -> FileDecision {
        let file = serde_json::from_value(serde_json::json!({
            "id": 1, "kind": "regular", "device": "8:1", "inode": 5, "bdi": "8:0",
            "size": 1 << 30, "position": 0, "previous": null, "readable": true, "writable": false,
            "direct": false, "window": 131_072, "bdi_window": 131_072, "random": false,
            "holders": [{ "pid": 7, "fd": 3, "comm": "cat", "uid": 0, "cgroup": 1 }],
        }));
        let file = file.expect("an open file");
        FileDecision {
            file,
            path: Some("/srv/a\u{1b}".to_owned()),
            kind,
            why: "it waits".to_owned(),
        }
    }

    fn line(kind: ActionKind, result: ActionResult, leave: bool) -> String {
        DecisionRecord::new(&decision(kind), result, leave).to_string()
    }

    #[test]
    fn a_measured_gain_is_reported_beside_the_predicted_one() {
        let kind = ActionKind::Report { predicted_percent: 610, measured_percent: 540 };
        let mut decision = decision(kind);
        decision.why = "predicted ×6.10, measured ×5.40".to_owned();
        let record = DecisionRecord::new(&decision, ActionResult::Reported, false);
        assert_eq!(record.to_string(), "cat (7) /srv/a\\u{1b}: predicted ×6.10, measured ×5.40");
        let gains = (record.predicted_gain_percent, record.measured_gain_percent);
        assert_eq!(gains, (Some(610), Some(540)));
    }

    #[test]
    fn a_line_names_process_file_action_reason_and_undo() {
        let set = || ActionKind::SetWindow(Pages::new(256));
        let first = Bytes::from_kib(128);
        assert_eq!(
            line(set(), ActionResult::WindowSet { first }, false),
            "cat (7) /srv/a\\u{1b}: set window 128 KiB → 1 MiB (it waits); reverts to 128 KiB on \
             exit; disable with --except pid:7"
        );
        let left = line(set(), ActionResult::WindowSet { first }, true);
        assert!(left.contains("; reopen the file"), "{left}");
        let failed = line(set(), ActionResult::Failed("it is closed".to_owned()), false);
        assert!(failed.ends_with("could not set window 128 KiB → 1 MiB (it waits): it is closed"));
        assert!(line(set(), ActionResult::Advised, false).contains(": would set window "));
        let pages = vec![Extent::new(Page::FIRST, Pages::new(8))];
        let read = line(ActionKind::Prefetch(pages), ActionResult::Prefetching, false);
        assert!(read.contains("prefetch (it waits); only cached data"), "{read}");
        let run = ActionKind::PrefetchMisses(Some(Pages::new(4)));
        let run = line(run, ActionResult::Prefetching, false);
        assert!(run.contains("prefetch runs of 16 KiB on a miss (it waits); stops on exit"));
        let files = line(ActionKind::AwaitFiles(Vec::new()), ActionResult::Prefetching, false);
        assert!(files.contains(" on the first miss (it waits); stops on exit"), "{files}");
    }
}
