//! `foreread persist`.

mod ownership;
mod persisted_state;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use host::resolve;
use serde_json::json;
use tunables::persist::{
    Draft, PersistBackend, Persisted, ansible, boot_check, cloud_init, drafts, freebsd, install,
    kubernetes, lasting_name, obstacle, persisted, remove, tuned_parent,
};
use tunables::{DeviceLock, TunableError, TunableValues};

use super::apply::SettingArgs;
use super::{Context, ResultFile};
use crate::exit::Exit;
use crate::output;
use ownership::{refuse_other_profile, refuse_owned};
pub use persisted_state::{PersistedCheck, verify};

const AFTER_HELP: &str = "\
Examples:
  foreread persist read_ahead=1M scheduler=none --on /srv/data
  foreread persist --from 7                    what run 7 recommends
  foreread persist -n vm.dirty_bytes=256M      print the files
  foreread persist read_ahead=1M --on /srv --emit ansible
  foreread persist vfs.read_max=128 --emit freebsd

Each setting gets one owner: a udev rule that matches serial number, WWN or UUID, a file in
sysctl.d, nfs.conf, a systemd unit, or, with --with, TuneD or LVM metadata. If another owner already
sets it, persist refuses. A unit verifies all settings after each boot. `foreread rollback all`
removes the files, unless they were edited since.";

/// Make settings survive a reboot
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct PersistArgs {
    #[command(flatten)]
    choice: SettingArgs,
    /// The owner of the settings; default: chosen for each
    #[arg(long, value_enum, value_name = "OWNER")]
    with: Option<Owner>,
    /// Print files for other machines in this format; write nothing
    #[arg(long, value_enum, value_name = "FORMAT")]
    emit: Option<Emit>,
    /// Write even if another file sets the same tunable
    #[arg(long, alias = "take-over")]
    force_owner: bool,
    /// Do not write the unit that verifies after each boot
    #[arg(long)]
    no_boot_check: bool,
    /// Change nothing; print what would be written
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ResultFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Owner {
    Udev,
    Sysctl,
    NfsConf,
    Tuned,
    Systemd,
    /// The metadata of a logical volume (lvchange --readahead)
    Lvm,
}

impl From<Owner> for PersistBackend {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::Udev => Self::Udev,
            Owner::Sysctl => Self::Sysctl,
            Owner::NfsConf => Self::NfsConf,
            Owner::Tuned => Self::Tuned,
            Owner::Systemd => Self::Systemd,
            Owner::Lvm => Self::Lvm,
        }
    }
}

/// Formats for other systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The files themselves
    Files,
    Ansible,
    CloudInit,
    Kubernetes,
    Freebsd,
}

impl PersistArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let mut chosen = self.choice.choose(context)?;
        if let Some(storage) = &mut chosen.storage {
            storage.path = lasting_name(&context.root, &storage.path);
        }
        let checked = checked(&chosen.settings)?;
        match self.emit {
            Some(Emit::Freebsd) => return printed(&freebsd(&checked)?),
            Some(Emit::Kubernetes) => return printed(&kubernetes(&checked)?),
            _ => {}
        }
        let program = self.program()?;
        let with = self.with.map(PersistBackend::from);
        let storage = chosen.storage.as_ref();
        let draw = |settings: &TunableValues| {
            drafts(&context.root, storage, &chosen.site, settings, with, &program)
        };
        let files = draw(&checked)?;
        refuse_other_profile(context, &chosen, &files)?;
        let mut files = draw(&with_earlier(&persisted(&context.dirs)?, &files, checked))?;
        match self.emit {
            Some(Emit::Ansible) => return printed(&ansible(&files)),
            Some(Emit::CloudInit) => return printed(&cloud_init(&files)),
            _ => {}
        }
        if !self.no_boot_check {
            files.push(boot_check(&program));
        }
        let dry = self.dry_run || self.emit == Some(Emit::Files);
        if !self.force_owner && self.emit.is_none() {
            refuse_owned(context, &chosen, &files)?;
        }
        if !dry {
            let sets = files.iter().any(|draft| sets_at_once(draft.backend));
            let lock = || DeviceLock::acquire(&context.dirs, &chosen.site.bdi);
            let _lock = sets.then(lock).transpose()?;
            for draft in &files {
                let target = storage.map(|storage| storage.path.as_path());
                install(&context.dirs, &context.root, draft, target)?;
            }
            reload(context, &files);
        }
        self.show(context, &files, dry)?;
        if self.emit.is_none() {
            tell_of_obstacles(context, &files, dry);
        }
        Ok(Exit::Fine)
    }

    /// Returns the path of foreread in units. On other machines, packages install it in /usr/bin.
    fn program(&self) -> anyhow::Result<String> {
        if self.emit.is_some() {
            return Ok("/usr/bin/foreread".to_owned());
        }
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        Ok(program.to_string_lossy().into_owned())
    }

    fn show(&self, context: &Context, files: &[Draft], dry: bool) -> anyhow::Result<()> {
        let text_of = if self.emit.is_some() { Draft::emitted_text } else { Draft::text };
        if self.json {
            return output::print_versioned(&json!({
                "written": !dry,
                "files": files.iter().map(|draft| json!({
                    "path": draft.path,
                    "owner": draft.backend,
                    "settings": draft.settings,
                    "text": text_of(draft),
                    "no_effect_because": obstacle(&context.root, draft.backend),
                })).collect::<Vec<_>>(),
            }));
        }
        let mut text = String::new();
        for draft in files {
            let path = draft.path.display();
            if dry {
                text.push_str(&format!("# {path}\n{}\n", text_of(draft)));
            } else {
                text.push_str(&format!("{path}: written\n"));
            }
        }
        if !dry {
            text.push_str("# undo: foreread rollback all\n");
        }
        output::print(&text)
    }
}

