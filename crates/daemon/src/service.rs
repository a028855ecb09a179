//! The service of systemd: its unit, and messages to the service manager.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Returns a unit that runs `program auto` with these arguments. The service has few privileges
/// beyond those that it needs: to observe the kernel (BPF), to duplicate other processes' open
/// files (SYS_PTRACE), and to write the settings of its bdi.
///
/// Before it starts, it restores the settings that killed runs left, but not those that the user
/// applied or persisted. Its runtime directory is preserved, because it contains the locks and
/// virtual disks of other runs.
pub fn unit(program: &str, words: &str) -> String {
    // systemd does not expand variables in the path of the program.
    let program = in_quotes(program);
    format!(
        "\
[Unit]
Description=Read-ahead of each open file, kept right by foreread
Documentation=man:foreread(1)
After=local-fs.target

[Service]
Type=notify
ExecStart={program} auto {words}
WatchdogSec=30
Restart=on-failure
RestartSec=10
# It exits by 128 + SIGTERM when it is stopped, after it has restored all windows.
SuccessExitStatus=143
# A start undoes what an earlier one left, if that was killed together with its guard. Settings that
# were applied or persisted stay.
ExecStartPre=-{program} rollback left
RuntimeDirectory=foreread
RuntimeDirectoryPreserve=yes
StateDirectory=foreread
CapabilityBoundingSet=CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_DAC_OVERRIDE \
CAP_CHECKPOINT_RESTORE
AmbientCapabilities=CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_CHECKPOINT_RESTORE
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
PrivateNetwork=yes
PrivateTmp=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service bpf perf_event_open pidfd_open pidfd_getfd open_by_handle_at
SystemCallFilter=~@mount @swap @reboot @module @raw-io @clock
LimitMEMLOCK=infinity
# Not MemoryMax: what it has the kernel read ahead counts as its own. It keeps to such a limit, but
# would then prime less.
LimitDATA=512M
CPUQuota=20%

[Install]
WantedBy=multi-user.target
"
    )
}

/// Quotes an argument for the command line of a unit (systemd.service(5)).
pub fn quoted(word: &str) -> String {
    in_quotes(word).replace('$', "$$")
}

fn in_quotes(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('%', "%%"))
}

/// The service manager that started this program (sd_notify(3)).
///
/// Version 0.5 of the crate `sd-notify` does not support abstract addresses (`@name`).
#[derive(Debug)]
pub struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl ServiceManager {
    /// Opens a socket to the service manager at an address (`NOTIFY_SOCKET`): a path, or `@name`.
    pub fn at(address: &str) -> io::Result<Self> {
        let address = match address.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(address)?,
        };
        Ok(Self { socket: UnixDatagram::unbound()?, address })
    }

    /// Sends a state: `READY=1`, `WATCHDOG=1`, `STATUS=…`, `STOPPING=1`.
    pub fn notify(&self, state: &str) -> io::Result<()> {
        self.socket.send_to_addr(state.as_bytes(), &self.address).map(drop)
    }
}

/// Returns the interval between `WATCHDOG=1` messages: half of `WATCHDOG_USEC`.
pub fn watchdog(micros: &str) -> Option<Duration> {
    let micros: u64 = micros.parse().ok().filter(|micros| *micros > 0)?;
    Some(Duration::from_micros(micros / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_reach_the_service_manager() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("notify");
        let manager = UnixDatagram::bind(&path).expect("a socket");
        let service = ServiceManager::at(path.to_str().expect("a name")).expect("a manager");
        service.notify("READY=1").expect("sent");
        let mut heard = [0; 64];
        let length = manager.recv(&mut heard).expect("heard");
        assert_eq!(&heard[..length], b"READY=1");
        let name = format!("foreread-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("an address");
        let manager = UnixDatagram::bind_addr(&address).expect("a socket");
        let service = ServiceManager::at(&format!("@{name}")).expect("a manager");
        service.notify("STOPPING=1").expect("sent");
        let length = manager.recv(&mut heard).expect("heard");
        assert_eq!(&heard[..length], b"STOPPING=1");
        assert_eq!(watchdog("30000000"), Some(Duration::from_secs(15)));
        assert_eq!(watchdog("x"), None);
    }

    #[test]
    fn a_unit_names_program_and_words() {
        let unit = unit("/usr/bin/foreread", "/srv --max 4M");
        assert!(unit.contains("ExecStart=\"/usr/bin/foreread\" auto /srv --max 4M\n"));
        assert!(unit.contains("WatchdogSec=") && unit.contains("Type=notify"));
        assert!(unit.contains("SuccessExitStatus=143"), "a stop is no failure");
        assert!(!unit.contains("\nMemoryMax="), "the cache that it fills would be bounded");
    }

    #[test]
    fn a_start_undoes_only_what_dead_runs_left() {
        let unit = unit("/opt/my tools/foreread", "/srv");
        let before: Vec<_> = unit.lines().filter(|line| line.contains("rollback")).collect();
        assert_eq!(before, ["ExecStartPre=-\"/opt/my tools/foreread\" rollback left"]);
        // Without this, systemd would remove the locks and virtual disks of other runs.
        assert!(unit.contains("\nRuntimeDirectoryPreserve=yes\n"));
        assert_eq!(quoted(r#"a "b\c" 5% $x"#), r#""a \"b\\c\" 5%% $$x""#);
    }
}
