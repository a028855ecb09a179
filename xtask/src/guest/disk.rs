//! The disks of the guest.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

const MIB: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    /// A SCSI host adapter: `sdX`, with an adjustable queue depth; supports hot-plug.
    Scsi,
    /// A SATA port: `sdX` with libata, whose queue depth switches NCQ on and off.
    Sata(u8),
    /// `vdX`.
    Virtio,
}

#[derive(Clone, Copy, Debug)]
pub struct Disk {
    /// Serial number, by which host and guest identify the disk.
    pub serial: &'static str,
    pub bus: Bus,
    pub mib: u64,
}

impl Disk {
    pub fn file(&self, directory: &Path) -> PathBuf {
        directory.join(format!("{}.img", self.serial))
    }

    /// Returns the disk's path in the guest, the same at every boot.
    pub fn path(&self) -> String {
        match self.bus {
            Bus::Virtio => format!("/dev/disk/by-id/virtio-{}", self.serial),
            Bus::Scsi | Bus::Sata(_) => format!("/dev/disk/by-id/wwn-{:#018x}", self.wwn()),
        }
    }

    /// Creates the disk's file, empty, unless it exists.
    pub fn make(&self, directory: &Path) -> Result<()> {
        let path = self.file(directory);
        File::options()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|file| file.set_len(self.mib * MIB))
            .with_context(|| format!("making {}", path.display()))
    }

    /// Returns the image for `blockdev-add` and `-blockdev`. Flushes are ignored: data that the
    /// guest has written survives the end of QEMU in the host's memory.
    pub fn node(&self, directory: &Path) -> Value {
        json!({
            "driver": "raw",
            "node-name": self.serial,
            "cache": { "no-flush": true },
            "file": {
                "driver": "file",
                "filename": self.file(directory).display().to_string(),
                "cache": { "no-flush": true },
            },
        })
    }

    /// Returns the device for `device_add` and `-device`.
    pub fn device(&self) -> Value {
        let (driver, bus) = match self.bus {
            Bus::Scsi => ("scsi-hd", Some("scsi0.0".to_owned())),
            Bus::Sata(port) => ("ide-hd", Some(format!("ide.{port}"))),
            Bus::Virtio => ("virtio-blk-pci", None),
        };
        let mut device = json!({
            "driver": driver,
            "id": format!("disk-{}", self.serial),
            "drive": self.serial,
            "serial": self.serial,
        });
        if let Some(bus) = bus {
            device["bus"] = bus.into();
            device["wwn"] = self.wwn().into();
        }
        device
    }

    /// Returns a world wide name that is the same at every boot and belongs to no vendor.
    fn wwn(&self) -> u64 {
        let tail = self.serial.bytes().fold(0_u64, |sum, byte| sum * 31 + u64::from(byte));
        0x5000_0000_0000_0000 | (tail & 0x0fff_ffff_ffff)
    }
}