/// Adds earlier settings of the same files, unless they are set again.
fn with_earlier(
    known: &[(PathBuf, Persisted)],
    files: &[Draft],
    new: TunableValues,
) -> TunableValues {
    let same = |record: &&Persisted| files.iter().any(|draft| draft.path == record.path);
    let earlier = known.iter().map(|(_, record)| record).filter(same);
    let earlier = earlier.flat_map(|record| record.settings.iter().cloned());
    let all = earlier.fold(TunableValues::default(), TunableValues::with);
    new.iter().cloned().fold(all, TunableValues::with)
}

fn printed(text: &str) -> anyhow::Result<Exit> {
    output::print_document(text)?;
    Ok(Exit::Fine)
}

fn checked(settings: &TunableValues) -> anyhow::Result<TunableValues> {
    let mut checked = TunableValues::default();
    for setting in settings.iter() {
        let value = setting.tunable.validate(&setting.value, host::page_size())?.value;
        checked = checked.with(tunables::Setting { tunable: setting.tunable, value });
    }
    Ok(checked)
}

/// Prints which files have no effect on this host, and why.
fn tell_of_obstacles(context: &Context, files: &[Draft], dry: bool) {
    let word = if dry { "would take" } else { "takes" };
    for draft in files {
        if let Some(why) = obstacle(&context.root, draft.backend) {
            context.note(&format!("note: {} {word} no effect: {why}", draft.path.display()));
        }
    }
}

/// Reloads the programs that read the files, if they exist; the files take effect at the next boot
/// in any case.
fn reload(context: &Context, files: &[Draft]) {
    let read = |backend| obstacle(&context.root, backend).is_none();
    let of = |backend| files.iter().any(|draft| draft.backend == backend) && read(backend);
    let calls: [(bool, &str, &[&str]); 2] = [
        (of(PersistBackend::Udev), "udevadm", &["control", "--reload"]),
        (of(PersistBackend::Systemd), "systemctl", &["daemon-reload"]),
    ];
    for (wanted, program, arguments) in calls {
        let done = !wanted
            || std::process::Command::new(program)
                .args(arguments)
                .stdin(std::process::Stdio::null())
                .output()
                .is_ok_and(|output| output.status.success());
        if !done {
            context
                .note(&format!("{program} is not available: the files are read at the next boot"));
        }
    }
    if of(PersistBackend::Tuned) && !tuned_adm("foreread") {
        context.note("TuneD is not running: `tuned-adm profile foreread` activates the profile");
    }
    if files.iter().any(|draft| read(draft.backend)) {
        context
            .note("the files take effect at the next boot; `foreread apply` sets the values now");
    }
}

/// Returns whether an owner also sets the device immediately: lvchange does, and TuneD when it
/// activates a profile.
fn sets_at_once(backend: PersistBackend) -> bool {
    matches!(backend, PersistBackend::Lvm | PersistBackend::Tuned)
}

/// Locks the device that undoing the record sets immediately, if any.
fn lock_of(context: &Context, record: &Persisted) -> Option<Result<DeviceLock, TunableError>> {
    let target = record.target.as_ref().filter(|_| sets_at_once(record.backend))?;
    let storage = resolve(&context.root, target).ok()?;
    Some(DeviceLock::acquire(&context.dirs, &storage.bdi))
}

/// Activates a TuneD profile.
fn tuned_adm(profile: &str) -> bool {
    let mut command = std::process::Command::new("tuned-adm");
    command.args(["profile", profile]).stdin(std::process::Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

/// Removes all files, latest first.
pub fn roll_back(
    context: &Context,
    dry_run: bool,
    errors: &mut Vec<anyhow::Error>,
) -> anyhow::Result<Vec<String>> {
    let mut removed = Vec::new();
    for (path, record) in persisted(&context.dirs)?.into_iter().rev() {
        let parent =
            tuned_parent(&context.root).filter(|_| record.backend == PersistBackend::Tuned);
        let _lock = match lock_of(context, &record).filter(|_| !dry_run).transpose() {
            Ok(lock) => lock,
            Err(error) => {
                errors.push(error.into());
                continue;
            }
        };
        match remove(&context.root, &path, &record, dry_run) {
            Ok(_) => {
                removed.push(record.path.display().to_string());
                // TuneD cannot use a profile without its file, so activate the previous profile.
                if let Some(parent) = parent.filter(|_| !dry_run)
                    && !tuned_adm(&parent)
                {
                    context
                        .note(&format!("TuneD is not running: its previous profile is {parent}"));
                }
            }
            Err(error) => errors.push(error.into()),
        }
    }
    Ok(removed)
}
