//! Lists every open file with its window.
//!
//! The kernel copies `ra_pages` from the bdi into an open file at open, and fadvise changes it
//! there. `/proc` does not show it, but a BPF iterator over the descriptors of all processes does
//! (`bpf_iter` of `task_file`, Linux 5.8 and later).
//!
//! A program may map a file and close its descriptor. Such open files are listed by an iterator
//! over the mappings of a process (`task_vma`, Linux 6.2 and later).
//!
//! A file on overlayfs is read through another open file, on one of the layers, which has no
//! descriptor. That one is listed, with the descriptor of the file on overlayfs: the kernel passes
//! its advice on. Mappings of such files are not listed. Before Linux 6.13, neither is the copy
//! that is read after another process has written to the file: the original is still listed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use host::{BdiId, DevNo, page_size};
use serde::{Deserialize, Serialize};
use units::{Bytes, Pages};

use crate::iterator::{load, over_all, over_process};
use crate::object::{KernelTypes, OPEN_FILES};
use crate::record::{OpenFileRecord, Plain, text};
use crate::{ObserveError, OpenFileId};

/// The size of a read buffer: no read of an iterator returns more (`bpf_seq_read()` in
/// kernel/bpf/bpf_iter.c).
const BUFFER_BYTES: usize = 32 << 10;

const PROGRAM: &str = "list_open_files";
const MAPPED_PROGRAM: &str = "list_mapped_files";

/// Bits of `f_mode` (include/linux/fs.h of the kernel).
const FMODE_READ: u32 = 1 << 0;
const FMODE_WRITE: u32 = 1 << 1;
const FMODE_RANDOM: u32 = 1 << 12;
/// An open file on a layer of overlayfs.
const FMODE_BACKING: u32 = 1 << 25;

/// `S_IFBLK`, the inode type of a block device.
const BLOCK_DEVICE: u32 = 0o060_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    Regular,
    BlockDevice,
}

/// How a process reaches an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Handle {
    Descriptor {
        fd: u32,
    },
    /// A mapping between two addresses. No descriptor of this open file was found.
    Mapping {
        map_start: u64,
        map_end: u64,
    },
}

/// A process that reaches an open file, and how.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    #[serde(flatten)]
    pub handle: Handle,
    /// The command name as in `ps -o comm`: at most fifteen bytes of any value.
    pub comm: String,
    /// The user that the process runs as.
    pub uid: u32,
    /// The cgroup: the inode of its directory in the unified hierarchy.
    pub cgroup: u64,
}

impl Holder {
    /// Returns whether the process reaches the open file through this descriptor.
    pub fn has_descriptor(&self, number: u32) -> bool {
        self.handle == Handle::Descriptor { fd: number }
    }

    /// Returns the link in `/proc` to the file.
    pub fn link(&self) -> String {
        match self.handle {
            Handle::Descriptor { fd } => format!("/proc/{}/fd/{fd}", self.pid),
            Handle::Mapping { map_start, map_end } => {
                format!("/proc/{}/map_files/{map_start:x}-{map_end:x}", self.pid)
            }
        }
    }
}

/// One open file description, which several descriptors may share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFile {
    /// Distinguishes it from all other open files.
    pub id: OpenFileId,
    pub kind: FileKind,
    /// The device of its file system, as in `/proc/self/mountinfo`, or the disk itself. `stat(2)`
    /// reports another one on btrfs.
    pub device: DevNo,
    /// The device of the overlayfs through which it was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlay: Option<DevNo>,
    /// The inode; for a disk, that of the node in `/dev`.
    pub inode: u64,
    /// The bdi that it got its window from.
    pub bdi: Option<BdiId>,
    pub size: Bytes,
    /// The offset of the next `read(2)`.
    pub position: Bytes,
    /// The end of the last read through the cache, `pread(2)` or not; `None` before the first.
    pub previous: Option<Bytes>,
    pub readable: bool,
    pub writable: bool,
    /// Opened with `O_DIRECT`: its reads bypass the cache and read-ahead.
    pub direct: bool,
    pub window: Bytes,
    /// The window that it would have if it were opened now.
    pub bdi_window: Bytes,
    /// Whether it is under `FADV_RANDOM`, which turns read-ahead off for `read(2)`.
    pub random: bool,
    /// The processes that hold it, and how.
    pub holders: Vec<Holder>,
}

