//! Lengths of the runs of each file, remembered after its open files are closed or forgotten.

use std::collections::VecDeque;
use std::sync::Arc;

use super::inputs::FileKey;
use crate::tuning::Tuning;

/// The lengths of the last runs of each file in pages, the most recently added file last.
#[derive(Clone, Debug, Default)]
pub(super) struct ClosedRuns {
    files: VecDeque<(FileKey, Vec<u64>)>,
    tuning: Arc<Tuning>,
}

impl ClosedRuns {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Adds the run lengths of an open file that is no longer followed.
    pub fn add(&mut self, file: FileKey, runs: impl Iterator<Item = u64>) {
        let mut runs = runs.peekable();
        if runs.peek().is_none() {
            return;
        }
        let known = self.files.iter().position(|(known, _)| *known == file);
        let before = known.and_then(|place| self.files.remove(place));
        let mut all = before.map_or_else(Vec::new, |(_, before)| before);
        all.extend(runs);
        all.drain(..all.len().saturating_sub(self.tuning.max_runs));
        if self.files.len() == self.tuning.max_remembered {
            self.files.pop_front();
        }
        self.files.push_back((file, all));
    }

    pub fn of(&self, file: FileKey) -> &[u64] {
        let found = self.files.iter().find(|(known, _)| *known == file);
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
        runs.add(file(1), std::iter::repeat_n(6, Tuning::DEFAULT.max_runs - 1));
        assert_eq!(runs.of(file(1)).len(), Tuning::DEFAULT.max_runs);
        assert_eq!(runs.of(file(1))[..2], [5, 6]);
        (2..=Tuning::DEFAULT.max_remembered as u64)
            .for_each(|number| runs.add(file(number), [7].into_iter()));
        assert_eq!(runs.of(file(1)).len(), Tuning::DEFAULT.max_runs);
        runs.add(file(1000), [8].into_iter());
        assert!(runs.of(file(1)).is_empty());
        assert_eq!(runs.of(file(2)), [7]);
    }
}
