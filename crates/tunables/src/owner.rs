//! The process that owns a journal, and whether it is alive.

use host::Root;

use crate::TunableError;
use crate::journal_entry::JournalOwner;

impl JournalOwner {
    pub(crate) fn this_process() -> Result<Self, TunableError> {
        let pid = std::process::id();
        let start_time = start_time(pid)?.unwrap_or_default();
        Ok(Self { pid, start_time, boot_id: boot_id() })
    }

    /// Returns whether the process is running. Always checks this machine, even with another root.
    pub(crate) fn is_alive(&self) -> Result<bool, TunableError> {
        Ok(self.is_of_this_boot() && start_time(self.pid)? == Some(self.start_time))
    }

    /// Returns whether the process was started since the last boot.
    pub(crate) fn is_of_this_boot(&self) -> bool {
        boot_id() == self.boot_id
    }
}

fn start_time(pid: u32) -> Result<Option<u64>, TunableError> {
    sys::process::start_time(pid).map_err(|source| TunableError::Own {
        path: format!("/proc/{pid}/stat").into(),
        hint: "",
        source,
    })
}

/// The kernel's boot id.
fn boot_id() -> String {
    Root::system().read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_its_like_of_another_boot_or_start_does_not() {
        let own = JournalOwner::this_process().expect("proc");
        assert!(own.is_alive().expect("proc"));
        assert!(
            !JournalOwner { boot_id: "another".to_owned(), ..own.clone() }
                .is_alive()
                .expect("proc")
        );
        let start_time = own.start_time + 1;
        assert!(!JournalOwner { start_time, ..own }.is_alive().expect("proc"));
    }
}
