//! Builds trees of `/sys`, `/proc` and `/dev` with the kernel's layout in temporary directories.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use foreread_host::Root;
use tempfile::TempDir;

pub struct Tree {
    dir: TempDir,
    mounts: String,
}

impl Tree {
    /// Creates a machine with nothing but a disk and an ext4 root on `8:1`.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let tree = Self { dir, mounts: String::new() };
        tree.disk("sda", "8:0").partition("sda", "sda1", "8:1").mount(
            "8:1",
            "/",
            "ext4",
            "/dev/sda1",
        )
    }

    pub fn root(&self) -> Root {
        self.file("proc/self/mountinfo", &self.mounts);
        Root::at(self.dir.path())
    }

    pub fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, text).expect("a file");
        self
    }

    pub fn link(&self, path: &str, target: &str) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        symlink(target, path).expect("a link");
        self
    }

    pub fn mkdir(&self, path: &str) -> &Self {
        fs::create_dir_all(self.at(path)).expect("a directory");
        self
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.at(path)).expect("nothing there");
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    pub fn bdi(self, name: &str, read_ahead_kib: u64) -> Self {
        self.file(
            &format!("sys/devices/virtual/bdi/{name}/read_ahead_kb"),
            &format!("{read_ahead_kib}\n"),
        );
        self.link(&format!("sys/class/bdi/{name}"), &format!("../../devices/virtual/bdi/{name}"));
        self
    }

    /// Adds a whole device: a disk, loop, md or dm device.
    pub fn disk(self, name: &str, number: &str) -> Self {
        let dir = format!("sys/devices/virtual/block/{name}");
        self.file(&format!("{dir}/dev"), &format!("{number}\n"));
        self.file(&format!("{dir}/uevent"), &format!("DEVNAME={name}\nDEVTYPE=disk\n"));
        self.file(&format!("{dir}/size"), "2048\n");
        self.file(&format!("{dir}/stat"), "10 1 80 5 2 0 16 1 3 6 7 0 0 0 0 4 1\n");
        self.file(&format!("{dir}/queue/scheduler"), "none [mq-deadline] kyber\n");
        self.file(&format!("{dir}/queue/max_sectors_kb"), "1280\n");
        self.file(&format!("{dir}/queue/rotational"), "1\n");
        self.mkdir(&format!("{dir}/slaves"));
        self.link(&format!("{dir}/bdi"), &format!("../../bdi/{number}"));
        self.named(name, number, name);
        self.bdi(number, 128)
    }

    pub fn partition(self, disk: &str, name: &str, number: &str) -> Self {
        let dir = format!("sys/devices/virtual/block/{disk}/{name}");
        self.file(&format!("{dir}/dev"), &format!("{number}\n"));
        self.file(&format!("{dir}/partition"), "1\n");
        self.file(&format!("{dir}/size"), "1024\n");
        self.file(&format!("{dir}/stat"), "4 0 32 5 2 0 16 1 0 6 7\n");
        self.named(name, number, &format!("{disk}/{name}"));
        self
    }

    /// Adds a member to a dm or md device.
    pub fn member(self, of: &str, path: &str) -> Self {
        let name = Path::new(path).file_name().and_then(|name| name.to_str()).expect("a name");
        self.link(
            &format!("sys/devices/virtual/block/{of}/slaves/{name}"),
            &format!("../../{path}"),
        );
        self
    }

    fn named(&self, name: &str, number: &str, path: &str) {
        let target = format!("../../devices/virtual/block/{path}");
        self.link(&format!("sys/dev/block/{number}"), &target);
        self.link(&format!("sys/class/block/{name}"), &target);
    }

    /// Adds a mount. Its id is its line number in the mount table.
    pub fn mount(self, number: &str, point: &str, fstype: &str, source: &str) -> Self {
        self.mount_with(number, point, fstype, source, "rw")
    }

    /// Adds a mount with these file system options.
    pub fn mount_with(
        mut self,
        number: &str,
        point: &str,
        fstype: &str,
        source: &str,
        options: &str,
    ) -> Self {
        let id = self.mounts.lines().count() + 1;
        let point = point.replace(' ', "\\040");
        self.mounts +=
            &format!("{id} 1 {number} / {point} rw,relatime - {fstype} {source} {options}\n");
        self
    }

    /// Adds a btrfs with this uuid and bdi on devices that already exist.
    pub fn btrfs(self, uuid: &str, bdi: &str, members: &[&str]) -> Self {
        let dir = format!("sys/fs/btrfs/{uuid}");
        for path in members {
            let name = Path::new(path).file_name().and_then(|name| name.to_str()).expect("a name");
            self.link(
                &format!("{dir}/devices/{name}"),
                &format!("../../../../devices/virtual/block/{path}"),
            );
        }
        self.link(&format!("{dir}/bdi"), &format!("../../../devices/virtual/bdi/{bdi}"));
        self.bdi(bdi, 4096)
    }
}
