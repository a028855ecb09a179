//! The images of guests: a script, `scripts/guest-image` or `scripts/kernel-image`, creates each
//! image once; it is then kept.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::command::{captured, target_directory};

/// Variable with the directory of images, which replaces cargo's target directory.
const CACHE: &str = "FOREREAD_GUEST_CACHE";

#[derive(Clone, Debug)]
pub struct Image {
    pub directory: PathBuf,
    /// The kernel to boot if there are several: `6.1`; `None` for the only one.
    series: Option<String>,
}

impl Image {
    pub fn kernel(&self) -> PathBuf {
        self.boot_file("vmlinuz")
    }

    pub fn initrd(&self) -> PathBuf {
        self.boot_file("initrd")
    }

    fn boot_file(&self, name: &str) -> PathBuf {
        match &self.series {
            Some(series) => self.directory.join(format!("{name}-{series}")),
            None => self.directory.join(name),
        }
    }

    /// Returns the root file system's image, which is copied and never written.
    pub fn root_disk(&self) -> PathBuf {
        self.directory.join("root.img")
    }

    /// Returns the version of the guest's C library: `2.36`.
    pub fn libc_version(&self) -> Result<String> {
        let path = self.directory.join("libc-version");
        let text = fs::read_to_string(&path)
            .with_context(|| format!("reading {}; remove its directory", path.display()))?;
        Ok(text.trim().to_owned())
    }
}

#[derive(Debug)]
pub enum Made {
    Here(Image),
    /// There is no image, and it cannot be created here for this reason.
    NotHere(String),
}

impl Made {
    /// Returns the image.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn here(self) -> Result<Image> {
        match self {
            Self::Here(image) => Ok(image),
            Self::NotHere(reason) => bail!("no guest here: {reason}"),
        }
    }
}

/// Finds or creates the image of the guest tests.
pub fn get(root: &Path) -> Result<Made> {
    made_by(root, "guest-image", None)
}

/// Finds or creates the image with several kernels, to be booted with the kernel of this series.
pub fn of_kernel(root: &Path, series: &str) -> Result<Made> {
    made_by(root, "kernel-image", Some(series.to_owned()))
}

fn made_by(root: &Path, script: &str, series: Option<String>) -> Result<Made> {
    if let Some(lack) = lack_of_programs() {
        return Ok(Made::NotHere(lack));
    }
    let cache = cache(root)?;
    fs::create_dir_all(&cache).with_context(|| format!("making {}", cache.display()))?;
    let script = root.join("scripts").join(script);
    let directory = cache.join(format!("image-{:016x}", fingerprint(&script)?));
    let lock = cache.join("lock");
    let lock = File::create(&lock).with_context(|| format!("making {}", lock.display()))?;
    lock.lock().context("waiting for whoever is making the guest's image")?;
    let image = Image { directory, series };
    if image.root_disk().exists() {
        return Ok(Made::Here(image));
    }
    make(&script, image)
}

fn make(script: &Path, image: Image) -> Result<Made> {
    let started = Instant::now();
    println!("making the guest's image from Debian's packages: a minute or two, once");
    let output = captured(Command::new(script).arg(&image.directory))?;
    if output.code == 0 {
        println!("the guest's image is made: {:.0} s", started.elapsed().as_secs_f64());
        return Ok(Made::Here(image));
    }
    println!("{}", output.stderr);
    let (script, why) = (script.display(), output.last_line());
    Ok(Made::NotHere(format!("{script} could not make its image: {why}")))
}

fn cache(root: &Path) -> Result<PathBuf> {
    match std::env::var_os(CACHE) {
        Some(named) => Ok(PathBuf::from(named)),
        None => Ok(target_directory(root)?.join("guest")),
    }
}

/// Returns a hash of the script: an image is kept while the script that created it is unchanged.
fn fingerprint(script: &Path) -> Result<u64> {
    let text = fs::read(script).with_context(|| format!("reading {}", script.display()))?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Ok(hasher.finish())
}

/// Returns a message about a missing program, with its package.
fn lack_of_programs() -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some("the guest is an x86-64 machine and runs on nothing else yet".to_owned());
    }
    let needed = [
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("mmdebstrap", "mmdebstrap"),
        ("mkfs.ext4", "e2fsprogs"),
        ("setpriv", "util-linux"),
    ];
    let lacking = needed.iter().find(|(program, _)| !is_on_path(program));
    lacking.map(|(program, package)| {
        format!("{program} is not installed (package {package}; `make deps` gets it)")
    })
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).any(|place| place.join(program).is_file())
}
