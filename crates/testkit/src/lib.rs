//! For tests only: a fuzzer that runs on a stable compiler, a driver for headless Chromium, hosts
//! as trees of files, and loop devices.

pub mod browser;
pub mod file_device;
pub mod fuzz;
pub mod host_tree;

/// The file that a test locks while it uses the host's devices, `/sys` or page cache: only one such
/// test runs at a time on a machine.
pub const HOST_LOCK: &str = "/tmp/foreread-host-tests.lock";
