//! Giving an open file a window of its own, of any size.
//!
//! The kernel has no call for that. But `POSIX_FADV_NORMAL` copies the window of the bdi into the
//! open file (`generic_fadvise()` in mm/fadvise.c), so the bdi is held at the wanted window for
//! the instant of that call. A file that is opened in that instant gets the window, too: such
//! files are looked for afterwards and mended, whoever holds them, as it was foreread that did it.
//! Out of reach is one thing: a file that was opened, mapped and closed in the instant.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use host::BdiId;
use observe::{Census, OpenFile, OpenFileFilter, OpenFileId};
use serde::Serialize;
use tunables::{BdiLease, find};
use units::Bytes;

use crate::actuator::tell;
use crate::reach::{ConfirmedFile, DupFd, confirm, reach};
use crate::{AccessRules, ActionOutcome, ActuateError, ActuateFailure, Actuator, FileAdvice};

/// A file that was opened, or told to be normal, while the bdi was held at another window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CollateralRestore {
    pub file: OpenFile,
    pub outcome: ActionOutcome,
}

/// What came of giving open files windows of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowsSet {
    /// One for each open file, in the order in which they were given.
    pub outcomes: Vec<ActionOutcome>,
    /// Files that got a window by accident, and what came of mending them.
    pub mended: Vec<CollateralRestore>,
}

impl Actuator {
    /// Gives each of these open files this window, all of them on the bdi of `lease`. Whether a
    /// file is under `FADV_RANDOM` stays as it is.
    ///
    /// The bdi's own window is what it was when this returns, also with an error, and its journal
    /// and guard see to it if foreread dies in between.
    pub fn set_windows(
        &self,
        lease: &mut BdiLease,
        wanted: &[(&OpenFile, Bytes)],
    ) -> Result<WindowsSet, ActuateError> {
        let mut exact = WindowsSet::default();
        let mut outcomes: Vec<Option<ActionOutcome>> = vec![None; wanted.len()];
        let mut by_window: BTreeMap<Bytes, Vec<usize>> = BTreeMap::new();
        for (index, (_, window)) in wanted.iter().enumerate() {
            by_window.entry(*window).or_default().push(index);
        }
        for (window, indices) in by_window {
            let files: Vec<&OpenFile> = indices.iter().map(|index| wanted[*index].0).collect();
            let (results, mended) = self.set_one_window(lease, &files, window)?;
            for (index, outcome) in indices.into_iter().zip(results) {
                outcomes[index] = Some(outcome);
            }
            exact.mended.extend(mended);
        }
        exact.outcomes = outcomes
            .into_iter()
            .map(|one| one.unwrap_or(ActionOutcome::Failed(ActuateFailure::Gone)))
            .collect();
        Ok(exact)
    }

    fn set_one_window(
        &self,
        lease: &mut BdiLease,
        files: &[&OpenFile],
        window: Bytes,
    ) -> Result<(Vec<ActionOutcome>, Vec<CollateralRestore>), ActuateError> {
        let mut batch = Batch::take(self, lease.bdi(), files)?;
        if batch.all_have(window) {
            return Ok((batch.outcomes(window, &[]), Vec::new()));
        }
        let tunable = find("read_ahead")?;
        let own = lease.read(tunable)?.bytes().unwrap_or_default();
        // Where advice alone gives the window, nobody else is disturbed.
        if window == own {
            batch.tell(FileAdvice::Normal);
        } else if window == own * 2 {
            batch.tell(FileAdvice::Sequential);
        } else {
            let instant = Instant { window, own };
            let with_such = with_such(lease.bdi(), window);
            let before = self.census.open_files(&with_such)?;
            lease.with_value(tunable, &window.into(), || batch.tell(FileAdvice::Normal))?;
            let outcomes = batch.outcomes(window, &self.own_files()?);
            let after = self.census.open_files(&with_such)?;
            let ours: HashSet<OpenFileId> = files.iter().map(|file| file.id).collect();
            drop(batch);
            let strays = instant.strays(&before, &after, &ours);
            let mended = strays.into_iter().map(|stray| instant.mend(self, stray));
            return Ok((outcomes, mended.collect::<Result<_, _>>()?));
        }
        Ok((batch.outcomes(window, &self.own_files()?), Vec::new()))
    }

    /// What this process has open: with the grips, whatever it acts on.
    fn own_files(&self) -> Result<Vec<OpenFile>, ActuateError> {
        Ok(self.census.of_process(std::process::id())?)
    }
}

/// Open files that have this window, or twice as much for `FADV_SEQUENTIAL`.
pub(crate) fn with_such(bdi: &BdiId, window: Bytes) -> OpenFileFilter {
    OpenFileFilter { windows: BTreeSet::from([window, window * 2]), ..OpenFileFilter::on_bdi(bdi) }
}

/// Open files that get one window together.
struct Batch<'a> {
    members: Vec<(&'a OpenFile, ConfirmedFile)>,
}

