//! Resolves paths to bdis on this machine: loop devices, file systems, an overlay. Needs root.

// Skipped tests print the reason.
#![allow(clippy::print_stdout)]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foreread_host as host;
use host::{HostError, Machine, PathProbe, Root, Storage, StorageKind, device_facts, resolve};
use sys::lock::Lock;
use sys::loopdev::{LoopDevice, find_free, release};
use tempfile::TempDir;
use testkit::HOST_LOCK;
use units::Bytes;

/// A temporary directory with devices and mounts. Dropping it unmounts and releases them.
struct Scene {
    name: &'static str,
    dir: TempDir,
    nodes: Vec<PathBuf>,
    points: Vec<PathBuf>,
    _turn: Lock,
}

impl Scene {
    /// Waits for the lock that serialises these tests, or prints why the test is skipped.
    fn begin(name: &'static str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("SKIP {name}: needs root");
            return None;
        }
        match Lock::acquire(Path::new(HOST_LOCK)) {
            Ok(turn) => {
                let dir = tempfile::tempdir().expect("a directory");
                Some(Self { name, dir, nodes: Vec::new(), points: Vec::new(), _turn: turn })
            }
            Err(error) => {
                println!("SKIP {name}: no lock ({error})");
                None
            }
        }
    }

    fn skip(&self, reason: &str) -> Option<PathBuf> {
        println!("SKIP {}: {reason}", self.name);
        None
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Creates a loop device of 256 MiB.
    fn disk(&mut self) -> Option<PathBuf> {
        let path = self.path(&format!("disk {}.img", self.nodes.len()));
        let file = File::options().read(true).write(true).create_new(true).open(path);
        let file = file.expect("a file");
        file.set_len(Bytes::from_mib(256).get()).expect("its size");
        let device = find_free()
            .and_then(|number| LoopDevice::set_up(number, file.as_fd(), Bytes::new(4096)));
        match device {
            Ok(device) => {
                self.nodes.push(device.path());
                Some(device.path())
            }
            Err(error) => self.skip(&format!("no loop device ({error})")),
        }
    }

    fn run<S: AsRef<OsStr>>(&self, program: &str, arguments: &[S]) -> Option<()> {
        let quiet = || Stdio::null();
        let mut command = Command::new(program);
        let status = command.args(arguments).stdout(quiet()).stderr(quiet()).status();
        if status.is_ok_and(|status| status.success()) {
            return Some(());
        }
        self.skip(&format!("{program} is not there or does not work here"));
        None
    }

    /// Mounts at a new directory whose name contains a space.
    fn mount(&mut self, options: &[&OsStr]) -> Option<PathBuf> {
        let point = self.path(&format!("mount {}", self.points.len()));
        fs::create_dir(&point).expect("a directory");
        let arguments: Vec<&OsStr> = options.iter().copied().chain([point.as_os_str()]).collect();
        self.run("mount", &arguments)?;
        self.points.push(point.clone());
        Some(point)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for point in self.points.iter().rev() {
            let _ = Command::new("umount").arg(point).status();
        }
        for node in &self.nodes {
            let _ = release(node);
        }
    }
}

