//! Checks on this host's disk that the times of threads add up. Tests in the crate foreread check
//! the diagnoses of faulty programs on virtual disks. Needs root and a C compiler.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // a skipped test says so, others may panic

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use foreread_profile::{ProfileRecording, RecordTarget, Recorder};
use rustix::fs::{Advice, fadvise};
use sys::lock::Lock;
use testkit::HOST_LOCK;

const SIZE: usize = 32 << 20;
/// Maps a file, closes its descriptor if it is asked to, and touches a page of each 256 KiB.
const MAPPER: &str = r#"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **words)
{
	size_t size = 32 << 20;
	int fd = open(words[2], O_RDONLY);
	volatile char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (count != 3 || map == MAP_FAILED)
		return 1;
	if (!strcmp(words[1], "closed"))
		close(fd);
	for (size_t at = 0; at < size; at += 256 << 10)
		(void)map[at];
	return 0;
}
"#;
/// Starts a child that exits at once, and after half a second another one with the same number;
/// exits with status 2 if it cannot choose the number.
const NAMESAKES: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child(void)
{
	pid_t pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

int main(void)
{
	for (int attempt = 0; attempt < 20; attempt++) {
		pid_t first = child();
		usleep(500000);
		FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
		if (!last || fprintf(last, "%d", first - 1) < 0 || fclose(last))
			return 2;
		if (child() == first)
			return 0;
	}
	return 2;
}
"#;
/// Patterns of the program: waits in calls, in faults and in two threads.
const FAULTS: [&str; 3] = ["needless-random", "mapped-sequential", "shared-open-file"];

struct Stage {
    dir: tempfile::TempDir,
    program: PathBuf,
    _turn: Lock,
}

impl Stage {
    /// Prepares the file and the program; prints the reason and returns `None` if it cannot.
    fn new(test: &str) -> Option<Self> {
        let fault = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/fault.c");
        Self::of(test, &fault)
    }

    /// The same with another program.
    fn of(test: &str, source: &Path) -> Option<Self> {
        let skip = |why: &str| println!("SKIP {test}: {why}");
        if !rustix::process::geteuid().is_root() {
            skip("it needs root");
            return None;
        }
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let program = dir.path().join("program");
        let compiled = Command::new("cc")
            .args(["-g", "-O1", "-pthread", "-o"])
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
        let turn = Lock::acquire(Path::new(HOST_LOCK)).unwrap();
        Some(Self { dir, program, _turn: turn })
    }

    /// Profiles the program with a cold cache; `None` if the kernel rejects the probes.
    fn profile(&self, test: &str, fault: &str) -> Option<ProfileRecording> {
        let data = self.dir.path().join("data");
        fadvise(File::open(&data).unwrap(), 0, None, Advice::DontNeed).unwrap();
        let mut command = vec![self.program.display().to_string(), fault.to_owned()];
        command.push(fs::canonicalize(data).unwrap().display().to_string());
        let (recording, status) = record(test, command)?;
        assert!(status.success());
        assert_eq!(recording.lost, 0);
        Some(recording)
    }
}

/// Profiles a command; `None` if the kernel rejects the probes.
fn record(test: &str, command: Vec<String>) -> Option<(ProfileRecording, ExitStatus)> {
    let recorder = match Recorder::new(RecordTarget::Command(command)) {
        Ok(recorder) => recorder.with_output_to_stderr(),
        Err(error) => {
            println!("SKIP {test}: {error}");
            return None;
        }
    };
    let (recording, status) = recorder.record(None, || None).unwrap();
    Some((recording, status.unwrap()))
}

#[test]
fn host_the_times_of_a_thread_add_up() {
    let test = "host_the_times_of_a_thread_add_up";
    let Some(stage) = Stage::new(test) else { return };
    for fault in FAULTS {
        let Some(recording) = stage.profile(test, fault) else { return };
        assert!(!recording.threads.is_empty());
        for thread in &recording.threads {
            let parts = (thread.cpu + thread.runnable + thread.blocked).as_secs_f64();
            let span = thread.span.as_secs_f64();
            assert!((parts - span).abs() <= 0.02 * span + 1e-4, "{thread:?}");
        }
    }
}

#[test]
fn host_faults_show_whether_a_descriptor_is_left() {
    let test = "host_faults_show_whether_a_descriptor_is_left";
    let source = tempfile::Builder::new().suffix(".c").tempfile().unwrap();
    fs::write(source.path(), MAPPER).unwrap();
    let Some(stage) = Stage::of(test, source.path()) else { return };
    for (word, is_closed) in [("open", false), ("closed", true)] {
        let Some(recording) = stage.profile(test, word) else { return };
        let data = fs::canonicalize(stage.dir.path().join("data")).unwrap();
        let of_data =
            |inode: u32| Path::new(&recording.files[inode as usize].path) == data.as_path();
        let missed: Vec<_> = recording
            .accesses
            .iter()
            .filter(|access| of_data(access.inode) && !access.submitted.is_zero())
            .collect();
        assert!(missed.len() >= 4, "{word}: {} faults", missed.len());
        assert!(missed.iter().all(|access| access.only_mapped == is_closed), "{word}: {missed:?}");
    }
}

#[test]
fn host_the_time_between_two_threads_of_one_number_is_not_theirs() {
    let test = "host_the_time_between_two_threads_of_one_number_is_not_theirs";
    let source = tempfile::Builder::new().suffix(".c").tempfile().unwrap();
    fs::write(source.path(), NAMESAKES).unwrap();
    let Some(stage) = Stage::of(test, source.path()) else { return };
    let command = vec![stage.program.display().to_string()];
    let Some((recording, status)) = record(test, command) else { return };
    if !status.success() {
        println!("SKIP {test}: the kernel does not let it choose the number of a process");
        return;
    }
    let children = recording.threads.iter().filter(|thread| thread.blocked.as_secs_f64() < 0.2);
    assert!(children.clone().count() > 0, "{:?}", recording.threads);
    let span: f64 = children.map(|thread| thread.span.as_secs_f64()).sum();
    assert!(span < 0.2, "{:?}", recording.threads);
}
