//! Namespaces in which random commands cannot reach the machine.
//!
//! The test restarts itself under unshare(1), with its own mounts, processes, network and, in the
//! ordinary tier, users. All filesystems are read-only there, including `/sys` and `/proc/sys`.
//! Copies or empty directories cover the usual places to write (`/etc`, `/tmp`, `/run`, homes). If
//! this setup is impossible, no command is run.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{MountFlags, mount_bind, mount_remount};

/// Variable that marks a process in the sandbox; its value is the scratch directory.
const SCRATCH: &str = "FOREREAD_TEST_SCRATCH";
/// Mount point of the scratch directory in the sandbox: the first of these that exists.
const STANDS: &[&str] = &["/media", "/srv", "/opt", "/mnt"];
/// Directories that are empty and writable in the sandbox, so that writes to them are detected.
const COVERED: &[&str] =
    &["/tmp", "/var/tmp", "/run", "/home", "/root", "/var/lib/foreread", "/dev/mapper"];
/// Programs that could reach services of the machine in spite of the namespaces.
const WITHHELD: &[&str] =
    &["lvchange", "lvm", "tuned-adm", "systemctl", "udevadm", "reboot", "shutdown", "sysctl"];

/// The part of the machine that commands may change: a disk that the test created.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Mount point of the disk.
    pub mount: Option<PathBuf>,
    /// Block device of the disk, as in `loop7`.
    pub device: Option<String>,
}

impl Place {
    /// No disk: the ordinary tier.
    pub fn nowhere() -> Self {
        Self::default()
    }
}

/// Contents of the sandbox.
#[derive(Debug)]
pub struct Inside {
    /// Scratch directory, as mounted in the sandbox.
    pub scratch: PathBuf,
    pub program: PathBuf,
    /// Targets in addition to the usual ones.
    pub targets: Vec<String>,
    pub device: Option<String>,
    pub workers: usize,
}

/// Returns whether this process is the restarted test.
pub fn is_inside() -> bool {
    std::env::var_os(SCRATCH).is_some()
}

/// Restarts this test in a sandbox and relays its output. In the sandbox, returns the contents.
///
/// An error says why a sandbox is impossible here.
pub fn enter(test: &str, place: &Place) -> Result<Option<Inside>, String> {
    if let Some(scratch) = std::env::var_os(SCRATCH) {
        return Ok(Some(close(Path::new(&scratch))));
    }
    let scratch = tempfile::tempdir().unwrap();
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "--ipc"]);
    if place.device.is_none() {
        unshare.args(["--user", "--map-root-user"]);
    }
    let probe = Command::new("unshare").args(unshare.get_args()).arg("true").output();
    match probe {
        Ok(output) if output.status.success() => {}
        Ok(output) => return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => return Err(format!("unshare: {error}")),
    }
    prepare(scratch.path());
    // The shell adopts orphans of the commands, as init does.
    unshare.args(["sh", "-c", "ip link set lo up 2>/dev/null; \"$@\"; exit $?", "sh"]);
    unshare.arg(std::env::current_exe().unwrap());
    unshare.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    unshare.env(SCRATCH, scratch.path()).env("RUST_BACKTRACE", "0");
    unshare.env("FOREREAD_TEST_MOUNT", place.mount.as_deref().unwrap_or(Path::new("")));
    unshare.env("FOREREAD_TEST_DEVICE", place.device.as_deref().unwrap_or_default());
    assert!(relay(&mut unshare), "see above");
    Ok(None)
}

/// Runs the test in the sandbox and prints its output as it arrives, without the lines of its
/// harness: they would count the test twice. Returns whether the test succeeded.
fn relay(unshare: &mut Command) -> bool {
    let (reader, writer) = std::io::pipe().unwrap();
    unshare.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = unshare.spawn().unwrap();
    // Close this end of the pipe, so that the reader sees the end of file.
    unshare.stdout(Stdio::null()).stderr(Stdio::null());
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line.unwrap()).into_owned();
        let harness = ["running ", "test ", "failures:", "successes:", "---- ", "ok", "FAILED"];
        let is_harness = harness.iter().any(|word| line.starts_with(word));
        if !line.trim().is_empty() && !is_harness {
            println!("{line}");
        }
    }
    child.wait().unwrap().success()
}

