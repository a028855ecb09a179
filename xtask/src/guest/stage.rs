//! The guest that all checks share; its disks survive reboots.

use std::path::Path;

use anyhow::{Context, Result};

use super::disk::{Bus, Disk};
use super::image::Image;
use super::machine::{GuestMachine, Hardware, tail};
use super::payload;

/// Members of the RAID 5.
pub const RAID5: [Disk; 4] =
    [member("five-a"), member("five-b"), member("five-c"), member("five-d")];
/// Members of the RAID 10.
pub const RAID10: [Disk; 4] = [member("ten-a"), member("ten-b"), member("ten-c"), member("ten-d")];
/// A disk at a SATA controller, which has NCQ.
pub const SATA: Disk = Disk { serial: "sata-a", bus: Bus::Sata(0), mib: 192 };
/// Physical volume of LVM.
pub const VOLUMES: Disk = Disk { serial: "volumes", bus: Bus::Virtio, mib: 512 };
/// A disk that is missing until it is plugged in.
pub const LATE: Disk = Disk { serial: "late-a", bus: Bus::Scsi, mib: 64 };

const fn member(serial: &'static str) -> Disk {
    Disk { serial, bus: Bus::Scsi, mib: 160 }
}

/// A guest, running or not.
#[derive(Debug)]
pub struct Stage {
    hardware: Hardware,
    machine: Option<GuestMachine>,
}

impl Stage {
    /// Creates new disks; the machine is off.
    pub fn set(root: &Path, image: &Image) -> Result<Self> {
        let mut hardware = Hardware::new(root, image, "stage")?;
        for disk in RAID5.into_iter().chain(RAID10).chain([SATA, VOLUMES]) {
            hardware.add(disk)?;
        }
        payload::pack(root, &mut hardware)?;
        Ok(Self { hardware, machine: None })
    }

    /// Returns the running guest; boots it if it is off.
    pub fn machine(&mut self) -> Result<&mut GuestMachine> {
        if self.machine.is_none() {
            let mut machine = self.hardware.boot()?;
            machine.sh("test -x /usr/local/bin/foreread || \
                 tar -xf /dev/disk/by-id/virtio-payload -C /usr/local/bin")?;
            // Units that wait for a device may still be starting when the agent runs.
            machine.attempt("systemctl is-system-running --wait")?;
            self.machine = Some(machine);
        }
        self.machine.as_mut().context("the guest is off")
    }

    pub fn reboot(&mut self) -> Result<&mut GuestMachine> {
        if let Some(machine) = self.machine.take() {
            machine.shut_down()?;
        }
        self.machine()
    }

    /// Cuts the power and boots again.
    pub fn power_cut(&mut self) -> Result<&mut GuestMachine> {
        self.machine = None;
        self.machine()
    }

    /// Runs the guest with its console on this terminal.
    pub fn shell(&self) -> Result<bool> {
        println!("root's shell follows; leave with poweroff, or at once with control-A X.");
        println!("foreread: tar -xf /dev/disk/by-id/virtio-payload -C /usr/local/bin");
        self.hardware.on_terminal()
    }

    /// Returns the last lines of the guest's console.
    pub fn evidence(&self) -> String {
        let console = self.hardware.console();
        format!("the end of {}:\n{}", console.display(), tail(&console))
    }
}
