//! The built-in data on vendors' recommendations.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::VendorAdvice;

pub const COLLECTED: &str = "2026";

const ADVICE: &str = include_str!("../../data/vendor-recommendations.csv");
const MATCHING: &str = include_str!("../../data/matching.toml");

/// A row of the file, with what is derived from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VendorPreset {
    pub workload: String,
    /// The vendor or the software that the recommendation is about.
    pub software: String,
    pub device: String,
    /// The text of the column `recommended_kib`.
    pub recommended_kib: String,
    /// The parsed value of that column.
    #[serde(skip_deserializing)]
    pub advice: VendorAdvice,
    pub condition: String,
    pub source_title: String,
    pub source_ref: String,
    /// The year of the source; `None` if unknown.
    pub year: Option<u16>,
    /// The index of the preset's group in [`groups`].
    #[serde(skip)]
    pub group: Option<usize>,
}

/// A group of related recommendations, and how to detect their software.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Group {
    pub name: String,
    /// Words that identify the rows of this group.
    pub rows: Vec<String>,
    pub processes: Vec<String>,
    pub packages: Vec<String>,
    pub data: Vec<String>,
    /// Directory patterns whose `*` stands for the installed version.
    pub versions: Vec<String>,
    pub version_files: Vec<String>,
    pub fstypes: Vec<String>,
    /// Words in mount sources, for file system types that are ambiguous.
    pub sources: Vec<String>,
    /// The range of the number that the vendor states in sectors.
    pub sectors: Option<(u64, u64)>,
    pub csi: Option<String>,
    /// True if the advice applies to all disks of a machine that runs the software.
    pub all_disks: bool,
    /// True if the advice applies to md arrays.
    pub md: bool,
}

#[derive(Debug, Deserialize)]
struct Matching {
    group: Vec<Group>,
}

/// The range of a number that a vendor states in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sectors {
    pub low: u64,
    pub high: u64,
}

impl VendorPreset {
    /// Returns the software versions that the preset applies to, as in `PostgreSQL 17/18`; empty if
    /// it names none.
    pub fn versions(&self) -> Vec<u32> {
        let last = self.software.split(' ').next_back().unwrap_or_default();
        let versions: Option<Vec<u32>> = last.split('/').map(|part| part.parse().ok()).collect();
        versions.unwrap_or_default()
    }

    pub fn group(&self) -> Option<&'static Group> {
        groups().get(self.group?)
    }

    /// Returns the number that the vendor states in sectors.
    pub fn in_sectors(&self) -> Option<Sectors> {
        let (low, high) = self.group()?.sectors?;
        // Only for rows that are derived from such a number.
        (self.condition.contains("ectors") && !self.outdated()).then_some(Sectors { low, high })
    }

    /// Returns whether the preset is about a device's `read_ahead_kb`. False for a buffer of the
    /// software and for other units.
    pub fn about_device(&self) -> bool {
        let own = |text: &str| text.contains("(own") || text.contains("own read-ahead");
        let elsewhere = ["client buffer", "userspace", "llite", "page server"];
        !own(&self.software)
            && !own(&self.device)
            && !elsewhere.iter().any(|word| self.device.contains(word))
            && !self.software.starts_with("FreeBSD")
    }

    /// Returns whether the recommendation was withdrawn or never adopted.
    pub fn outdated(&self) -> bool {
        let all = format!("{} {}", self.software, self.condition);
        ["superseded", "unmerged", "versus"].iter().any(|word| all.contains(word))
            || self.software.starts_with("DataStax Cassandra")
    }
}

/// Returns all recommendations, in the order of the file.
pub fn all() -> &'static [VendorPreset] {
    static ALL: OnceLock<Vec<VendorPreset>> = OnceLock::new();
    ALL.get_or_init(|| read(ADVICE))
}

pub fn groups() -> &'static [Group] {
    static GROUPS: OnceLock<Vec<Group>> = OnceLock::new();
    GROUPS.get_or_init(|| {
        toml::from_str::<Matching>(MATCHING).map(|matching| matching.group).unwrap_or_default()
    })
}

/// Returns the recommendations for a word of the command line: those of the group with this name
/// or, if there is none, those with the word in the software or workload.
pub fn named(word: &str) -> Vec<&'static VendorPreset> {
    let word = word.to_lowercase();
    let group = groups().iter().position(|group| group.name == word);
    let fits = |preset: &&VendorPreset| match group {
        Some(group) => preset.group == Some(group),
        None => {
            preset.software.to_lowercase().contains(&word)
                || preset.workload.to_lowercase().contains(&word)
        }
    };
    all().iter().filter(fits).collect()
}

/// Parses recommendations from CSV. Skips invalid rows; a test checks that there are none.
fn read(text: &str) -> Vec<VendorPreset> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let rows = reader.deserialize::<VendorPreset>().flatten();
    rows.map(|row| {
        let text = format!("{} {} {}", row.software, row.workload, row.source_title);
        let is_about = |group: &Group| group.rows.iter().any(|word| text.contains(word));
        let group = groups().iter().position(is_about);
        VendorPreset { advice: VendorAdvice::parse(&row.recommended_kib), group, ..row }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read_and_cited() {
        let rows = ADVICE.lines().count() - 1;
        assert_eq!(all().len(), rows);
        for preset in all() {
            assert!(!preset.source_ref.is_empty() && !preset.source_title.is_empty(), "{preset:?}");
        }
    }

    #[test]
    fn matching_is_sound() {
        let matching: Matching = toml::from_str(MATCHING).unwrap();
        for group in &matching.group {
            assert!(!group.name.is_empty() && !group.rows.is_empty(), "{group:?}");
            assert!(
                all().iter().any(|preset| preset.group().is_some_and(|g| g.name == group.name)),
                "no row is about {}",
                group.name
            );
        }
    }

    #[test]
    fn versions_are_read_from_the_software() {
        let of = |word: &str| -> Vec<u32> {
            all()
                .iter()
                .filter(|preset| preset.software == word)
                .flat_map(VendorPreset::versions)
                .collect()
        };
        assert_eq!(of("PostgreSQL 17/18"), [17, 18]);
        let dated = ["Azure Blob NFS 3.0", "Linux >= 6.17", "Android (Pixel 1/2)"];
        assert!(dated.iter().all(|word| of(word).is_empty()));
    }

    #[test]
    fn names_find_groups_and_words() {
        assert!(named("mongodb").len() >= 3, "the vendor's own and others' profiles");
        assert!(!named("Greenplum").is_empty());
        assert!(named("no such thing").is_empty());
        let mongodb = named("mongodb").into_iter().find(|preset| preset.in_sectors().is_some());
        assert_eq!(mongodb.unwrap().in_sectors(), Some(Sectors { low: 8, high: 32 }));
    }

    #[test]
    fn what_is_no_device_s_is_told_apart() {
        let device = |word: &str| named(word).iter().any(|preset| preset.about_device());
        assert!(device("mongodb") && device("nfs"));
        assert!(!device("hdfs datanode") && !device("freebsd"));
    }
}
