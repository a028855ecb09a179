//! Readers in a separate process, which report their progress ten times a second.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use rustix::time::{ClockId, clock_gettime};
use sys::cachestat::cachestat;
use sys::mapping::FileMapping;
use units::Bytes;

/// Progress of the readers: monotonic time (s), bytes read, and processor time (s).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub at: f64,
    pub bytes: u64,
    pub cpu: f64,
}

/// Running readers; killed when dropped.
pub struct Readers {
    child: Child,
    samples: Arc<Mutex<Vec<Sample>>>,
}

impl Readers {
    /// Starts readers with the arguments of [`main`], in the memory cgroup `group` if given.
    pub fn start(words: &[&str], group: Option<&Path>) -> Self {
        let own = std::env::current_exe().unwrap();
        let mut command = match group {
            // The shell joins the cgroup before it becomes the reader.
            Some(group) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", "echo $$ > \"$0\"/cgroup.procs; exec \"$@\""]);
                shell.arg(group).arg(own);
                shell
            }
            None => Command::new(own),
        };
        let mut child = command.arg("read").args(words).stdout(Stdio::piped()).spawn().unwrap();
        let samples: Arc<Mutex<Vec<Sample>>> = Arc::default();
        let (out, message) = (child.stdout.take().unwrap(), Arc::clone(&samples));
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let mut words = line.split(' ').map(|word| word.parse::<f64>().unwrap());
                let mut next = || words.next().unwrap();
                let sample = Sample { at: next(), bytes: next() as u64, cpu: next() };
                message.lock().unwrap().push(sample);
            }
        });
        let readers = Self { child, samples };
        readers.wait(|samples| samples.len() > 1);
        readers
    }

    pub fn samples(&self) -> Vec<Sample> {
        self.samples.lock().unwrap().clone()
    }

    fn wait(&self, until: impl Fn(&[Sample]) -> bool) {
        let begun = Instant::now();
        while !until(&self.samples.lock().unwrap()) {
            assert!(begun.elapsed() < Duration::from_secs(60), "readers do not read");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Interpolates the progress at a time of the monotonic clock, in seconds.
    pub fn at(&self, at: f64) -> Sample {
        self.wait(|samples| samples.last().is_some_and(|last| last.at >= at));
        let samples = self.samples();
        let after = samples.partition_point(|sample| sample.at < at);
        let (a, b) = (samples[after.saturating_sub(1)], samples[after]);
        let part = if b.at > a.at { ((at - a.at) / (b.at - a.at)).max(0.0) } else { 0.0 };
        let bytes = a.bytes + ((b.bytes - a.bytes) as f64 * part) as u64;
        Sample { at, bytes, cpu: a.cpu + (b.cpu - a.cpu) * part }
    }

    /// Returns the throughput between two times, in MiB/s.
    pub fn rate(&self, from: f64, to: f64) -> f64 {
        let (from, to) = (self.at(from), self.at(to));
        (to.bytes - from.bytes) as f64 / (1 << 20) as f64 / (to.at - from.at)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the time of the monotonic clock, in seconds.
pub fn now() -> f64 {
    seconds(ClockId::Monotonic)
}

fn seconds(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Main function of the readers' process.
///
/// - `streams N DIR`: reads each of the files `0` to `N-1` from start to end in pieces of 64 KiB,
///   evicts it, and reads it again.
/// - `mapped FILE`: reads pages of a mapping in random order; reports those that were not cached.
/// - `cached FILE RATE`: does RATE cached reads of 4 KiB per second; 0: as many as possible.
/// - `hold FILE N`: keeps N descriptors of the file open.
pub fn main(words: &[String]) {
    let got = Arc::new(AtomicU64::new(0));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["streams", count, dir] => {
            for number in 0..count.parse::<u32>().unwrap() {
                let path = Path::new(dir).join(number.to_string());
                let (file, got) = (File::open(path).unwrap(), Arc::clone(&got));
                std::thread::spawn(move || stream(&file, &got));
            }
        }
        ["mapped", file] => {
            let (file, got) = (File::open(file).unwrap(), Arc::clone(&got));
            std::thread::spawn(move || mapped(&file, &got));
        }
        ["cached", file, rate] => {
            let (file, got) = (File::open(file).unwrap(), Arc::clone(&got));
            let rate = rate.parse().unwrap();
            std::thread::spawn(move || cached(&file, rate, &got));
        }
        ["hold", file, count] => {
            let open = |_| File::open(file).unwrap();
            std::mem::forget((0..count.parse::<u32>().unwrap()).map(open).collect::<Vec<_>>());
        }
        _ => panic!("{words:?}"),
    }
    loop {
        let (bytes, cpu) = (got.load(Ordering::Relaxed), seconds(ClockId::ProcessCPUTime));
        println!("{:.6} {bytes} {cpu:.6}", now());
        std::io::stdout().flush().unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn stream(file: &File, got: &AtomicU64) {
    let mut buffer = vec![0; 65536];
    loop {
        fadvise(file, 0, None, Advice::DontNeed).unwrap();
        let mut at = 0;
        loop {
            let read = file.read_at(&mut buffer, at).unwrap();
            if read == 0 {
                break;
            }
            at += read as u64;
            got.fetch_add(read as u64, Ordering::Relaxed);
        }
    }
}

fn mapped(file: &File, got: &AtomicU64) {
    let pages = file.metadata().unwrap().len() / 4096;
    let mapping = FileMapping::new(file.as_fd(), Bytes::ZERO, Bytes::new(pages * 4096)).unwrap();
    let (mut page, mut word) = (0_u64, [0; 8]);
    loop {
        // A full-period generator visits each page once, in an order that looks random.
        page = (page.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)) % pages;
        let at = Bytes::new(page * 4096);
        let stat = cachestat(file.as_fd(), at, Bytes::new(4096)).unwrap();
        mapping.copy_to(page as usize * 4096, &mut word).unwrap();
        // Without this, the compiler removes the unused result.
        std::hint::black_box(&word);
        if stat.cached.is_zero() {
            got.fetch_add(4096, Ordering::Relaxed);
        }
    }
}

fn cached(file: &File, rate: u64, got: &AtomicU64) {
    let size = file.metadata().unwrap().len();
    let (mut buffer, begun) = (vec![0; 4096], Instant::now());
    for number in 0_u64.. {
        file.read_exact_at(&mut buffer, number * 4096 % size).unwrap();
        got.fetch_add(4096, Ordering::Relaxed);
        let due = Duration::from_secs_f64(number as f64 / rate.max(1) as f64);
        if rate > 0 && number % 1000 == 0 && due > begun.elapsed() {
            std::thread::sleep(due - begun.elapsed());
        }
    }
}
