//! Records of the BPF programs: the Rust side of `bpf/records.h`.

use std::mem::size_of;

use host::DevNo;

/// `struct open_file_record`: one descriptor of one process.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct OpenFileRecord {
    pub file: u64,
    pub map_start: u64,
    pub map_end: u64,
    pub inode: u64,
    pub size_bytes: u64,
    pub position_bytes: u64,
    pub previous_bytes: u64,
    pub cgroup: u64,
    pub device: u32,
    pub pid: u32,
    pub fd: u32,
    pub uid: u32,
    pub mode: u32,
    pub flags: u32,
    pub ra_pages: u32,
    pub bdi_ra_pages: u32,
    pub kind: u32,
    pub executable: u32,
    pub overlay: u32,
    pub zero: u32,
    pub comm: [u8; 16],
    pub bdi: [u8; 64],
}

const _: () = assert!(size_of::<OpenFileRecord>() == 192);

/// `struct event_record`: one event.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct EventRecord {
    pub time_ns: u64,
    pub file: u64,
    pub inode: u64,
    pub cgroup: u64,
    pub index: u64,
    pub count: u64,
    pub start: u64,
    pub previous_bytes: u64,
    pub size: u32,
    pub async_size: u32,
    pub ra_pages: u32,
    pub device: u32,
    pub pid: u32,
    pub tid: u32,
    pub kind: u32,
    pub mapped: u32,
    pub comm: [u8; 16],
}

const _: () = assert!(size_of::<EventRecord>() == 112);

/// `struct miss_record`: a miss of a watched open file, which is reported immediately.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MissRecord {
    pub time_ns: u64,
    pub file: u64,
    pub inode: u64,
    pub index: u64,
    pub count: u64,
    pub device: u32,
    pub pid: u32,
    pub tid: u32,
    pub zero: u32,
}

const _: () = assert!(size_of::<MissRecord>() == 56);

/// `struct sample_record`: an access to a sampled file.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SampleRecord {
    pub time_ns: u64,
    pub inode: u64,
    pub first: u64,
    pub last: u64,
    pub device: u32,
    pub pid: u32,
    pub tid: u32,
    pub kind: u32,
}

const _: () = assert!(size_of::<SampleRecord>() == 48);

/// Implemented by structures of plain integers without padding, for which any bytes are valid.
///
/// # Safety
///
/// Every bit pattern must be a value of the type.
pub(crate) unsafe trait Plain: Copy {
    /// Reads the record at the start of `bytes`; `None` if they are too few.
    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..size_of::<Self>())?;
        // SAFETY: there are enough bytes, any bytes are a value of the type (the trait requires
        // it), and an unaligned read has no other requirement.
        Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

// SAFETY: integers and byte arrays whose sizes add up to the structure's: no padding.
unsafe impl Plain for OpenFileRecord {}
// SAFETY: as above.
unsafe impl Plain for EventRecord {}
// SAFETY: as above.
unsafe impl Plain for MissRecord {}
// SAFETY: as above.
unsafe impl Plain for SampleRecord {}

/// The key of a file: `struct inode_key`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct InodeKey {
    inode: u64,
    device: u32,
    zero: u32,
}

// SAFETY: integers without padding, as in bpf/records.h.
unsafe impl aya::Pod for InodeKey {}

impl InodeKey {
    pub fn new((device, inode): (DevNo, u64)) -> Self {
        Self { inode, device: device.major << 20 | device.minor, zero: 0 }
    }
}

/// Returns the text of a field, which ends with a zero byte or with the field.
pub(crate) fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_with_a_zero_or_with_its_field() {
        assert_eq!(text(b"cat\0\0"), "cat");
        assert_eq!(text(b"full"), "full");
        assert_eq!(text(b"\xff\0"), "\u{fffd}");
        assert_eq!(text(b""), "");
    }

    #[test]
    fn too_few_bytes_are_no_record() {
        const SIZE: usize = size_of::<OpenFileRecord>();
        assert!(OpenFileRecord::read(&[0; SIZE - 1]).is_none());
        let mut bytes = [0; SIZE + 1];
        bytes[0] = 7;
        assert_eq!(OpenFileRecord::read(&bytes).expect("a record").file, 7);
    }
}
