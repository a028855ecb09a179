//! The lock of a bdi.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io::{self, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use host::{BdiId, Dirs, Root};
use sys::lock::Lock;

use crate::{Replay, TunableError, TunableScope};

/// The time that a guard has to restore settings after its owner died, before the bdi counts as
/// busy.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The exclusive right to change one bdi. Each change to a device, its open files or the disk
/// itself takes this lock first, so that no study measures under changing settings.
#[derive(Debug)]
pub struct DeviceLock {
    lock: Lock,
}

impl DeviceLock {
    /// Takes the lock of a bdi. Waits up to 2 s if its holder is dead and only the guard holds it.
    ///
    /// # Errors
    ///
    /// [`TunableError::Busy`] while another foreread process uses the bdi.
    pub fn acquire(dirs: &Dirs, bdi: &BdiId) -> Result<Self, TunableError> {
        let path = prepare(dirs, bdi)?;
        let own = |source| {
            let hint = ": this needs root, or FOREREAD_RUNTIME_DIR set to a directory of your own";
            TunableError::Own { path: path.clone(), hint, source }
        };
        let mut waited = Duration::ZERO;
        loop {
            if let Some(lock) = Lock::try_take(&path).map_err(own)? {
                sign(&lock).map_err(own)?;
                return Ok(Self { lock });
            }
            let pid = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
            // Without a process ID in the file, the holder is about to write it.
            let lives = pid.is_some_and(|pid| matches!(sys::process::start_time(pid), Ok(Some(_))));
            if lives || waited >= LOCK_TIMEOUT {
                return Err(TunableError::Busy { bdi: bdi.clone(), pid });
            }
            sleep(RETRY_INTERVAL);
            waited += RETRY_INTERVAL;
        }
    }

    /// Returns the lock file, so that the guard can inherit the lock.
    pub(crate) fn lock(&self) -> &Lock {
        &self.lock
    }
}

impl Drop for DeviceLock {
    fn drop(&mut self) {
        // If this fails, closing the file releases the lock.
        let _ = self.lock.unlock();
    }
}

/// Returns the bdi whose lock protects a file of a tunable: that of the file's device, which may be
/// below the changed bdi, or the machine's for a file without a device.
pub(crate) fn bdi_of(root: &Root, file: &Path) -> BdiId {
    let first = |dir: &str| file.strip_prefix(dir).ok()?.iter().next()?.to_str();
    let device = || {
        let device = first("/sys/dev/block")?;
        let link = root.link_name(format!("/sys/dev/block/{device}/bdi"));
        BdiId::new(&link.unwrap_or_else(|| device.to_owned()))
    };
    let bdi = first("/sys/class/bdi").and_then(BdiId::new).or_else(device);
    bdi.unwrap_or_else(|| TunableScope::machine().bdi)
}

/// Takes the locks of the other devices that a journal changes.
pub(crate) fn take_others(
    dirs: &Dirs,
    root: &Root,
    replay: &Replay,
) -> Result<Vec<DeviceLock>, TunableError> {
    let own = replay.header.as_ref().map(|header| &header.site.bdi);
    let bdis: BTreeSet<BdiId> = replay.open.iter().map(|open| bdi_of(root, &open.file)).collect();
    let others = bdis.iter().filter(|bdi| Some(*bdi) != own);
    others.map(|bdi| DeviceLock::acquire(dirs, bdi)).collect()
}

fn prepare(dirs: &Dirs, bdi: &BdiId) -> Result<PathBuf, TunableError> {
    let dir = dirs.runtime.join("lock");
    DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(|source| {
        let hint = ": this needs root, or FOREREAD_RUNTIME_DIR set to a directory of your own";
        TunableError::Own { path: dir.clone(), hint, source }
    })?;
    Ok(dir.join(format!("bdi-{bdi}.lock")))
}

/// Writes the process ID to the lock file, for processes that find the lock taken.
fn sign(lock: &Lock) -> io::Result<()> {
    let mut file = lock.file();
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}
