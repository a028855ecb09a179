//! The algorithms. Several of them share `linux` or `postgres`; `testing` drives their tests.

pub mod amp;
pub mod ara_2006;
pub mod fixed;
pub mod freebsd;
pub mod innodb;
mod linux;
pub mod linux_6_18;
pub mod linux_legacy;
pub mod linux_on_demand;
pub mod none;
mod postgres;
pub mod postgres_17;
pub mod postgres_18;
pub mod rocksdb;
#[cfg(test)]
pub(crate) mod testing;
pub mod zfs;
