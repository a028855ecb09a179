//! TuneD: the active profile and the profiles that it includes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use units::{Kib, Sectors};

use super::places::comment_above;
use super::{Certainty, Claim, FileLocation, OwnerKind, Target, Wanted, is_foreread};
use crate::Root;
use crate::glob;

/// Profile directories in order of precedence: the administrator's first.
const FOLDERS: &[&str] =
    &["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];

/// Maximum depth of included profiles; deeper ones are assumed to form a cycle.
const MAX_INCLUDE_DEPTH: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Active {
    pub profile: String,
    /// Whether the TuneD daemon is running, so that the profile is active.
    pub running: bool,
    pub sections: Vec<TunedSection>,
}

/// A section of a profile that concerns disks or sets read-ahead files in sysfs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunedSection {
    /// Section name. A later section with the same name overwrites the options.
    pub name: String,
    pub read_ahead: Option<(Wanted, FileLocation, String, Option<String>)>,
    /// Patterns of device names; a leading `!` excludes matching devices.
    pub devices: Vec<String>,
    /// A regular expression on the udev properties of the devices.
    pub by_property: Option<String>,
    /// Sysfs files that the section sets.
    pub files: Vec<(String, Wanted, FileLocation)>,
    /// Whether TuneD ignores the section.
    pub disabled: bool,
    pub by_foreread: bool,
}

impl Active {
    /// Reads the active profile; `None` without TuneD or an active profile.
    pub(super) fn read(root: &Root) -> Option<Self> {
        let Chosen { profile, running, texts } = chosen(root)?;
        let mut sections = BTreeMap::new();
        for section in texts.iter().flat_map(|(file, text)| parse(file, text)) {
            merge(&mut sections, section);
        }
        Some(Self { profile, running, sections: sections.into_values().collect() })
    }

    pub(super) fn claims(&self, root: &Root, target: &Target) -> Vec<Claim> {
        let force = if self.running { Certainty::Sure } else { Certainty::Perhaps };
        let mut claims = Vec::new();
        for section in self.sections.iter().filter(|section| !section.disabled) {
            let mut claim =
                |wanted, place: &FileLocation, text: &str, comment, certainty: Certainty| {
                    claims.push(Claim {
                        owner: OwnerKind::Tuned,
                        wanted,
                        place: place.clone(),
                        text: text.to_owned(),
                        comment,
                        certainty: certainty.min(force),
                        by_foreread: section.by_foreread,
                    });
                };
            if let Some((wanted, place, text, comment)) = &section.read_ahead
                && let Some(certainty) = section.covers(root, target)
            {
                claim(*wanted, place, text, comment.clone(), certainty);
            }
            for (file, wanted, place) in &section.files {
                let goal = super::shell::Goal::File(file.clone());
                if let Some(certainty) = goal.covers(target) {
                    claim(*wanted, place, file, None, certainty);
                }
            }
        }
        claims
    }
}

impl TunedSection {
    /// Returns whether the section applies to the target. TuneD manages non-removable disks without
    /// a parent or with one on SCSI, virtio, Xen or NVMe (plugin_disk.py), restricted by `devices`.
    fn covers(&self, root: &Root, target: &Target) -> Option<Certainty> {
        let name = target.name.as_deref()?;
        let removable = root.number_if_present(format!("/sys/class/block/{name}/removable"));
        if removable == Some(1) {
            return None;
        }
        if let Some(pattern) = &self.by_property {
            return has_property(root, name, pattern);
        }
        let (out, of): (Vec<&String>, Vec<&String>) =
            self.devices.iter().partition(|device| device.starts_with('!'));
        if out.iter().any(|device| glob::matches(&device[1..], name)) {
            return None;
        }
        let all = of.is_empty() || of.iter().any(|device| glob::matches(device, name));
        all.then_some(Certainty::Sure)
    }
}

/// Returns whether a device may have the property that a pattern describes. Only `^NAME=value$`,
/// the form that foreread writes, is evaluated; any other pattern may match.
fn has_property(root: &Root, name: &str, pattern: &str) -> Option<Certainty> {
    let line = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$'));
    let Some(line) = line.and_then(plain) else { return Some(Certainty::Perhaps) };
    let number = root.read(format!("/sys/class/block/{name}/dev")).ok()?;
    let Some(data) = root.lines_of(format!("/run/udev/data/b{number}")) else {
        return Some(Certainty::Perhaps);
    };
    let has = data.lines().any(|entry| entry.strip_prefix("E:") == Some(line.as_str()));
    has.then_some(Certainty::Sure)
}

/// Returns the only text that a pattern matches, or `None` if it may match several.
fn plain(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.push(letters.next().filter(char::is_ascii_punctuation)?),
            '.' | '*' | '+' | '?' | '[' | ']' | '(' | ')' | '{' | '}' | '|' | '^' | '$' => {
                return None;
            }
            letter => text.push(letter),
        }
    }
    Some(text)
}

