//! Sets the window of an open file to any size.
//!
//! The kernel has no system call for that, but `POSIX_FADV_NORMAL` copies the window of the bdi
//! into the open file (`generic_fadvise()` in mm/fadvise.c). The bdi is therefore set to the wanted
//! window for the duration of that call. A file that another process opens meanwhile gets the
//! window, too. Such files are found afterwards and restored, whatever the access rules say. A file
//! that was opened, mapped and closed meanwhile cannot be restored.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use host::BdiId;
use observe::{Census, OpenFile, OpenFileFilter, OpenFileId};
use serde::Serialize;
use tunables::{BdiLease, find};
use units::Bytes;

use crate::actuator::apply_to_window;
use crate::reach::{ConfirmedFile, DupFd, confirm, duplicate};
use crate::{AccessRules, ActionOutcome, ActuateError, ActuateFailure, Actuator, FileAdvice};

/// A file that was opened or advised while the bdi had a temporary window, and its restoration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CollateralRestore {
    pub file: OpenFile,
    pub outcome: ActionOutcome,
}

/// The result of [`Actuator::set_windows`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowsSet {
    /// One outcome for each requested open file, in the order of the request.
    pub outcomes: Vec<ActionOutcome>,
    /// Other files that got the window and were restored.
    pub collateral_restores: Vec<CollateralRestore>,
}

impl Actuator {
    /// Sets the windows of open files on the bdi of `lease`. Their `FADV_RANDOM` flags are kept.
    ///
    /// The bdi has its original window when this returns, even on an error. If foreread is killed
    /// meanwhile, the guard of the lease restores the window.
    ///
    /// # Errors
    ///
    /// If open files cannot be listed, or the bdi cannot be set. Failures that concern one file are
    /// outcomes.
    pub fn set_windows(
        &self,
        lease: &mut BdiLease,
        wanted: &[(&OpenFile, Bytes)],
    ) -> Result<WindowsSet, ActuateError> {
        let mut set = WindowsSet::default();
        let mut outcomes: Vec<Option<ActionOutcome>> = vec![None; wanted.len()];
        let mut by_window: BTreeMap<Bytes, Vec<usize>> = BTreeMap::new();
        for (index, (_, window)) in wanted.iter().enumerate() {
            by_window.entry(*window).or_default().push(index);
        }
        for (window, indices) in by_window {
            let files: Vec<&OpenFile> = indices.iter().map(|index| wanted[*index].0).collect();
            let (results, restored) = self.set_one_window(lease, &files, window)?;
            for (index, outcome) in indices.into_iter().zip(results) {
                outcomes[index] = Some(outcome);
            }
            set.collateral_restores.extend(restored);
        }
        set.outcomes = outcomes
            .into_iter()
            .map(|one| one.unwrap_or(ActionOutcome::Failed(ActuateFailure::Gone)))
            .collect();
        Ok(set)
    }

    fn set_one_window(
        &self,
        lease: &mut BdiLease,
        files: &[&OpenFile],
        window: Bytes,
    ) -> Result<(Vec<ActionOutcome>, Vec<CollateralRestore>), ActuateError> {
        let mut batch = Batch::open(self, lease.bdi(), files)?;
        if batch.all_have(window) {
            return Ok((batch.outcomes(window, &[]), Vec::new()));
        }
        let tunable = find("read_ahead")?;
        let original = lease.read(tunable)?.bytes().unwrap_or_default();
        // If advice alone sets the window, no other process is affected.
        if window == original {
            batch.advise(FileAdvice::Normal);
        } else if window == original * 2 {
            batch.advise(FileAdvice::Sequential);
        } else {
            let temporary = TemporaryWindow { window, original };
            let filter = with_window(lease.bdi(), window);
            let before = self.census.open_files(&filter)?;
            lease.with_value(tunable, &window.into(), || batch.advise(FileAdvice::Normal))?;
            let outcomes = batch.outcomes(window, &self.own_files()?);
            let after = self.census.open_files(&filter)?;
            let intended: HashSet<OpenFileId> = files.iter().map(|file| file.id).collect();
            drop(batch);
            let collateral = temporary.collateral(&before, &after, &intended);
            let restored = collateral.into_iter().map(|file| temporary.restore(self, file));
            return Ok((outcomes, restored.collect::<Result<_, _>>()?));
        }
        Ok((batch.outcomes(window, &self.own_files()?), Vec::new()))
    }

    /// Lists the open files of this process, which include the duplicates.
    fn own_files(&self) -> Result<Vec<OpenFile>, ActuateError> {
        Ok(self.census.of_process(std::process::id())?)
    }
}

/// An open file (with its inode) and the window that it had before the bdi was set to that window.
pub(crate) type FileWithWindow = (OpenFileId, u64, Bytes);

pub(crate) fn key(file: &OpenFile) -> FileWithWindow {
    (file.id, file.inode, file.window)
}

/// Selects open files with this window, or with twice as much (`FADV_SEQUENTIAL`).
pub(crate) fn with_window(bdi: &BdiId, window: Bytes) -> OpenFileFilter {
    OpenFileFilter { windows: BTreeSet::from([window, window * 2]), ..OpenFileFilter::on_bdi(bdi) }
}

/// Open files that get the same window in one step.
struct Batch<'a> {
    members: Vec<(&'a OpenFile, ConfirmedFile)>,
}

