//! Directories, and the orders in which programs read their files.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// The inode and the name of a regular file.
pub type ListedFile = (u64, OsString);

/// Returns the inodes of the files of these directories in each order in which a program may read
/// them: as listed, by name or by inode. The last order is that of the names in the first
/// directory, backward.
pub fn reading_orders(directories: &[&[ListedFile]]) -> Vec<Vec<u64>> {
    let first = &directories[..directories.len().min(1)];
    vec![
        in_order(directories, |_, _| Ordering::Equal),
        in_order(directories, |a, b| a.1.cmp(&b.1)),
        in_order(directories, |a, b| a.0.cmp(&b.0)),
        in_order(first, |a, b| b.1.cmp(&a.1)),
    ]
}

/// Returns the inodes of the files of these directories, sorted by `compare` within each directory.
fn in_order(
    directories: &[&[ListedFile]],
    compare: impl Fn(&ListedFile, &ListedFile) -> Ordering,
) -> Vec<u64> {
    let sorted = directories.iter().flat_map(|directory| {
        let mut files: Vec<&ListedFile> = directory.iter().collect();
        files.sort_by(|a, b| compare(a, b));
        files.into_iter().map(|(inode, _)| *inode)
    });
    sorted.collect()
}

/// The directories that were listed on a device, one after another. If a single reader goes through
/// a tree, they show its way.
#[derive(Clone, Debug, Default)]
pub struct TreeWalk {
    before: PathBuf,
}

impl TreeWalk {
    /// Goes on to a directory. Returns the name of the one before, if both have the same parent.
    pub fn go(&mut self, directory: &Path) -> Option<OsString> {
        let before = std::mem::replace(&mut self.before, directory.to_owned());
        let parent = before.parent().filter(|_| before != directory)?;
        (directory.parent() == Some(parent)).then(|| before.file_name())?.map(OsStr::to_owned)
    }
}

/// Returns the directories that follow `own` for a reader that came from `before`: as their parent
/// lists them in `names`, or by name if there are fewer between these two by name.
pub fn next_directories(names: Vec<OsString>, before: &OsStr, own: &OsStr) -> Vec<OsString> {
    let mut named = names.clone();
    named.sort();
    let distance = |names: &[OsString]| {
        let place = |name| names.iter().position(|one| one == name);
        place(own)?.checked_sub(place(before)?)
    };
    let by_name = distance(&named);
    let is_by_name = by_name.is_some() && distance(&names).is_none_or(|one| Some(one) > by_name);
    let names = if is_by_name { named } else { names };
    let own = names.iter().position(|name| name == own);
    names.into_iter().skip(own.map_or(0, |own| own + 1)).collect()
}

/// Directories as they list their entries, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedTree {
    /// The regular files in each directory.
    pub files: BTreeMap<PathBuf, Vec<ListedFile>>,
    /// The directories in each directory.
    pub directories: BTreeMap<PathBuf, Vec<OsString>>,
}

impl ListedTree {
    /// Returns the inodes of the files in a directory, in each order in which a program may read
    /// them. For a reader that came from `before`, the files in the next directories follow.
    pub fn reading_orders(&self, directory: &Path, before: Option<&OsStr>) -> Vec<Vec<u64>> {
        let own = self.files.get(directory).map_or(&[][..], Vec::as_slice);
        let next = before.map(|before| self.next_directories(directory, before));
        reading_orders(&[vec![own], next.unwrap_or_default()].concat())
    }

    /// Returns the files of the directories that follow one for a reader that came from `before`.
    pub fn next_directories(&self, directory: &Path, before: &OsStr) -> Vec<&[ListedFile]> {
        let Some((above, own)) = directory.parent().zip(directory.file_name()) else {
            return Vec::new();
        };
        let names = self.directories.get(above).cloned().unwrap_or_default();
        let next = next_directories(names, before, own).into_iter();
        next.filter_map(|name| Some(self.files.get(&above.join(name))?.as_slice())).collect()
    }
}

