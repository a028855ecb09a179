//! Formats the contents of the persisted files.

use std::path::PathBuf;

use host::{Root, Storage};

use super::lvm::LvmVolume;
use super::{Draft, PersistBackend, PersistError, tuned};
use crate::marks::{matched, slug};
use crate::{Setting, TunableError, TunableScope, TunableValues};

/// `dev.raid` exists only after md is loaded, usually after sysctl.d was read: seen on Debian 12,
/// where speed_limit_max was 200000 again. The workaround is that of sysctl.d(5).
const RAID_RULE: &str = "ACTION==\"add\", SUBSYSTEM==\"module\", KERNEL==\"md_mod\", \
                         RUN+=\"/lib/systemd/systemd-sysctl --prefix=/dev/raid\"";
const RAID_RULES: &str = "/etc/udev/rules.d/99-foreread-dev-raid.rules";

/// Returns the files that persist the settings: one or more for each owner.
pub fn drafts(
    root: &Root,
    storage: Option<&Storage>,
    site: &TunableScope,
    settings: &TunableValues,
    with: Option<PersistBackend>,
    program: &str,
) -> Result<Vec<Draft>, PersistError> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut by_unit = TunableValues::default();
    let mut by_tuned = TunableValues::default();
    for setting in settings.iter() {
        let backend = backend(root, storage, site, setting, with)?;
        if backend == PersistBackend::Systemd {
            by_unit = by_unit.with(setting.clone());
            continue;
        }
        if backend == PersistBackend::Tuned {
            by_tuned = by_tuned.with(setting.clone());
            continue;
        }
        if backend == PersistBackend::Lvm {
            drafts.push(of_volume(root, site, setting)?);
            continue;
        }
        let draft = draft(root, site, setting, backend)?;
        for (path, lines) in draft {
            match drafts.iter_mut().find(|known| known.path == path) {
                Some(known) => known.add(setting, &lines),
                None => {
                    let by_udev = path.starts_with("/etc/udev");
                    let reader = if by_udev { PersistBackend::Udev } else { backend };
                    let mut new = Draft::new(reader, path);
                    new.add(setting, &lines);
                    drafts.push(new);
                }
            }
        }
    }
    if !by_unit.is_empty() {
        drafts.push(unit(storage, site, by_unit, program)?);
    }
    if !by_tuned.is_empty() {
        drafts.push(tuned::profile(root, site, by_tuned)?);
    }
    Ok(drafts)
}

/// Returns the draft that sets LVM metadata.
fn of_volume(root: &Root, site: &TunableScope, setting: &Setting) -> Result<Draft, PersistError> {
    let window = setting.value.bytes().filter(|_| setting.tunable.name() == "read_ahead");
    let volume = window
        .and_then(|window| LvmVolume::find(root, site, window))
        .ok_or_else(|| PersistError::unfit(setting, PersistBackend::Lvm))?;
    let mut draft = Draft::new(PersistBackend::Lvm, volume.path());
    draft.add(setting, &[]);
    draft.volume = Some(volume);
    Ok(draft)
}

/// Returns the unit that verifies all persisted settings after each boot.
pub fn boot_check(program: &str) -> Draft {
    let program = program.replace('%', "%%");
    let mut draft =
        Draft::new(PersistBackend::Systemd, "/etc/systemd/system/foreread-verify.service".into());
    let text = format!(
        "[Unit]\nDescription=foreread: are all settings as they were persisted?\n\
         After=local-fs.target remote-fs.target systemd-sysctl.service tuned.service\n\
         # Settings stay when foreread is removed: the unit is then skipped.\n\
         ConditionFileIsExecutable={program}\n\n\
         [Service]\nType=oneshot\nExecStart=\"{program}\" verify\n\n[Install]\n\
         WantedBy=multi-user.target"
    );
    draft.lines = text.lines().map(str::to_owned).collect();
    draft
}

/// Returns the unit that applies settings that udev cannot make.
fn unit(
    storage: Option<&Storage>,
    site: &TunableScope,
    settings: TunableValues,
    program: &str,
) -> Result<Draft, PersistError> {
    let target = storage.map(|storage| storage.path.display().to_string());
    let target = target.filter(|path| is_quotable(path) && is_quotable(program));
    let target = target.ok_or_else(|| PersistError::NoIdentity { device: site.bdi.to_string() })?;
    let path = format!("/etc/systemd/system/foreread-apply-{}.service", slug(&target));
    let mut draft = Draft::new(PersistBackend::Systemd, path.into());
    let text = format!(
        "[Unit]\nDescription=foreread: settings of {target}\nRequiresMountsFor=\"{target}\"\n\
         After=local-fs.target remote-fs.target\nBefore=foreread-verify.service\n\n[Service]\n\
         Type=oneshot\nExecStart=\"{program}\" apply --quiet {settings} --on \"{target}\"\n\n\
         [Install]\nWantedBy=multi-user.target"
    );
    draft.lines = text.lines().map(str::to_owned).collect();
    draft.settings = settings;
    Ok(draft)
}

