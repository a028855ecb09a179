//! A private PostgreSQL server: finding, creating, starting, querying, removing.
//!
//! A [`Cluster`] is a server whose data is in a directory that foreread creates and removes;
//! foreread never changes existing servers. Queries use PostgreSQL's own clients, `psql` and
//! `pgbench`, which support every login method; a client library would add forty crates to the
//! binary for a few statements.

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
