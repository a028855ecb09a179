//! For tests only: a fuzzer that runs on a stable compiler, and a driver for headless Chromium.

pub mod browser;
pub mod fuzz;
