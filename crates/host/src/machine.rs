//! Facts about the machine.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sys::page_size;
use units::{Bytes, PageSize};

use crate::{HostError, Root, parse_meminfo};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel's release, as in `uname -r`.
    pub kernel: String,
    /// The processor's architecture, as in `uname -m`.
    pub architecture: String,
    /// Number of processors that this process may run on.
    pub cpus: u32,
    pub cpu_model: Option<String>,
    pub memory: Bytes,
    /// Memory that was available without swapping at the time of reading.
    pub memory_available: Bytes,
    pub page_size: PageSize,
    /// Whether the machine runs under a hypervisor; `None` if unknown.
    pub virtualised: Option<bool>,
    pub hostname: Option<String>,
    pub boot_id: Option<String>,
}

impl Machine {
    pub fn read(root: &Root) -> Result<Self, HostError> {
        let memory = parse_meminfo(&root.read("/proc/meminfo")?);
        let amount = |name: &str| memory.get(name).copied().unwrap_or_default();
        let cpuinfo = root.read_if_present("/proc/cpuinfo")?.unwrap_or_default();
        let name = |path: &str| root.read_if_present(path);
        Ok(Self {
            kernel: root.read("/proc/sys/kernel/osrelease")?,
            architecture: name("/proc/sys/kernel/arch")?
                .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cpus: cpus(root, &cpuinfo),
            cpu_model: field(&cpuinfo, "model name").map(str::to_owned),
            memory: amount("MemTotal"),
            memory_available: amount("MemAvailable"),
            page_size: page_size(),
            virtualised: virtualised(root, &cpuinfo),
            hostname: name("/proc/sys/kernel/hostname")?,
            boot_id: name("/proc/sys/kernel/random/boot_id")?,
        })
    }

    /// Returns the first two numbers of the kernel's release; `None` if it has an unknown form.
    pub fn release(&self) -> Option<KernelRelease> {
        self.kernel.parse().ok()
    }
}

/// Returns the machine's page size; for a captured tree, as recorded in `/proc/self/smaps`.
pub fn page_size_of(root: &Root) -> PageSize {
    if root.is_system() {
        return page_size();
    }
    let kib = root.read("/proc/self/smaps").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("KernelPageSize:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.and_then(|kib| PageSize::new(kib.checked_mul(1024)?)).unwrap_or(PageSize::FOUR_KIB)
}

/// Returns the number of processors available to this process; in a captured tree, all of them.
fn cpus(root: &Root, cpuinfo: &str) -> u32 {
    if root.is_system()
        && let Ok(cpus) = std::thread::available_parallelism()
    {
        return u32::try_from(cpus.get()).unwrap_or(u32::MAX);
    }
    let listed = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    u32::try_from(listed).unwrap_or(u32::MAX).max(1)
}

/// Returns the value of the first `name : value` line.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// Detects a hypervisor: x86 processors report it; on other architectures the firmware may.
fn virtualised(root: &Root, cpuinfo: &str) -> Option<bool> {
    if root.exists("/sys/hypervisor/type") || root.exists("/proc/device-tree/hypervisor") {
        return Some(true);
    }
    field(cpuinfo, "flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
}

/// The first two numbers of a kernel's release: 6 and 18 for `6.18.44-generic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelRelease {
    pub major: u32,
    pub minor: u32,
}

impl fmt::Display for KernelRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.major, self.minor))
    }
}

impl FromStr for KernelRelease {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: Option<&str>| -> Option<u32> {
            let part = part?;
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..end].parse().ok()
        };
        let mut parts = text.splitn(3, '.');
        number(parts.next())
            .zip(number(parts.next()))
            .map(|(major, minor)| Self { major, minor })
            .ok_or_else(|| format!("{text:?} is not a kernel release"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_release_starts_with_two_numbers() {
        let release = |text: &str| text.parse::<KernelRelease>().map(|r| (r.major, r.minor));
        assert_eq!(release("6.18.44-fc-v669"), Ok((6, 18)));
        assert_eq!(release("6.1-rc3"), Ok((6, 1)));
        assert!(release("six").is_err());
        assert!(release("6").is_err());
    }

    #[test]
    fn a_captured_machine_is_read() {
        let tree = tempfile::tempdir().expect("a directory");
        let file = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        };
        file("proc/meminfo", "MemTotal: 2048 kB\nMemAvailable: 1024 kB\n");
        file("proc/cpuinfo", "processor\t: 0\nmodel name\t: Box\nflags\t: fpu hypervisor\n");
        file("proc/sys/kernel/osrelease", "6.1.0-9-amd64\n");
        let machine = Machine::read(&Root::at(tree.path())).expect("a machine");
        assert_eq!(machine.cpus, 1);
        assert_eq!(machine.memory, Bytes::from_mib(2));
        assert_eq!(machine.memory_available, Bytes::from_mib(1));
        assert_eq!(machine.virtualised, Some(true));
        assert_eq!(machine.cpu_model.as_deref(), Some("Box"));
        assert_eq!(machine.release(), Some(KernelRelease { major: 6, minor: 1 }));
        assert_eq!(machine.boot_id, None);
    }

    #[test]
    fn this_machine_is_read() {
        let machine = Machine::read(&Root::system()).expect("a machine");
        assert!(machine.cpus >= 1 && machine.memory > machine.page_size.bytes());
        assert!(machine.release().is_some());
    }

    proptest! {
        #[test]
        fn any_release_is_read_without_panic(text in "\\PC*") {
            let _ = text.parse::<KernelRelease>();
        }
    }
}
