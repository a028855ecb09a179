//! The data that a profile's page draws.

use std::collections::{BTreeMap, HashMap};

use profile::{Frame, ProfileAnalysis, ProfileRecording, SampleKey, wait_samples};
use serde::Serialize;
use units::Nanos;

/// Maximum number of marks of each kind in a file's chart; beyond it, every nth is drawn.
const MAX_MARKS: usize = 6_000;
/// Maximum number of files with a chart.
const MAX_PICTURES: usize = 12;
/// Maximum number of bars in the waterfall.
const MAX_BARS: usize = 20_000;
/// Maximum number of lanes: of threads, those that waited longest; and of each device.
const MAX_THREADS: usize = 12;
const MAX_DEVICE_LANES: usize = 16;

/// All numbers are microseconds or bytes.
#[derive(Serialize)]
pub(super) struct ProfilePageData {
    end_us: u64,
    names: Vec<FrameName>,
    /// Indices of names, outermost frame first.
    stacks: Vec<Vec<u32>>,
    samples: Vec<SampleRow>,
    files: Vec<FilePicture>,
    lanes: Vec<Lane>,
    bars_left_out: usize,
}

#[derive(Serialize)]
struct FrameName {
    text: String,
    /// `thread`, `user`, `kernel` or `file`.
    kind: &'static str,
    detail: String,
}

