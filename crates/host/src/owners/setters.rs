//! Owners of tunables other than read-ahead.
//!
//! This module reads the same files as for read-ahead, but looks for another name. It determines
//! only whether an owner sets the kernel file, not the resulting value.

use std::path::{Path, PathBuf};

use super::places::drop_ins;
use super::udev::{Sought, UdevRules};
use super::{Certainty, FileLocation, Target, nfs_conf, sysctl, tuned, writes};
use crate::{BdiId, Root, glob};

/// An owner that sets a kernel file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setter {
    /// The kind of owner as text, such as `udev rule`.
    pub owner: &'static str,
    pub place: FileLocation,
    pub text: String,
    /// Whether the owner applies to this file and is active.
    pub certainty: Certainty,
    pub by_foreread: bool,
}

/// Finds all owners that set `file`, a path below `/sys/dev/block/MAJ:MIN/`, `/sys` or `/proc/sys`.
pub fn setters(root: &Root, file: &Path) -> Vec<Setter> {
    let Some(subject) = Subject::parse(root, file) else { return Vec::new() };
    let mut all = subject.of_rules(root);
    all.extend(subject.of_writes(root));
    all.extend(subject.of_tuned(root));
    all.extend(subject.of_sysctl(root));
    all.extend(subject.of_mdadm(root));
    all
}

/// A kernel file with all the names that owners use for it.
struct Subject {
    sought: Sought,
    target: Target,
    /// The file's sysctl name, such as `vm.dirty_bytes`; `None` if it is no sysctl.
    sysctl: Option<String>,
}

impl Subject {
    fn parse(root: &Root, file: &Path) -> Option<Self> {
        let text = file.to_str()?;
        let name = file.file_name()?.to_str()?.to_owned();
        let mut paths = vec![text.to_owned()];
        let device = text.strip_prefix("/sys/dev/block/").and_then(|rest| rest.split_once('/'));
        let mut target = Target {
            bdi: BdiId::new(device.map_or("machine", |(number, _)| number))?,
            name: None,
            dm: None,
            fstype: None,
            points: Vec::new(),
        };
        let mut of_device = Vec::new();
        if let Some((number, attribute)) = device {
            let folder = format!("/sys/dev/block/{number}");
            let kernel = root.link_name(&folder)?;
            for above in ["/sys/block", "/sys/class/block", "/sys/devices/virtual/block"] {
                paths.push(format!("{above}/{kernel}/{attribute}"));
            }
            paths.extend(real_path(root, file));
            let of_dm = |name| root.read(format!("{folder}/dm/{name}")).ok();
            target.dm = of_dm("name").map(|label| (label, of_dm("uuid").unwrap_or_default()));
            target.name = Some(kernel);
            of_device.push(attribute.to_owned());
        }
        let sysctl = text.strip_prefix("/proc/sys/").map(|rest| rest.replace('/', "."));
        let sought = Sought { file: name, of_device, of_bdi: Vec::new(), paths };
        Some(Self { sought, target, sysctl })
    }

    fn of_rules(&self, root: &Root) -> Vec<Setter> {
        if self.target.name.is_none() {
            return Vec::new(); // udev rules concern devices only
        }
        let rules = UdevRules::read(root, &self.sought.file);
        let nfs = nfs_conf::NfsConf::default();
        let claims = rules.claims(root, &self.target, &self.sought, &nfs);
        let setter = |claim: super::Claim| Setter {
            owner: claim.owner.name(),
            place: claim.place,
            text: claim.text,
            certainty: claim.certainty,
            by_foreread: claim.by_foreread,
        };
        claims.into_iter().map(setter).collect()
    }

    fn of_writes(&self, root: &Root) -> Vec<Setter> {
        let setter = |found: super::shell::FoundWrite| {
            let about = self.sought.covers(&found.write.goal, &self.target)?;
            Some(Setter {
                owner: found.owner.name(),
                place: found.place,
                text: found.text,
                certainty: about.min(found.certainty),
                by_foreread: found.by_foreread,
            })
        };
        writes(root, &self.sought.file).into_iter().filter_map(setter).collect()
    }

