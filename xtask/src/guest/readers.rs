//! Programs in the guest that read files, one of them backward.

use anyhow::Result;

use super::machine::GuestMachine;
use crate::verbs::{self, FILE_COUNT, READER};

/// Creates the files `file1` to `file9` in a directory, and the program `reader`.
pub fn make(machine: &mut GuestMachine, directory: &str) -> Result<()> {
    machine.sh(&format!(
        "cat >/usr/local/bin/reader <<'END'\n{READER}END\n\
         chmod +x /usr/local/bin/reader\n\
         for file in $(seq {FILE_COUNT}); do head -c 8M /dev/zero >{directory}/file$file; done\n\
         chmod -R a+rX {directory}; sync"
    ))?;
    Ok(())
}

/// Pause between two reads in ms; with a shorter one, nine readers keep an emulated machine busy.
const PAUSE_MS: u32 = 15;

/// Starts a reader of each file.
pub fn start(machine: &mut GuestMachine, directory: &str) -> Result<()> {
    let launch = |file| {
        let direction = verbs::direction(file);
        let unit = format!("systemd-run --quiet --collect --unit reader{file}");
        format!("{unit} reader {directory}/file{file} {direction} 0 {PAUSE_MS} || exit\n")
    };
    machine.sh(&(1..=FILE_COUNT).map(launch).collect::<String>())?;
    Ok(())
}

pub fn stop(machine: &mut GuestMachine) -> Result<()> {
    machine.sh("systemctl stop 'reader*'")?;
    Ok(())
}
