//! Executes the reads of a load with the real kernel.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use host::{Root, block_stat};
use rustix::fs::{Advice, OFlags, fadvise};
use sim::{ReadStep, Scenario, SimOpenFile, Start};
use sys::mapping::{FileMapping, MappingAdvice};
use units::{Bytes, Kib, Nanos};
use vdisk::VirtualDisk;
use workload::{AccessMethod, Hint};

use super::loads::{FILE, FILES, Steps};

/// The result of a run of the kernel.
pub(crate) struct Done {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) useful: u64,
    /// Elapsed time in the disk's own time.
    pub(crate) seconds: f64,
    /// Pages that the page cache lost during the run. If a machine reclaims memory proactively (for
    /// example by DAMON), unused pages last only seconds, while a slow disk takes longer until they
    /// are used; some are then read twice.
    pub(crate) reclaimed: u64,
}

/// The priority of readers compared with other processes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Fair,
    /// Readers run before all other processes. Otherwise, on a busy machine, a reader may wait for
    /// a processor as long as for a request, but the test times the disk.
    First,
}

/// A virtual disk with the files that all loads read.
pub(crate) struct Bench {
    disk: VirtualDisk,
    turn: Turn,
    paths: Vec<PathBuf>,
    /// Offsets of the files on the device.
    pub(crate) starts: Vec<Bytes>,
}

impl Bench {
    pub(crate) fn new(disk: VirtualDisk, turn: Turn) -> Self {
        disk.set_timing(false).expect("the disk's clock");
        let point = disk.mountpoint().expect("a filesystem");
        let paths: Vec<_> = (0..FILES).map(|file| point.join(format!("file-{file}"))).collect();
        let starts = paths.iter().map(|path| write(path)).collect();
        rustix::fs::sync();
        disk.set_timing(true).expect("the disk's clock");
        Self { disk, turn, paths, starts }
    }

    pub(crate) fn set_read_ahead(&self, kib: Kib) {
        let bdi = format!("/sys/class/bdi/{}/read_ahead_kb", self.disk.devno());
        fs::write(&bdi, kib.get().to_string()).expect(&bdi);
    }

    /// Evicts all files from the page cache.
    fn evict(&self) {
        for path in &self.paths {
            let file = File::open(path).expect("a file");
            fadvise(&file, 0, None, Advice::DontNeed).expect("advice");
            let left = sys::cachestat::mincore(file.as_fd(), Bytes::ZERO, FILE).expect("mincore");
            assert_eq!(left.get(), 0, "{} stays in the cache", path.display());
        }
    }

    /// Returns the number of file pages that were reclaimed since they were read or dropped.
    fn reclaimed(&self) -> u64 {
        let of = |path: &PathBuf| {
            let file = File::open(path).expect("a file");
            sys::cachestat::cachestat(file.as_fd(), Bytes::ZERO, FILE).map(|stat| stat.evicted)
        };
        // Unknown before Linux 6.5; then 0.
        self.paths.iter().map(|path| of(path).unwrap_or_default().get()).sum()
    }

