//! The program reads many small files and waits for the first page of each.

use std::collections::{BTreeMap, BTreeSet};

use units::Nanos;

use super::{DiagnosisRule, FixChange, RuleCheck, RuleFinding, RunView};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: 17,
    name: "small-files",
    summary: "many small files of a directory or a tree, each waited for at its start",
    explanation: "Read-ahead ends with the file. The rule applies if at least 50 files of at \
        most 1 MiB each, in a directory or the directories below it, were read and waited for at \
        their start. Read them in the order in which they lie on the device (the order of inodes \
        is close), ask for the next files with POSIX_FADV_WILLNEED while reading one, or pack \
        them. The predicted gain is that of asking for all of them at the start, in that order.",
    check: RuleCheck::Run(check),
};

const MIN_FILES: usize = 50;
const LARGEST_SMALL_FILE: u64 = 1 << 20;
/// Minimum share of the waits below a directory: the deepest one that has it is named.
const NEARLY_ALL: f64 = 0.9;

fn check(run: &RunView<'_>) -> Option<RuleFinding> {
    let mut directories: BTreeMap<&str, (Nanos, Vec<usize>)> = BTreeMap::new();
    for (place, stream) in run.streams.iter().enumerate() {
        let small = run.size(stream).get() <= LARGEST_SMALL_FILE;
        let first = stream.accesses(run.recording).next();
        if !small || first.is_none_or(|access| access.offset.get() != 0) {
            continue;
        }
        for directory in directories_of(run.path(stream)) {
            let entry = directories.entry(directory).or_default();
            entry.0 += stream.waited;
            entry.1.push(place);
        }
    }
    let most = directories.values().map(|one| one.0).max()?;
    let files = |places: &[usize]| -> usize {
        places.iter().map(|place| run.streams[*place].inode).collect::<BTreeSet<u32>>().len()
    };
    let enough = directories.into_iter().filter(|(_, (waited, places))| {
        *waited >= most.scaled(NEARLY_ALL) && files(places) >= MIN_FILES
    });
    let (directory, (waited, places)) = enough.max_by_key(|(directory, _)| directory.len())?;
    if !run.matters(waited) {
        return None;
    }
    let hottest = places.iter().max_by_key(|place| run.streams[**place].waited)?;
    Some(RuleFinding {
        cause: format!("{} small files in {directory}, each waited for on its own", files(&places)),
        fix: "read them by inode, and ask for the next ones while reading".to_owned(),
        snippet: Some("posix_fadvise(next_fd, 0, 0, POSIX_FADV_WILLNEED);".to_owned()),
        change: FixChange::Prefetched,
        waited,
        stack: run.streams[*hottest].hottest_stack(run.recording),
        others: places,
    })
}

/// Returns the directory of a file and its ancestors.
fn directories_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).filter(|above| !above.is_empty())
}