impl<'a> Batch<'a> {
    fn take(
        actuator: &Actuator,
        bdi: &BdiId,
        files: &[&'a OpenFile],
    ) -> Result<Self, ActuateError> {
        let elsewhere = || ActuateFailure::Kernel {
            doing: "setting a window",
            reason: format!("it is not on bdi {bdi}"),
        };
        let grips: Vec<Result<DupFd, ActuateFailure>> = files
            .iter()
            .map(|file| match &file.bdi {
                Some(of) if of == bdi => reach(&actuator.root, &actuator.limits, file),
                _ => Err(elsewhere()),
            })
            .collect();
        let held: Vec<(&OpenFile, &DupFd)> = files
            .iter()
            .zip(&grips)
            .filter_map(|(file, grip)| Some((*file, grip.as_ref().ok()?)))
            .collect();
        let mut confirmed = confirm(&actuator.census, &held)?.into_iter();
        let mut members = Vec::new();
        for (file, grip) in files.iter().zip(grips) {
            let taken = grip.and_then(|grip| {
                confirmed.next().flatten().map(|now| (grip, now)).ok_or(ActuateFailure::Gone)
            });
            members.push((*file, taken));
        }
        Ok(Self { members })
    }

    fn all_have(&self, window: Bytes) -> bool {
        self.members.iter().all(|(_, taken)| !matches!(taken, Ok((_, now)) if now.window != window))
    }

    /// Gives advice to all; short, as the bdi is held meanwhile.
    fn tell(&mut self, advice: FileAdvice) {
        for (_, taken) in &mut self.members {
            let told = match taken {
                Ok((grip, now)) => tell(grip, advice).and_then(|()| {
                    // Advice on the window takes the flag away, which is not what was asked for.
                    if now.random { tell(grip, FileAdvice::Random) } else { Ok(()) }
                }),
                Err(_) => Ok(()),
            };
            if let Err(missed) = told {
                *taken = Err(missed);
            }
        }
    }

    fn outcomes(&self, wanted: Bytes, after: &[OpenFile]) -> Vec<ActionOutcome> {
        let outcome = |taken: &ConfirmedFile| match taken {
            Err(missed) => ActionOutcome::Failed(missed.clone()),
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

/// The instant in which the bdi had another window.
pub(crate) struct Instant {
    pub window: Bytes,
    /// Its own window, before and after.
    pub own: Bytes,
}

impl Instant {
    /// Which advice a file of this window must have had from the bdi in the instant; `None` if the
    /// window does not come from there.
    fn origin(&self, window: Bytes) -> Option<FileAdvice> {
        if window == self.own || self.window == self.own || self.window == self.own * 2 {
            None // no hold, or nothing to be told apart
        } else if window == self.window {
            Some(FileAdvice::Normal)
        } else if window == self.window * 2 {
            Some(FileAdvice::Sequential)
        } else {
            None
        }
    }

    /// Whether a file of this window may have it from the bdi in the instant.
    pub(crate) fn gave(&self, window: Bytes) -> bool {
        self.origin(window).is_some()
    }

    /// The open files that have a window of the instant, did not have it before, and are not meant
    /// to have it.
    pub(crate) fn strays<'a>(
        &self,
        before: &[OpenFile],
        after: &'a [OpenFile],
        ours: &HashSet<OpenFileId>,
    ) -> Vec<&'a OpenFile> {
        let of = |file: &OpenFile| (file.id, file.inode, file.window);
        let had: HashSet<_> = before.iter().map(of).collect();
        after
            .iter()
            .filter(|file| self.origin(file.window).is_some())
            .filter(|file| !ours.contains(&file.id) && !had.contains(&of(file)))
            .collect()
    }

    /// Gives a stray what the bdi would have given it at any other time.
    pub(crate) fn mend(
        &self,
        actuator: &Actuator,
        stray: &OpenFile,
    ) -> Result<CollateralRestore, ActuateError> {
        let advice = self.origin(stray.window).unwrap_or(FileAdvice::Normal);
        let outcome = mend(&actuator.census, &actuator.root, stray, advice)?;
        Ok(CollateralRestore { file: stray.clone(), outcome })
    }
}

fn mend(
    census: &Census,
    root: &host::Root,
    stray: &OpenFile,
    advice: FileAdvice,
) -> Result<ActionOutcome, ActuateError> {
    // What foreread spoiled it mends, whoever it belongs to.
    let grip = match reach(root, &AccessRules::default(), stray) {
        Ok(grip) => grip,
        Err(missed) => return Ok(ActionOutcome::Failed(missed)),
    };
    let now = confirm(census, &[(stray, &grip)])?.pop().flatten();
    let Some(now) = now else { return Ok(ActionOutcome::Failed(ActuateFailure::Gone)) };
    if now.window != stray.window {
        return Ok(ActionOutcome::AsWanted { window: now.window });
    }
    let told = tell(&grip, advice)
        .and_then(|()| if now.random { tell(&grip, FileAdvice::Random) } else { Ok(()) });
    if let Err(missed) = told {
        return Ok(ActionOutcome::Failed(missed));
    }
    let after = confirm(census, &[(stray, &grip)])?.pop().flatten();
    Ok(after.map_or(ActionOutcome::Failed(ActuateFailure::Gone), |after| ActionOutcome::Done {
        before: now.window,
        after: after.window,
    }))
}
