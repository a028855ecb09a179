//! A running guest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use super::agent::Agent;
use super::disk::{Bus, Disk};
use super::image::Image;
use super::wire::Wire;
use crate::command::{Output, run, target_directory};

/// Time limit of a command in the guest: usually seconds, but minutes during a build on the host.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit of an orderly shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(300);

/// Kernel command line. udev and systemd must not time out during a build on the host.
const APPEND: &str = "root=LABEL=guest-root console=ttyS0 panic=-1 mitigations=off \
                      systemd.default_timeout_start_sec=600 udev.event_timeout=600";

/// The hardware of a guest.
#[derive(Debug)]
pub struct Hardware {
    pub image: Image,
    /// Directory of the disk images, including `root.img`.
    pub directory: PathBuf,
    pub disks: Vec<Disk>,
}

#[derive(Debug)]
pub struct GuestMachine {
    qemu: Qemu,
    agent: Agent,
    monitor: Wire,
    directory: PathBuf,
    _sockets: TempDir,
}

impl Hardware {
    /// Creates the directory of this name, or empties it. The guest has no disk but its root.
    pub fn new(root: &Path, image: &Image, name: &str) -> Result<Self> {
        let directory = target_directory(root)?.join("guest").join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory).context("removing the disks of the last guest")?;
        }
        fs::create_dir_all(&directory).with_context(|| format!("{}", directory.display()))?;
        let (from, to) = (image.root_disk(), directory.join("root.img"));
        run(Command::new("cp").arg("--sparse=always").arg(from).arg(to))?;
        Ok(Self { image: image.clone(), directory, disks: Vec::new() })
    }

    /// Adds an empty disk.
    pub fn add(&mut self, disk: Disk) -> Result<()> {
        self.disks.push(disk);
        disk.make(&self.directory)
    }

    /// Returns the path of the guest's console log.
    pub fn console(&self) -> PathBuf {
        self.directory.join("console.log")
    }

    /// Starts the guest, and waits until it accepts commands.
    pub fn boot(&self) -> Result<GuestMachine> {
        // Socket paths must be short, and cargo's target directory may be deep.
        let sockets = tempfile::Builder::new().prefix("guest").tempdir()?;
        let (agent, monitor) = (sockets.path().join("agent"), sockets.path().join("monitor"));
        let mut command = self.qemu();
        command
            .args(["-display", "none", "-chardev"])
            .arg(format!("file,id=console,path={}", self.console().display()))
            .args(["-serial", "chardev:console", "-chardev"])
            .arg(format!("socket,id=agent,path={},server=on,wait=off", agent.display()))
            .args(["-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0", "-qmp"])
            .arg(format!("unix:{},server=on,wait=off", monitor.display()))
            .stdin(Stdio::null());
        let qemu = Qemu(command.spawn().context("starting QEMU")?);
        let mut monitor = Wire::connect(&monitor, Duration::from_secs(30))?;
        monitor.ask("qmp_capabilities", &Value::Null, COMMAND_TIMEOUT)?;
        let agent = Agent::greet(&agent)?;
        let directory = self.directory.clone();
        Ok(GuestMachine { qemu, agent, monitor, directory, _sockets: sockets })
    }

    /// Runs the guest with its console on this terminal until it shuts down.
    pub fn on_terminal(&self) -> Result<bool> {
        let mut command = self.qemu();
        command.args(["-nographic", "-serial", "mon:stdio"]);
        Ok(command.status().context("starting QEMU")?.success())
    }

    /// Returns the QEMU command; QEMU exits when this process does for any reason. It runs at low
    /// priority, because the host tests run at the same time.
    fn qemu(&self) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "nice", "-n", "10", "qemu-system-x86_64"]);
        command
            .args(["-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "Nehalem"])
            .args(["-smp", "2", "-m", "1024", "-nodefaults", "-no-reboot", "-kernel"])
            .arg(self.image.kernel())
            .arg("-initrd")
            .arg(self.image.initrd())
            .args(["-append", APPEND])
            .args(["-device", "virtio-rng-pci", "-device", "virtio-serial-pci"])
            .args(["-device", "virtio-scsi-pci,id=scsi0"]);
        let root = Disk { serial: "root", bus: Bus::Virtio, mib: 0 };
        for disk in std::iter::once(&root).chain(&self.disks) {
            command.arg("-blockdev").arg(disk.node(&self.directory).to_string());
            command.arg("-device").arg(disk.device().to_string());
        }
        command
    }
}

/// QEMU's process, which is killed on drop.
#[derive(Debug)]
struct Qemu(Child);

impl Drop for Qemu {
    fn drop(&mut self) {
        // Without effect if it has exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl GuestMachine {
    /// Runs a script, which may fail.
    pub fn attempt(&mut self, script: &str) -> Result<Output> {
        self.attempt_for(script, COMMAND_TIMEOUT)
    }

    /// Runs a script, which may fail, with this time limit.
    pub fn attempt_for(&mut self, script: &str, patience: Duration) -> Result<Output> {
        self.agent.run(script, patience)
    }

    /// Runs a script that must succeed; returns its stdout.
    pub fn sh(&mut self, script: &str) -> Result<String> {
        let Output { code, stdout, stderr } = self.attempt(script)?;
        if code != 0 {
            bail!("exit code {code} in the guest of: {script}\n{stdout}{stderr}");
        }
        Ok(stdout)
    }

    /// Plugs a disk into the running guest.
    pub fn plug(&mut self, disk: &Disk) -> Result<()> {
        disk.make(&self.directory)?;
        self.monitor.ask("blockdev-add", &disk.node(&self.directory), COMMAND_TIMEOUT)?;
        self.monitor.ask("device_add", &disk.device(), COMMAND_TIMEOUT)?;
        Ok(())
    }

    pub fn shut_down(mut self) -> Result<()> {
        // The agent may be stopped before it can report the result.
        let _ = self.agent.run("systemctl --no-block poweroff", Duration::from_secs(10));
        let deadline = Instant::now() + SHUTDOWN_TIMEOUT;
        while self.qemu.0.try_wait().context("waiting for QEMU")?.is_none() {
            if Instant::now() > deadline {
                bail!("the guest does not shut down");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

/// Returns the last lines of a console log.
pub fn tail(console: &Path) -> String {
    let text = fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
