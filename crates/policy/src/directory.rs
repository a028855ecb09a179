//! Directories, and the orders in which programs read their files.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// The inode and the name of a regular file.
pub type ListedFile = (u64, OsString);

/// A directory and its regular files, in the order in which it lists them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedDirectory {
    pub name: OsString,
    /// True if the parent lists it after the directory whose siblings are wanted.
    pub is_listed_later: bool,
    pub files: Vec<ListedFile>,
}

/// Returns the inodes of the files of a directory and of its siblings in each order in which a
/// program may read them. Files are ordered as listed, by name or by inode; directories as listed
/// or by name. The last order is that of the names of the directory's own files, backward.
pub fn reading_orders(own: &ListedDirectory, siblings: &[&ListedDirectory]) -> Vec<Vec<u64>> {
    let mut named = siblings.to_vec();
    named.retain(|sibling| sibling.name > own.name);
    named.sort_by(|a, b| a.name.cmp(&b.name));
    let listed = siblings.iter().copied().filter(|sibling| sibling.is_listed_later).collect();
    // Without siblings, both orders are the same.
    let following = if siblings.is_empty() { vec![listed] } else { vec![listed, named] };
    let orders = following.into_iter().flat_map(|following| {
        let directories: Vec<_> = std::iter::once(own).chain(following).collect();
        [
            in_order(&directories, |_, _| Ordering::Equal),
            in_order(&directories, |a, b| a.1.cmp(&b.1)),
            in_order(&directories, |a, b| a.0.cmp(&b.0)),
        ]
    });
    orders.chain([in_order(&[own], |a, b| b.1.cmp(&a.1))]).collect()
}

/// Returns the inodes of the files of these directories, sorted by `compare` within each directory.
fn in_order(
    directories: &[&ListedDirectory],
    compare: impl Fn(&ListedFile, &ListedFile) -> Ordering,
) -> Vec<u64> {
    let sorted = directories.iter().flat_map(|directory| {
        let mut files: Vec<&ListedFile> = directory.files.iter().collect();
        files.sort_by(|a, b| compare(a, b));
        files.into_iter().map(|(inode, _)| *inode)
    });
    sorted.collect()
}

/// Returns the names of the directories that follow `own` among those that their parent lists: the
/// later ones, each with true, then the earlier ones that follow by name.
pub fn following_siblings(names: Vec<OsString>, own: &OsString) -> Vec<(OsString, bool)> {
    let mut names = names;
    let at = names.iter().position(|name| name == own).map_or(0, |at| at + 1);
    let later = names.split_off(at).into_iter().map(|name| (name, true));
    let by_name = names.into_iter().filter(|name| name > own).map(|name| (name, false));
    later.chain(by_name).collect()
}

/// Returns whether a reader that read in `before` and then in `directory` walks through a tree:
/// both directories have the same parent.
pub fn is_next_in_tree(before: &Path, directory: &Path) -> bool {
    before != directory && before.parent().is_some_and(|above| directory.parent() == Some(above))
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
    /// Returns the inodes of the files in a directory, and with `with_siblings` of those in the
    /// directories that follow it in its parent, in each order in which a program may read them.
    pub fn reading_orders(&self, directory: &Path, with_siblings: bool) -> Vec<Vec<u64>> {
        let name = directory.file_name().unwrap_or_default().to_owned();
        let siblings = if with_siblings { self.siblings(directory) } else { Vec::new() };
        let files = self.files.get(directory).cloned().unwrap_or_default();
        let own = ListedDirectory { name, is_listed_later: false, files };
        reading_orders(&own, &siblings.iter().collect::<Vec<_>>())
    }

    /// Returns the number of directories that follow a directory in its parent.
    pub fn followers(&self, directory: &Path) -> u64 {
        self.siblings(directory).len() as u64
    }

    fn siblings(&self, directory: &Path) -> Vec<ListedDirectory> {
        let Some(above) = directory.parent() else { return Vec::new() };
        let name = directory.file_name().unwrap_or_default().to_owned();
        let names = self.directories.get(above).cloned().unwrap_or_default();
        let following = following_siblings(names, &name).into_iter();
        let siblings = following.filter_map(|(name, is_listed_later)| {
            let files = self.files.get(&above.join(&name))?.clone();
            Some(ListedDirectory { name, is_listed_later, files })
        });
        siblings.collect()
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
        let own = ListedDirectory { files: files([(2, "a"), (1, "b")]), ..Default::default() };
        let orders = reading_orders(&own, &[]);
        assert_eq!(orders, [[2, 1], [2, 1], [1, 2], [1, 2]]);
    }

    #[test]
    fn directories_follow_as_listed_or_by_name() {
        let names = ["d", "b", "a", "c"].map(OsString::from).to_vec();
        let following = following_siblings(names, &"b".into());
        let expected = [("a", true), ("c", true), ("d", false)];
        assert_eq!(following, expected.map(|(name, later)| (OsString::from(name), later)));
        assert_eq!(following_siblings(Vec::new(), &"b".into()), []);
    }

    #[test]
    fn a_tree_lists_a_directory_with_its_siblings() {
        let mut listed = ListedTree::default();
        listed.directories.insert("/t".into(), ["a", "c", "b"].map(OsString::from).to_vec());
        for (path, inode) in [("/t/a", 10), ("/t/b", 20), ("/t/c", 30)] {
            listed.files.insert(path.into(), files([(inode + 1, "2"), (inode, "1")]));
        }
        let tree = FileTree::new(listed, [(FileId(0), PathBuf::from("/t/a"), 10)]);
        let own = tree.directory(FileId(0)).unwrap();
        assert_eq!(tree.listed.reading_orders(own, false)[0], [11, 10]);
        let orders = tree.listed.reading_orders(own, true);
        assert_eq!(orders[0], [11, 10, 31, 30, 21, 20], "all as listed");
        assert_eq!(orders[4], [10, 11, 20, 21, 30, 31], "all by name");
        assert_eq!((tree.directory(FileId(1)), tree.file(10)), (None, Some(FileId(0))));
        assert_eq!(tree.file(11), None);
    }

    #[test]
    fn reading_in_a_sibling_directory_is_walking_a_tree() {
        let is_next = |a: &str, b: &str| is_next_in_tree(Path::new(a), Path::new(b));
        assert!(is_next("/srv/a", "/srv/b"));
        assert!(!is_next("/srv/a", "/srv/a"), "the same directory");
        assert!(!is_next("/srv/a", "/home/b") && !is_next("/srv/a", "/srv/b/c"));
        assert!(!is_next("", "/srv"), "no directory was read before");
    }
}
