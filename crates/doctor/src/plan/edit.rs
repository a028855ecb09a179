//! Steps that edit an owner's file which requests another value than the plan.

use std::path::Path;

use host::owners::{Claim, OwnerKind, lvm};
use host::{DevNo, Root};
use units::Kib;

use super::choice::is_packaged;
use super::name::quoted;
use super::{Action, PlanStep};
use crate::Diagnosis;

/// Returns the step that sets the effective owner's value to `value`.
pub(super) fn write(claim: &Claim, value: Kib) -> PlanStep {
    PlanStep {
        action: Action::Edit,
        command: editor(claim),
        read_ahead_kib: Some(value),
        reason: format!(
            "change the {} at {} to {value} ({}), from {}",
            claim.owner.name(),
            claim.place,
            value.to_sectors(),
            claim.wanted
        ),
    }
}

/// Returns the step that removes or adjusts the claim of an owner that a later owner overwrites.
pub(super) fn take_out(root: &Root, diagnosis: &Diagnosis, claim: &Claim, value: Kib) -> PlanStep {
    if claim.owner == OwnerKind::Lvm
        && let Some(volume) = volume(root, diagnosis)
    {
        let sectors = value.to_sectors().get();
        return PlanStep {
            action: Action::Edit,
            command: format!("lvchange --readahead {sectors} {}", quoted(&volume)),
            read_ahead_kib: Some(value),
            reason: format!(
                "LVM's metadata request {}, which a later owner overwrites",
                claim.wanted
            ),
        };
    }
    PlanStep {
        action: Action::Edit,
        command: editor(claim),
        read_ahead_kib: None,
        reason: format!(
            "remove {} from the {} at {}: it requests {}, and a later owner overwrites it",
            diagnosis.on,
            claim.owner.name(),
            claim.place,
            claim.wanted
        ),
    }
}

fn volume(root: &Root, diagnosis: &Diagnosis) -> Option<String> {
    let device: DevNo = diagnosis.subject.bdi.as_str().parse().ok()?;
    let (group, name) = lvm::volume_of(root, device)?;
    Some(format!("{group}/{name}"))
}

/// Returns the command that edits the file. The command copies a packaged file to the
/// administrator's directory first, because a package update would overwrite the change.
fn editor(claim: &Claim) -> String {
    let file = &claim.place.file;
    let edit = |file: &Path| format!("${{EDITOR:-vi}} {}", quoted(&file.display().to_string()));
    if !is_packaged(file) {
        return edit(file);
    }
    let name = file.file_name().unwrap_or_default();
    match claim.owner {
        OwnerKind::Udev | OwnerKind::NfsConf | OwnerKind::Tmpfiles => {
            let folder = match claim.owner {
                OwnerKind::Tmpfiles => Path::new("/etc/tmpfiles.d"),
                _ => Path::new("/etc/udev/rules.d"),
            };
            let from = quoted(&file.display().to_string());
            format!("cp -n {from} {} && {}", folder.display(), edit(&folder.join(name)))
        }
        OwnerKind::Systemd if file.extension().is_some_and(|ending| ending == "service") => {
            format!("systemctl edit --full {}", quoted(&name.to_string_lossy()))
        }
        OwnerKind::Tuned => profile(file).unwrap_or_else(|| edit(file)),
        _ => edit(file),
    }
}

/// TuneD prefers a profile in `/etc/tuned` to one of the same name in `/usr/lib/tuned`.
fn profile(file: &Path) -> Option<String> {
    let below = file.strip_prefix("/usr/lib/tuned").ok()?;
    let (from, to) = (file.parent()?, Path::new("/etc/tuned").join(below.parent()?));
    let (from, target) = (quoted(&from.display().to_string()), quoted(&to.display().to_string()));
    let edited = quoted(&to.join(file.file_name()?).display().to_string());
    Some(format!("mkdir -p {target} && cp -rn {from}/. {target} && ${{EDITOR:-vi}} {edited}"))
}
