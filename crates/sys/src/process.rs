//! Process identity, sessions and signals.

use std::fs;
use std::io;

/// Returns the start time of a process in clock ticks since boot; `None` if it has exited or is a
/// zombie. Start time and process id, which may be reused, identify a process until reboot.
pub fn start_time(pid: u32) -> io::Result<Option<u64>> {
    match fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => Ok(parse_stat(&String::from_utf8_lossy(&stat))),
        // Reading fails with ESRCH if the process exits in between.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Parses field 22 of proc_pid_stat(5). The second field is the program's name in parentheses,
/// which may contain spaces and parentheses.
fn parse_stat(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Returns whether this process sees the process ids that the kernel reports to tracers: it is in
/// the initial PID namespace. Returns true if /proc is unavailable.
pub fn has_host_ids() -> bool {
    // Inode of the initial PID namespace (PROC_PID_INIT_INO in include/linux/proc_ns.h).
    const INITIAL: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == INITIAL)
        || !fs::exists("/proc/self/ns/pid").unwrap_or(false)
}

/// Returns whether a signal or a debugger has stopped a process, so that it cannot respond.
pub fn is_stopped(pid: u32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    matches!(parse_state(&String::from_utf8_lossy(&stat)), Some("T" | "t"))
}

fn parse_state(stat: &str) -> Option<&str> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().next()
}

/// Starts a new session, so that Ctrl-C at the terminal no longer reaches this process.
pub fn leave_session() -> io::Result<()> {
    rustix::process::setsid().map(|_| ()).map_err(io::Error::from)
}

/// Ignores the signals that users and service managers send to terminate programs.
pub fn ignore_termination_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        // SAFETY: SIG_IGN runs no code of this program, and the signal numbers are valid constants.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Makes the OOM killer spare this process. Needs root.
pub fn spare_from_oom() -> io::Result<()> {
    fs::write("/proc/self/oom_score_adj", "-1000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_one_start_and_then_none() {
        let own = start_time(std::process::id()).expect("proc").expect("alive");
        assert_eq!(start_time(std::process::id()).expect("proc"), Some(own));
        let mut child = std::process::Command::new("true").spawn().expect("a child");
        let pid = child.id();
        child.wait().expect("its end");
        assert_eq!(start_time(pid).expect("proc"), None);
    }

    #[test]
    fn a_program_s_name_may_hold_anything() {
        let fields = "S 1 2 3 4 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 107792 3133440 350";
        assert_eq!(parse_stat(&format!("7 (a) b (c) {fields}")), Some(107_792));
        assert_eq!(parse_stat(&format!("7 (a) {}", fields.replacen('S', "Z", 1))), None);
        assert_eq!(parse_state(&format!("7 (a) T (c) {fields}")), Some("S"));
        assert_eq!(parse_state(""), None);
        assert!(!is_stopped(std::process::id()));
        assert_eq!(parse_stat("7 (a) S 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }
}
