//! How this binary was built.

use std::sync::LazyLock;

use serde::Serialize;

/// Output of `--version`; `-V` prints the version only.
pub static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let build = Build::this();
    format!(
        "{}\ncommit: {}\ntarget: {}\nkernel probes: {}",
        build.version,
        build.commit,
        build.target,
        if build.kernel_probes { "built in" } else { "not built in" }
    )
});

#[derive(Debug, Serialize)]
pub struct Build {
    pub version: &'static str,
    pub commit: &'static str,
    pub target: &'static str,
    pub kernel_probes: bool,
}

impl Build {
    pub fn this() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: env!("BUILD_COMMIT"),
            target: env!("BUILD_TARGET"),
            kernel_probes: observe::built_in(),
        }
    }
}
