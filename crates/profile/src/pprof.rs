//! The profile in pprof format (`profile.proto`, compressed), for `go tool pprof`, speedscope and
//! others.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use indexmap::IndexSet;

use crate::analysis::ProfileAnalysis;
use crate::recording::{Frame, ProfileRecording};
use crate::samples::{SampleKey, SampleValues, wait_samples};

/// Field numbers of the messages of `profile.proto`.
mod field {
    pub(super) const PROFILE_SAMPLE_TYPE: u64 = 1;
    pub(super) const PROFILE_SAMPLE: u64 = 2;
    pub(super) const PROFILE_LOCATION: u64 = 4;
    pub(super) const PROFILE_FUNCTION: u64 = 5;
    pub(super) const PROFILE_STRING: u64 = 6;
    pub(super) const PROFILE_DURATION: u64 = 10;
    pub(super) const PROFILE_DEFAULT_TYPE: u64 = 14;
}

/// A protocol buffer message under construction; it has varints and nested messages only.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn numbers(&mut self, field: u64, values: &[u64]) {
        let mut packed = Self::default();
        values.iter().for_each(|value| packed.varint(*value));
        self.bytes(field, &packed.0);
    }
}

/// Strings, functions and locations, by their number in the file.
#[derive(Default)]
struct Tables {
    texts: IndexSet<String>,
    frames: BTreeMap<Frame, u64>,
}

impl Tables {
    fn text(&mut self, text: &str) -> u64 {
        self.texts.insert_full(text.to_owned()).0 as u64
    }

    fn frame(&mut self, frame: &Frame) -> u64 {
        let next = self.frames.len() as u64 + 1;
        *self.frames.entry(frame.clone()).or_insert(next)
    }
}

/// Returns the waits, their time, the predicted savings and the bytes read, per stack, labelled
/// with file, diagnosis and thread.
pub fn pprof(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> Vec<u8> {
    let mut tables = Tables::default();
    let mut profile = Message::default();
    tables.text("");
    for (name, unit) in [
        ("waits", "count"),
        ("wait_ns", "nanoseconds"),
        ("saved_ns", "nanoseconds"),
        ("device_bytes", "bytes"),
    ] {
        let mut kind = Message::default();
        kind.number(1, tables.text(name));
        kind.number(2, tables.text(unit));
        profile.bytes(field::PROFILE_SAMPLE_TYPE, &kind.0);
    }
    for (key, values) in wait_samples(recording, analysis) {
        let SampleKey { stack, inode: file, rule, tid } = key;
        let SampleValues { waits, waited, saved, bytes } = values;
        let values = [waits, waited.get(), saved.get(), bytes.get()];
        let stack = &recording.stacks[stack as usize];
        let frames = stack.kernel.iter().chain(&stack.user);
        let locations: Vec<u64> = frames.map(|frame| tables.frame(frame)).collect();
        let mut sample = Message::default();
        sample.numbers(1, &locations);
        sample.numbers(2, &values);
        let file = file.map(|file| recording.files[file as usize].path.as_str());
        for (name, value) in [("file", file), ("diagnosis", rule)] {
            let Some(value) = value else { continue };
            let mut label = Message::default();
            label.number(1, tables.text(name));
            label.number(2, tables.text(value));
            sample.bytes(3, &label.0);
        }
        let mut label = Message::default();
        label.number(1, tables.text("thread"));
        label.number(3, u64::from(tid));
        sample.bytes(3, &label.0);
        profile.bytes(field::PROFILE_SAMPLE, &sample.0);
    }
    add_tables(&mut profile, tables);
    profile.number(field::PROFILE_DURATION, recording.wall.get());
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = packed.write_all(&profile.0);
    packed.finish().unwrap_or_default()
}

fn add_tables(profile: &mut Message, mut tables: Tables) {
    let frames = std::mem::take(&mut tables.frames);
    for (frame, number) in &frames {
        let (file, line) = frame
            .source
            .as_ref()
            .map_or((frame.module.as_str(), 0), |source| (source.0.as_str(), source.1));
        let mut function = Message::default();
        function.number(1, *number);
        let name = tables.text(&frame.function);
        function.number(2, name);
        function.number(3, name);
        function.number(4, tables.text(file));
        profile.bytes(field::PROFILE_FUNCTION, &function.0);
        let mut place = Message::default();
        place.number(1, *number);
        place.number(2, u64::from(line));
        let mut location = Message::default();
        location.number(1, *number);
        location.bytes(4, &place.0);
        profile.bytes(field::PROFILE_LOCATION, &location.0);
    }
    let default = tables.text("wait_ns");
    for text in &tables.texts {
        profile.bytes(field::PROFILE_STRING, text.as_bytes());
    }
    profile.number(field::PROFILE_DEFAULT_TYPE, default);
}

#[cfg(test)]
#[allow(clippy::print_stdout)] // a skipped test says so
mod tests {
    use std::process::Command;

    use observe::InodeId;
    use units::{Bytes, Nanos};

    use super::*;
    use crate::recording::{ProfiledFile, StackTrace, StorageWait, WaitClass};
    use crate::{ModelChoice, analyse};

    fn recording() -> ProfileRecording {
        let mut recording = ProfileRecording::default();
        let id = InodeId { device: host::DevNo { major: 7, minor: 1 }, inode: 42 };
        let (path, size) = ("/data/file".to_owned(), Bytes::from_mib(1));
        recording.files.push(ProfiledFile { id, path, size, start: None, jumps: Vec::new() });
        let source = Some(("main.c".to_owned(), 42));
        let frame = |function: &str| Frame {
            function: function.to_owned(),
            module: "/bin/reader".to_owned(),
            source: source.clone(),
        };
        let user = vec![frame("read_block"), frame("main")];
        recording.stacks.push(StackTrace { kernel: Vec::new(), user });
        recording.waits.push(StorageWait {
            end: Nanos::from_millis(7),
            blocked: Nanos::from_millis(5),
            tid: 1,
            pid: 1,
            stack: 0,
            class: WaitClass::Miss,
            inode: Some(0),
            file: 0,
            offset: Bytes::ZERO,
        });
        recording
    }

    #[test]
    fn go_reads_the_file() {
        let recording = recording();
        let bytes = pprof(&recording, &analyse(&recording, &ModelChoice::None, &[]));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("profile.pb.gz");
        std::fs::write(&path, bytes).unwrap();
        let tool = Command::new("go").args(["tool", "pprof", "-raw"]).arg(&path).output();
        let Ok(output) = tool else {
            println!("SKIP go_reads_the_file: there is no go");
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for part in ["wait_ns/nanoseconds", "5000000", "read_block", "main.c:42", "/data/file"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }
}