/// Stack, number of waits, time waited, time saved, bytes, and the diagnosis.
type SampleRow = (u32, u64, u64, u64, u64, &'static str);

#[derive(Serialize)]
struct FilePicture {
    path: String,
    size: u64,
    /// Start, end, offset, length.
    accesses: Vec<[u64; 4]>,
    /// Time, offset, length.
    windows: Vec<[u64; 3]>,
    /// Start, duration, offset.
    waits: Vec<[u64; 3]>,
    /// Time, offset, length, 1 if advised.
    evictions: Vec<[u64; 4]>,
    /// One of this many marks is drawn.
    every: usize,
}

#[derive(Serialize)]
struct Lane {
    name: String,
    /// True for a device; false for a thread.
    is_device: bool,
    /// Start, duration, and the description of a request or the class of a wait.
    bars: Vec<(u64, u64, String)>,
}

fn micros(time: Nanos) -> u64 {
    time.get() / 1000
}

/// Frame names by their index.
#[derive(Default)]
struct NameTable {
    numbers: HashMap<(String, &'static str), u32>,
    names: Vec<FrameName>,
}

impl NameTable {
    fn number(&mut self, text: &str, kind: &'static str, detail: &str) -> u32 {
        let next = self.names.len() as u32;
        *self.numbers.entry((text.to_owned(), kind)).or_insert_with(|| {
            let (text, detail) = (text.to_owned(), detail.to_owned());
            self.names.push(FrameName { text, kind, detail });
            next
        })
    }

    fn frame(&mut self, frame: &Frame, kind: &'static str) -> u32 {
        let Some((file, line)) = &frame.source else {
            return self.number(&frame.function, kind, &frame.module);
        };
        let base = file.rsplit('/').next().unwrap_or_default();
        let detail = format!("{file}:{line}, {}", frame.module);
        self.number(&format!("{} {base}:{line}", frame.function), kind, &detail)
    }
}

pub(super) fn page_data(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
) -> ProfilePageData {
    let mut names = NameTable::default();
    let (stacks, samples) = flame(recording, analysis, &mut names);
    let (lanes, bars_left_out) = lanes(recording);
    ProfilePageData {
        end_us: end(recording),
        names: names.names,
        stacks,
        samples,
        files: pictures(recording, analysis),
        lanes,
        bars_left_out,
    }
}

/// Returns the end of the recording: the last wait may end after the command has exited.
fn end(recording: &ProfileRecording) -> u64 {
    let waits = recording.waits.iter().map(|wait| wait.end);
    let accesses = recording.accesses.iter().map(|access| access.end);
    micros(waits.chain(accesses).max().unwrap_or_default().max(recording.wall))
}

fn flame(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    names: &mut NameTable,
) -> (Vec<Vec<u32>>, Vec<SampleRow>) {
    let comms: HashMap<u32, &str> =
        recording.threads.iter().map(|one| (one.tid, one.comm.as_str())).collect();
    let mut places: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    let mut rows: BTreeMap<(u32, &'static str), [u64; 4]> = BTreeMap::new();
    for (key, values) in wait_samples(recording, analysis) {
        let SampleKey { stack, inode, rule, tid } = key;
        let mut path =
            vec![names.number(comms.get(&tid).copied().unwrap_or("?"), "thread", "a program")];
        if let Some(stack) = recording.stacks.get(stack as usize) {
            path.extend(stack.user.iter().rev().map(|frame| names.frame(frame, "user")));
            path.extend(stack.kernel.iter().rev().map(|frame| names.frame(frame, "kernel")));
        }
        if let Some(file) = inode.and_then(|inode| recording.files.get(inode as usize)) {
            path.push(names.number(&file.path, "file", "the file that is waited for"));
        }
        let next = places.len() as u32;
        let place = *places.entry(path).or_insert(next);
        let row = rows.entry((place, rule.unwrap_or_default())).or_default();
        let own = [values.waits, micros(values.waited), micros(values.saved), values.bytes.get()];
        row.iter_mut().zip(own).for_each(|(sum, one)| *sum += one);
    }
    let mut stacks = vec![Vec::new(); places.len()];
    for (path, place) in places {
        stacks[place as usize] = path;
    }
    let row = |((place, rule), [waits, waited, saved, bytes]): ((u32, _), [u64; 4])| {
        (place, waits, waited, saved, bytes, rule)
    };
    (stacks, rows.into_iter().map(row).collect())
}

/// Returns the charts of the files with the longest wait of any stream, longest first.
fn pictures(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> Vec<FilePicture> {
    let mut chosen: Vec<u32> = Vec::new();
    for stream in &analysis.streams {
        if !chosen.contains(&stream.inode) && chosen.len() < MAX_PICTURES {
            chosen.push(stream.inode);
        }
    }
    chosen.iter().map(|inode| picture(recording, *inode)).collect()
}

fn picture(recording: &ProfileRecording, inode: u32) -> FilePicture {
    let file = &recording.files[inode as usize];
    let accesses: Vec<_> = recording.accesses.iter().filter(|one| one.inode == inode).collect();
    let windows: Vec<_> = recording.submitted.iter().filter(|one| one.inode == inode).collect();
    let waits: Vec<_> = recording.waits.iter().filter(|one| one.inode == Some(inode)).collect();
    let evictions: Vec<_> = recording.evictions.iter().filter(|one| one.inode == inode).collect();
    let most = accesses.len().max(windows.len()).max(waits.len()).max(evictions.len());
    let every = most.div_ceil(MAX_MARKS).max(1);
    let accesses = accesses
        .iter()
        .step_by(every)
        .map(|one| [micros(one.start), micros(one.end), one.offset.get(), one.length.get()]);
    let windows = windows.iter().step_by(every);
    let waits = waits.iter().step_by(every);
    let evictions = evictions.iter().step_by(every);
    FilePicture {
        path: file.path.clone(),
        size: file.size.get(),
        accesses: accesses.collect(),
        windows: windows.map(|one| [micros(one.at), one.offset.get(), one.length.get()]).collect(),
        waits: waits
            .map(|one| {
                let start = micros(one.end.saturating_sub(one.blocked));
                [start, micros(one.blocked), one.offset.get()]
            })
            .collect(),
        evictions: evictions
            .map(|one| {
                let advised = u64::from(one.is_advised);
                [micros(one.at), one.offset.get(), one.length.get(), advised]
            })
            .collect(),
        every,
    }
}

/// Returns the waterfall: threads with their waits, then devices with their requests.
fn lanes(recording: &ProfileRecording) -> (Vec<Lane>, usize) {
    let mut lanes = thread_lanes(recording);
    lanes.extend(device_lanes(recording));
    let all: usize = lanes.iter().map(|lane| lane.bars.len()).sum();
    // Keeps the longest bars; the others are invisible until the user zooms in.
    let mut times: Vec<u64> = lanes.iter().flat_map(|lane| &lane.bars).map(|bar| bar.1).collect();
    times.sort_unstable_by_key(|time| std::cmp::Reverse(*time));
    if let Some(least) = times.get(MAX_BARS).copied() {
        lanes.iter_mut().for_each(|lane| lane.bars.retain(|bar| bar.1 > least));
    }
    let kept: usize = lanes.iter().map(|lane| lane.bars.len()).sum();
    (lanes, all - kept)
}

fn thread_lanes(recording: &ProfileRecording) -> Vec<Lane> {
    let mut waited: BTreeMap<u32, Nanos> = BTreeMap::new();
    for wait in recording.waits.iter().filter(|wait| wait.class.is_storage()) {
        *waited.entry(wait.tid).or_default() += wait.blocked;
    }
    let mut tids: Vec<(u32, Nanos)> = waited.into_iter().collect();
    tids.sort_by_key(|(_, waited)| std::cmp::Reverse(*waited));
    let lane = |tid: u32| {
        let comm = recording.threads.iter().find(|one| one.tid == tid);
        let waits = recording.waits.iter().filter(|wait| wait.tid == tid);
        let waits = waits.filter(|wait| wait.class.is_storage()).map(|wait| {
            let start = micros(wait.end.saturating_sub(wait.blocked));
            (start, micros(wait.blocked), wait.class.name().to_owned())
        });
        Lane {
            name: format!("{} {tid}", comm.map_or("thread", |one| one.comm.as_str())),
            is_device: false,
            bars: waits.collect(),
        }
    };
    tids.iter().take(MAX_THREADS).map(|(tid, _)| lane(*tid)).collect()
}

/// Returns whether to show requests of this device: devices with files, or all if none has any.
fn is_shown(recording: &ProfileRecording, device: host::DevNo) -> bool {
    let has_files = |device| recording.files.iter().any(|file| file.id.device == device);
    has_files(device) || !recording.devices.keys().any(|one| has_files(*one))
}

/// Returns the requests, in as many lanes as there were concurrent requests.
fn device_lanes(recording: &ProfileRecording) -> Vec<Lane> {
    let mut result = Vec::new();
    for (device, name) in recording.devices.iter().filter(|one| is_shown(recording, *one.0)) {
        let own = recording.requests.iter().filter(|one| one.device == *device);
        let mut own: Vec<_> = own.collect();
        own.sort_by_key(|one| one.end.saturating_sub(one.service));
        let mut ends: Vec<Nanos> = Vec::new();
        let mut lanes: Vec<Lane> = Vec::new();
        for request in own {
            let start = request.end.saturating_sub(request.service);
            let free = ends.iter().position(|end| *end <= start);
            let place = free.unwrap_or(ends.len()).min(MAX_DEVICE_LANES - 1);
            if place == ends.len() {
                ends.push(request.end);
                let name = if place == 0 { name.clone() } else { format!("{name} +{place}") };
                lanes.push(Lane { name, is_device: true, bars: Vec::new() });
            }
            ends[place] = request.end;
            let kind = if request.is_read { "read" } else { "write" };
            let what = format!("{kind} of {} at sector {}", request.length, request.sector);
            lanes[place].bars.push((micros(start), micros(request.service), what));
        }
        result.extend(lanes);
    }
    result
}
