//! sysctl.conf(5) and sysctl.d(5). Linux has no sysctl for read-ahead; FreeBSD has `vfs.read_max`.
//! Related settings such as `vm.dirty_bytes` are reported as well.

use std::path::{Path, PathBuf};

use super::FileLocation;
use super::places::drop_ins;
use crate::Root;

const FOLDERS: &[&str] =
    &["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysctlLine {
    pub name: String,
    pub value: String,
    pub place: FileLocation,
}

/// Reads all files in the order of their application: later lines overwrite earlier ones.
pub fn read(root: &Root) -> Vec<SysctlLine> {
    let mut files = drop_ins(root, FOLDERS, ".conf");
    files.push(PathBuf::from("/etc/sysctl.conf"));
    let texts = files.iter().filter_map(|file| Some((file, root.lines_of(file)?)));
    texts.flat_map(|(file, text)| parse(file, &text)).collect()
}

/// Parses one file; invalid lines are skipped.
pub fn parse(file: &Path, text: &str) -> Vec<SysctlLine> {
    let line = |(index, line): (usize, &str)| {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            return None;
        }
        let (name, value) = line.split_once('=')?;
        // A dash before the name ignores errors; slashes may replace dots.
        let name = name.trim().trim_start_matches('-').trim();
        let sound = !name.is_empty() && !name.contains(char::is_whitespace);
        sound.then(|| SysctlLine {
            name: if name.contains('.') && !name.contains('/') {
                name.to_owned()
            } else {
                name.replace('/', ".")
            },
            value: value.trim().trim_matches('"').to_owned(),
            place: FileLocation::new(file, index + 1),
        })
    };
    text.lines().enumerate().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_have_dots_and_lines_have_numbers() {
        let text =
            "# c\n; c\n-vm.dirty_ratio = 10\nvm/dirty_bytes=\"5\"\nnonsense\nvfs.read_max=128";
        let lines = parse(Path::new("/etc/sysctl.conf"), text);
        let shown: Vec<_> =
            lines.iter().map(|l| (l.name.as_str(), l.value.as_str(), l.place.line)).collect();
        assert_eq!(
            shown,
            [("vm.dirty_ratio", "10", 3), ("vm.dirty_bytes", "5", 4), ("vfs.read_max", "128", 6)]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC*") {
            parse(Path::new("/etc/sysctl.conf"), &text);
        }
    }
}
