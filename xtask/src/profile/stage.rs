//! A virtual disk with the data that the programs read.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use host::Dirs;
use serde_json::Value;
use vdisk::{DiskConfig, Lifetime, ServerCommand, VirtualDisk};

use super::cases::{FaultCase, Language};
use super::group::MemoryGroup;
use super::row::FaultRow;
use crate::real::{MAX_OTHER_PROCESSORS, ProcessorMeter, go_first, to_end};

const DATA_BYTES: usize = 64 << 20;
const SMALL_FILES: usize = 400;

/// The disk, the compiled programs and their data.
#[derive(Debug)]
pub struct FaultStage {
    foreread: PathBuf,
    directory: PathBuf,
    programs: PathBuf,
    disk_name: String,
    disk: VirtualDisk,
    data: PathBuf,
    meter: Option<ProcessorMeter>,
}

impl FaultStage {
    /// Creates the disk, which is removed when this process exits.
    pub fn open(root: &Path, disk_name: &str) -> Result<Self> {
        let release = root.join("target/release/foreread");
        let foreread = std::env::var_os("FOREREAD").map_or(release, PathBuf::from);
        let directory = root.join("target/profile");
        fs::create_dir_all(&directory).context("making target/profile")?;
        let config = DiskConfig::parse(&format!("{disk_name},fs=xfs,size=2G"))?;
        let args = ["vdisk", "serve"].map(OsString::from).to_vec();
        let server = ServerCommand { program: foreread.clone(), args };
        let dirs = Dirs::under(directory.join("foreread"));
        let disk = VirtualDisk::create(&dirs, config, &server, Lifetime::DiesWithMe)?;
        let data = disk.mountpoint().context("a disk without a file system")?.join("data");
        disk.set_timing(false)?;
        fs::write(&data, vec![7_u8; DATA_BYTES])?;
        let many = data.with_extension("many");
        fs::create_dir_all(&many)?;
        fs::write(data.with_extension("scan"), vec![7_u8; 3 * DATA_BYTES / 4])?;
        for index in 0..SMALL_FILES {
            fs::write(many.join(index.to_string()), vec![7_u8; 16 << 10])?;
        }
        disk.set_timing(true)?;
        let programs = root.join("crates/profile/tests/programs");
        let stage = Self {
            foreread,
            directory,
            programs,
            disk_name: disk_name.to_owned(),
            disk,
            data,
            meter: ProcessorMeter::start(),
        };
        let c = ["-g", "-O1", "-fno-omit-frame-pointer", "-pthread"];
        stage.compile("cc", &c, Language::C)?;
        stage.compile("rustc", &["-g", "-O", "-C", "force-frame-pointers=yes"], Language::Rust)?;
        go_first()?;
        Ok(stage)
    }

    fn compile(&self, compiler: &str, options: &[&str], language: Language) -> Result<()> {
        let source = self.programs.join(language.source());
        to_end(
            Command::new(compiler).args(options).arg("-o").arg(self.program(language)).arg(source),
        )
    }

    fn program(&self, language: Language) -> PathBuf {
        self.directory.join(format!("fault-{language:?}"))
    }

    /// Profiles the program and its twin once, and runs both `pairs` times.
    pub fn measure(&self, case: &FaultCase, pairs: u32) -> Result<FaultRow> {
        let (mut plain, mut fixed) = (Vec::new(), Vec::new());
        let start = self.meter.as_ref().map(ProcessorMeter::read).transpose()?;
        let profile = self.profile(case, false)?;
        let twin = self.profile(case, true)?;
        for _ in 0..pairs {
            plain.push(self.seconds(case, false)?);
            fixed.push(self.seconds(case, true)?);
        }
        let other_work = match (&self.meter, start) {
            (Some(meter), Some(start)) => start.other_work(&meter.read()?),
            _ => 0.0,
        };
        let line = self.marked_line(case)?;
        let row = FaultRow::new(case, &self.disk_name, line, &profile, &twin, (&plain, &fixed));
        Ok(if other_work > MAX_OTHER_PROCESSORS { row.disturbed() } else { row })
    }

