//! Restores the windows of files that `apply --open-files` changed.

use actuate::{ActionOutcome, ActuateFailure, Actuator, RefreshedFiles, Reverted};
use anyhow::Context as _;
use tunables::{BdiLease, JournalPurpose, RollbackSelection};

use super::Context;

/// Reads the open-file records of these journals. An unreadable record is an error, unless only
/// changes of killed runs are undone.
pub fn records(
    context: &Context,
    which: &RollbackSelection,
    errors: &mut Vec<anyhow::Error>,
) -> Vec<RefreshedFiles> {
    if *which == RollbackSelection::Left {
        return Vec::new();
    }
    let (mut records, refused) = match RefreshedFiles::list(&context.dirs) {
        Ok(listed) => listed,
        Err(error) => (Vec::new(), vec![error]),
    };
    errors.extend(refused.into_iter().map(anyhow::Error::new));
    records.retain(|record| match which {
        RollbackSelection::Left => false,
        RollbackSelection::All => true,
        RollbackSelection::Bdi(bdi) => record.site.bdi == *bdi,
        RollbackSelection::Journal(name) => {
            name.strip_suffix(".jsonl").unwrap_or(name) == record.journal
        }
    });
    records
}

/// Restores the open files of a record. In a dry run, returns the steps after the `planned` ones.
pub fn revert(
    context: &Context,
    record: RefreshedFiles,
    planned: Option<&[Reverted]>,
) -> anyhow::Result<Vec<Reverted>> {
    let dry_run = planned.is_some();
    let journal = context.dirs.state.join(format!("journal/{}.jsonl", record.journal));
    if !dry_run && journal.exists() {
        return Ok(Vec::new()); // its settings could not be undone, which was reported
    }
    if !context.root.exists(record.site.bdi.dir()) {
        if !dry_run {
            record.remove(&context.dirs)?; // no file is open on a removed device
        }
        return Ok(Vec::new());
    }
    let keep = || {
        format!(
            "open files of bdi {} keep the window of {} that apply set",
            record.site.bdi, record.window
        )
    };
    let actuator = Actuator::load(record.limits()).with_context(keep)?;
    if let Some(planned) = planned {
        return actuator.still_refreshed(&record, planned).with_context(keep);
    }
    let (dirs, root, site) = (&context.dirs, &context.root, record.site.clone());
    let guard = super::apply::guard()?;
    let mut lease =
        BdiLease::begin_at(dirs, root, site, &guard, JournalPurpose::Study).with_context(keep)?;
    let reverted = actuator.revert(&mut lease, &record);
    lease.restore()?;
    let reverted = reverted.with_context(keep)?;
    remember_the_rest(context, record, &reverted)?;
    Ok(reverted)
}

/// Keeps files that could not be restored in the record, and reports their number.
fn remember_the_rest(
    context: &Context,
    mut record: RefreshedFiles,
    reverted: &[Reverted],
) -> anyhow::Result<()> {
    let left = |one: &&Reverted| {
        let gone = matches!(one.outcome, Some(ActionOutcome::Failed(ActuateFailure::Gone)));
        !gone && !one.outcome.as_ref().is_some_and(ActionOutcome::is_good)
    };
    let left: Vec<_> = reverted.iter().filter(left).map(|one| one.file.id).collect();
    record.files.retain(|file| left.contains(&file.id));
    record.store(&context.dirs)?;
    if !left.is_empty() {
        context.note(&format!(
            "{} open files could not be restored: `foreread rollback {}` tries again",
            left.len(),
            record.journal
        ));
    }
    Ok(())
}
