//! The algorithms, one file each.

pub mod fixed;
pub mod freebsd;
mod linux;
pub mod linux_6_18;
pub mod linux_legacy;
pub mod linux_on_demand;
pub mod none;
#[cfg(test)]
pub(crate) mod testing;
pub mod zfs;
