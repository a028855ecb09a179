//! The steps that set a value and keep it.

use host::owners::{Certainty, Claim, OwnerKind, setters};
use tunables::persist::{PersistBackend, drafts};
use tunables::{TunableScope, TunableValues};
use units::Kib;

use super::choice::{DeviceChoice, is_foreign, unheeded};
use super::{Action, PlanStep, edit, name};
use crate::claims::{holds, last_word};
use crate::{Diagnosis, HostSnapshot, Remedy};

/// Returns the steps in order, and notes on what is not possible.
pub(super) fn steps(
    snapshot: &HostSnapshot,
    diagnosis: &Diagnosis,
    choice: &DeviceChoice,
    many_nfs: bool,
) -> (Vec<PlanStep>, Vec<String>) {
    let case = Case { snapshot, diagnosis, value: choice.value, many_nfs };
    let (mut steps, mut notes) = (Vec::new(), Vec::new());
    // Every kernel stores whole pages, so other values come from an invalid captured tree.
    let sound = !case.value.is_zero() && snapshot.floored(case.value) == case.value;
    match &choice.refused {
        Some(refused) => notes.push(refused.clone()),
        None if sound => {
            steps.extend(case.edits());
            steps.extend(case.apply());
            match case.is_to_persist().then(|| case.persist()) {
                Some(_) if diagnosis.subject.is_virtual_disk() => notes.push(
                    "no step keeps the value: a reboot removes this virtual disk of foreread"
                        .to_owned(),
                ),
                Some(Ok(step)) => steps.push(step),
                Some(Err(reason)) => {
                    notes.push(format!("nothing keeps {} after a reboot: {reason}", case.value));
                }
                None => {}
            }
        }
        None => {}
    }
    steps.extend(case.measure());
    (steps, notes)
}

struct Case<'a> {
    snapshot: &'a HostSnapshot,
    diagnosis: &'a Diagnosis,
    value: Kib,
    many_nfs: bool,
}

impl<'a> Case<'a> {
    fn stays(&self) -> bool {
        self.value == self.diagnosis.read_ahead()
    }

    fn finds(&self, wanted: &Remedy) -> bool {
        self.diagnosis.findings.iter().any(|found| found.remedy == *wanted)
    }