    /// Returns the settings of TuneD's plug-ins: sysfs and sysctl files by name, the scheduler of
    /// disks, and since 2.24 some `vm` settings under their own names.
    fn of_tuned(&self, root: &Root) -> Vec<Setter> {
        let about = |setting: &tuned::TunedSetting| match setting.plugin.as_str() {
            "sysfs" => self.sought.paths.iter().any(|path| glob::path_matches(&setting.key, path)),
            "sysctl" => self.sysctl.as_ref().is_some_and(|name| setting.key == *name),
            "vm" => self.sysctl.as_ref().is_some_and(|name| *name == format!("vm.{}", setting.key)),
            "disk" => {
                setting.key == "elevator"
                    && self.sought.of_device.iter().any(|name| name == "queue/scheduler")
            }
            _ => false,
        };
        let setter = |setting: tuned::TunedSetting| Setter {
            owner: "TuneD profile",
            place: setting.place,
            text: format!("{}={}", setting.key, setting.value),
            certainty: if setting.running { Certainty::Sure } else { Certainty::Perhaps },
            by_foreread: setting.by_foreread,
        };
        tuned::settings(root).into_iter().filter(about).map(setter).collect()
    }

    fn of_sysctl(&self, root: &Root) -> Vec<Setter> {
        let Some(name) = &self.sysctl else { return Vec::new() };
        let lines = sysctl::read(root).into_iter().filter(|line| line.name == *name);
        let setter = |line: sysctl::SysctlLine| Setter {
            owner: "sysctl.d",
            by_foreread: line.place.file.to_string_lossy().contains("foreread"),
            place: line.place,
            text: format!("{} = {}", line.name, line.value),
            certainty: Certainty::Sure,
        };
        lines.map(setter).collect()
    }

    /// Returns lines such as `SYSFS name=/dev/md/x sync_speed_max=100000` in mdadm.conf(5), which
    /// mdadm applies when it assembles the array.
    fn of_mdadm(&self, root: &Root) -> Vec<Setter> {
        if !self.sought.of_device.iter().any(|name| name.starts_with("md/")) {
            return Vec::new();
        }
        let mut files: Vec<PathBuf> =
            ["/etc/mdadm.conf", "/etc/mdadm/mdadm.conf"].map(PathBuf::from).to_vec();
        files.extend(drop_ins(root, &["/etc/mdadm/mdadm.conf.d", "/etc/mdadm.conf.d"], ".conf"));
        let names = self.array_names(root);
        let mut all = Vec::new();
        for file in files {
            let Some(text) = root.lines_of(&file) else { continue };
            for (index, line) in text.lines().enumerate() {
                if let Some(certainty) = of_sysfs_line(line, &self.sought.file, &names) {
                    all.push(Setter {
                        owner: "mdadm.conf",
                        place: FileLocation::new(&file, index + 1),
                        text: line.trim().to_owned(),
                        certainty,
                        by_foreread: false,
                    });
                }
            }
        }
        all
    }

    /// Returns the array's names in mdadm.conf: its kernel name, its own name, its UUID.
    fn array_names(&self, root: &Root) -> Vec<String> {
        let data = root.lines_of(format!("/run/udev/data/b{}", self.target.bdi));
        let property = |name: &str| {
            let data = data.as_deref()?;
            let line = |line: &str| Some(line.strip_prefix("E:")?.split_once('=')?.1.to_owned());
            data.lines().find(|text| text.starts_with(&format!("E:{name}="))).and_then(line)
        };
        let mut names: Vec<String> = self.target.name.iter().cloned().collect();
        names.extend(property("MD_DEVNAME"));
        // MD_NAME may start with the name of the creating host and a colon.
        names.extend(property("MD_NAME").map(|name| name.rsplit(':').next().unwrap_or("").into()));
        names.extend(property("MD_UUID"));
        names
    }
}

/// Returns whether a line of mdadm.conf sets this file for an array with one of these names. A line
/// without a name applies to all arrays.
fn of_sysfs_line(line: &str, file: &str, names: &[String]) -> Option<Certainty> {
    let mut words = line.split_whitespace();
    words.next().filter(|word| word.eq_ignore_ascii_case("SYSFS"))?;
    let pairs: Vec<(&str, &str)> = words.filter_map(|word| word.split_once('=')).collect();
    pairs.iter().find(|(key, _)| *key == file)?;
    let named = pairs.iter().find(|(key, _)| matches!(*key, "name" | "uuid"));
    let Some((_, value)) = named else { return Some(Certainty::Sure) };
    let last = value.rsplit('/').next().unwrap_or(value);
    if names.iter().any(|name| name == value || name == last) {
        return Some(Certainty::Sure);
    }
    // The array's own names are known only if udev's database exists.
    (names.len() < 2).then_some(Certainty::Perhaps)
}

/// Returns the real path of the file, below `/sys/devices`.
fn real_path(root: &Root, file: &Path) -> Option<String> {
    let real = std::fs::canonicalize(root.path(file)).ok()?;
    let top = std::fs::canonicalize(root.path("/")).ok()?;
    let below = real.strip_prefix(&top).ok()?;
    Some(format!("/{}", below.to_str()?))
}
