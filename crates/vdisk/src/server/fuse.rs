//! The FUSE file system: a directory with one file, the disk.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, WriteFlags,
};
use model::{RequestKind, Spec, SpecError};
use sys::sparse::Refused;
use tracing::warn;
use units::Bytes;

use super::engine::{DueReply, ServiceEngine, TimedRequest};
use super::store::BlockStore;
use crate::layout::DISK_FILE;
use crate::loop_device::LARGEST_REQUEST;

/// Maximum number of concurrent requests from the kernel. The default of 12 would limit the queue
/// depth of every model; this exceeds what any loop device sends.
const MAX_BACKGROUND: u16 = 512;

/// The file's attributes never change.
const ENTRY_TTL: Duration = Duration::from_secs(1 << 30);

const ROOT: INodeNo = INodeNo::ROOT;
const DISK: INodeNo = INodeNo(2);

/// A pending reply with the parameters that it needs.
#[derive(Debug)]
pub(crate) enum ReplyToken {
    Read { reply: ReplyData, offset: Bytes, length: Bytes },
    Write { reply: ReplyWrite, length: u32 },
    Flush { reply: ReplyEmpty },
}

/// The disk, which the threads of the server share.
#[derive(Debug)]
pub(crate) struct DiskFile {
    pub(crate) engine: ServiceEngine<ReplyToken>,
    pub(crate) store: BlockStore,
    pub(crate) model: Spec,
    /// The seed of the next device; another for each, as every trial is to be a new sample.
    pub(crate) seed: AtomicU64,
}

thread_local! {
    /// Each FUSE thread reuses its vector to avoid allocations.
    static DUE: RefCell<Vec<DueReply<ReplyToken>>> = RefCell::new(Vec::with_capacity(64));
}

impl DiskFile {
    pub(crate) fn reset(&self) -> Result<(), SpecError> {
        let device = self.model.build(self.seed.fetch_add(1, Ordering::Relaxed))?;
        self.change(|engine, due| engine.reset(device, due));
        Ok(())
    }

    pub(crate) fn answer(&self, due: DueReply<ReplyToken>) {
        match due.token {
            ReplyToken::Read { reply, offset, length } => self.answer_read(reply, offset, length),
            ReplyToken::Write { reply, length } => reply.written(length),
            ReplyToken::Flush { reply } => reply.ok(),
        }
        self.engine.answered(due.times);
    }

    /// Sends data directly from the disk's memory; the kernel copies it.
    fn answer_read(&self, reply: ReplyData, offset: Bytes, length: Bytes) {
        let mut reply = Some(reply);
        let send = |bytes: &[u8]| reply.take().map(|reply| reply.data(bytes));
        self.store.read(offset, length, send);
        // The reply was not used if the range could not be read.
        if let Some(reply) = reply {
            reply.error(Errno::EIO);
        }
    }

    /// Changes the engine, and sends all replies that become due.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&ServiceEngine<ReplyToken>, &mut Vec<DueReply<ReplyToken>>),
    ) {
        let mut due = Vec::new();
        change(&self.engine, &mut due);
        due.into_iter().for_each(|due| self.answer(due));
    }

    fn submit(&self, ask: TimedRequest, token: ReplyToken) {
        DUE.with_borrow_mut(|due| {
            self.engine.submit(ask, token, due);
            for ready in due.drain(..) {
                self.answer(ready);
            }
        });
    }
}

#[derive(Debug)]
pub(crate) struct DiskFs {
    disk: Arc<DiskFile>,
    born: SystemTime,
}

impl DiskFs {
    pub(crate) fn new(disk: Arc<DiskFile>) -> Self {
        Self { disk, born: SystemTime::now() }
    }

    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_disk = inode == DISK;
        let size = if is_disk { self.disk.store.size() } else { Bytes::ZERO };
        FileAttr {
            ino: inode,
            size: size.get(),
            blocks: size.to_sectors_floor().get(),
            atime: self.born,
            mtime: self.born,
            ctime: self.born,
            crtime: self.born,
            kind: if is_disk { FileType::RegularFile } else { FileType::Directory },
            perm: if is_disk { 0o600 } else { 0o700 },
            nlink: if is_disk { 1 } else { 2 },
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for DiskFs {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let refused = |value: u32| io::Error::other(format!("FUSE allows {value} only"));
        let small = |value: u16| refused(value.into());
        // Asynchronous direct I/O lets the loop device send further requests before a reply.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|_| io::Error::other("this kernel's FUSE has no asynchronous direct I/O"))?;
        config.set_max_write(LARGEST_REQUEST.get() as u32).map_err(refused)?;
        config.set_max_background(MAX_BACKGROUND).map_err(small)?;
        config.set_congestion_threshold(MAX_BACKGROUND).map_err(small)?;
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == ROOT && name == DISK_FILE {
            reply.entry(&ENTRY_TTL, &self.attributes(DISK), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&ENTRY_TTL, &self.attributes(ino));
    }

    fn open(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if ino != DISK {
            return reply.error(Errno::EISDIR);
        }
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let (offset, length) = (Bytes::new(offset), Bytes::new(size.into()));
        let ask = TimedRequest { kind: RequestKind::Read, offset, length };
        self.disk.submit(ask, ReplyToken::Read { reply, offset, length });
    }

    /// Copies the data at once, because FUSE lends it only for this call. The reply waits.
    fn write(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let offset = Bytes::new(offset);
        match self.disk.store.write(offset, data) {
            Ok(()) => {
                let length = data.len() as u32;
                let ask = TimedRequest {
                    kind: RequestKind::Write,
                    offset,
                    length: Bytes::new(length.into()),
                };
                self.disk.submit(ask, ReplyToken::Write { reply, length });
            }
            Err(Refused::Memory) => {
                warn!("memory is short: a write of {} bytes was refused", data.len());
                self.disk.engine.tally.refused();
                reply.error(Errno::ENOSPC);
            }
            Err(Refused::Range) => reply.error(Errno::EIO),
        }
    }

    fn fsync(&self, _request: &Request, _ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let ask =
            TimedRequest { kind: RequestKind::Flush, offset: Bytes::ZERO, length: Bytes::ZERO };
        self.disk.submit(ask, ReplyToken::Flush { reply });
    }

    /// Handles discards and zeroing without data. Both only write zeroes, because the file's size
    /// never changes.
    fn fallocate(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        const KEEP_SIZE: i32 = 1;
        const PUNCH_HOLE: i32 = 2;
        const ZERO_RANGE: i32 = 16;
        if mode & !KEEP_SIZE == PUNCH_HOLE || mode & !KEEP_SIZE == ZERO_RANGE {
            self.disk.store.punch(Bytes::new(offset), Bytes::new(length));
            reply.ok();
        } else {
            reply.error(Errno::EOPNOTSUPP);
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if ino != ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (ROOT, FileType::Directory, "."),
            (ROOT, FileType::Directory, ".."),
            (DISK, FileType::RegularFile, DISK_FILE),
        ];
        for (next, (inode, kind, name)) in (1u64..).zip(entries).skip(offset as usize) {
            if reply.add(inode, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let blocks = self.disk.store.size().get() / 4096;
        let free = blocks - self.disk.store.stored().get() / 4096;
        reply.statfs(blocks, free, free, 1, 0, 4096, 255, 4096);
    }
}
