//! Programs with one fault each, and their clean twins, on the disk of this machine. Needs root and
//! a C compiler.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // a skipped test says so, others may panic

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use foreread_profile::{
    ModelChoice, ProfileAnalysis, ProfileRecording, RecordTarget, Recorder, analyse,
};
use rustix::fs::{Advice, fadvise};
use sys::lock::Lock;

const SIZE: usize = 32 << 20;
/// Faults that show on any disk that waits, whatever its window and speed; the program has more,
/// which foreread's own host tests try on a virtual disk.
const FAULTS: [&str; 5] =
    ["needless-random", "backward", "stride", "mapped-sequential", "self-eviction"];

struct Stage {
    dir: tempfile::TempDir,
    program: PathBuf,
    _turn: Lock,
}

impl Stage {
    /// `None`, with the reason printed, where the test cannot run.
    fn new(test: &str) -> Option<Self> {
        let skip = |why: &str| println!("SKIP {test}: {why}");
        if !rustix::process::geteuid().is_root() {
            skip("it needs root");
            return None;
        }
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let program = dir.path().join("fault");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/fault.c");
        let compiled = Command::new("cc")
            .args(["-g", "-O1", "-fno-omit-frame-pointer", "-o"])
            .arg(&program)
            .arg(source)
            .status();
        if !compiled.is_ok_and(|status| status.success()) {
            skip("there is no C compiler");
            return None;
        }
        let mut file = File::create(dir.path().join("data")).unwrap();
        for index in 0..SIZE >> 12 {
            file.write_all(&[index as u8; 4096]).unwrap();
        }
        file.sync_all().unwrap();
        let turn = Lock::take(Path::new("/tmp/foreread-host-tests.lock")).unwrap();
        Some(Self { dir, program, _turn: turn })
    }

    /// Profiles the program from a cold cache; `None` if the kernel does not take the probes.
    fn profile(&self, test: &str, words: &[&str]) -> Option<(ProfileRecording, ProfileAnalysis)> {
        let data = self.dir.path().join("data");
        fadvise(File::open(&data).unwrap(), 0, None, Advice::DontNeed).unwrap();
        let mut command = vec![self.program.display().to_string(), words[0].to_owned()];
        command.push(fs::canonicalize(data).unwrap().display().to_string());
        command.extend(words[1..].iter().map(|word| (*word).to_owned()));
        let recorder = match Recorder::new(RecordTarget::Command(command)) {
            Ok(recorder) => recorder.with_output_to_stderr(),
            Err(error) => {
                println!("SKIP {test}: {error}");
                return None;
            }
        };
        let (recording, status) = recorder.record(None, || None).unwrap();
        assert!(status.unwrap().success());
        assert_eq!(recording.lost, 0);
        let analysis = analyse(&recording, &ModelChoice::None);
        Some((recording, analysis))
    }
}

/// The first line of the program with this comment.
fn marked_line(rule: &str) -> u32 {
    let text = include_str!("programs/fault.c");
    let mark = format!("/* line of {rule} */");
    1 + text.lines().position(|line| line.contains(&mark)).unwrap() as u32
}

#[test]
fn host_each_fault_is_found_on_its_line_and_the_twin_has_none() {
    let test = "host_each_fault_is_found_on_its_line_and_the_twin_has_none";
    let Some(stage) = Stage::new(test) else { return };
    for rule in FAULTS {
        let Some((recording, analysis)) = stage.profile(test, &[rule]) else { return };
        if recording.waits.is_empty() {
            println!("SKIP {test}: reads of {} do not wait", stage.dir.path().display());
            return;
        }
        let first = analysis.diagnoses.first().unwrap_or_else(|| {
            let waited = recording.waited();
            panic!("{rule}: none; waited {waited:?} of {:?}", recording.wall)
        });
        assert_eq!(first.rule.name, rule, "{:?}; {:?}", first.finding, recording.missing);
        let stack = &recording.stacks[first.finding.stack.unwrap() as usize];
        let code = stack.code().unwrap();
        // The advice itself is the line to change, if there was one.
        let is_advice = rule == "needless-random";
        let (file, line) = code.source.clone().unwrap_or_else(|| panic!("{rule}: {stack:?}"));
        assert!(file.ends_with("fault.c"), "{file}");
        assert!(is_advice || line == marked_line(rule), "{rule}: line {line}");
        for thread in &recording.threads {
            let parts = (thread.cpu + thread.runnable + thread.blocked).as_secs_f64();
            let span = thread.span.as_secs_f64();
            assert!((parts - span).abs() <= 0.02 * span + 1e-4, "{thread:?}");
        }
        let Some((_, twin)) = stage.profile(test, &[rule, "--fixed"]) else { return };
        let names: Vec<_> = twin.diagnoses.iter().map(|one| one.rule.name).collect();
        assert!(!names.contains(&rule), "the twin: {names:?}");
    }
}
