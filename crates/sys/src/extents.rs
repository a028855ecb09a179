//! Location of a file's data on its device, from `FS_IOC_FIEMAP`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use units::Bytes;

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
/// `FIEMAP_FLAG_SYNC`: write dirty data to the device first.
const FLAG_SYNC: u32 = 1;
/// `FIEMAP_EXTENT_LAST`: the last extent of the file.
const EXTENT_LAST: u32 = 1;
/// `FIEMAP_EXTENT_UNKNOWN`: the location is unknown.
const EXTENT_UNKNOWN: u32 = 2;
/// Number of extents per ioctl.
const BATCH_EXTENTS: usize = 64;
/// Approximate maximum number of extents; further ones are ignored.
const EXTENTS_MOST: usize = 1 << 20;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved_64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap`, followed by space for the extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH_EXTENTS],
}

const _: () =
    assert!(size_of::<RawExtent>() == 56 && size_of::<Request>() == 32 + 56 * BATCH_EXTENTS);

/// A part of a file that is contiguous on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// Offset in the file; `physical` is the offset on the device.
    pub logical: Bytes,
    pub physical: Bytes,
    pub length: Bytes,
}

/// Returns the extents of a file in file order, without holes. Fails with `EOPNOTSUPP` if the file
/// system does not support the ioctl.
pub fn extents(file: BorrowedFd<'_>) -> io::Result<Vec<FileExtent>> {
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let mut request = Request {
            start,
            length: u64::MAX - start,
            flags: FLAG_SYNC,
            mapped: 0,
            count: BATCH_EXTENTS as u32,
            reserved: 0,
            extents: [RawExtent::default(); BATCH_EXTENTS],
        };
        // SAFETY: the borrowed descriptor is open. The kernel reads and writes one `struct fiemap`
        // followed by `count` extents, which is the layout of Request (sizes asserted above), and
        // keeps no pointer to it.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped = &request.extents[..(request.mapped as usize).min(BATCH_EXTENTS)];
        for extent in mapped.iter().filter(|extent| extent.flags & EXTENT_UNKNOWN == 0) {
            found.push(FileExtent {
                logical: Bytes::new(extent.logical),
                physical: Bytes::new(extent.physical),
                length: Bytes::new(extent.length),
            });
        }
        let Some(last) = mapped.last() else { return Ok(found) };
        let next = last.logical.saturating_add(last.length);
        if last.flags & EXTENT_LAST != 0 || next <= start || found.len() >= EXTENTS_MOST {
            return Ok(found);
        }
        start = next;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn the_pieces_of_a_file_cover_it_in_order() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; 1 << 20]).unwrap();
        let pieces = match extents(file.as_file().as_fd()) {
            Ok(pieces) => pieces,
            Err(problem) => {
                return eprintln!("SKIP the_pieces_of_a_file_cover_it_in_order: {problem}");
            }
        };
        let mut at = Bytes::ZERO;
        for piece in &pieces {
            assert_eq!(piece.logical, at, "{pieces:?}");
            at += piece.length;
        }
        assert!(at >= Bytes::from_mib(1), "{pieces:?}");
    }
}
