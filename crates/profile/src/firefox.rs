//! Writes the profile for the Firefox Profiler (processed format, version 48). Later versions of
//! its loader upgrade the file. Perfetto opens it too.
//!
//! Format: docs-developer/CHANGELOG-formats.md of firefox-devtools/profiler.

use std::collections::HashMap;

use indexmap::{IndexMap, IndexSet};
use serde_json::{Value as Json, json};
use units::Nanos;

use crate::recording::{Frame, IoRequest, ProfileRecording, StorageWait, ThreadAccount, WaitClass};
use crate::samples::rules_of_waits;
use crate::{ProfileAnalysis, StackTrace};

/// Version of the processed format.
const FORMAT_VERSION: u32 = 48;
/// Version of the format that Firefox itself writes; loaders ignore it.
const GECKO_VERSION: u32 = 24;

/// Categories by index; the loader requires a grey one as the default.
const CATEGORIES: [(&str, &str); 6] = [
    ("Other", "grey"),
    ("Program", "green"),
    ("Kernel", "blue"),
    ("Wait", "red"),
    ("Device read", "lightblue"),
    ("Device write", "orange"),
];
const PROGRAM_CATEGORY: usize = 1;
const KERNEL_CATEGORY: usize = 2;
const WAIT_CATEGORY: usize = 3;
const DEVICE_READ_CATEGORY: usize = 4;
const DEVICE_WRITE_CATEGORY: usize = 5;

/// Phase of a marker with a start and an end.
const INTERVAL_PHASE: u32 = 1;
/// Maximum number of lanes of a device. Concurrent requests need a lane each, because viewers drop
/// overlapping markers of the same name. Requests without a free lane are left out.
const MAX_LANES: usize = 64;

/// Converts a time to milliseconds, the unit of the format.
fn millis(time: Nanos) -> f64 {
    time.get() as f64 / 1e6
}

/// Returns the profile as JSON. Waits are markers with stacks and samples weighted by time; device
/// requests are markers in lanes.
pub fn firefox(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> Vec<u8> {
    let rules = rules_of_waits(analysis);
    let mut waits: HashMap<u32, Vec<(u32, &StorageWait)>> = HashMap::new();
    for (place, wait) in recording.waits.iter().enumerate() {
        waits.entry(wait.tid).or_default().push((place as u32, wait));
    }
    let mut threads: Vec<Json> = Vec::new();
    let mut accounts: Vec<&ThreadAccount> = recording.threads.iter().collect();
    accounts.sort_by_key(|one| (one.pid, one.tid));
    for account in accounts {
        let Some(mut own) = waits.remove(&account.tid) else { continue };
        own.sort_by_key(|(_, wait)| wait.end);
        let mut tables = Tables::default();
        for (place, wait) in own {
            let rule = rules.get(&place).map(|rule| rule.0);
            tables.wait(recording, wait, rule);
        }
        threads.push(tables.thread(account, recording.wall));
    }
    threads.extend(devices(recording));
    let categories = CATEGORIES
        .map(|(name, color)| json!({ "name": name, "color": color, "subcategories": ["Other"] }));
    let document = json!({
        "meta": {
            "version": GECKO_VERSION,
            "preprocessedProfileVersion": FORMAT_VERSION,
            "product": recording.target,
            "importedFrom": "foreread",
            "interval": 1.0,
            "startTime": 0.0,
            "processType": 0,
            "stackwalk": 1,
            "debug": false,
            "symbolicated": true,
            "usesOnlyOneStackType": true,
            "doesNotUseFrameImplementation": true,
            "sourceCodeIsNotOnSearchfox": true,
            "extensions": { "length": 0, "baseURL": [], "id": [], "name": [] },
            "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs" },
            "categories": categories,
            "markerSchema": marker_schema(),
        },
        "libs": [],
        "pages": [],
        "threads": threads,
    });
    document.to_string().into_bytes()
}

