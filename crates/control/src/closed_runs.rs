//! Lengths of the runs of each file, remembered after its open files are closed or forgotten.

use std::collections::VecDeque;

use super::inputs::FileKey;
use crate::tuning::next_files::MAX_FILES_REMEMBERED;
use crate::tuning::pattern::MAX_RUNS;

/// The lengths of the last runs of each file in pages, the most recently added file last.
#[derive(Clone, Debug, Default)]
pub(super) struct ClosedRuns(VecDeque<(FileKey, Vec<u64>)>);

impl ClosedRuns {
    /// Adds the run lengths of an open file that is no longer followed.
    pub fn add(&mut self, file: FileKey, runs: impl Iterator<Item = u64>) {
        let mut runs = runs.peekable();
        if runs.peek().is_none() {
            return;
        }
        let known = self.0.iter().position(|(known, _)| *known == file);
        let before = known.and_then(|place| self.0.remove(place));
        let mut all = before.map_or_else(Vec::new, |(_, before)| before);
        all.extend(runs);
        all.drain(..all.len().saturating_sub(MAX_RUNS));
        if self.0.len() == MAX_FILES_REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((file, all));
    }

    pub fn of(&self, file: FileKey) -> &[u64] {
        let found = self.0.iter().find(|(known, _)| *known == file);
        found.map_or(&[], |(_, runs)| runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_runs_of_the_last_files_are_remembered() {
        let mut runs = ClosedRuns::default();
        let file = |number| FileKey(number, 0);
        runs.add(file(1), [4, 5].into_iter());
        runs.add(file(1), std::iter::repeat_n(6, MAX_RUNS - 1));
        assert_eq!(runs.of(file(1)).len(), MAX_RUNS);
        assert_eq!(runs.of(file(1))[..2], [5, 6]);
        (2..=MAX_FILES_REMEMBERED as u64)
            .for_each(|number| runs.add(file(number), [7].into_iter()));
        assert_eq!(runs.of(file(1)).len(), MAX_RUNS);
        runs.add(file(1000), [8].into_iter());
        assert!(runs.of(file(1)).is_empty());
        assert_eq!(runs.of(file(2)), [7]);
    }
}