impl<'a> Batch<'a> {
    /// Duplicates and confirms all files that can be reached.
    fn open(
        actuator: &Actuator,
        bdi: &BdiId,
        files: &[&'a OpenFile],
    ) -> Result<Self, ActuateError> {
        let elsewhere =
            || ActuateFailure::kernel("setting a window", format!("it is not on bdi {bdi}"));
        let duplicates: Vec<Result<DupFd, ActuateFailure>> = files
            .iter()
            .map(|file| match &file.bdi {
                _ if file.is_only_mapped() => Err(ActuateFailure::OnlyMapped),
                Some(own) if own == bdi => duplicate(&actuator.root, &actuator.limits, file),
                _ => Err(elsewhere()),
            })
            .collect();
        let held: Vec<(&OpenFile, &DupFd)> = files
            .iter()
            .zip(&duplicates)
            .filter_map(|(file, duplicate)| Some((*file, duplicate.as_ref().ok()?)))
            .collect();
        let mut confirmed = confirm(&actuator.census, &held)?.into_iter();
        let mut members = Vec::new();
        for (file, duplicate) in files.iter().zip(duplicates) {
            let taken = duplicate.and_then(|duplicate| {
                confirmed.next().flatten().map(|now| (duplicate, now)).ok_or(ActuateFailure::Gone)
            });
            members.push((*file, taken));
        }
        Ok(Self { members })
    }

    fn all_have(&self, window: Bytes) -> bool {
        self.members.iter().all(|(_, taken)| !matches!(taken, Ok((_, now)) if now.window != window))
    }

    /// Gives advice on all files. Other processes see the temporary window meanwhile, so this must
    /// be fast.
    fn advise(&mut self, advice: FileAdvice) {
        for (_, taken) in &mut self.members {
            if let Ok((duplicate, now)) = taken
                && let Err(failure) = apply_to_window(duplicate, now, advice)
            {
                *taken = Err(failure);
            }
        }
    }

    fn outcomes(&self, wanted: Bytes, after: &[OpenFile]) -> Vec<ActionOutcome> {
        let outcome = |taken: &ConfirmedFile| match taken {
            Err(failure) => ActionOutcome::Failed(failure.clone()),
            Ok((_, now)) if now.window == wanted => ActionOutcome::AsWanted { window: wanted },
            Ok((_, now)) => match after.iter().find(|file| file.id == now.id) {
                None => ActionOutcome::Failed(ActuateFailure::Gone),
                Some(found) if found.window == wanted => {
                    ActionOutcome::Done { before: now.window, after: found.window }
                }
                Some(found) => ActionOutcome::DidNotStick { wanted, found: found.window },
            },
        };
        self.members.iter().map(|(_, taken)| outcome(taken)).collect()
    }
}

/// A window that the bdi had temporarily.
pub(crate) struct TemporaryWindow {
    pub window: Bytes,
    /// The window of the bdi before and after.
    pub original: Bytes,
}

impl TemporaryWindow {
    /// Returns the advice by which a file got `window` from the temporary value; `None` if `window`
    /// has another cause.
    fn advice_for(&self, window: Bytes) -> Option<FileAdvice> {
        if window == self.original
            || self.window == self.original
            || self.window == self.original * 2
        {
            None // the bdi was not changed, or both values give the same windows
        } else if window == self.window {
            Some(FileAdvice::Normal)
        } else if window == self.window * 2 {
            Some(FileAdvice::Sequential)
        } else {
            None
        }
    }

    /// Returns whether a file may have `window` because of the temporary value.
    pub(crate) fn explains(&self, window: Bytes) -> bool {
        self.advice_for(window).is_some()
    }

    /// Returns the open files in `after` that have the temporary window, did not have it in
    /// `before`, and are not `intended` to have it.
    pub(crate) fn collateral<'a>(
        &self,
        before: &[OpenFile],
        after: &'a [OpenFile],
        intended: &HashSet<OpenFileId>,
    ) -> Vec<&'a OpenFile> {
        let had_before: HashSet<_> = before.iter().map(key).collect();
        after
            .iter()
            .filter(|file| self.explains(file.window))
            .filter(|file| !intended.contains(&file.id) && !had_before.contains(&key(file)))
            .collect()
    }

    /// Sets the window that a file would have without the temporary value.
    pub(crate) fn restore(
        &self,
        actuator: &Actuator,
        file: &OpenFile,
    ) -> Result<CollateralRestore, ActuateError> {
        let advice = self.advice_for(file.window).unwrap_or(FileAdvice::Normal);
        let outcome = restore(&actuator.census, &actuator.root, file, advice)?;
        Ok(CollateralRestore { file: file.clone(), outcome })
    }
}

fn restore(
    census: &Census,
    root: &host::Root,
    file: &OpenFile,
    advice: FileAdvice,
) -> Result<ActionOutcome, ActuateError> {
    // foreread caused the change, so the user's access rules do not apply.
    let duplicate = match duplicate(root, &AccessRules::default(), file) {
        Ok(duplicate) => duplicate,
        Err(failure) => return Ok(ActionOutcome::Failed(failure)),
    };
    let now = confirm(census, &[(file, &duplicate)])?.pop().flatten();
    let Some(now) = now else { return Ok(ActionOutcome::Failed(ActuateFailure::Gone)) };
    if now.window != file.window {
        return Ok(ActionOutcome::AsWanted { window: now.window });
    }
    if let Err(failure) = apply_to_window(&duplicate, &now, advice) {
        return Ok(ActionOutcome::Failed(failure));
    }
    let after = confirm(census, &[(file, &duplicate)])?.pop().flatten();
    Ok(after.map_or(ActionOutcome::Failed(ActuateFailure::Gone), |after| ActionOutcome::Done {
        before: now.window,
        after: after.window,
    }))
}