impl OpenFile {
    /// Returns whether it is mapped without a descriptor: then its window cannot be changed.
    pub fn is_only_mapped(&self) -> bool {
        let is_mapping = |holder: &Holder| matches!(holder.handle, Handle::Mapping { .. });
        !self.holders.is_empty() && self.holders.iter().all(is_mapping)
    }

    /// Returns the device of its file system, and that of the overlayfs if there is one.
    pub fn mounted_devices(&self) -> Vec<DevNo> {
        [self.device].into_iter().chain(self.overlay).collect()
    }

    /// Returns whether its window differs from that of files that are opened now.
    pub fn differs_from_bdi(&self) -> bool {
        self.window != self.bdi_window
    }
}

/// Selects open files. An empty condition selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenFileFilter {
    pub bdis: BTreeSet<BdiId>,
    /// On one of these devices, as in [`OpenFile::device`].
    pub devices: BTreeSet<DevNo>,
    /// One of these files: device and inode.
    pub files: BTreeSet<(DevNo, u64)>,
    /// Held by one of these processes. The other holders of such a file are listed, too.
    pub pids: BTreeSet<u32>,
    pub ids: Option<BTreeSet<OpenFileId>>,
    pub windows: BTreeSet<Bytes>,
}

impl OpenFileFilter {
    /// Selects all files that are open on a bdi.
    pub fn on_bdi(bdi: &BdiId) -> Self {
        Self { bdis: BTreeSet::from([bdi.clone()]), ..Self::default() }
    }

    /// Returns whether an open file is selected.
    pub fn matches(&self, file: &OpenFile) -> bool {
        let on_bdi = || file.bdi.as_ref().is_some_and(|bdi| self.bdis.contains(bdi));
        let held = || file.holders.iter().any(|holder| self.pids.contains(&holder.pid));
        (self.bdis.is_empty() || on_bdi())
            && (self.devices.is_empty() || self.devices.contains(&file.device))
            && (self.files.is_empty() || self.files.contains(&(file.device, file.inode)))
            && (self.pids.is_empty() || held())
            && self.ids.as_ref().is_none_or(|ids| ids.contains(&file.id))
            && (self.windows.is_empty() || self.windows.contains(&file.window))
    }

    /// Returns whether a descriptor may refer to a selected open file: a cheap first check.
    fn may_match(&self, record: &OpenFileRecord) -> bool {
        let of_them = |ids: &BTreeSet<_>| ids.contains(&OpenFileId::new(record.file));
        let window = Pages::new(u64::from(record.ra_pages)).to_bytes(page_size());
        self.ids.as_ref().is_none_or(of_them)
            && (self.windows.is_empty() || self.windows.contains(&window))
            && (self.devices.is_empty() || self.devices.contains(&device(record.device)))
    }
}

/// Lists the open files that `filter` selects, in a fixed order.
///
/// Loading the program takes longer than running it: use a [`Census`] for repeated calls.
pub fn open_files(filter: &OpenFileFilter) -> Result<Vec<OpenFile>, ObserveError> {
    Census::load()?.open_files(filter)
}

/// The iterators over open files, loaded and ready to run. Clones share the same programs.
#[derive(Clone, Debug)]
pub struct Census {
    descriptors: Arc<OwnedFd>,
    /// `None` before Linux 6.2, or if the kernel rejects it: most files have descriptors.
    mappings: Option<Arc<OwnedFd>>,
}

impl Census {
    /// Loads the iterators. They have no cost until they are run.
    pub fn load() -> Result<Self, ObserveError> {
        Self::fitted(&KernelTypes::read()?)
    }