    /// Returns the command of the program, with or without its fault.
    fn words(&self, case: &FaultCase, is_fixed: bool) -> Vec<OsString> {
        let mut words: Vec<OsString> = match case.language {
            Language::Python => {
                vec!["python3".into(), self.programs.join(case.language.source()).into()]
            }
            compiled => vec![self.program(compiled).into()],
        };
        words.extend([OsString::from(&case.fault), self.data.clone().into()]);
        let (.., play) = case.windows(&self.disk_name);
        if play > 0 {
            words.extend(["--play".into(), play.to_string().into()]);
        }
        words.extend(is_fixed.then(|| OsString::from("--fixed")));
        words
    }

    /// Creates the program's control group, if its memory is limited.
    fn group(case: &FaultCase, is_fixed: bool) -> Result<Option<MemoryGroup>> {
        let memory = case.memory.map(|(fault, twin)| if is_fixed { twin } else { fault });
        memory.map(MemoryGroup::new).transpose()
    }

    fn profile(&self, case: &FaultCase, is_fixed: bool) -> Result<Value> {
        self.cool(case, is_fixed)?;
        let group = Self::group(case, is_fixed)?;
        let dirs = Dirs::under(self.directory.join("foreread"));
        let output = Command::new(&self.foreread)
            .env("FOREREAD_STATE_DIR", dirs.state)
            .env("FOREREAD_RUNTIME_DIR", dirs.runtime)
            .args(["profile", "--json", "--"])
            .args(group.iter().flat_map(MemoryGroup::words))
            .args(self.words(case, is_fixed))
            .output()
            .context("starting foreread profile")?;
        if !output.status.success() {
            bail!("{}: {}", case.fault, String::from_utf8_lossy(&output.stderr));
        }
        let twin = if is_fixed { "-twin" } else { "" };
        let name = format!("{}-{:?}-{}{twin}.json", self.disk_name, case.language, case.fault);
        fs::write(self.directory.join(name), &output.stdout).context("keeping a profile")?;
        serde_json::from_slice(&output.stdout).context("reading a profile")
    }

    fn seconds(&self, case: &FaultCase, is_fixed: bool) -> Result<f64> {
        self.cool(case, is_fixed)?;
        let group = Self::group(case, is_fixed)?;
        let mut words: Vec<_> = group.iter().flat_map(MemoryGroup::words).collect();
        words.extend(self.words(case, is_fixed));
        let begin = Instant::now();
        to_end(Command::new(&words[0]).args(&words[1..]).stdout(Stdio::null()))?;
        Ok(begin.elapsed().as_secs_f64())
    }

    /// Remounts the disk, so that none of its data is in memory, and sets the window.
    fn cool(&self, case: &FaultCase, is_fixed: bool) -> Result<()> {
        let mount = self.disk.mountpoint().context("a disk without a file system")?;
        to_end(Command::new("umount").arg(mount))?;
        to_end(Command::new("mount").arg(self.disk.device()).arg(mount))?;
        // Loads the path to the file, which should not be measured.
        File::open(&self.data).context("opening the data")?;
        let (fault, twin, _) = case.windows(&self.disk_name);
        let kib = if is_fixed { twin } else { fault };
        let file = format!("/sys/class/bdi/{}/read_ahead_kb", self.disk.devno());
        fs::write(&file, kib.to_string()).with_context(|| format!("writing {file}"))
    }

    /// Returns the line of the fault in the source; `None` for interpreted programs.
    fn marked_line(&self, case: &FaultCase) -> Result<Option<usize>> {
        if case.language == Language::Python {
            return Ok(None);
        }
        let code = fs::read_to_string(self.programs.join(case.language.source()))?;
        let mark = format!("line of {}", case.fault);
        let place = code.lines().position(|line| line.trim_end_matches(" */").ends_with(&mark));
        Ok(Some(1 + place.with_context(|| format!("there is no {mark}"))?))
    }
}
