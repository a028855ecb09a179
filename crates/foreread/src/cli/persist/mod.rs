//! `foreread persist`.

mod owned;
mod standing;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use host::resolve;
use serde_json::json;
use tunables::persist::{
    Backend, Draft, Persisted, ansible, boot_check, cloud_init, drafts, freebsd, install,
    kubernetes, lasting_name, obstacle, persisted, remove, tuned_parent,
};
use tunables::{DeviceLock, Settings, TunableError};

use super::apply::Choice;
use super::{Context, ResultFile};
use crate::exit::Exit;
use crate::output;
use owned::{refuse_other_profile, refuse_owned};
pub use standing::{Check, verify};

const AFTER_HELP: &str = "\
Examples:
  foreread persist read_ahead=1M scheduler=none --on /srv/data
  foreread persist --from 7                    what run 7 recommends
  foreread persist -n vm.dirty_bytes=256M      print the files
  foreread persist read_ahead=1M --on /srv --emit ansible
  foreread persist vfs.read_max=128 --emit freebsd

Each setting gets one owner: a udev rule matched by serial number, WWN or UUID, a file of sysctl.d,
nfs.conf, a unit of systemd, or with --with TuneD or LVM's metadata. Where another owner sets it
already, that is refused. A unit verifies everything after each boot. `foreread rollback all` takes
the files back, unless somebody else has edited them.";

/// Make settings outlive a boot
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Persist {
    #[command(flatten)]
    choice: Choice,
    /// Who is to own the settings; chosen for each if nothing is said
    #[arg(long, value_enum, value_name = "OWNER")]
    with: Option<Owner>,
    /// Print what brings the settings to other machines, and write nothing
    #[arg(long, value_enum, value_name = "FORMAT")]
    emit: Option<Emit>,
    /// Write, even if another file sets the same
    #[arg(long)]
    take_over: bool,
    /// No unit that verifies after each boot
    #[arg(long)]
    no_boot_check: bool,
    /// Write nothing: print the files
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ResultFile,
}

/// An owner on the command line.
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

impl From<Owner> for Backend {
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

/// What other systems bring files with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The files themselves
    Files,
    Ansible,
    CloudInit,
    Kubernetes,
    Freebsd,
}

impl Persist {
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
        let program = std::env::current_exe().context("finding this program's own file")?;
        let program = program.to_string_lossy();
        let with = self.with.map(Backend::from);
        let storage = chosen.storage.as_ref();
        let draw = |settings: &Settings| {
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
        if !self.take_over && self.emit.is_none() {
            refuse_owned(context, &chosen, &files)?;
        }
        if !dry {
            let sets = files.iter().any(|draft| sets_at_once(draft.backend));
            let lock = || DeviceLock::take(&context.dirs, &chosen.site.bdi);
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

    fn show(&self, context: &Context, files: &[Draft], dry: bool) -> anyhow::Result<()> {
        if self.json {
            return output::print_json(&json!({
                "schema_version": report::SCHEMA_VERSION,
                "written": !dry,
                "files": files.iter().map(|draft| json!({
                    "path": draft.path,
                    "owner": draft.backend,
                    "settings": draft.settings,
                    "text": draft.text(),
                    "no_effect_because": obstacle(&context.root, draft.backend),
                })).collect::<Vec<_>>(),
            }));
        }
        let mut text = String::new();
        for draft in files {
            let path = draft.path.display();
            if dry {
                text.push_str(&format!("# {path}\n{}\n", draft.text()));
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

/// What earlier calls put in the same files stays there, unless it is set anew.
fn with_earlier(known: &[(PathBuf, Persisted)], files: &[Draft], new: Settings) -> Settings {
    let same = |record: &&Persisted| files.iter().any(|draft| draft.path == record.path);
    let earlier = known.iter().map(|(_, record)| record).filter(same);
    let earlier = earlier.flat_map(|record| record.settings.iter().cloned());
    let all = earlier.fold(Settings::default(), Settings::with);
    new.iter().cloned().fold(all, Settings::with)
}

fn printed(text: &str) -> anyhow::Result<Exit> {
    output::print_document(text)?;
    Ok(Exit::Fine)
}

fn checked(settings: &Settings) -> anyhow::Result<Settings> {
    let mut checked = Settings::default();
    for setting in settings.iter() {
        let value = setting.tunable.validate(&setting.value, host::page_size())?.value;
        checked = checked.with(tunables::Setting { tunable: setting.tunable, value });
    }
    Ok(checked)
}

/// Says which files take no effect on this host, and why.
fn tell_of_obstacles(context: &Context, files: &[Draft], dry: bool) {
    let word = if dry { "would take" } else { "takes" };
    for draft in files {
        if let Some(why) = obstacle(&context.root, draft.backend) {
            context.note(&format!("note: {} {word} no effect: {why}", draft.path.display()));
        }
    }
}

/// Tells those who read the files, where they are there; it holds after a boot in any case.
fn reload(context: &Context, files: &[Draft]) {
    let read = |backend| obstacle(&context.root, backend).is_none();
    let of = |backend| files.iter().any(|draft| draft.backend == backend) && read(backend);
    let calls: [(bool, &str, &[&str]); 2] = [
        (of(Backend::Udev), "udevadm", &["control", "--reload"]),
        (of(Backend::Systemd), "systemctl", &["daemon-reload"]),
    ];
    for (wanted, program, arguments) in calls {
        let done = !wanted
            || std::process::Command::new(program)
                .args(arguments)
                .stdin(std::process::Stdio::null())
                .output()
                .is_ok_and(|output| output.status.success());
        if !done {
            context.note(&format!("{program} does not run here: it reads the files at next boot"));
        }
    }
    if of(Backend::Tuned) && !tuned_adm("foreread") {
        context
            .note("TuneD does not run here: `tuned-adm profile foreread` has it take the profile");
    }
    if files.iter().any(|draft| read(draft.backend)) {
        context.note("the files count from the next boot on; `foreread apply` sets it now");
    }
}

/// Whether an owner sets the device now, and not only from the next boot on: lvchange does, and
/// TuneD when it takes a profile.
fn sets_at_once(backend: Backend) -> bool {
    matches!(backend, Backend::Lvm | Backend::Tuned)
}

/// The lock of the device that taking the record back sets at once; `None` if it sets none.
fn lock_of(context: &Context, record: &Persisted) -> Option<Result<DeviceLock, TunableError>> {
    let target = record.target.as_ref().filter(|_| sets_at_once(record.backend))?;
    let storage = resolve(&context.root, target).ok()?;
    Some(DeviceLock::take(&context.dirs, &storage.bdi))
}

/// Has TuneD take a profile.
fn tuned_adm(profile: &str) -> bool {
    let mut command = std::process::Command::new("tuned-adm");
    command.args(["profile", profile]).stdin(std::process::Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

/// Takes back all files, the latest first.
pub fn roll_back(
    context: &Context,
    dry_run: bool,
    errors: &mut Vec<anyhow::Error>,
) -> anyhow::Result<Vec<String>> {
    let mut removed = Vec::new();
    for (path, record) in persisted(&context.dirs)?.into_iter().rev() {
        let parent = tuned_parent(&context.root).filter(|_| record.backend == Backend::Tuned);
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
                // Without its file the profile is nothing: TuneD goes back to the one before.
                if let Some(parent) = parent.filter(|_| !dry_run)
                    && !tuned_adm(&parent)
                {
                    context.note(&format!("TuneD does not run here: it had {parent} before"));
                }
            }
            Err(error) => errors.push(error.into()),
        }
    }
    Ok(removed)
}
