//! Refuses to persist settings that another file or program already sets, and names that owner.

use host::owners::{Certainty, Claim, OwnerKind, Owners, Target, setters};
use host::{Root, Storage, Survey};
use tunables::Setting;
use tunables::persist::{Draft, PersistBackend, PersistError, Persisted, persisted};

use crate::cli::Context;
use crate::cli::apply::ChosenSettings;
use crate::exit::usage;

/// Returns an error if another owner on this machine sets one of the settings.
pub fn refuse_owned(
    context: &Context,
    chosen: &ChosenSettings,
    files: &[Draft],
) -> anyhow::Result<()> {
    let root = &context.root;
    for setting in chosen.settings.iter() {
        for file in setting.tunable.files(root, &chosen.site) {
            for other in setters(root, &file).into_iter().filter(|other| !other.by_foreread) {
                if other.certainty == Certainty::Sure {
                    return Err(owned(setting, other.owner, &other.place.to_string()));
                }
                context.note(&format!(
                    "{} may be set by another owner, too: {} at {}",
                    setting.tunable.name(),
                    other.owner,
                    other.place
                ));
            }
        }
    }
    refuse_own(context, chosen, files)?;
    let window = chosen.settings.iter().find(|setting| setting.tunable.name() == "read_ahead");
    let (Some(setting), Some(storage)) = (window, &chosen.storage) else { return Ok(()) };
    // A new value replaces the one in LVM metadata.
    let by_lvm = files.iter().any(|draft| draft.backend == PersistBackend::Lvm);
    let ours = |claim: &Claim| match claim.owner {
        OwnerKind::Lvm => by_lvm,
        // foreread changes this default in nfs.conf.
        _ => claim.is_nfsrahead_default(),
    };
    match claimed(root, storage, ours)? {
        Some(claim) => Err(owned(setting, claim.owner.name(), &claim.place.to_string())),
        None => Ok(()),
    }
}

fn owned(setting: &Setting, owner: &str, place: &str) -> anyhow::Error {
    let (setting, owner, place) = (setting.to_string(), owner.to_owned(), place.to_owned());
    PersistError::Owned { setting, owner, place }.into()
}

/// Refuses a second target for TuneD, which has one active profile and therefore one file.
pub fn refuse_other_profile(
    context: &Context,
    chosen: &ChosenSettings,
    files: &[Draft],
) -> anyhow::Result<()> {
    let target = chosen.storage.as_ref().map(|storage| &storage.path);
    let other = persisted(&context.dirs)?.into_iter().find(|(_, record)| {
        record.backend == PersistBackend::Tuned
            && record.target.as_ref() != target
            && files.iter().any(|draft| draft.path == record.path)
    });
    match other {
        Some((_, Persisted { path, .. })) => {
            let problem = "TuneD's child profile already belongs to another target";
            Err(usage!("{problem}: {}", path.display()))
        }
        None => Ok(()),
    }
}

/// Refuses to set the same tunable in a second file of foreread.
fn refuse_own(context: &Context, chosen: &ChosenSettings, files: &[Draft]) -> anyhow::Result<()> {
    let target = chosen.storage.as_ref().map(|storage| &storage.path);
    for (_, record) in persisted(&context.dirs)? {
        let rewritten = files.iter().any(|draft| draft.path == record.path);
        let same_target = record.target.as_ref() == target;
        if rewritten || !same_target {
            continue;
        }
        for setting in chosen.settings.iter() {
            if record.settings.get(setting.tunable.name()).is_some() {
                let owner = format!("foreread's own {} file", record.backend);
                return Err(owned(setting, &owner, &record.path.display().to_string()));
            }
        }
    }
    Ok(())
}

/// Returns the first value that another owner certainly sets.
fn claimed(
    root: &Root,
    storage: &Storage,
    ours: impl Fn(&Claim) -> bool,
) -> anyhow::Result<Option<Claim>> {
    let survey = Survey::of_storage(root, storage)?;
    let owners = Owners::read(root);
    for subject in survey.subjects.iter().filter(|subject| subject.bdi == storage.bdi) {
        let Some(target) = subject.owner().and_then(|owner| Target::new(subject, owner)) else {
            continue;
        };
        let sure = owners
            .claims(root, &target)
            .into_iter()
            .filter(|claim| !claim.by_foreread && !ours(claim))
            .find(|claim| claim.certainty == Certainty::Sure);
        if sure.is_some() {
            return Ok(sure);
        }
    }
    Ok(None)
}