/// The directories of the files of a simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTree {
    pub listed: ListedTree,
    directories: HashMap<FileId, PathBuf>,
    files: HashMap<u64, FileId>,
}

impl FileTree {
    /// Creates a tree with these files of the simulation, each with its directory and its inode.
    /// Other files of the directories are never read.
    pub fn new(
        listed: ListedTree,
        files: impl IntoIterator<Item = (FileId, PathBuf, u64)>,
    ) -> Self {
        let mut tree = Self { listed, ..Self::default() };
        for (file, directory, inode) in files {
            tree.directories.insert(file, directory);
            tree.files.insert(inode, file);
        }
        tree
    }

    /// Returns the directory of a file; `None` if it is unknown.
    pub fn directory(&self, file: FileId) -> Option<&Path> {
        self.directories.get(&file).map(PathBuf::as_path)
    }

    /// Returns the file with this inode; `None` if no reader of the simulation reads it.
    pub fn file(&self, inode: u64) -> Option<FileId> {
        self.files.get(&inode).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: [(u64, &str); 2]) -> Vec<ListedFile> {
        names.map(|(inode, name)| (inode, OsString::from(name))).to_vec()
    }

    #[test]
    fn files_are_read_as_listed_by_name_by_inode_or_backward() {
        let orders = reading_orders(&[&files([(2, "a"), (1, "b")])]);
        assert_eq!(orders, [[2, 1], [2, 1], [1, 2], [1, 2]]);
    }

    #[test]
    fn directories_follow_as_listed_or_by_name() {
        let next = |names: &[&str], before: &str, own: &str| {
            let names = names.iter().map(OsString::from).collect();
            next_directories(names, before.as_ref(), own.as_ref())
        };
        let listed = ["d", "b", "a", "c", "e"];
        assert_eq!(next(&listed, "d", "b"), ["a", "c", "e"], "as listed");
        assert_eq!(next(&listed, "a", "b"), ["c", "d", "e"], "by name");
        assert_eq!(next(&listed, "d", "a"), ["c", "e"], "backward by name");
        assert_eq!(next(&listed, "b", "d"), ["e"], "one between them by name, none as listed");
        assert_eq!(next(&listed, "e", "d"), ["b", "a", "c", "e"], "in neither order");
        assert_eq!(next(&[], "a", "b"), Vec::<OsString>::new());
    }

    #[test]
    fn a_tree_lists_a_directory_with_those_that_follow() {
        let mut listed = ListedTree::default();
        listed.directories.insert("/t".into(), ["a", "c", "b"].map(OsString::from).to_vec());
        for (path, inode) in [("/t/a", 10), ("/t/b", 20), ("/t/c", 30)] {
            listed.files.insert(path.into(), files([(inode + 1, "2"), (inode, "1")]));
        }
        let tree = FileTree::new(listed, [(FileId(0), PathBuf::from("/t/c"), 30)]);
        let own = tree.directory(FileId(0)).unwrap();
        assert_eq!(tree.listed.reading_orders(own, None)[0], [31, 30]);
        let orders = tree.listed.reading_orders(own, Some("a".as_ref()));
        assert_eq!(orders[0], [31, 30, 21, 20], "as listed");
        assert_eq!(orders[1], [30, 31, 20, 21], "the files by name");
        assert_eq!((tree.directory(FileId(1)), tree.file(30)), (None, Some(FileId(0))));
        assert_eq!(tree.file(31), None);
    }

    #[test]
    fn reading_in_a_sibling_directory_is_walking_a_tree() {
        let mut walk = TreeWalk::default();
        let mut go = |path: &str| walk.go(path.as_ref());
        assert_eq!(go("/srv"), None, "no directory was read before");
        assert_eq!([go("/srv/a"), go("/srv/a")], [None, None], "no other directory beside it");
        assert_eq!([go("/srv/b"), go("/srv/c")], ["a", "b"].map(|name| Some(name.into())));
        assert_eq!([go("/home/b"), go("/srv/b/c")], [None, None]);
    }
}