fn field(key: &str, label: &str, format: &str) -> Json {
    json!({ "key": key, "label": label, "format": format, "searchable": true })
}

/// Returns the layout and the fields of the markers.
fn marker_schema() -> Json {
    json!([
        {
            "name": "StorageWait",
            "display": ["marker-chart", "marker-table", "timeline-overview"],
            "chartLabel": "{marker.data.class}",
            "tooltipLabel": "{marker.data.class}: {marker.data.file}",
            "tableLabel": "{marker.data.class}: {marker.data.file}",
            "data": [
                field("class", "Waits for", "string"),
                field("file", "File", "string"),
                field("offset", "Offset", "bytes"),
                field("diagnosis", "Diagnosis", "string"),
            ],
        },
        {
            "name": "DeviceRequest",
            "display": ["marker-chart", "marker-table"],
            "chartLabel": "{marker.data.length}",
            "tooltipLabel": "sector {marker.data.sector}",
            "tableLabel": "sector {marker.data.sector}",
            "data": [
                field("length", "Length", "bytes"),
                field("sector", "Sector", "integer"),
                field("depth", "In flight", "integer"),
            ],
        },
    ])
}

/// The table of markers, stored by column.
#[derive(Default)]
struct Markers {
    names: Vec<usize>,
    starts: Vec<f64>,
    ends: Vec<f64>,
    categories: Vec<usize>,
    data: Vec<Json>,
}

impl Markers {
    fn add(&mut self, name: usize, start: Nanos, end: Nanos, category: usize, data: Json) {
        self.names.push(name);
        self.starts.push(millis(start));
        self.ends.push(millis(end));
        self.categories.push(category);
        self.data.push(data);
    }

    fn json(&self) -> Json {
        json!({
            "length": self.names.len(),
            "name": self.names,
            "startTime": self.starts,
            "endTime": self.ends,
            "phase": vec![INTERVAL_PHASE; self.names.len()],
            "category": self.categories,
            "data": self.data,
        })
    }
}

/// The tables of one thread; the format has no tables shared by threads.
#[derive(Default)]
struct Tables {
    texts: IndexSet<String>,
    /// The frames with their categories.
    frames: IndexMap<Frame, usize>,
    /// The stacks, each as its prefix and its innermost frame.
    stacks: IndexSet<(Option<usize>, usize)>,
    samples: Vec<(Option<usize>, f64, f64)>,
    markers: Markers,
}

impl Tables {
    fn text(&mut self, text: &str) -> usize {
        self.texts.insert_full(text.to_owned()).0
    }

    /// Adds a stack, the outermost frame first; returns its index, or `None` if it is empty.
    fn stack(&mut self, stack: &StackTrace) -> Option<usize> {
        let user = stack.user.iter().rev().map(|frame| (frame, PROGRAM_CATEGORY));
        let kernel = stack.kernel.iter().rev().map(|frame| (frame, KERNEL_CATEGORY));
        let mut prefix = None;
        for (frame, category) in user.chain(kernel) {
            let entry = self.frames.entry(frame.clone());
            let place = entry.index();
            entry.or_insert(category);
            prefix = Some(self.stacks.insert_full((prefix, place)).0);
        }
        prefix
    }

    fn wait(
        &mut self,
        recording: &ProfileRecording,
        wait: &StorageWait,
        rule: Option<&'static str>,
    ) {
        let stack = recording.stacks.get(wait.stack as usize);
        let stack = stack.and_then(|stack| self.stack(stack));
        let (start, blocked) = (wait.start(), millis(wait.blocked));
        self.samples.push((stack, millis(wait.end), blocked));
        let file = wait.inode.map(|inode| recording.files[inode as usize].path.as_str());
        let mut data = json!({
            "type": "StorageWait",
            "class": wait.class.name(),
            "file": file.unwrap_or("unknown"),
            "offset": wait.offset.get(),
            "diagnosis": rule.unwrap_or("none"),
        });
        if stack.is_some() {
            data["cause"] = json!({ "time": millis(start), "stack": stack });
        }
        let name = self.text(marker_name(wait.class));
        self.markers.add(name, start, wait.end, WAIT_CATEGORY, data);
    }

