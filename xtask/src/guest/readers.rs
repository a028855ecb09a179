//! Programs in a guest that read files: eight forward, one backward.

use anyhow::Result;

use super::machine::GuestMachine;

const READER: &str = include_str!("reader.pl");

/// Makes the files `file1` to `file9` in a directory, and the program `reader`.
pub fn make(machine: &mut GuestMachine, directory: &str) -> Result<()> {
    machine.sh(&format!(
        "cat >/usr/local/bin/reader <<'END'\n{READER}END\n\
         chmod +x /usr/local/bin/reader\n\
         for file in 1 2 3 4 5 6 7 8 9; do head -c 8M /dev/zero >{directory}/file$file; done\n\
         chmod -R a+rX {directory}; sync"
    ))?;
    Ok(())
}

/// Starts a reader of each file; that of `file9` reads backward.
pub fn start(machine: &mut GuestMachine, directory: &str) -> Result<()> {
    machine.sh(&format!(
        "launch() {{\n\
         systemd-run --quiet --collect --unit reader$1 reader {directory}/file$1 $2\n\
         }}\n\
         for one in 1 2 3 4 5 6 7 8; do launch $one forward || exit; done; launch 9 backward"
    ))?;
    Ok(())
}

pub fn stop(machine: &mut GuestMachine) -> Result<()> {
    machine.sh("systemctl stop 'reader*'")?;
    Ok(())
}
