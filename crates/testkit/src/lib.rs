//! For tests only: a fuzzer that runs on a stable compiler, a driver for headless Chromium, hosts
//! as trees of files, and loop devices.

pub mod browser;
pub mod file_device;
pub mod fuzz;
pub mod host_tree;
