//! Page-number traces with an LRU cache, here and in libCacheSim with its one-block-lookahead
//! prefetcher.
//!
//! Both read each trace from the same file, which has the peer's fastest format. Both are timed in
//! processor time, including reading, so other load on the machine favours neither. The peer's
//! startup time, measured with a single request, is subtracted.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foreread_sim::{FileSystem, Replacement, SimMachine, replay};
use model::Spec;
use units::{Bytes, Kib, Pages};

use super::clock::{children_seconds, own_seconds};

/// Each trace is repeated until it has at least this many requests.
const REQUESTS: usize = 4_000_000;

/// Prints both rates for each trace.
pub fn compare(program: Option<&str>, traces: Option<&str>) {
    let dir = traces.map_or_else(default_dir, PathBuf::from);
    let files = files(&dir);
    if files.is_empty() {
        println!("SKIP page-number traces: none in {}; give --traces DIR", dir.display());
        return;
    }
    if program.is_none() {
        println!("SKIP the peer: give --cachesim PROGRAM to compare with libCacheSim's cachesim");
    }
    println!(
        "{:<12} {:>8} {:>8} {:>9} {:>10} {:>10} {:>7}",
        "trace", "pages", "cache", "misses", "M refs/s", "peer", "ratio"
    );
    let mut ratios = Vec::new();
    for file in files {
        let Some(trace) = Trace::read(&file) else {
            println!("SKIP {}: gzip cannot read it", file.display());
            continue;
        };
        let path = std::env::temp_dir().join(format!("foreread-speed-{}", std::process::id()));
        trace.write(&trace.pages, &path).unwrap();
        for share in [2, 8] {
            let (rate, misses) = trace.ours(&path, trace.distinct / share);
            let cache = trace.distinct / share;
            let peer = program.and_then(|program| trace.peers(program, &path, cache));
            let ratio = peer.map(|peer| rate / peer);
            ratios.extend(ratio);
            let text = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.1}"));
            println!(
                "{:<12} {:>8} {:>8} {misses:>9.3} {rate:>10.1} {:>10} {:>7}",
                trace.name,
                trace.distinct,
                trace.distinct / share,
                text(peer),
                text(ratio)
            );
        }
        std::fs::remove_file(&path).unwrap();
    }
    if let Some(least) = ratios.iter().copied().reduce(f64::min) {
        let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
        let met = if mean.exp() >= 1.5 { "yes" } else { "no" };
        println!("ratio: {:.2} in the geometric mean, {least:.2} at least", mean.exp());
        println!("at least 1.5 times the peer's rate in the mean: {met}");
    }
}

fn default_dir() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = std::env::var_os("FOREREAD_TRACES").map(PathBuf::from);
    given.unwrap_or_else(|| root.join("../shared/data/traces")).join("lirs")
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(".trace.gz"))
        .collect();
    files.sort();
    files
}

struct Trace {
    name: String,
    pages: Vec<u64>,
    distinct: u64,
    most: u64,
}

impl Trace {
    fn read(file: &Path) -> Option<Self> {
        let output = Command::new("gzip").arg("-dc").arg(file).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let once: Vec<u64> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
        let mut distinct = once.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let times = REQUESTS.div_ceil(once.len().max(1));
        let name = file.file_name()?.to_string_lossy().replace(".trace.gz", "");
        let (count, most) = (distinct.len() as u64, *distinct.last()?);
        Some(Self { name, pages: once.repeat(times), distinct: count, most })
    }

    /// Returns million references per second of processor time, and the share of misses.
    fn ours(&self, path: &Path, cache: u64) -> (f64, f64) {
        let model = Spec::preset("zero").unwrap();
        let machine = SimMachine {
            // Like the peer: a miss also reads the next page.
            policy: "fixed,blocks=2".parse().unwrap(),
            read_ahead: Kib::new(8),
            cache: Bytes::new(cache.max(64) * 4096),
            replacement: Replacement::Lru,
            filesystem: FileSystem::PLAIN,
            ..SimMachine::new(model)
        };
        let begun = own_seconds();
        let pages = Pages::new(self.most + 1);
        let counts = replay(&machine, pages, Records::open(path)).unwrap();
        let spent = own_seconds() - begun;
        let references = counts.references.get() as f64;
        (references / 1e6 / spent, counts.misses.get() as f64 / references)
    }

    fn peers(&self, program: &str, path: &Path, cache: u64) -> Option<f64> {
        let run = |path: &Path| {
            let begun = children_seconds();
            let status = Command::new(program)
                .arg(path)
                .args(["oracleGeneral", "lru", &cache.max(64).to_string()])
                .args(["--ignore-obj-size=1", "--prefetch=OBL"])
                .arg("--prefetch-params=block-size=1")
                .args(["-o", "/dev/null"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            let spent = children_seconds() - begun;
            status.ok().filter(|status| status.success())?;
            Some(spent)
        };
        let single = path.with_extension("single");
        self.write(&self.pages[..1], &single).ok()?;
        let start = run(&single);
        let _ = std::fs::remove_file(&single);
        let spent = run(path)? - start?;
        Some(self.pages.len() as f64 / 1e6 / spent)
    }

    /// Writes the peer's oracleGeneral format: time, page, size and next use, packed.
    fn write(&self, pages: &[u64], path: &Path) -> std::io::Result<()> {
        let mut next = vec![-1i64; self.most as usize + 1];
        let mut following = vec![-1i64; pages.len()];
        for (index, page) in pages.iter().enumerate().rev() {
            following[index] = next[*page as usize];
            next[*page as usize] = index as i64;
        }
        let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
        for (index, page) in pages.iter().enumerate() {
            out.write_all(&((index / 1000) as u32).to_le_bytes())?;
            out.write_all(&page.to_le_bytes())?;
            out.write_all(&1u32.to_le_bytes())?;
            out.write_all(&following[index].to_le_bytes())?;
        }
        out.flush()
    }
}

/// Bytes per request in the peer's format.
const RECORD: usize = 24;

/// The page numbers of a trace in the peer's format.
struct Records {
    file: File,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
}

impl Records {
    fn open(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        Self { file, buffer: vec![0; RECORD << 12], at: 0, end: 0 }
    }
}

impl Iterator for Records {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.at == self.end {
            // A read of a regular file fills the buffer until the end of the file.
            self.at = 0;
            self.end = self.file.read(&mut self.buffer).unwrap() / RECORD * RECORD;
        }
        let record = self.buffer[self.at..self.end].first_chunk::<RECORD>()?;
        self.at += RECORD;
        record[4..12].first_chunk().map(|page| u64::from_le_bytes(*page))
    }
}