/// Chooses the owner of a setting.
fn backend(
    root: &Root,
    storage: Option<&Storage>,
    site: &TunableScope,
    setting: &Setting,
    with: Option<PersistBackend>,
) -> Result<PersistBackend, PersistError> {
    let tunable = setting.tunable;
    if let Some(system) = tunable.other_os() {
        return Err(TunableError::OtherSystem { tunable: tunable.name(), system }.into());
    }
    if tunable.sysctl().is_some() && tunable.is_of_machine() {
        return match with {
            Some(PersistBackend::Tuned) if tuned::parent(root).is_none() => {
                Err(PersistError::NoTuned)
            }
            Some(PersistBackend::Tuned) => Ok(PersistBackend::Tuned),
            _ => Ok(PersistBackend::Sysctl),
        };
    }
    let fstype = storage.and_then(|storage| storage.mount.as_ref()).map(|m| m.fstype.as_str());
    let nfs = fstype.is_some_and(|fstype| fstype.starts_with("nfs"));
    let block = site.bdi.as_str().parse::<host::DevNo>().is_ok_and(|device| device.major != 0);
    let read_ahead = tunable.name() == "read_ahead";
    let usual = match () {
        () if read_ahead && nfs => PersistBackend::NfsConf,
        () if read_ahead && !block => PersistBackend::Systemd,
        () => PersistBackend::Udev,
    };
    match with {
        None => Ok(usual),
        Some(PersistBackend::Tuned) if tuned::parent(root).is_none() => Err(PersistError::NoTuned),
        Some(with) => {
            let is_unfit = match with {
                PersistBackend::NfsConf => !(read_ahead && nfs),
                PersistBackend::Udev => read_ahead && !block,
                PersistBackend::Sysctl => true,
                PersistBackend::Tuned | PersistBackend::Systemd | PersistBackend::Lvm => false,
            };
            if is_unfit { Err(PersistError::unfit(setting, with)) } else { Ok(with) }
        }
    }
}

/// Returns the lines of one setting, by file.
fn draft(
    root: &Root,
    site: &TunableScope,
    setting: &Setting,
    backend: PersistBackend,
) -> Result<Vec<(PathBuf, Vec<String>)>, PersistError> {
    let tunable = setting.tunable;
    let value = tunable.encode(&setting.value)?;
    match backend {
        PersistBackend::Sysctl => {
            let name = tunable.sysctl().unwrap_or_default();
            let line = format!("{name} = {value}");
            let mut files = vec![("/etc/sysctl.d/99-foreread.conf".into(), vec![line])];
            if name.starts_with("dev.raid.") {
                files.push((RAID_RULES.into(), vec![RAID_RULE.to_owned()]));
            }
            Ok(files)
        }
        PersistBackend::Udev => udev(root, site, setting, &value),
        PersistBackend::NfsConf => {
            let lines = ["nfs", "nfs4"].map(|fstype| format!("{fstype} = {value}")).to_vec();
            let mut all = vec!["[nfsrahead]".to_owned()];
            all.extend(lines);
            Ok(vec![("/etc/nfs.conf.d/foreread.conf".into(), all)])
        }
        // Other functions make these drafts.
        PersistBackend::Tuned | PersistBackend::Systemd | PersistBackend::Lvm => Ok(Vec::new()),
    }
}

/// Returns whether a path needs no escaping in a unit.
fn is_quotable(path: &str) -> bool {
    path.chars().all(|c| c.is_ascii_alphanumeric() || "/-_.+:@ ".contains(c))
}

/// Returns one rule for each device with a file of the tunable; udev writes them in this order.
fn udev(
    root: &Root,
    site: &TunableScope,
    setting: &Setting,
    value: &str,
) -> Result<Vec<(PathBuf, Vec<String>)>, PersistError> {
    let mut all = Vec::new();
    for file in setting.tunable.files(root, site) {
        let text = file.to_string_lossy();
        let parts = text
            .strip_prefix("/sys/dev/block/")
            .or_else(|| text.strip_prefix("/sys/class/bdi/"))
            .and_then(|rest| rest.split_once('/'));
        let parts = parts.and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
        let Some((device, rest)) = parts else {
            return Err(PersistError::unfit(setting, PersistBackend::Udev));
        };
        let rest = if text.contains("/class/bdi/") { "queue/read_ahead_kb" } else { rest };
        let found = matched(root, device);
        let found = found.ok_or_else(|| PersistError::without_identity(root, device))?;
        let path = format!("/etc/udev/rules.d/99-foreread-{}.rules", slug(&found.value));
        let line = format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {}, \
             ATTR{{{rest}}}=\"{value}\"",
            found.condition
        );
        all.push((path.into(), vec![line]));
    }
    Ok(all)
}