    /// Returns the claim that is effective after a boot.
    fn deciding(&self) -> Option<&'a Claim> {
        last_word(&self.diagnosis.claims)
    }

    /// Returns the steps that change the effective owner's value and remove the owners that act
    /// before it. LVM metadata are not edited: `persist --with lvm` changes them.
    fn edits(&self) -> Vec<PlanStep> {
        let deciding = self.deciding();
        let unheeded = unheeded(self.snapshot, self.diagnosis, self.value);
        let step = |claim: &Claim| match deciding == Some(claim) {
            true if claim.owner == OwnerKind::Lvm => None,
            true => Some(edit::write(claim, self.value)),
            false => Some(edit::take_out(&self.snapshot.root, self.diagnosis, claim, self.value)),
        };
        unheeded.into_iter().filter_map(step).collect()
    }

    fn apply(&self) -> Option<PlanStep> {
        let open = self.finds(&Remedy::OpenFiles);
        if self.stays() && !open {
            return None;
        }
        let files = if open { " --open-files" } else { "" };
        let reason = match (self.stays(), open) {
            (true, _) => "also set this window for files that are already open",
            (false, true) => "set it now, also for files that are already open",
            (false, false) => "set it now, for files opened from now on",
        };
        Some(PlanStep {
            action: Action::Apply,
            command: format!("foreread apply {} --on {}{files}", self.setting(), self.diagnosis.on),
            read_ahead_kib: Some(self.value),
            reason: reason.to_owned(),
        })
    }

    fn setting(&self) -> String {
        format!("read_ahead={}K", self.value.get())
    }

    /// Returns whether a reboot would change the value after the plan's edits.
    fn is_to_persist(&self) -> bool {
        if self.stays() && !self.finds(&Remedy::Persist) && !self.is_lvm_unheeded() {
            return false;
        }
        match self.deciding() {
            Some(claim) if claim.owner == OwnerKind::Lvm => {
                !holds(self.snapshot, claim, self.value)
            }
            Some(claim) if is_foreign(claim) => false,
            Some(claim) => !holds(self.snapshot, claim, self.value),
            None => self.kernel_would_choose() != Some(self.value),
        }
    }

    fn is_lvm_unheeded(&self) -> bool {
        self.deciding().is_some_and(|claim| {
            claim.owner == OwnerKind::Lvm && !holds(self.snapshot, claim, self.value)
        })
    }

    fn kernel_would_choose(&self) -> Option<Kib> {
        let owner = self.diagnosis.subject.owner()?;
        let default = host::kernel_default(self.snapshot.kernel, self.snapshot.page, owner)?;
        Some(default.read_ahead)
    }

    fn persist(&self) -> Result<PlanStep, String> {
        let (with, word) = self.backend()?;
        let take_over = match self.rival(with == Some(PersistBackend::Lvm)) {
            None => "",
            // An earlier step edits the other owner's file.
            Some(_) if self.deciding().is_some_and(|claim| claim.by_foreread) => " --force-owner",
            Some(rival) => return Err(format!("{rival} sets it; change it there")),
        };
        Ok(PlanStep {
            action: Action::Persist,
            command: format!(
                "foreread persist {} --on {}{word}{take_over}",
                self.setting(),
                self.diagnosis.on
            ),
            read_ahead_kib: Some(self.value),
            reason: "keep it after a reboot".to_owned(),
        })
    }

    /// Returns the new owner: the first backend that `persist -n` accepts.
    fn backend(&self) -> Result<(Option<PersistBackend>, &'static str), String> {
        let storage = name::storage(self.snapshot, &self.diagnosis.subject);
        let site = TunableScope::with_layers(&self.snapshot.root, &storage);
        let settings = TunableValues::read_ahead(self.value.to_bytes());
        let mut refused = None;
        for (with, word) in self.backends(storage.mount.is_some()) {
            let root = &self.snapshot.root;
            match drafts(root, Some(&storage), &site, &settings, with, "/usr/bin/foreread") {
                Ok(_) => return Ok((with, word)),
                Err(error) => refused = refused.or(Some(error.to_string())),
            }
        }
        Err(refused.unwrap_or_else(|| "no owner can set it".to_owned()))
    }

    fn backends(&self, mounted: bool) -> Vec<(Option<PersistBackend>, &'static str)> {
        let unit = (Some(PersistBackend::Systemd), " --with systemd");
        match self.deciding() {
            Some(claim) if claim.owner == OwnerKind::Lvm => {
                return vec![(Some(PersistBackend::Lvm), " --with lvm")];
            }
            // foreread keeps its own file as the only owner instead of adding a second one.
            Some(claim) if claim.by_foreread && claim.owner == OwnerKind::Systemd => {
                return vec![unit];
            }
            Some(claim) if claim.by_foreread && claim.owner == OwnerKind::Tuned => {
                return vec![(Some(PersistBackend::Tuned), " --with tuned")];
            }
            _ => {}
        }
        // nfs.conf has one value for all mounts of an NFS version.
        let shared = self.many_nfs && name::is_nfs(&self.diagnosis.subject);
        let usual = (!shared).then_some((None, ""));
        usual.into_iter().chain(mounted.then_some(unit)).collect()
    }

    /// Returns another owner that would make `persist` refuse.
    fn rival(&self, by_lvm: bool) -> Option<String> {
        let claims = self.diagnosis.claims.iter();
        let claim = claims
            .filter(|claim| is_foreign(claim) && !(by_lvm && claim.owner == OwnerKind::Lvm))
            .find(|claim| claim.certainty == Certainty::Sure);
        let file = self.diagnosis.subject.bdi.dir().join("read_ahead_kb");
        let setter = || {
            let all = setters(&self.snapshot.root, &file).into_iter();
            all.filter(|one| !one.by_foreread).find(|one| one.certainty == Certainty::Sure)
        };
        claim
            .map(|claim| format!("{} at {}", claim.owner.name(), claim.place))
            .or_else(|| setter().map(|one| format!("{} at {}", one.owner, one.place)))
    }

    /// Returns the optional measurement: `foreread tune` if a finding suggests it, otherwise the
    /// first suggested command.
    fn measure(&self) -> Option<PlanStep> {
        let fits = |remedy: &Remedy| match remedy {
            Remedy::Refine(proposal) => self.stays() || proposal.value == self.value,
            _ => true,
        };
        let fitting = self.diagnosis.findings.iter().filter(|found| fits(&found.remedy));
        let fixes: Vec<_> = fitting.flat_map(|found| &found.fixes).collect();
        let tunes = |fix: &&&crate::Fix| {
            fix.commands.iter().any(|command| command.starts_with("foreread tune"))
        };
        let fix = fixes.iter().find(tunes).or(fixes.first())?;
        Some(PlanStep {
            action: Action::Measure,
            command: fix.commands.first()?.clone(),
            read_ahead_kib: None,
            reason: format!("optional: {}", fix.what),
        })
    }
}
