//! The CPU architectures of the released binaries.

use anyhow::{Context, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    pub fn named(arch: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|target| target.arch() == arch);
        found.with_context(|| format!("no architecture {arch}: x86_64 or aarch64"))
    }

    /// Returns the name that the kernel and rpm use.
    pub fn arch(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Returns the name that Go, and so nfpm, uses.
    pub fn goarch(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    pub fn triple(self) -> String {
        format!("{}-unknown-linux-musl", self.arch())
    }
}
