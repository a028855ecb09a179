//! Programs with one fault each, and their corrected twins, on a virtual hard disk: the diagnosis
//! comes first and names the line of the fault; the twin does not have it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Stage, text};

/// The fault programs of the `profile` crate.
const PROGRAMS: &str = "../profile/tests/programs";
const SIZE: usize = 64 << 20;
/// Each fault, and the rule that finds it. A mark in the program shows its line.
const FAULTS: [(&str, &str); 16] = [
    ("needless-random", "needless-random"),
    ("backward", "backward"),
    ("mapped-backward", "backward"),
    ("stride", "stride"),
    ("mapped-sequential", "mapped-sequential"),
    ("written-mapping", "mapped-sequential"),
    ("mapped-random", "mapped-random"),
    ("self-eviction", "self-eviction"),
    ("direct-depth-1", "direct-depth-1"),
    ("ramp", "ramp"),
    ("random-depth-1", "random-depth-1"),
    ("shared-open-file", "shared-open-file"),
    ("cut-advice", "cut-advice"),
    ("void-advice", "void-advice"),
    ("other-file", "void-advice"),
    ("pointer-chase", "random-depth-1"),
];

/// A virtual hard disk with a data file, for fault programs.
struct Faults {
    stage: Stage,
    data: PathBuf,
}

impl Faults {
    fn on_a_disk(name: &str) -> Option<Self> {
        let stage = Stage::of(name, "hdd-2008,fs=xfs,size=2G")?;
        let data = stage.mount.join("data");
        fs::write(&data, vec![7; SIZE]).unwrap();
        Some(Self { stage, data })
    }

    /// Compiles a fault program; `None` if the compiler is missing or fails.
    fn compile(&self, compiler: &str, arguments: &[&str], source: &str) -> Option<PathBuf> {
        let program = self.stage.dir.path().join(source).with_extension("");
        let mut command = Command::new(compiler);
        command.args(arguments).arg("-o").arg(&program).arg(source_of(source));
        command.status().is_ok_and(|status| status.success()).then_some(program)
    }

    /// Profiles a command on the file, which is cold; `Err` says why that is impossible.
    fn profile(&self, command: &[&Path], arguments: &[&str]) -> Result<Value, String> {
        let file = fs::File::open(&self.data).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let mut foreread = self.stage.foreread();
        foreread.args(["profile", "--json", "--device", "none", "--"]).args(command);
        let output = foreread.args(arguments).output().unwrap();
        if output.status.code() == Some(6) {
            return Err(text(&output.stderr));
        }
        assert!(output.status.success(), "{}", text(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    }
}

fn source_of(program: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(PROGRAMS).join(program)
}

/// Returns the line number of a fault in a program.
fn marked_line(program: &str, fault: &str) -> usize {
    let code = fs::read_to_string(source_of(program)).unwrap();
    let mark = format!("line of {fault}");
    1 + code.lines().position(|line| line.trim_end_matches(" */").ends_with(&mark)).unwrap()
}

#[test]
fn host_profile_finds_each_fault_on_a_virtual_hard_disk() {
    let name = "host_profile_finds_each_fault_on_a_virtual_hard_disk";
    let Some(faults) = Faults::on_a_disk(name) else { return };
    let options = ["-g", "-O1", "-fno-omit-frame-pointer", "-pthread"];
    let Some(program) = faults.compile("cc", &options, "fault.c") else {
        println!("SKIP {name}: there is no C compiler");
        return;
    };
    let data = faults.data.to_str().unwrap();
    for (fault, rule) in FAULTS {
        let found = match faults.profile(&[&program], &[fault, data]) {
            Ok(found) => found,
            Err(why) => {
                println!("SKIP {name}: {why}");
                return;
            }
        };
        let first = &found["diagnoses"][0];
        assert_eq!(first["rule"], rule, "{fault}: {}", found["diagnoses"]);
        let source = &first["location"]["source"];
        assert!(source[0].as_str().unwrap().ends_with("fault.c"), "{fault}: {first}");
        assert_eq!(source[1], marked_line("fault.c", fault), "{fault}: {first}");
        let twin = faults.profile(&[&program], &[fault, data, "--fixed"]).unwrap();
        let rules = twin["diagnoses"].as_array().unwrap().iter().map(|one| &one["rule"]);
        assert!(rules.clone().all(|one| one != rule), "the twin of {fault} has it, too");
    }
}

/// Allocates two files alternately from their ends, so that no two pieces of 64 KiB are adjacent.
fn write_in_pieces(name: &Path) {
    const PIECE: usize = 64 << 10;
    let mut files =
        [name.with_extension("other"), name.to_owned()].map(|name| fs::File::create(name).unwrap());
    for piece in (0..200).rev() {
        for file in &files {
            let (start, length) = ((piece * PIECE) as u64, PIECE as u64);
            rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), start, length)
                .unwrap();
        }
    }
    files[1].write_all(&vec![7; 200 * PIECE]).unwrap();
}

#[test]
fn host_profile_finds_a_file_in_many_places() {
    let name = "host_profile_finds_a_file_in_many_places";
    let Some(mut faults) = Faults::on_a_disk(name) else { return };
    let Some(program) = faults.compile("cc", &["-g", "-O1", "-pthread"], "fault.c") else {
        println!("SKIP {name}: there is no C compiler");
        return;
    };
    for (pieces, file) in [(true, "pieces"), (false, "whole")] {
        faults.data = faults.stage.mount.join(file);
        if pieces {
            write_in_pieces(&faults.data);
        } else {
            fs::write(&faults.data, vec![7; 200 << 16]).unwrap();
        }
        let data = faults.data.to_str().unwrap();
        match faults.profile(&[&program], &["late-window", data]) {
            Ok(found) => {
                // If the file is in one piece, the window or the device is the limit.
                let is_found = found["diagnoses"][0]["rule"] == "fragments";
                assert_eq!(is_found, pieces, "{}", found["diagnoses"]);
            }
            Err(why) => println!("SKIP {name}: {why}"),
        }
    }
}

#[test]
fn host_profile_finds_faults_of_programs_in_rust_and_python() {
    let name = "host_profile_finds_faults_of_programs_in_rust_and_python";
    let Some(faults) = Faults::on_a_disk(name) else { return };
    let options = ["-g", "-O", "-C", "force-frame-pointers=yes"];
    let program = faults.compile("rustc", &options, "fault.rs");
    let script = source_of("fault.py");
    let python = Path::new("python3");
    let commands = [program.as_deref().map(|program| vec![program]), Some(vec![python, &script])];
    for command in commands.iter().flatten() {
        let words = ["backward", faults.data.to_str().unwrap()];
        let found = match faults.profile(command, &words) {
            Ok(found) => found,
            Err(why) => {
                println!("SKIP {name}: {why}");
                return;
            }
        };
        let first = &found["diagnoses"][0];
        assert_eq!(first["rule"], "backward", "{command:?}: {}", found["diagnoses"]);
        // For Python, only the functions of the interpreter itself are known.
        if command.len() == 1 {
            let source = &first["location"]["source"];
            assert!(source[0].as_str().unwrap().ends_with("fault.rs"), "{first}");
            assert_eq!(source[1], marked_line("fault.rs", "backward"), "{first}");
        }
    }
}
