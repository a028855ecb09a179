//! For tests only: a fuzzer that runs on a stable compiler, a driver for headless Chromium, and
//! hosts as trees of files.

pub mod browser;
pub mod fuzz;
pub mod host_tree;