/// Adds the texts of a profile and of the profiles that it includes, included ones first.
fn add_profile(root: &Root, name: &str, texts: &mut Vec<(PathBuf, String)>, depth: usize) {
    // Reject anything but a single path component.
    if depth > MAX_INCLUDE_DEPTH || name.contains('/') || name.starts_with('.') {
        return;
    }
    let found = FOLDERS.iter().find_map(|folder| {
        let file = PathBuf::from(folder).join(name).join("tuned.conf");
        Some((root.lines_of(&file)?, file))
    });
    let Some((text, file)) = found else { return };
    for include in includes(&text) {
        add_profile(root, &include, texts, depth + 1);
    }
    texts.push((file, text));
}

struct Chosen {
    profile: String,
    /// Whether the TuneD daemon is running.
    running: bool,
    /// Profile files with their texts, included ones first.
    texts: Vec<(PathBuf, String)>,
}

fn chosen(root: &Root) -> Option<Chosen> {
    let profile = root.lines_of("/etc/tuned/active_profile")?.trim().to_owned();
    if profile.is_empty() {
        return None;
    }
    let mut texts = Vec::new();
    for name in profile.split_whitespace() {
        add_profile(root, name, &mut texts, 0);
    }
    let pid = root.lines_of("/run/tuned/tuned.pid");
    let running = pid.is_some_and(|pid| {
        let pid = pid.trim();
        !pid.is_empty() && root.exists(format!("/proc/{pid}/stat"))
    });
    Some(Chosen { profile, running, texts })
}

/// An option of the active profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunedSetting {
    /// The plug-in: `disk`, `sysctl`, `sysfs`, `vm`.
    pub plugin: String,
    pub key: String,
    pub value: String,
    pub place: FileLocation,
    /// Whether TuneD is running.
    pub running: bool,
    pub by_foreread: bool,
}

/// Returns all options of the active profile, those of included profiles first.
pub(super) fn settings(root: &Root) -> Vec<TunedSetting> {
    let Some(Chosen { running, texts, .. }) = chosen(root) else { return Vec::new() };
    let of = |(file, text): &(PathBuf, String)| {
        let mut all = options(file, text);
        all.iter_mut().for_each(|setting| setting.running = running);
        all
    };
    texts.iter().flat_map(of).collect()
}

/// Parses the options in the text of a profile.
pub fn options(file: &std::path::Path, text: &str) -> Vec<TunedSetting> {
    let by_foreread = is_foreread(file, text);
    let mut plugin = String::new();
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some((name, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            plugin = name.to_owned();
        } else if let Some((key, value)) = line.split_once('=') {
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            if key == "type" {
                plugin = value;
                continue;
            }
            let place = FileLocation::new(file, index + 1);
            let plugin = plugin.clone();
            found.push(TunedSetting { plugin, key, value, place, running: false, by_foreread });
        }
    }
    found
}

/// Merges a section: a later profile's options overwrite those of the section with the same name.
fn merge(sections: &mut BTreeMap<String, TunedSection>, section: TunedSection) {
    let known = sections.entry(section.name.clone()).or_default();
    known.name = section.name;
    // As in TuneD, each section resets this option.
    known.disabled = section.disabled;
    known.by_foreread |= section.by_foreread;
    if section.by_property.is_some() {
        known.by_property = section.by_property;
    }
    if section.read_ahead.is_some() {
        known.read_ahead = section.read_ahead;
    }
    if !section.devices.is_empty() {
        known.devices = section.devices;
    }
    known.files.extend(section.files);
}

pub fn includes(text: &str) -> Vec<String> {
    let mut main = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('[') {
            main = line == "[main]";
        } else if main
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "include"
        {
            let names = value.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty());
            return names.map(str::to_owned).collect();
        }
    }
    Vec::new()
}

/// Parses the sections of a profile that concern disks or set read-ahead files in sysfs.
pub fn parse(file: &std::path::Path, text: &str) -> Vec<TunedSection> {
    let by_foreread = is_foreread(file, text);
    let lines: Vec<&str> = text.lines().collect();
    let mut found: Vec<(TunedSection, String)> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some((name, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let section =
                TunedSection { name: name.to_owned(), by_foreread, ..TunedSection::default() };
            found.push((section, name.to_owned()));
            continue;
        }
        let Some((section, plugin)) = found.last_mut() else { continue };
        let Some((key, value)) = line.split_once('=') else { continue };
        let place = FileLocation::new(file, index + 1);
        let value = value.trim();
        match key.trim() {
            "type" => *plugin = value.to_owned(),
            "devices" => {
                section.devices = value
                    .split([',', ' '])
                    .filter(|device| !device.is_empty())
                    .map(str::to_owned)
                    .collect();
            }
            "enabled" => section.disabled = !["true", "True", "1"].contains(&value),
            "devices_udev_regex" => section.by_property = Some(value.to_owned()),
            "readahead" => {
                let comment = comment_above(&lines, index);
                section.read_ahead = Some((amount(value), place, line.to_owned(), comment));
            }
            "readahead_multiply" => {
                let wanted = value.parse().map_or(Wanted::Unknown, Wanted::Times);
                section.read_ahead = Some((wanted, place, line.to_owned(), None));
            }
            key if key.starts_with("/sys/") && key.ends_with("read_ahead_kb") => {
                section.files.push((key.to_owned(), amount(value), place));
            }
            _ => {}
        }
    }
    let concerns =
        |(section, plugin): &(TunedSection, String)| plugin == "disk" || !section.files.is_empty();
    found.into_iter().filter(concerns).map(|(section, _)| section).collect()
}

