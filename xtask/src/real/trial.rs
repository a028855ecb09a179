//! One run of a program from a cold disk.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use vdisk::VirtualDisk;

use super::processor::ProcessorMeter;
use super::programs::Program;
use super::samples::{Arm, ProgramSample, Simulated};
use super::workshop::{Workshop, run};

/// Time that `auto` runs before the program starts.
const HEAD_START: Duration = Duration::from_millis(1500);
/// Maximum time that another mount namespace may keep the disk mounted.
const MAX_UNMOUNT: Duration = Duration::from_secs(60);
/// Window without `auto`, and initial window with `auto`.
const DEFAULT_KIB: u64 = 128;

/// A disk on which programs run.
#[derive(Debug)]
pub struct Bench<'a> {
    pub workshop: &'a Workshop,
    pub disk: &'a VirtualDisk,
    pub meter: Option<&'a ProcessorMeter>,
    /// Number of operations that the program performs.
    pub operations: u64,
}

impl Bench<'_> {
    /// Runs a program once; `seed` determines what it reads.
    pub fn run(&self, program: &Program, arm: Arm, seed: u64) -> Result<ProgramSample> {
        let mount = self.disk.mountpoint().context("a disk without a file system")?;
        self.set_window(match arm {
            Arm::Static(kib) => kib,
            Arm::Default | Arm::Auto | Arm::Profile => DEFAULT_KIB,
        })?;
        self.cool(mount)?;
        let auto = if arm == Arm::Auto { Some(self.auto(mount)?) } else { None };
        self.measured(|| {
            let output = self.command(None, program, mount, seed).stderr(Stdio::inherit()).output();
            let output = output.context("starting a program")?;
            let seconds = seconds(program, output.status, &output.stdout)?;
            auto.map(Auto::stop).transpose()?;
            Ok(seconds)
        })
    }

    /// Loads the program and its libraries, which are not on the disk, into memory.
    pub fn read_libraries(&self, program: &Program) -> Result<()> {
        self.disk.set_timing(false)?;
        let read = self.run(program, Arm::Default, 0);
        self.disk.set_timing(true)?;
        read.map(drop)
    }

    /// Runs a program once under `foreread profile`; returns the simulation of these settings.
    pub fn profile(
        &self,
        program: &Program,
        settings: &str,
        seed: u64,
    ) -> Result<(ProgramSample, Simulated)> {
        let mount = self.disk.mountpoint().context("a disk without a file system")?;
        self.set_window(DEFAULT_KIB)?;
        self.cool(mount)?;
        let mut simulated = Simulated::default();
        let sample = self.measured(|| {
            let mut command = self.command(Some(settings), program, mount, seed);
            let output = command.output().context("starting foreread profile")?;
            let document = serde_json::from_slice(&output.stdout).context("reading a profile")?;
            // The program's stdout is redirected to stderr.
            let seconds = seconds(program, output.status, &output.stderr)?;
            simulated = Simulated::of(&document, seconds);
            Ok(seconds)
        })?;
        Ok((sample, simulated))
    }

    /// Measures the disk's activity during `work`, which returns its seconds.
    fn measured(&self, work: impl FnOnce() -> Result<f64>) -> Result<ProgramSample> {
        self.disk.reset()?;
        let before = self.meter.map(ProcessorMeter::read).transpose()?;
        let seconds = work()?;
        let after = self.meter.map(ProcessorMeter::read).transpose()?;
        let counters = self.disk.counters()?;
        let dilation = self.disk.dilation();
        Ok(ProgramSample {
            seconds: seconds / dilation,
            device_bytes: counters.read_bytes.get(),
            device_reads: counters.reads,
            busy_seconds: counters.busy.as_secs_f64() / dilation,
            other_processors: before.zip(after).map(|(before, after)| before.other_work(&after)),
        })
    }

    /// Empties the cache of this disk by remounting it. Unlike dropping all caches, this does not
    /// affect other processes of this machine.
    fn cool(&self, mount: &Path) -> Result<()> {
        let device = self.disk.device();
        let name = device.file_name().context("a device without a name")?;
        let mounted = Path::new("/sys/fs/xfs").join(name);
        let started = Instant::now();
        // The last processes of a program may still be closing their files.
        while let Err(error) = run(Command::new("umount").arg("-q").arg(mount)) {
            if started.elapsed() > MAX_UNMOUNT {
                return Err(error);
            }
            thread::sleep(Duration::from_millis(200));
        }
        while mounted.exists() {
            if started.elapsed() > MAX_UNMOUNT {
                run(Command::new("mount").arg(device).arg(mount))?;
                bail!("{} stays mounted in another mount namespace", device.display());
            }
            thread::sleep(Duration::from_millis(50));
        }
        run(Command::new("mount").arg(device).arg(mount))
    }

    fn set_window(&self, kib: u64) -> Result<()> {
        let file = format!("/sys/class/bdi/{}/read_ahead_kb", self.disk.devno());
        fs::write(&file, kib.to_string()).with_context(|| format!("writing {file}"))
    }

    /// Returns the command of the work, or of `foreread profile` with these settings around it.
    fn command(
        &self,
        settings: Option<&str>,
        program: &Program,
        mount: &Path,
        seed: u64,
    ) -> Command {
        let python = self.workshop.python();
        let mut command = match settings {
            None => Command::new(python),
            Some(settings) => {
                let dirs = self.workshop.dirs();
                let mut command = Command::new(&self.workshop.foreread);
                command.args(["profile", "--json", "--what-if", settings, "--"]).arg(python);
                command.env("FOREREAD_STATE_DIR", dirs.state);
                command.env("FOREREAD_RUNTIME_DIR", dirs.runtime);
                command
            }
        };
        command.arg("-B").arg(self.workshop.script("work.py")).arg(program.name).arg(mount);
        command.args([self.operations.to_string(), seed.to_string()]);
        command
    }

    fn auto(&self, mount: &Path) -> Result<Auto> {
        let dirs = self.workshop.dirs();
        let log = self.workshop.directory.join("auto.log");
        let log = File::create(&log).with_context(|| format!("making {}", log.display()))?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "INT", "--"])
            .arg(&self.workshop.foreread)
            .arg("auto")
            .arg(mount)
            .env("FOREREAD_STATE_DIR", dirs.state)
            .env("FOREREAD_RUNTIME_DIR", dirs.runtime)
            .stdout(log.try_clone().context("sharing the log")?)
            .stderr(log)
            .spawn()
            .context("starting foreread auto")?;
        let mut auto = Auto(child);
        thread::sleep(HEAD_START);
        match auto.0.try_wait().context("looking at foreread auto")? {
            None => Ok(auto),
            Some(status) => bail!("foreread auto ended with {status}; see target/real/auto.log"),
        }
    }
}

/// Returns the duration of a program's work, in real seconds.
fn seconds(program: &Program, status: ExitStatus, printed: &[u8]) -> Result<f64> {
    if !status.success() {
        bail!("{} ended with {status}", program.name);
    }
    let printed = String::from_utf8_lossy(printed);
    let seconds = printed.lines().find_map(|line| line.strip_prefix("seconds ")?.parse().ok());
    seconds.with_context(|| format!("{} does not say how long it took", program.name))
}

/// `foreread auto`, which is stopped on drop.
#[derive(Debug)]
struct Auto(Child);

impl Auto {
    fn stop(mut self) -> Result<()> {
        self.interrupt()?;
        let status = self.0.wait().context("waiting for foreread auto")?;
        // An interrupted program exits with 130.
        if !matches!(status.code(), Some(0 | 130)) {
            bail!("foreread auto ended with {status}; see target/real/auto.log");
        }
        Ok(())
    }

    fn interrupt(&self) -> Result<()> {
        run(Command::new("kill").args(["-INT", &self.0.id().to_string()]))
    }
}

impl Drop for Auto {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.interrupt();
            let _ = self.0.wait();
        }
    }
}