    fn thread(mut self, account: &ThreadAccount, end: Nanos) -> Json {
        let name = if account.comm.is_empty() { "thread" } else { account.comm.as_str() };
        let is_main = account.pid == account.tid;
        self.json(name, &account.pid.to_string(), account.tid, is_main, end)
    }

    /// Returns one thread of the document.
    fn json(&mut self, name: &str, pid: &str, tid: u32, is_main: bool, end: Nanos) -> Json {
        let frames = std::mem::take(&mut self.frames);
        let functions: Vec<usize> = frames.keys().map(|frame| self.text(&frame.function)).collect();
        let sources = || frames.keys().map(|frame| frame.source.as_ref());
        let lines: Vec<Option<u32>> = sources().map(|source| Some(source?.1)).collect();
        let sources: Vec<Option<usize>> =
            sources().map(|source| Some(self.text(&source?.0))).collect();
        let categories: Vec<usize> = frames.values().copied().collect();
        let count = frames.len();
        let (none, zeros) = (vec![Json::Null; count], vec![0; count]);
        let stack_categories: Vec<usize> =
            self.stacks.iter().map(|(_, frame)| categories[*frame]).collect();
        json!({
            "processType": "default",
            "processName": name,
            "processStartupTime": 0.0,
            "processShutdownTime": Json::Null,
            "registerTime": 0.0,
            "unregisterTime": millis(end),
            "pausedRanges": [],
            "name": name,
            "isMainThread": is_main,
            "pid": pid,
            "tid": tid,
            "showMarkersInTimeline": true,
            "samples": {
                "length": self.samples.len(),
                "stack": self.samples.iter().map(|one| one.0).collect::<Vec<_>>(),
                "time": self.samples.iter().map(|one| one.1).collect::<Vec<_>>(),
                "weight": self.samples.iter().map(|one| one.2).collect::<Vec<_>>(),
                "weightType": "tracing-ms",
            },
            "markers": self.markers.json(),
            "stackTable": {
                "length": self.stacks.len(),
                "prefix": self.stacks.iter().map(|one| one.0).collect::<Vec<_>>(),
                "frame": self.stacks.iter().map(|one| one.1).collect::<Vec<_>>(),
                "category": stack_categories,
                "subcategory": vec![0; self.stacks.len()],
            },
            "frameTable": {
                "length": count,
                "address": vec![-1; count],
                "inlineDepth": zeros,
                "category": categories,
                "subcategory": zeros,
                "func": (0..count).collect::<Vec<_>>(),
                "nativeSymbol": none,
                "innerWindowID": none,
                "implementation": none,
                "line": lines,
                "column": none,
            },
            "funcTable": {
                "length": count,
                "name": functions,
                "isJS": vec![false; count],
                "relevantForJS": vec![false; count],
                "resource": vec![-1; count],
                "fileName": sources,
                "lineNumber": none,
                "columnNumber": none,
            },
            "resourceTable": { "length": 0, "lib": [], "name": [], "host": [], "type": [] },
            "nativeSymbols": {
                "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [],
            },
            "stringArray": self.texts.iter().collect::<Vec<_>>(),
        })
    }
}

fn marker_name(class: WaitClass) -> &'static str {
    match class {
        WaitClass::Other => "wait",
        class => class.name(),
    }
}

