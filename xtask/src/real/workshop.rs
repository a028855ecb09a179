//! The requirements of programs: Python packages, data, and a virtual disk that contains the data.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use host::Dirs;
use vdisk::{DiskConfig, Lifetime, ServerCommand, VirtualDisk};

/// Packages from PyPI.
const PACKAGES: [&str; 12] = [
    "numpy",
    "duckdb",
    "pyarrow",
    "lmdb",
    "safetensors",
    "polars",
    "h5py",
    "zarr",
    "plyvel",
    "tantivy",
    "faiss-cpu",
    "usearch",
];
/// Programs, and the Debian packages that contain them.
const PROGRAMS: [(&str, &str); 16] = [
    ("rg", "ripgrep"),
    ("git", "git"),
    ("tar", "tar"),
    ("rsync", "rsync"),
    ("zstd", "zstd"),
    ("gcc", "gcc"),
    ("db_bench", "rocksdb-tools"),
    ("mariadbd", "mariadb-server-core mariadb-client-core"),
    ("samtools", "samtools"),
    ("ffmpeg", "ffmpeg"),
    ("plocate-build", "plocate"),
    ("blastn", "ncbi-blast+"),
    ("qemu-img", "qemu-utils"),
    ("db5.3_load", "db5.3-util"),
    ("borg", "borgbackup"),
    ("vips", "libvips-tools"),
];

/// The directory under `target/` with everything that is created once.
#[derive(Debug)]
pub struct Workshop {
    pub directory: PathBuf,
    scripts: PathBuf,
    pub foreread: PathBuf,
}

impl Workshop {
    /// Installs missing Python packages; reports missing Debian packages as an error.
    pub fn open(root: &Path, binary: Option<PathBuf>) -> Result<Self> {
        let workshop = Self {
            directory: root.join("target/real"),
            scripts: root.join("xtask/src/real"),
            foreread: binary.unwrap_or_else(|| root.join("target/release/foreread")),
        };
        if !workshop.foreread.exists() {
            bail!("{} is missing: run make build first", workshop.foreread.display());
        }
        let mut missing = Vec::new();
        for (program, package) in PROGRAMS {
            let found = Command::new("which").arg(program).output().context("starting which")?;
            if !found.status.success() {
                missing.push(package);
            }
        }
        if !missing.is_empty() {
            bail!("programs are missing: apt-get install {}", missing.join(" "));
        }
        fs::create_dir_all(&workshop.directory).context("making target/real")?;
        let python = workshop.python();
        if !python.exists() {
            let venv = workshop.directory.join("venv");
            run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        }
        // An environment of an earlier version lacks the packages that were added since.
        let find = "import sys, importlib.metadata as m; [m.version(p) for p in sys.argv[1:]]";
        let mut look = Command::new(&python);
        look.args(["-c", find]).args(PACKAGES).stderr(Stdio::null());
        if !look.status().context("looking for Python packages")?.success() {
            run(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(PACKAGES))?;
        }
        Ok(workshop)
    }

    /// Returns the commit from which the program under test was built.
    pub fn commit(&self) -> Result<String> {
        let output = Command::new(&self.foreread).arg("--version").output();
        let output = output.context("asking foreread for its version")?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let commit = printed.lines().find_map(|line| line.strip_prefix("commit: "));
        Ok(commit.context("foreread --version names no commit")?.to_owned())
    }

    pub fn python(&self) -> PathBuf {
        self.directory.join("venv/bin/python")
    }

    pub fn script(&self, name: &str) -> PathBuf {
        self.scripts.join(name)
    }

    /// Returns the data set with this name; creates it if it does not exist.
    fn data(&self, name: &str) -> Result<PathBuf> {
        let directory = self.directory.join("data").join(name);
        if !directory.exists() {
            eprintln!("making the data set {name}");
            let unfinished = directory.with_extension("unfinished");
            let _ = fs::remove_dir_all(&unfinished);
            fs::create_dir_all(&unfinished).context("making a directory for data")?;
            let script = self.script("data.py");
            run(Command::new(self.python()).arg(script).arg(name).arg(&unfinished))?;
            fs::rename(&unfinished, &directory).context("naming a data set")?;
        }
        Ok(directory)
    }

    /// Creates a virtual disk with this data set; removed on drop or when this process exits.
    pub fn disk(&self, words: &str, data: &str) -> Result<VirtualDisk> {
        let data = self.data(data)?;
        let config = DiskConfig::parse(&format!("{words},fs=xfs,size=4G"))?;
        let server = ServerCommand {
            program: self.foreread.clone(),
            args: ["vdisk", "serve"].map(OsString::from).to_vec(),
        };
        let disk = VirtualDisk::create(&self.dirs(), config, &server, Lifetime::DiesWithMe)?;
        disk.set_timing(false)?;
        let mount = disk.mountpoint().context("a disk without a file system")?;
        run(Command::new("cp").arg("-a").arg(data.join(".")).arg(mount))?;
        run(Command::new("sync").arg("-f").arg(mount))?;
        disk.set_timing(true)?;
        go_first()?;
        Ok(disk)
    }

    /// Returns state and runtime directories that no other foreread uses.
    pub fn dirs(&self) -> Dirs {
        Dirs::under(self.directory.join("foreread"))
    }
}

/// Gives this process and its children priority over other work on this machine, to reduce
/// disturbances. The kernel shares CPUs among sessions (sched(7), "autogroup"), each of which has
/// its own nice value besides those of its processes; a disk's server is a separate session.
pub fn go_first() -> Result<()> {
    let own = std::process::id().to_string();
    let children = fs::read_to_string(format!("/proc/self/task/{own}/children"));
    for pid in children.unwrap_or_default().split_whitespace().chain([own.as_str()]) {
        run(Command::new("renice").args(["-n", "-15", "-p", pid]).stdout(Stdio::null()))?;
        // Kernels without autogroups lack this file.
        let _ = fs::write(format!("/proc/{pid}/autogroup"), "-20");
    }
    Ok(())
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
