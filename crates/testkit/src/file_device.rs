//! Files as block devices.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the kernel copies from the disk below the file, and does not take back.
const COPIED: [&str; 2] = ["rotational", "read_ahead_kb"];

/// A loop device over a file. On drop, it is detached and gets its settings back.
#[derive(Debug)]
pub struct FileDevice {
    path: String,
    before: Vec<(PathBuf, String)>,
}

impl FileDevice {
    /// Attaches a free device to the file.
    ///
    /// # Errors
    ///
    /// What losetup says; it needs root.
    pub fn attach(file: &Path) -> Result<Self, String> {
        let free = losetup(&["--find"])?;
        let setting =
            |name| Some((queue(&free, name), fs::read_to_string(queue(&free, name)).ok()?));
        let before: Vec<_> = COPIED.iter().copied().filter_map(setting).collect();
        let file = file.to_str().ok_or("the path is not UTF-8")?;
        let path = losetup(&["--find", "--show", file])?;
        // Another program may have taken the free one.
        let before = if path == free { before } else { Vec::new() };
        Ok(Self { path, before })
    }

    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// Returns the file of a setting of its request queue.
    pub fn queue(&self, setting: &str) -> PathBuf {
        queue(&self.path, setting)
    }
}

impl Drop for FileDevice {
    fn drop(&mut self) {
        if let Err(why) = losetup(&["--detach", &self.path]) {
            eprintln!("{} stays: {why}", self.path);
        }
        for (setting, value) in &self.before {
            let _ = fs::write(setting, value);
        }
    }
}

fn queue(device: &str, setting: &str) -> PathBuf {
    let name = device.trim_start_matches("/dev/");
    format!("/sys/block/{name}/queue/{setting}").into()
}

/// Returns what losetup prints: the path of a device.
fn losetup(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("losetup")
        .args(arguments)
        .output()
        .map_err(|error| format!("losetup: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
