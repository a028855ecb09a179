//! Loop devices: a block device over a file, from `include/uapi/linux/loop.h`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use units::Bytes;

const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// How often another process may snatch the free device that the kernel named to us.
const ATTEMPTS: u32 = 64;

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

/// A loop device that was set up, held open.
#[derive(Debug)]
pub struct LoopDevice {
    number: u32,
    file: File,
}

impl LoopDevice {
    /// Sets up a free loop device over `backing` with direct I/O and blocks of `block_size`.
    ///
    /// It stays set up after this value is dropped, until [`release`] is called.
    pub fn attach(backing: BorrowedFd<'_>, block_size: Bytes) -> io::Result<Self> {
        let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
        for _ in 0..ATTEMPTS {
            let number = free_device(control.as_fd())?;
            let file = OpenOptions::new().read(true).write(true).open(path_of(number))?;
            match configure(file.as_fd(), backing, block_size) {
                Ok(()) => return Ok(Self { number, file }),
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from_raw_os_error(libc::EBUSY))
    }

    /// Its number: 3 for `/dev/loop3`.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its device node.
    pub fn path(&self) -> PathBuf {
        path_of(self.number)
    }

    /// The open device.
    pub fn file(&self) -> &File {
        &self.file
    }
}

fn path_of(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/loop{number}"))
}

fn free_device(control: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: LOOP_CTL_GET_FREE takes no argument; the descriptor is open for the whole call.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    u32::try_from(number).map_err(|_| io::Error::last_os_error())
}

fn configure(device: BorrowedFd<'_>, backing: BorrowedFd<'_>, block: Bytes) -> io::Result<()> {
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let config = LoopConfig {
        fd: u32::try_from(backing.as_raw_fd()).map_err(invalid)?,
        block_size: u32::try_from(block.get()).map_err(invalid)?,
        info: LoopInfo64 {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            size_limit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags: LO_FLAGS_DIRECT_IO,
            file_name: [0; 64],
            crypt_name: [0; 64],
            encrypt_key: [0; 32],
            init: [0; 2],
        },
        reserved: [0; 8],
    };
    // SAFETY: LOOP_CONFIGURE reads one `struct loop_config`, whose layout is asserted above, and
    // keeps no pointer to it.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes the file from under the loop device at `device`. While others have the device open, the
/// kernel only notes it and does it when the last of them closes. That there was none is fine.
pub fn release(device: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).open(device)?;
    // SAFETY: LOOP_CLR_FD takes no argument; the descriptor is open for the whole call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), LOOP_CLR_FD as _, 0) };
    if result == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        error => Err(error),
    }
}
