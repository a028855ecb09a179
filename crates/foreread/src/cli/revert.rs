//! Undoing what `apply --open-files` did to files that were open.

use actuate::{Actuator, Missed, Outcome, RefreshedFiles, Reverted};
use anyhow::{Context as _, anyhow};
use tunables::{JournalError, Purpose, Tenure, Which};

use super::Context;

/// The records that go with these journals, and why some cannot be read.
pub fn records(
    context: &Context,
    which: &Which,
) -> Result<(Vec<RefreshedFiles>, Vec<JournalError>), JournalError> {
    let (mut records, mut refused) = RefreshedFiles::list(&context.dirs)?;
    records.retain(|record| match which {
        // What was applied stays.
        Which::Left => false,
        Which::All => true,
        Which::Bdi(bdi) => record.site.bdi == *bdi,
        Which::Journal(name) => name.strip_suffix(".jsonl").unwrap_or(name) == record.journal,
    });
    if *which == Which::Left {
        refused.clear();
    }
    Ok((records, refused))
}

/// Gives the open files of a record back what they had, or says what would be done.
pub fn revert(
    context: &Context,
    record: RefreshedFiles,
    dry_run: bool,
) -> anyhow::Result<Vec<Reverted>> {
    let journal = context.dirs.state.join(format!("journal/{}.jsonl", record.journal));
    if !dry_run && journal.exists() {
        return Ok(Vec::new()); // its settings could not be undone, which was said
    }
    if !context.root.exists(record.site.bdi.dir()) {
        if !dry_run {
            record.remove(&context.dirs)?; // nothing is open on a device that has gone
        }
        return Ok(Vec::new());
    }
    let keep = || {
        format!(
            "open files of bdi {} keep the window of {} that apply gave them",
            record.site.bdi, record.window
        )
    };
    let limits = record.limits().map_err(|problem| anyhow!(problem))?;
    let actuator = Actuator::begin(limits).with_context(keep)?;
    if dry_run {
        return actuator.still_refreshed(&record).with_context(keep);
    }
    let (dirs, root, site) = (&context.dirs, &context.root, record.site.clone());
    let guard = super::apply::guard()?;
    let mut tenure =
        Tenure::begin_at(dirs, root, site, &guard, Purpose::Study).with_context(keep)?;
    let reverted = actuator.revert(&mut tenure, &record);
    tenure.restore()?;
    let reverted = reverted.with_context(keep)?;
    remember_the_rest(context, record, &reverted)?;
    Ok(reverted)
}

/// Keeps of the record what could not be reached, and says so.
fn remember_the_rest(
    context: &Context,
    mut record: RefreshedFiles,
    reverted: &[Reverted],
) -> anyhow::Result<()> {
    let left = |one: &&Reverted| {
        let gone = matches!(one.outcome, Some(Outcome::Missed(Missed::Gone)));
        !gone && !one.outcome.as_ref().is_some_and(Outcome::is_good)
    };
    let left: Vec<_> = reverted.iter().filter(left).map(|one| one.file.id).collect();
    record.files.retain(|file| left.contains(&file.id));
    record.store(&context.dirs)?;
    if !left.is_empty() {
        context.note(&format!(
            "{} open files keep another window than they had: `foreread rollback {}` tries again",
            left.len(),
            record.journal
        ));
    }
    Ok(())
}