/// Parses `4096`, `>4096` (only if larger), `<128` (only if smaller), `8192 s` (sectors).
fn amount(value: &str) -> Wanted {
    let value = value.trim();
    let number = value.trim_start_matches(['>', '<']).trim();
    let (digits, unit) = match number.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => number.split_at(at),
        None => (number, ""),
    };
    let Ok(count) = digits.parse::<u64>() else { return Wanted::Unknown };
    let kib = match unit.trim() {
        "" => Kib::new(count),
        "s" if count < 1 << 50 => Sectors::new(count).to_bytes().to_kib_floor(),
        _ => return Wanted::Unknown,
    };
    match value.chars().next() {
        Some('>') => Wanted::AtLeast(kib),
        Some('<') => Wanted::AtMost(kib),
        _ => Wanted::Exactly(kib),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_have_signs_and_units() {
        assert_eq!(amount(">4096"), Wanted::AtLeast(Kib::new(4096)));
        assert_eq!(amount("8192 s"), Wanted::Exactly(Kib::new(4096)));
        assert_eq!(amount("128"), Wanted::Exactly(Kib::new(128)));
        assert_eq!(amount("8 M"), Wanted::Unknown);
        assert_eq!(amount("${x}"), Wanted::Unknown);
    }

    #[test]
    fn sections_of_disks_are_found_whatever_their_names() {
        let text = "[main]\nsummary=x\ninclude=throughput-performance, base\n[disk]\n\
                    # KiB unless there is an s\nreadahead=>4096\n\
                    [fast]\ntype=disk\ndevices=nvme*,!nvme0n1\nreadahead=64\n[cpu]\nreadahead=1\n";
        assert_eq!(includes(text), ["throughput-performance", "base"]);
        let sections = parse(Path::new("/etc/tuned/x/tuned.conf"), text);
        assert_eq!(sections.len(), 2);
        let (wanted, place, ..) = sections[0].read_ahead.clone().unwrap();
        assert_eq!((wanted, place.line), (Wanted::AtLeast(Kib::new(4096)), 6));
        assert_eq!(sections[1].devices, ["nvme*", "!nvme0n1"]);
    }

    #[test]
    fn patterns_without_a_choice_are_understood() {
        assert_eq!(plain(r"ID_SERIAL=a\.b\:c d").as_deref(), Some("ID_SERIAL=a.b:c d"));
        assert_eq!(plain("ID_SERIAL=a.b"), None);
        assert_eq!(plain(r"ID=\d"), None);
        assert_eq!(plain("A=b|C=d"), None);
    }

    #[test]
    fn a_later_profile_s_options_win() {
        let mut sections = BTreeMap::new();
        for text in ["[disk]\nreadahead=>4096\ndevices=sda\n", "[disk]\nreadahead=64\n"] {
            for section in parse(Path::new("/x"), text) {
                merge(&mut sections, section);
            }
        }
        let disk = &sections["disk"];
        assert_eq!(disk.read_ahead.as_ref().unwrap().0, Wanted::Exactly(Kib::new(64)));
        assert_eq!(disk.devices, ["sda"]);
    }

    #[test]
    fn a_disabled_section_is_enabled_by_a_later_one_only() {
        let mut sections = BTreeMap::new();
        let mut add = |text: &str| {
            parse(Path::new("/x"), text).into_iter().for_each(|one| merge(&mut sections, one));
            sections["disk"].clone()
        };
        assert!(!add("[disk]\nreadahead=>4096\n").disabled);
        let disabled = add("[disk]\nenabled=false\n");
        assert!(disabled.disabled && disabled.read_ahead.is_some());
        assert!(add("[mine]\ntype=disk\nreadahead=64\n").disabled);
        assert!(!add("[disk]\nalpm=max_performance\n").disabled);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(\\PC|[\\[\\]=\n><]|readahead=|devices=){0,60}") {
            parse(Path::new("/x"), &text);
            options(Path::new("/x"), &text);
            includes(&text);
        }
    }
}
