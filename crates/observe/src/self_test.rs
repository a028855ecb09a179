//! Tests the probes on a private file before their events are used.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Advice, Mode, OFlags, fadvise};
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::{Census, EventKind, ObserveError, OpenFile, ProbeEvent, Probes};

/// Number of pages of the file, and of each read.
const FILE_PAGES: u64 = 512;
const READ_PAGES: u64 = 16;
/// A page that is read alone, far from any other.
const LONE_PAGE: u64 = 301;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelfTest {
    /// The probes reported exactly the expected events.
    Passed,
    /// The test is not possible here.
    NotHere { reason: String },
}

/// Reads a private file in `dir` in a known pattern, and compares the reported events with it.
/// Discards all earlier events.
pub fn self_test(
    probes: &mut Probes,
    census: &Census,
    dir: &Path,
) -> Result<SelfTest, ObserveError> {
    let fail = |source| ObserveError::Trial { dir: dir.to_owned(), source };
    let file = match lay_out(dir) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            let reason =
                format!("{} is on a file system without files that have no name", dir.display());
            return Ok(SelfTest::NotHere { reason });
        }
        Err(error) => return Err(fail(error)),
    };
    let seen = known(census, &file)?;
    let Some(seen) = seen.filter(|seen| !seen.window.is_zero() && seen.bdi.is_some()) else {
        return Ok(SelfTest::NotHere { reason: format!("{} has no read-ahead", dir.display()) });
    };
    probes.drain(drop);
    read(&file, 0..FILE_PAGES / READ_PAGES, READ_PAGES).map_err(fail)?;
    check_sequential(&own(probes, &seen), &seen).map_err(|problem| {
        ObserveError::SelfTestFailed {
            problem: format!("of a file read from its beginning to its end, {problem}"),
        }
    })?;
    evict(&file).map_err(fail)?;
    read(&file, LONE_PAGE..LONE_PAGE + 1, 1).map_err(fail)?;
    let misses = own(probes, &seen)
        .iter()
        .filter(|event| {
            matches!(event.access.kind, EventKind::Miss { .. })
                && (event.access.index, event.access.request.get()) == (LONE_PAGE, 1)
        })
        .count();
    if misses != 1 {
        let problem = format!("of one page read for itself, {misses} misses instead of 1");
        return Err(ObserveError::SelfTestFailed { problem });
    }
    // Without access samples, misses still show how files are read.
    if let Err(problem) = check_samples(probes, &file, &seen) {
        probes.give_up_samples(&problem);
    }
    Ok(SelfTest::Passed)
}

/// Reads a cached page and checks the samples, if this kernel supports them.
fn check_samples(probes: &mut Probes, file: &File, seen: &OpenFile) -> Result<(), String> {
    let chosen = BTreeSet::from([(seen.device, seen.inode)]);
    if !probes.sample(&chosen).map_err(|error| error.to_string())? {
        return Ok(());
    }
    let result = read(file, LONE_PAGE..LONE_PAGE + 1, 1);
    probes.sample(&BTreeSet::new()).map_err(|error| error.to_string())?;
    result.map_err(|error| error.to_string())?;
    let (mut all, mut right) = (0, 0);
    probes.drain(|event| {
        if let EventKind::Access { mapped } = event.access.kind {
            let is_it = event.inode == seen.inode
                && event.device == seen.device
                && (event.access.index, event.access.request.get()) == (LONE_PAGE, 1);
            all += 1;
            right += u32::from(is_it && !mapped);
        }
    });
    if (all, right) == (1, 1) {
        return Ok(());
    }
    Err(format!("of one cached page read, {all} accesses, {right} of them right"))
}

/// Creates a file that no other process can open, with none of it cached.
fn lay_out(dir: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mut file = match rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR) {
        Ok(descriptor) => File::from(descriptor),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Err(errno) => return Err(errno.into()),
    };
    file.write_all(&vec![b'f'; page() * FILE_PAGES as usize])?;
    file.sync_all()?;
    evict(&file)?;
    Ok(file)
}

fn page() -> usize {
    host::page_size().bytes().get() as usize
}

fn evict(file: &File) -> io::Result<()> {
    fadvise(file, 0, None, Advice::DontNeed).map_err(io::Error::from)
}

fn read(file: &File, reads: std::ops::Range<u64>, pages: u64) -> io::Result<()> {
    let mut buffer = vec![0; page() * pages as usize];
    let size = buffer.len() as u64;
    reads.into_iter().try_for_each(|number| file.read_exact_at(&mut buffer, number * size))
}

/// Returns the entry of our file in the census.
fn known(census: &Census, file: &File) -> Result<Option<OpenFile>, ObserveError> {
    let number = u32::try_from(file.as_fd().as_raw_fd()).unwrap_or(u32::MAX);
    let mine = census.of_process(std::process::id())?;
    Ok(mine.into_iter().find(|one| one.holders.iter().any(|holder| holder.has_descriptor(number))))
}

fn own(probes: &mut Probes, seen: &OpenFile) -> Vec<ProbeEvent> {
    let mut events = Vec::new();
    probes.drain(|event| {
        if event.access.file == Some(seen.id) && event.inode == seen.inode {
            events.push(event);
        }
    });
    events
}

fn check_sequential(events: &[ProbeEvent], seen: &OpenFile) -> Result<(), String> {
    let first = events.first().ok_or("no event was reported")?;
    if !matches!(first.access.kind, EventKind::Miss { .. }) || first.access.index != 0 {
        return Err(format!(
            "the first event was {:?} at page {}",
            first.access.kind, first.access.index
        ));
    }
    if first.access.request.get() != READ_PAGES {
        let request = first.access.request;
        return Err(format!("a read of {READ_PAGES} pages was reported as {request}"));
    }
    if first.device != seen.device {
        return Err(format!("device {} was reported as {}", seen.device, first.device));
    }
    let limit = Bytes::new(first.limit.get() * page() as u64);
    if limit != seen.window {
        return Err(format!("its window of {} was reported as {limit}", seen.window));
    }
    // Windows follow each other without gap or overlap until all of it is read.
    let mut end = 0;
    for event in events {
        let (from, size) = match event.access.kind {
            EventKind::Window { window, .. } => (window.start, window.size.get()),
            EventKind::Plain => (event.access.index, event.access.request.get()),
            _ => continue,
        };
        if from != end {
            return Err(format!("a window from page {from} followed one up to page {end}"));
        }
        end = from.saturating_add(size);
    }
    let whole = end >= FILE_PAGES;
    whole.then_some(()).ok_or_else(|| format!("only {end} of {FILE_PAGES} pages were reported"))
}
