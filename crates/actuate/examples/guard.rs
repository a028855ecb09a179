//! The guard process of the leases in the host tests.

use std::path::PathBuf;

use host::Root;

fn main() {
    let journal: Option<PathBuf> = std::env::args_os().nth(1).map(PathBuf::from);
    if let Some(journal) = journal {
        let _ = tunables::guard_main(&Root::system(), &journal);
    }
}
