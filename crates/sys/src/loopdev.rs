//! Loop devices: block devices backed by a file (`include/uapi/linux/loop.h`).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use units::Bytes;

const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_SET_STATUS64: libc::c_ulong = 0x4C04;
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
const LOOP_CTL_ADD: libc::c_ulong = 0x4C80;
const LOOP_CTL_REMOVE: libc::c_ulong = 0x4C81;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl LoopInfo64 {
    fn new(flags: u32) -> Self {
        Self {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags,
            file_name: [0; 64],
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        }
    }
}

#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopInfo64>() == 232);
const _: () = assert!(size_of::<LoopConfig>() == 304);
const _: () = assert!(std::mem::offset_of!(LoopConfig, info) == 8);
const _: () = assert!(std::mem::offset_of!(LoopInfo64, file_name) == 56);

/// A configured loop device with an open descriptor.
#[derive(Debug)]
pub struct LoopDevice {
    number: u32,
    file: File,
}

impl LoopDevice {
    /// Configures the loop device with this number on `backing`, with direct I/O and this block
    /// size. Fails with `EBUSY` if the device is already configured.
    ///
    /// The device stays configured after this value is dropped, until [`release`] is called.
    pub fn set_up(number: u32, backing: BorrowedFd<'_>, block_size: Bytes) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path_of(number))?;
        configure(file.as_fd(), backing, block_size)?;
        Ok(Self { number, file })
    }

    /// Returns the device's number: 3 for `/dev/loop3`.
    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn path(&self) -> PathBuf {
        path_of(self.number)
    }

    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Returns the path of the loop device with this number.
pub fn path_of(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/loop{number}"))
}

/// Creates a new loop device and returns its number. A new device has the kernel's defaults, a
/// reused one may not: reconfiguration never lowers its read-ahead.
pub fn add() -> io::Result<u32> {
    // -1 selects the lowest unused number.
    control(LOOP_CTL_ADD, -1)
}

/// Returns the number of a free loop device, and creates one if there is none.
pub fn find_free() -> io::Result<u32> {
    control(LOOP_CTL_GET_FREE, 0)
}

/// Removes a loop device that is neither open nor configured.
pub fn remove(number: u32) -> io::Result<()> {
    let number = libc::c_long::from(i32::try_from(number).unwrap_or(i32::MAX));
    control(LOOP_CTL_REMOVE, number).map(|_| ())
}

fn control(request: libc::c_ulong, argument: libc::c_long) -> io::Result<u32> {
    let file = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
    // SAFETY: the requests of loop-control take a number, not a pointer, and the descriptor is open
    // during the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) };
    u32::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn configure(device: BorrowedFd<'_>, backing: BorrowedFd<'_>, block: Bytes) -> io::Result<()> {
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let config = LoopConfig {
        fd: u32::try_from(backing.as_raw_fd()).map_err(invalid)?,
        block_size: u32::try_from(block.get()).map_err(invalid)?,
        info: LoopInfo64::new(LO_FLAGS_DIRECT_IO),
        reserved: [0; 8],
    };
    // SAFETY: LOOP_CONFIGURE reads one `struct loop_config`, whose layout is asserted above, and
    // keeps no pointer to it.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Detaches the file of the loop device at `device`. While other processes have the device open,
/// the kernel delays this until the last one closes it. A device without a file is no error.
pub fn release(device: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).open(device)?;
    clear(file.as_fd()).or_else(unless_unset)
}

/// Like [`release`], but returns `false` and changes nothing if another process has it open.
pub fn release_if_free(device: &Path) -> io::Result<bool> {
    // O_EXCL fails if the device is mounted, and prevents mounting. Open read-only: closing a
    // writable descriptor makes udev open the device, which would then be busy at the next try.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(device);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => return Ok(false),
        Err(error) => return Err(error),
    };
    clear(file.as_fd()).or_else(unless_unset)?;
    // If no other process has the device open, it is unconfigured now and has no status. Otherwise
    // the kernel would detach the file at the last close, which cannot precede ours: cancel that.
    match forget_to_clear(file.as_fd()) {
        Ok(()) => Ok(false),
        Err(error) => unless_unset(error).map(|()| true),
    }
}

fn clear(device: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: LOOP_CLR_FD takes no argument, and the descriptor is open during the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD as _, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn forget_to_clear(device: BorrowedFd<'_>) -> io::Result<()> {
    let mut info = LoopInfo64::new(0);
    // SAFETY: LOOP_GET_STATUS64 writes one `struct loop_info64`, whose layout is asserted above and
    // which has no invalid content.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    info.flags &= !LO_FLAGS_AUTOCLEAR;
    // SAFETY: LOOP_SET_STATUS64 reads one `struct loop_info64` and keeps no pointer to it.
    let result =
        unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_STATUS64 as _, &raw const info) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ignores the error of a device without a file.
fn unless_unset(error: io::Error) -> io::Result<()> {
    if error.raw_os_error() == Some(libc::ENXIO) { Ok(()) } else { Err(error) }
}