fn found(path: &Path) -> Storage {
    resolve(&Root::system(), path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn number(node: &Path) -> String {
    match PathProbe::read(&Root::system(), node).expect("a device").kind {
        host::ProbeKind::BlockDevice(device) => device.to_string(),
        kind => panic!("{kind:?}"),
    }
}

#[test]
fn host_a_loop_device_is_found_by_every_handle() {
    let _: Option<()> = (|| {
        let mut scene = Scene::begin("host_a_loop_device_is_found_by_every_handle")?;
        let node = scene.disk()?;
        let link = scene.path("by-id");
        symlink(&node, &link).expect("a link");
        let number = number(&node);
        for handle in [node.as_path(), &link, Path::new(&number)] {
            let storage = found(handle);
            assert_eq!(storage.path, node, "{}", handle.display());
            assert_eq!(storage.kind, StorageKind::BlockDevice);
            assert_eq!(storage.bdi.as_str(), number);
            assert_eq!(storage.leaves, storage.devices);
        }
        let facts = device_facts(&Root::system(), found(&node).devices[0]).expect("facts");
        assert_eq!((facts.kind.as_str(), facts.size), ("loop", Some(Bytes::from_mib(256))));
        let file = facts.backing_file.expect("a file");
        assert!(file.ends_with("disk 0.img"), "{file}");
        Some(())
    })();
}

#[test]
fn host_a_mounted_file_system_counts_on_its_device() {
    let _: Option<()> = (|| {
        let mut scene = Scene::begin("host_a_mounted_file_system_counts_on_its_device")?;
        let node = scene.disk()?;
        scene.run("mkfs.ext4", &[OsStr::new("-q"), node.as_os_str()])?;
        let point = scene.mount(&[node.as_os_str()])?;
        let path = point.join("file");
        let mut file = File::create(&path).expect("a file");
        file.write_all(&[7; 1 << 20]).expect("written");
        file.sync_all().expect("synced");
        drop(file);
        let storage = found(&path);
        assert_eq!((storage.kind, storage.bdi.to_string()), (StorageKind::File, number(&node)));
        let mount = storage.mount.as_ref().expect("a mount");
        assert_eq!((&mount.point, mount.fstype.as_str()), (&point, "ext4"));
        assert!(!storage.read_only());
        let machine = Machine::read(&Root::system()).expect("a machine");
        assert!(storage.large_folios(machine.release().expect("a release")).is_some());
        let space = storage.space().expect("room");
        assert!(space.available < space.total && space.total <= Bytes::from_mib(256));
        let stat = storage.stat(&Root::system()).expect("counters").expect("a device");
        assert!(stat.write_bytes >= Bytes::from_mib(1), "{stat:?}");
        scene.run("mount", &["-o".as_ref(), "remount,ro".as_ref(), point.as_os_str()])?;
        assert!(found(&point).read_only());
        Some(())
    })();
}

#[test]
fn host_btrfs_over_two_devices_has_its_own_bdi() {
    let _: Option<()> = (|| {
        let mut scene = Scene::begin("host_btrfs_over_two_devices_has_its_own_bdi")?;
        let (one, two) = (scene.disk()?, scene.disk()?);
        let words = ["-q", "-d", "raid0", "-m", "raid1"].map(OsStr::new);
        let words: Vec<&OsStr> =
            words.into_iter().chain([one.as_os_str(), two.as_os_str()]).collect();
        scene.run("mkfs.btrfs", &words)?;
        let point = scene.mount(&[one.as_os_str()])?;
        let subvolume = point.join("sub");
        scene.run("btrfs", &["subvolume".as_ref(), "create".as_ref(), subvolume.as_os_str()])?;
        for path in [&point, &subvolume] {
            let storage = found(path);
            assert!(storage.bdi.as_str().starts_with("btrfs-"), "{storage:?}");
            let devices: Vec<String> = storage.devices.iter().map(ToString::to_string).collect();
            assert_eq!(devices, [number(&one), number(&two)]);
            let file = storage.bdi.dir().join("read_ahead_kb");
            assert_eq!(fs::read_to_string(file).expect("a value").trim(), "4096");
        }
        assert_eq!(found(&one).bdi.to_string(), number(&one), "a member by itself");
        Some(())
    })();
}

#[test]
fn host_overlays_and_memory_are_refused() {
    let _: Option<()> = (|| {
        let mut scene = Scene::begin("host_overlays_and_memory_are_refused")?;
        let memory = scene.mount(&["-t", "tmpfs", "tmpfs"].map(OsStr::new))?;
        let error = resolve(&Root::system(), &memory).expect_err("no device");
        assert!(matches!(error, HostError::NoBackingDevice { .. }), "{error}");
        for layer in ["lower", "upper", "work"] {
            fs::create_dir(memory.join(layer)).expect("a directory");
        }
        let at = |layer: &str| memory.join(layer).display().to_string();
        let options =
            format!("lowerdir={},upperdir={},workdir={}", at("lower"), at("upper"), at("work"));
        let words = ["-t", "overlay", "-o", &options, "overlay"].map(OsStr::new);
        let merged = scene.mount(&words)?;
        let said = resolve(&Root::system(), &merged).expect_err("no device").to_string();
        assert!(said.contains(&at("upper")) && said.contains("overlay"), "{said}");
        Some(())
    })();
}