/// Creates the sources of the bind mounts.
fn prepare(scratch: &Path) {
    fs::create_dir_all(scratch.join("bin")).unwrap();
    File::create(scratch.join("bin/foreread")).unwrap();
    File::create(scratch.join("withheld")).unwrap();
    fs::create_dir_all(scratch.join("disk")).unwrap();
    for path in COVERED {
        fs::create_dir_all(outside(scratch, path)).unwrap();
    }
    // Unreadable files are not needed.
    let etc = outside(scratch, "/etc");
    let _ = Command::new("cp").arg("-rP").arg("/etc").arg(&etc).output();
}

/// Returns the directory that stands in for one of the machine's.
pub fn outside(scratch: &Path, path: &str) -> PathBuf {
    scratch.join("outside").join(path.trim_start_matches('/').replace('/', "-"))
}

/// Returns the directories of the machine that have a stand-in.
pub fn stand_ins() -> impl Iterator<Item = &'static str> {
    COVERED.iter().copied().chain(["/etc"]).filter(|path| Path::new(path).is_dir())
}

/// Closes the sandbox from inside.
fn close(original: &Path) -> Inside {
    let stand =
        STANDS.iter().map(Path::new).find(|path| path.is_dir() && !original.starts_with(path));
    let scratch = stand.expect("one of /media, /srv, /opt and /mnt").to_path_buf();
    let mounts = mounts();
    mount_bind(original, &scratch).unwrap();
    let program = scratch.join("bin/foreread");
    mount_bind(assert_cmd::cargo::cargo_bin!("foreread"), &program).unwrap();
    let disk = std::env::var("FOREREAD_TEST_MOUNT").ok().filter(|path| !path.is_empty());
    let device = std::env::var("FOREREAD_TEST_DEVICE").ok().filter(|name| !name.is_empty());
    let mut targets = Vec::new();
    if let (Some(disk), Some(device)) = (&disk, &device) {
        mount_bind(disk, scratch.join("disk")).unwrap();
        open_settings(device);
        targets = vec![scratch.join("disk").display().to_string(), format!("/dev/{device}")];
    }
    for (path, options) in &mounts {
        make_read_only(path, options);
    }
    let writable = ["/proc/sys", "/proc/sysrq-trigger"].into_iter();
    for path in writable.filter(|path| Path::new(path).exists()) {
        mount_bind(path, path).unwrap();
        make_read_only(path, "ro,nosuid,nodev,noexec,relatime");
    }
    withhold(&scratch);
    for path in stand_ins() {
        mount_bind(outside(&scratch, path), path).unwrap();
    }
    for path in ["/", "/sys", "/proc/sys", "/usr", "/dev"] {
        let closed = statvfs(path).unwrap().f_flag.contains(StatVfsMountFlags::RDONLY);
        assert!(closed, "{path} could be written to: nothing is run");
    }
    let workers = if device.is_some() { 1 } else { 2 };
    Inside { scratch, program, targets, device, workers }
}

/// Returns mount points with their options.
fn mounts() -> Vec<(String, String)> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let field = |line: &str, at: usize| line.split(' ').nth(at).unwrap().replace("\\040", " ");
    let all = table.lines().map(|line| (field(line, 4), field(line, 5)));
    // The new /proc has processes of the sandbox only, which may change their own settings.
    all.filter(|(path, _)| path != "/proc").collect()
}

/// Makes a mount read-only. A mount for which this fails is unreachable anyway.
fn make_read_only(path: &str, options: &str) {
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for option in options.split(',') {
        flags |= match option {
            "nosuid" => MountFlags::NOSUID,
            "nodev" => MountFlags::NODEV,
            "noexec" => MountFlags::NOEXEC,
            "noatime" => MountFlags::NOATIME,
            "nodiratime" => MountFlags::NODIRATIME,
            "relatime" => MountFlags::RELATIME,
            _ => MountFlags::empty(),
        };
    }
    let _ = mount_remount(path, flags, c"");
}

/// Keeps the settings of a disk, and of unused loop devices, writable.
fn open_settings(device: &str) {
    for name in super::names(Path::new("/sys/block")) {
        let block = Path::new("/sys/devices/virtual/block").join(&name);
        let free = name.starts_with("loop") && !block.join("loop").is_dir();
        let Ok(number) = fs::read_to_string(block.join("dev")) else { continue };
        if name != device && !free {
            continue;
        }
        let bdi = Path::new("/sys/devices/virtual/bdi").join(number.trim());
        for path in [block, bdi] {
            mount_bind(&path, &path).unwrap();
        }
    }
}

fn withhold(scratch: &Path) {
    let dirs = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];
    for dir in dirs {
        for name in WITHHELD {
            let path = Path::new(dir).join(name);
            let Ok(path) = path.canonicalize() else { continue };
            mount_bind(scratch.join("withheld"), path).unwrap();
        }
    }
}