/// Returns the lanes of each device, as the threads of one process per device.
fn devices(recording: &ProfileRecording) -> Vec<Json> {
    let mut threads = Vec::new();
    for (nth, (device, name)) in recording.devices.iter().enumerate() {
        let mut own: Vec<&IoRequest> =
            recording.requests.iter().filter(|one| one.device == *device).collect();
        own.sort_by_key(|one| one.start());
        let mut lanes: Vec<(Nanos, Tables)> = Vec::new();
        for request in own {
            let start = request.start();
            let free = lanes.iter().position(|(end, _)| *end <= start);
            let place = match free {
                Some(place) => place,
                None if lanes.len() < MAX_LANES => {
                    lanes.push((Nanos::ZERO, Tables::default()));
                    lanes.len() - 1
                }
                None => continue,
            };
            let (end, tables) = &mut lanes[place];
            *end = request.end;
            let (kind, category) = match request.is_read {
                true => ("read", DEVICE_READ_CATEGORY),
                false => ("write", DEVICE_WRITE_CATEGORY),
            };
            let text = tables.text(kind);
            let data = json!({
                "type": "DeviceRequest",
                "length": request.length.get(),
                "sector": request.sector,
                "depth": request.depth,
            });
            tables.markers.add(text, start, request.end, category, data);
        }
        let pid = format!("device {name}");
        for (lane, (_, mut tables)) in lanes.into_iter().enumerate() {
            let title = format!("{name} lane {}", lane + 1);
            // No thread of a program has a number this large.
            let tid = u32::MAX - (nth * MAX_LANES + lane) as u32;
            threads.push(tables.json(&title, &pid, tid, lane == 0, recording.wall));
        }
    }
    threads
}

#[cfg(test)]
mod tests {
    use observe::InodeId;
    use units::Bytes;

    use super::*;
    use crate::recording::ProfiledFile;
    use crate::{ModelChoice, analyse};

    fn recording() -> ProfileRecording {
        let device = host::DevNo { major: 7, minor: 1 };
        let mut recording = ProfileRecording::default();
        let id = InodeId { device, inode: 42 };
        let (path, size) = ("/data/file".to_owned(), Bytes::from_mib(1));
        recording.files.push(ProfiledFile { id, path, size, start: None, jumps: Vec::new() });
        recording.devices.insert(device, "sda".to_owned());
        let frame = |function: &str, line| Frame {
            function: function.to_owned(),
            module: "/bin/reader".to_owned(),
            source: Some(("main.c".to_owned(), line)),
        };
        let kernel = vec![Frame { function: "filemap_read".to_owned(), ..Frame::default() }];
        for line in [20, 21] {
            let user = vec![frame("read_block", line), frame("main", 42)];
            recording.stacks.push(StackTrace { kernel: kernel.clone(), user });
        }
        recording.stacks.push(StackTrace::default());
        for (stack, end) in [(0, 5), (1, 9), (0, 12), (2, 20)] {
            recording.waits.push(StorageWait {
                end: Nanos::from_millis(end),
                blocked: Nanos::from_millis(2),
                tid: 11,
                pid: 10,
                stack,
                class: WaitClass::Miss,
                inode: (stack < 2).then_some(0),
                file: 7,
                offset: Bytes::from_kib(4),
            });
        }
        for (end, service) in [(5, 4), (6, 4), (9, 2)] {
            recording.requests.push(IoRequest {
                end: Nanos::from_millis(end),
                service: Nanos::from_millis(service),
                device,
                sector: 8,
                length: Bytes::from_kib(4),
                depth: 1,
                is_read: true,
                queued: Nanos::ZERO,
                neighbour: None,
            });
        }
        recording.threads.push(ThreadAccount {
            pid: 10,
            tid: 11,
            comm: "reader".to_owned(),
            span: Nanos::from_millis(20),
            cpu: Nanos::ZERO,
            runnable: Nanos::ZERO,
            blocked: Nanos::from_millis(8),
        });
        recording.wall = Nanos::from_millis(20);
        recording
    }