    /// As [`Census::load`], with kernel types that were already read.
    pub fn fitted(types: &KernelTypes) -> Result<Self, ObserveError> {
        let descriptors = load(OPEN_FILES, types, PROGRAM, "task_file")?;
        // Without this member, which came as a fix in Linux 6.2, a process that exits while its
        // mappings are listed makes the kernel crash.
        let mappings = types
            .has_member("bpf_iter_seq_task_vma_info", "mm")
            .then(|| load(OPEN_FILES, types, MAPPED_PROGRAM, "task_vma").ok())
            .flatten();
        Ok(Self { descriptors: Arc::new(descriptors), mappings: mappings.map(Arc::new) })
    }

    /// Lists the open files that `filter` selects, in a fixed order: by bdi, file, holders.
    ///
    /// The list is not a snapshot: a file that is opened or closed meanwhile may be listed or
    /// not, and one that is passed between processes may be listed with too few holders.
    pub fn open_files(&self, filter: &OpenFileFilter) -> Result<Vec<OpenFile>, ObserveError> {
        let mut found = Found::new(filter, None);
        let listed = over_all(self.descriptors.as_fd()).and_then(|output| found.add(output));
        listed.map_err(|source| ObserveError::Read { program: PROGRAM, source })?;
        Ok(found.selected())
    }

    /// Lists the open files of one process, without other holders: much faster than listing all.
    pub fn of_process(&self, pid: u32) -> Result<Vec<OpenFile>, ObserveError> {
        self.of_processes(&BTreeSet::from([pid]), &OpenFileFilter::default())
    }

    /// Lists the open files of these processes that `filter` selects, without other holders, in the
    /// same order as [`Census::open_files`].
    pub fn of_processes(
        &self,
        pids: &BTreeSet<u32>,
        filter: &OpenFileFilter,
    ) -> Result<Vec<OpenFile>, ObserveError> {
        let mut found = Found::new(filter, Some(pids));
        let mut each = pids.iter().map(|pid| over_process(self.descriptors.as_fd(), *pid));
        let listed = match each.try_for_each(|output| found.add_of_process(output)) {
            // Kernels before 6.1 cannot select a process, and reject the option with these errors.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::E2BIG)) => {
                over_all(self.descriptors.as_fd()).and_then(|output| found.add(output))
            }
            listed => listed,
        };
        listed.map_err(|source| ObserveError::Read { program: PROGRAM, source })?;
        Ok(found.selected())
    }

    /// Lists the files that a process has mapped and that `filter` selects, without other holders.
    /// Programs and libraries, of which a part is mapped as code, are left out. Before Linux 6.2,
    /// the list is empty.
    pub fn mapped_files(
        &self,
        pid: u32,
        filter: &OpenFileFilter,
    ) -> Result<Vec<OpenFile>, ObserveError> {
        let Some(program) = &self.mappings else { return Ok(Vec::new()) };
        let pids = BTreeSet::from([pid]);
        let mut found = Found::new(filter, Some(&pids));
        let listed = found.add_of_process(over_process(program.as_fd(), pid));
        listed.map_err(|source| ObserveError::Read { program: MAPPED_PROGRAM, source })?;
        let Found { files, code, .. } = &mut found;
        files.retain(|key, _| !code.contains(key));
        Ok(found.selected())
    }
}

/// The open files that an iterator lists. Keeps only those that `filter` may select: a machine may
/// have hundreds of thousands.
struct Found<'a> {
    filter: &'a OpenFileFilter,
    /// If set, other holders are ignored.
    pids: Option<&'a BTreeSet<u32>>,
    files: BTreeMap<FoundKey, OpenFile>,
    /// Files that are partly mapped as code.
    code: BTreeSet<FoundKey>,
}

/// Address, device and inode, because the kernel may reuse an address during the listing.
type FoundKey = (u64, u32, u64);

impl<'a> Found<'a> {
    fn new(filter: &'a OpenFileFilter, pids: Option<&'a BTreeSet<u32>>) -> Self {
        Self { filter, pids, files: BTreeMap::new(), code: BTreeSet::new() }
    }