    /// Evicts the files from the disk's own cache, by direct reads of other places.
    fn elsewhere(&self, reads: u64) {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::DIRECT.bits().cast_signed());
        let device = options.open(self.disk.device()).expect("the device");
        let mut room = vec![0; 8192];
        let skip = room.as_ptr().align_offset(4096);
        let end = self.starts.iter().max().expect("files").get() + FILE.get();
        for at in 0..reads {
            let place = end + (at * 7919 % reads + 1) * (2 << 20);
            device.read_exact_at(&mut room[skip..skip + 4096], place).expect("a read");
        }
    }

    /// Executes the scenario with the real kernel, from cold caches.
    pub(crate) fn run(&self, scenario: Scenario<Steps>, elsewhere: u64) -> Done {
        self.evict();
        self.elsewhere(elsewhere);
        let open = |open: &SimOpenFile| {
            Source::open(&self.paths[open.file as usize], open.method, open.hint).expect("a file")
        };
        let sources: Vec<Source> = scenario.opens.iter().map(open).collect();
        let reclaimed = self.reclaimed();
        let before = self.settled();
        let start = Barrier::new(scenario.readers.len() + 1);
        let (useful, elapsed) = thread::scope(|scope| {
            let (sources, start) = (&sources, &start);
            let readers: Vec<_> = scenario
                .readers
                .into_iter()
                .map(|reader| {
                    scope.spawn(move || {
                        self.take_turn();
                        go(reader.steps, sources, start)
                    })
                })
                .collect();
            start.wait();
            let begun = Instant::now();
            let got = readers.into_iter().map(|reader| reader.join().expect("a reader"));
            (got.sum::<u64>(), begun.elapsed())
        });
        let after = self.settled();
        Done {
            requests: after.0 - before.0,
            bytes: after.1 - before.1,
            useful,
            seconds: elapsed.as_secs_f64() / self.disk.dilation(),
            reclaimed: self.reclaimed().saturating_sub(reclaimed),
        }
    }

    /// Sets the priority of the calling reader.
    fn take_turn(&self) {
        if self.turn == Turn::First {
            // Without permission, readers may be slightly late, like any reader on this machine.
            if let Err(error) = sys::realtime::set_realtime_priority(1) {
                println!("readers do not go before other processes: {error}");
            }
        }
    }

    /// Returns the requests and bytes that the device has read, once no request is in flight.
    fn settled(&self) -> (u64, u64) {
        loop {
            let stat = block_stat(&Root::system(), self.disk.devno()).expect("counters");
            if stat.in_flight == 0 {
                return (stat.reads, stat.read_bytes.get());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Writes a file and returns its offset on the device; the file must be contiguous.
fn write(path: &Path) -> Bytes {
    let mut file = File::create(path).expect("a file");
    file.write_all(&vec![7; FILE.get() as usize]).expect("its data");
    file.sync_all().expect("its data on the disk");
    let pieces = sys::extents::extents(file.as_fd()).expect("where it lies");
    let first = pieces.first().expect("a place").physical;
    let in_line = pieces.iter().all(|piece| piece.physical == first + piece.logical);
    assert!(in_line, "{}: {pieces:?}", path.display());
    first
}

/// An open file, mapped or not.
enum Source {
    Read(File),
    Mapped(FileMapping),
}

impl Source {
    fn open(path: &Path, method: AccessMethod, hint: Hint) -> io::Result<Self> {
        let file = File::open(path)?;
        let (of_file, of_mapping) = match hint {
            Hint::None => (None, None),
            Hint::Sequential => (Some(Advice::Sequential), Some(MappingAdvice::Sequential)),
            Hint::Random => (Some(Advice::Random), Some(MappingAdvice::Random)),
        };
        if method == AccessMethod::Read {
            of_file.map(|advice| fadvise(&file, 0, None, advice)).transpose()?;
            return Ok(Self::Read(file));
        }
        let mapping = FileMapping::new(file.as_fd(), Bytes::ZERO, FILE)?;
        of_mapping.map(|advice| mapping.advise(advice)).transpose()?;
        Ok(Self::Mapped(mapping))
    }

    fn read(&self, step: &ReadStep, buffer: &mut [u8]) -> usize {
        let room = (FILE - step.offset).min(step.length).get() as usize;
        let buffer = &mut buffer[..room];
        match self {
            Self::Read(file) => rustix::io::pread(file, buffer, step.offset.get()).expect("a read"),
            Self::Mapped(mapping) => {
                let place = step.offset.get() as usize;
                assert!(mapping.copy_to(place, buffer).is_ok(), "the mapping is torn");
                room
            }
        }
    }
}

fn go(steps: Steps, sources: &[Source], start: &Barrier) -> u64 {
    let mut buffer = vec![0; 1 << 20];
    let mut useful = 0;
    start.wait();
    for step in steps {
        if let Start::After(rest) = step.start
            && rest > Nanos::ZERO
        {
            thread::sleep(Duration::from_nanos(rest.get()));
        }
        useful += sources[step.open as usize].read(&step, &mut buffer) as u64;
    }
    useful
}