    fn document() -> Json {
        let recording = recording();
        let bytes = firefox(&recording, &analyse(&recording, &ModelChoice::None, &[]));
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Checks that columns are as long as their table, and that references lie within theirs.
    #[test]
    fn columns_have_the_length_of_their_table_and_references_exist() {
        let document = document();
        let categories = document["meta"]["categories"].as_array().unwrap().len() as u64;
        for thread in document["threads"].as_array().unwrap() {
            let length = |table: &str| thread[table]["length"].as_u64().unwrap();
            let tables = [
                "samples",
                "markers",
                "stackTable",
                "frameTable",
                "funcTable",
                "resourceTable",
                "nativeSymbols",
            ];
            for table in tables {
                for (name, column) in thread[table].as_object().unwrap() {
                    let Some(column) = column.as_array() else { continue };
                    assert_eq!(column.len() as u64, length(table), "{table}.{name}");
                }
            }
            let texts = thread["stringArray"].as_array().unwrap().len() as u64;
            let references = [
                ("samples", "stack", length("stackTable")),
                ("markers", "name", texts),
                ("markers", "category", categories),
                ("stackTable", "frame", length("frameTable")),
                ("stackTable", "category", categories),
                ("frameTable", "func", length("funcTable")),
                ("frameTable", "category", categories),
                ("funcTable", "name", texts),
                ("funcTable", "fileName", texts),
            ];
            for (table, column, most) in references {
                for value in thread[table][column].as_array().unwrap() {
                    let within = value.is_null() || value.as_u64().is_some_and(|at| at < most);
                    assert!(within, "{table}.{column}: {value} of {most}");
                }
            }
            // A prefix precedes the stacks that refer to it.
            let prefixes = thread["stackTable"]["prefix"].as_array().unwrap();
            for (at, prefix) in prefixes.iter().enumerate() {
                assert!(prefix.as_u64().is_none_or(|prefix| (prefix as usize) < at));
            }
            let times = thread["samples"]["time"].as_array().unwrap();
            assert!(times.iter().map(|time| time.as_f64().unwrap()).is_sorted());
            assert!(thread["pid"].is_string() && thread["isMainThread"].is_boolean());
        }
    }

    #[test]
    fn what_the_loader_asks_for_is_there() {
        let document = document();
        let meta = &document["meta"];
        assert_eq!(meta["preprocessedProfileVersion"], 48);
        let categories = meta["categories"].as_array().unwrap();
        assert!(categories.iter().any(|one| one["color"] == "grey"));
        // Each marker type has a schema.
        let described: Vec<&Json> =
            meta["markerSchema"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
        for thread in document["threads"].as_array().unwrap() {
            for data in thread["markers"]["data"].as_array().unwrap() {
                assert!(described.contains(&&data["type"]), "{data}");
            }
        }
    }

    #[test]
    fn waits_are_markers_with_stacks_and_weighted_samples() {
        let document = document();
        let thread = &document["threads"][0];
        assert_eq!((&thread["name"], &thread["pid"]), (&json!("reader"), &json!("10")));
        let samples = &thread["samples"];
        assert_eq!(samples["weightType"], "tracing-ms");
        assert_eq!(samples["weight"], json!([2.0, 2.0, 2.0, 2.0]));
        assert_eq!(samples["stack"][0], samples["stack"][2], "the same stack is there once");
        assert_ne!(samples["stack"][0], samples["stack"][1], "another line is another frame");
        assert_eq!(samples["stack"][3], Json::Null, "no stack");
        let markers = &thread["markers"];
        assert_eq!(markers["startTime"][0], 3.0);
        assert_eq!(markers["endTime"][0], 5.0);
        assert_eq!(markers["data"][0]["cause"]["stack"], samples["stack"][0]);
        assert!(markers["data"][3].get("cause").is_none());
    }

    #[test]
    fn requests_at_the_same_time_are_in_lanes_of_their_own() {
        let document = document();
        let threads = document["threads"].as_array().unwrap();
        let lanes: Vec<&Json> =
            threads.iter().filter(|thread| thread["pid"] == "device sda").collect();
        assert_eq!(lanes.len(), 2);
        assert_eq!(lanes[0]["markers"]["startTime"], json!([1.0, 7.0]));
        assert_eq!(lanes[1]["markers"]["startTime"], json!([2.0]));
    }
}
