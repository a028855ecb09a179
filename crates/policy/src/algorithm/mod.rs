//! The algorithms, one file each.

pub mod linux_6_18;
mod window;