    fn add(&mut self, mut output: impl Read) -> io::Result<()> {
        const RECORD_SIZE: usize = size_of::<OpenFileRecord>();
        let (mut buffer, mut filled) = (vec![0; BUFFER_BYTES], 0);
        loop {
            let read = match output.read(&mut buffer[filled..]) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            filled += read;
            let whole = filled - filled % RECORD_SIZE;
            let records = buffer[..whole].chunks_exact(RECORD_SIZE);
            records.filter_map(OpenFileRecord::read).for_each(|record| self.add_record(&record));
            buffer.copy_within(whole..filled, 0);
            filled -= whole;
        }
    }

    /// Adds the files of one process. A process that has exited has none.
    fn add_of_process(&mut self, output: io::Result<File>) -> io::Result<()> {
        match output.and_then(|output| self.add(output)) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            listed => listed,
        }
    }

    fn add_record(&mut self, record: &OpenFileRecord) {
        let is_of_others = self.pids.is_some_and(|pids| !pids.contains(&record.pid));
        if !self.filter.may_match(record) || is_of_others {
            return;
        }
        let (map_start, map_end) = (record.map_start, record.map_end);
        let is_mapping = map_end != 0;
        if is_mapping && record.mode & FMODE_BACKING != 0 {
            return;
        }
        let key = (record.file, record.device, record.inode);
        if record.executable != 0 {
            self.code.insert(key);
        }
        let file = self.files.entry(key).or_insert_with(|| open_file(record));
        // A file may be mapped in thousands of pieces, of which one is enough to reach it.
        if is_mapping && file.holders.iter().any(|holder| holder.pid == record.pid) {
            return;
        }
        file.holders.push(Holder {
            pid: record.pid,
            handle: if is_mapping {
                Handle::Mapping { map_start, map_end }
            } else {
                Handle::Descriptor { fd: record.fd }
            },
            comm: text(&record.comm),
            uid: record.uid,
            cgroup: record.cgroup,
        });
    }

    /// Returns the selected files in order.
    fn selected(self) -> Vec<OpenFile> {
        let filter = self.filter;
        let files = self.files.into_values();
        let mut files: Vec<OpenFile> = files.filter(|file| filter.matches(file)).collect();
        for file in &mut files {
            file.holders.sort();
            // A process is listed once for each of its threads if they share no descriptors.
            file.holders.dedup();
        }
        files.sort_by(|a, b| {
            let key = |file: &OpenFile| (file.device, file.inode);
            (&a.bdi, key(a), &a.holders).cmp(&(&b.bdi, key(b), &b.holders))
        });
        files
    }
}

fn open_file(record: &OpenFileRecord) -> OpenFile {
    let pages = |pages: u32| Pages::new(u64::from(pages)).to_bytes(page_size());
    let direct = i32::try_from(record.flags).is_ok_and(|flags| flags & libc::O_DIRECT != 0);
    OpenFile {
        id: OpenFileId::new(record.file),
        kind: match record.kind {
            BLOCK_DEVICE => FileKind::BlockDevice,
            _ => FileKind::Regular,
        },
        device: device(record.device),
        overlay: (record.overlay != 0).then(|| device(record.overlay)),
        inode: record.inode,
        bdi: BdiId::new(&text(&record.bdi)),
        size: Bytes::new(record.size_bytes),
        position: Bytes::new(record.position_bytes),
        previous: i64::try_from(record.previous_bytes).ok().map(|at| Bytes::new(at.unsigned_abs())),
        readable: record.mode & FMODE_READ != 0,
        writable: record.mode & FMODE_WRITE != 0,
        direct,
        window: pages(record.ra_pages),
        bdi_window: pages(record.bdi_ra_pages),
        random: record.mode & FMODE_RANDOM != 0,
        holders: Vec::new(),
    }
}

/// Converts the kernel's internal `dev_t`: 12 bits major, 20 bits minor, unlike in system calls.
pub(crate) fn device(dev: u32) -> DevNo {
    DevNo { major: dev >> 20, minor: dev & 0xf_ffff }
}
