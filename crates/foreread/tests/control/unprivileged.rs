//! `foreread run` as an ordinary user.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::{foreread_in, text};

use super::{Stage, evict};

/// Each read on this disk takes some milliseconds, many times as long as a look at /proc.
const SLOW: &str = "hdd-2008,fs=ext4,size=1G,dilation=1";
/// Reads the last 2,048 pages of a file backward, one at a time.
const BACKWARD: &str = "open(F, '<', $ARGV[0]) or die; my $n = (-s F) / 4096; \
                        for (my $i = $n - 1; $i >= $n - 2048; $i--) { \
                        sysseek(F, $i * 4096, 0); sysread(F, $b, 4096) == 4096 or die }";
const PAGES: u64 = 2048;
/// The file: all of a smaller one would be read at once before its pattern is known.
const MIB: u64 = 64;
/// Prefetching usually leaves about 100 reads. Once, on a busy machine, it ended halfway.
const ATTEMPTS: u32 = 3;

#[test]
fn host_run_as_an_ordinary_user_reads_ahead_for_a_backward_reader() {
    let name = "host_run_as_an_ordinary_user_reads_ahead_for_a_backward_reader";
    if let Some(lack) = lacks() {
        println!("SKIP {name}: {lack}");
        return;
    }
    let Some(stage) = Stage::of(name, SLOW) else { return };
    let path = stage.data("read", MIB, 7);
    let open = |mode| {
        move |path: &std::path::Path| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    open(0o644)(&path);
    path.ancestors()
        .skip(1)
        .take_while(|dir| dir.starts_with(stage.dir.path()))
        .for_each(open(0o755));
    let program = foreread_in(stage.dir.path()).get_program().to_owned();
    let own = tempfile::tempdir().unwrap();
    open(0o777)(own.path());
    let run = |words: &[&str]| {
        evict(&fs::File::open(&path).unwrap());
        let before = stage.reads();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        command.arg(&program).args(["run"]).args(words);
        command.args(["--", "perl", "-e", BACKWARD]).arg(&path).current_dir("/");
        command.env("FOREREAD_STATE_DIR", own.path().join("state")).stdin(Stdio::null());
        command.env("FOREREAD_RUNTIME_DIR", own.path().join("runtime"));
        let output = command.output().unwrap();
        (stage.reads() - before, output)
    };
    let (without, output) = run(&["--no-prefetch"]);
    let said = text(&output.stderr);
    if !said.contains("through /proc") {
        println!("SKIP {name}: nobody cannot start it, or may look into the kernel: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    assert!(without >= PAGES, "the kernel foresees nothing: {without} reads of {PAGES} pages");
    let mut attempts = Vec::new();
    for _ in 0..ATTEMPTS {
        let (with, output) = run(&[]);
        let (lines, said) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{said}");
        assert!(lines.contains("read backward"), "{lines} {said}");
        if with < without / 2 {
            return;
        }
        attempts.push(format!("{with} reads instead of {without}: {lines} {said}"));
    }
    panic!("{}", attempts.join("\n"));
}

/// Returns what this machine lacks for the test; `None` if nothing.
fn lacks() -> Option<String> {
    for words in [["perl", "-e1"], ["setpriv", "--version"]] {
        if Command::new(words[0]).arg(words[1]).stdout(Stdio::null()).status().is_err() {
            return Some(format!("there is no {}", words[0]));
        }
    }
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let nobody = scope.trim().parse().is_ok_and(|scope: u32| scope > 1);
    nobody.then(|| format!("users may not trace even what they start: {}", scope.trim()))
}

impl Stage {
    /// Returns the number of reads that the disk has served.
    fn reads(&self) -> u64 {
        let bdi = self.bdi();
        let stat = fs::read_to_string(format!("/sys/dev/block/{bdi}/stat")).unwrap();
        stat.split_whitespace().next().unwrap().parse().unwrap()
    }
}
