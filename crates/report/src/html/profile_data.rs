//! The data that a profile's page draws.

use std::collections::{BTreeMap, HashMap};

use indexmap::{IndexMap, IndexSet};
use profile::{Frame, ProfileAnalysis, ProfileRecording, SampleKey, wait_samples};
use serde::Serialize;
use serde_json::{Value, json};
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

/// Stack, number of waits, time waited, time saved, bytes, and the diagnosis.
type SampleRow = (usize, u64, u64, u64, u64, &'static str);

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

/// The details of frames by text and kind.
#[derive(Default)]
struct NameTable(IndexMap<(String, &'static str), String>);

impl NameTable {
    fn number(&mut self, text: &str, kind: &'static str, detail: &str) -> usize {
        let entry = self.0.entry((text.to_owned(), kind));
        let number = entry.index();
        entry.or_insert_with(|| detail.to_owned());
        number
    }

    /// Returns the names; a kind is `thread`, `user`, `kernel` or `file`.
    fn into_names(self) -> Vec<Value> {
        let name = |((text, kind), detail)| json!({ "text": text, "kind": kind, "detail": detail });
        self.0.into_iter().map(name).collect()
    }

    fn frame(&mut self, frame: &Frame, kind: &'static str) -> usize {
        let Some((file, line)) = &frame.source else {
            return self.number(&frame.function, kind, &frame.module);
        };
        let base = file.rsplit('/').next().unwrap_or_default();
        let detail = format!("{file}:{line}, {}", frame.module);
        self.number(&format!("{} {base}:{line}", frame.function), kind, &detail)
    }
}

/// Returns the data; all numbers are microseconds or bytes.
pub(super) fn page_data(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> Value {
    let mut names = NameTable::default();
    let (stacks, samples) = flame(recording, analysis, &mut names);
    let (lanes, bars_left_out) = lanes(recording);
    json!({
        "end_us": end(recording),
        "names": names.into_names(),
        // Indices of names, outermost frame first.
        "stacks": stacks,
        "samples": samples,
        "files": pictures(recording, analysis),
        "lanes": lanes,
        "bars_left_out": bars_left_out,
    })
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
) -> (IndexSet<Vec<usize>>, Vec<SampleRow>) {
    let comms: HashMap<u32, &str> =
        recording.threads.iter().map(|one| (one.tid, one.comm.as_str())).collect();
    let mut stacks: IndexSet<Vec<usize>> = IndexSet::new();
    let mut rows: BTreeMap<(usize, &'static str), [u64; 4]> = BTreeMap::new();
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
        let (place, _) = stacks.insert_full(path);
        let row = rows.entry((place, rule.unwrap_or_default())).or_default();
        let own = [values.waits, micros(values.waited), micros(values.saved), values.bytes.get()];
        row.iter_mut().zip(own).for_each(|(sum, one)| *sum += one);
    }
    let row = |((place, rule), [waits, waited, saved, bytes]): ((usize, _), [u64; 4])| {
        (place, waits, waited, saved, bytes, rule)
    };
    (stacks, rows.into_iter().map(row).collect())
}

/// Returns the charts of the files with the longest wait of any stream, longest first.
fn pictures(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> Vec<Value> {
    let mut chosen: Vec<u32> = Vec::new();
    for stream in &analysis.streams {
        if !chosen.contains(&stream.inode) && chosen.len() < MAX_PICTURES {
            chosen.push(stream.inode);
        }
    }
    chosen.iter().map(|inode| picture(recording, *inode)).collect()
}

fn picture(recording: &ProfileRecording, inode: u32) -> Value {
    let file = &recording.files[inode as usize];
    let accesses: Vec<_> = recording.accesses.iter().filter(|one| one.inode == inode).collect();
    let windows: Vec<_> = recording.submitted.iter().filter(|one| one.inode == inode).collect();
    let waits: Vec<_> = recording.waits.iter().filter(|one| one.inode == Some(inode)).collect();
    let evictions: Vec<_> = recording.evictions.iter().filter(|one| one.inode == inode).collect();
    let most = accesses.len().max(windows.len()).max(waits.len()).max(evictions.len());
    let every = most.div_ceil(MAX_MARKS).max(1);
    let accesses = accesses.iter().step_by(every);
    let accesses = accesses
        .map(|one| [micros(one.start), micros(one.end), one.offset.get(), one.length.get()]);
    let windows = windows.iter().step_by(every);
    let windows = windows.map(|one| [micros(one.at), one.offset.get(), one.length.get()]);
    let waits = waits
        .iter()
        .step_by(every)
        .map(|one| [micros(one.start()), micros(one.blocked), one.offset.get()]);
    let evictions = evictions.iter().step_by(every).map(|one| {
        let advised = u64::from(one.is_advised);
        [micros(one.at), one.offset.get(), one.length.get(), advised]
    });
    json!({
        "path": file.path,
        "size": file.size,
        // Start, end, offset, length.
        "accesses": accesses.collect::<Vec<_>>(),
        // Time, offset, length.
        "windows": windows.collect::<Vec<_>>(),
        // Start, duration, offset.
        "waits": waits.collect::<Vec<_>>(),
        // Time, offset, length, 1 if advised.
        "evictions": evictions.collect::<Vec<_>>(),
        // One of this many marks is drawn.
        "every": every,
    })
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
        let waits = waits
            .filter(|wait| wait.class.is_storage())
            .map(|wait| (micros(wait.start()), micros(wait.blocked), wait.class.name().to_owned()));
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
        own.sort_by_key(|one| one.start());
        let mut ends: Vec<Nanos> = Vec::new();
        let mut lanes: Vec<Lane> = Vec::new();
        for request in own {
            let start = request.start();
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
