//! A PostgreSQL server of one's own: found, made, started, asked, removed.
//!
//! A [`Cluster`] is a server with its data in a directory that foreread makes and removes; servers
//! that are there already are never touched. Questions are put by PostgreSQL's own clients, `psql`
//! and `pgbench`: they log in however a server wants, and a client library would bring forty
//! others into the binary for a few statements.

mod account;
mod client;
mod cluster;
mod home;
mod left;
mod pgbench;
mod process;
mod tools;

pub use account::ServerAccount;
pub use client::{Client, Timed};
pub use cluster::Cluster;
pub use left::remove_left;
pub use pgbench::{Moment, Pgbench, PgbenchLoad, transactions_per_second};
pub use process::RunLimit;
pub use tools::{Tools, version_of};
