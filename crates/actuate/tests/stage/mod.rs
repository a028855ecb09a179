//! A file system on a loop device, and processes that hold files open on it.

use std::fs::{self, File};
use std::os::fd::{AsFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use foreread_actuate::Actuator;
use host::{BdiId, Dirs, Root, resolve};
use observe::{OpenFile, OpenFileFilter};
use sys::lock::Lock;
use sys::loopdev::{LoopDevice, find_free, release};
use tempfile::TempDir;
use testkit::HOST_LOCK;
use tunables::{BdiLease, GuardCommand};
use units::Bytes;

/// An ext4 file system on a loop device, removed on drop. A lock serialises the host tests.
pub struct Stage {
    dir: TempDir,
    node: PathBuf,
    bdi: BdiId,
    original_kib: u64,
    mounted: bool,
    _turn: Lock,
}

impl Stage {
    pub fn set(name: &str) -> Option<Self> {
        let skip = |reason: &str| {
            println!("SKIP {name}: {reason}");
            None
        };
        if !rustix::process::geteuid().is_root() {
            return skip("needs root");
        }
        if let Err(error) = observe::Census::load() {
            return skip(&error.to_string());
        }
        let Ok(turn) = Lock::acquire(Path::new(HOST_LOCK)) else {
            return skip("no lock");
        };
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let Ok(device) = attach(&dir.path().join("disk.img")) else {
            return skip("no loop device");
        };
        let (node, number) = (device.path(), device.number());
        drop(device);
        let bdi = BdiId::new(&format!("7:{number}")).expect("a bdi");
        let mut stage = Self { dir, node, bdi, original_kib: 0, mounted: false, _turn: turn };
        stage.original_kib = stage.bdi_kib();
        let node = stage.node.to_str().expect("a name").to_owned();
        let point = stage.point();
        fs::create_dir(&point).expect("a directory");
        if !run("mkfs.ext4", &["-q", &node])
            || !run("mount", &[&node, point.to_str().expect("a name")])
        {
            return skip("cannot make or mount ext4");
        }
        stage.mounted = true;
        Some(stage)
    }

    pub fn point(&self) -> PathBuf {
        self.dir.path().join("mnt")
    }

    pub fn set_bdi(&self, kib: u64) {
        fs::write(self.bdi.dir().join("read_ahead_kb"), format!("{kib}\n")).expect("written");
    }

    pub fn bdi_kib(&self) -> u64 {
        let text = fs::read_to_string(self.bdi.dir().join("read_ahead_kb")).expect("a value");
        text.trim().parse().expect("a number")
    }

    /// Creates a file of this size with data, none of which is cached.
    pub fn file(&self, name: &str, bytes: usize) -> PathBuf {
        let path = self.point().join(name);
        if !path.exists() {
            fs::write(&path, vec![7; bytes]).expect("a file");
            let file = File::open(&path).expect("open");
            file.sync_all().expect("synced");
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("evicted");
        }
        path
    }

    /// Returns whether the file system could be unmounted. It is mounted again.
    pub fn remount(&self) -> bool {
        let point = self.point();
        let point = point.to_str().expect("a name");
        run("umount", &[point]) && run("mount", &[self.node.to_str().expect("a name"), point])
    }

    pub fn lease(&self) -> BdiLease {
        let storage = resolve(&Root::system(), &self.point()).expect("storage");
        let dirs = Dirs::under(self.dir.path());
        BdiLease::begin(&dirs, &Root::system(), &storage, &guard()).expect("a lease")
    }

    /// Lists all open files of the file system.
    pub fn all(&self, actuator: &Actuator) -> Vec<OpenFile> {
        actuator.open_files(&OpenFileFilter::on_bdi(&self.bdi)).expect("open files")
    }

    /// Returns the one file that a reader has open there.
    pub fn one(&self, actuator: &Actuator, reader: &Reader) -> OpenFile {
        let mut files = self.all(actuator);
        files.retain(|file| file.holders.iter().any(|holder| holder.pid == reader.pid()));
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }

    pub fn held_by(&self, actuator: &Actuator, pid: u32, fd: RawFd) -> Option<OpenFile> {
        let number = u32::try_from(fd).expect("a descriptor");
        let files = self.all(actuator);
        files
            .into_iter()
            .find(|file| file.holders.iter().any(|it| it.pid == pid && it.has_descriptor(number)))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::write(self.bdi.dir().join("read_ahead_kb"), self.original_kib.to_string());
        if self.mounted {
            let _ = run("umount", &[self.point().to_str().expect("a name")]);
        }
        let _ = release(&self.node);
    }
}

fn attach(path: &Path) -> std::io::Result<LoopDevice> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    file.set_len(Bytes::from_mib(256).get())?;
    LoopDevice::set_up(find_free()?, file.as_fd(), Bytes::new(4096))
}

pub fn run(program: &str, arguments: &[&str]) -> bool {
    let quiet = Stdio::null;
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", path).stdout(quiet()).stderr(quiet());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the guard, an example of this crate that is built next to the tests.
fn guard() -> GuardCommand {
    let own = std::env::current_exe().expect("this test");
    let target = own.parent().and_then(Path::parent).expect("a target folder");
    let program = target.join("examples/guard");
    assert!(program.exists(), "{} is not built: run `cargo test`", program.display());
    GuardCommand { program, args: Vec::new() }
}

/// Starts a program and waits until its `execve` is complete: until then it may still have
/// inherited descriptors open.
fn started(command: &mut Command, name: &str) -> Child {
    let child = command.spawn().expect(name);
    let comm = format!("/proc/{}/comm", child.id());
    while fs::read_to_string(&comm).expect("a process").trim() != name {
        std::thread::yield_now();
    }
    child
}

/// A process that holds one file open as its standard input, and waits.
pub struct Reader(Child);

impl Reader {
    pub fn of(path: &Path) -> Self {
        Self::with(File::open(path).expect("open"))
    }

    /// Starts a process that holds this open file.
    pub fn with(file: File) -> Self {
        let stdin = Stdio::from(file);
        Self(started(Command::new("sleep").arg("60").stdin(stdin), "sleep"))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Duplicates the child's descriptor into this process.
    pub fn share(&self) -> File {
        let pid = rustix::process::Pid::from_child(&self.0);
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty());
        let flags = rustix::process::PidfdGetfdFlags::empty();
        let shared = rustix::process::pidfd_getfd(pidfd.expect("a process"), 0, flags);
        shared.expect("a duplicate").into()
    }

    pub fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.end();
    }
}
