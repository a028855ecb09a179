//! PostgreSQL on the storage under test: a private server of foreread, and measurements with it.

mod error;
mod experiment;
mod server;

pub use error::PgError;
pub use experiment::given;
pub use experiment::{NAME, PostgresPlan, QUESTION, Test, WithAuto, run};
pub use server::{
    Client, Cluster, Moment, Pgbench, PgbenchLoad, RunLimit, ServerAccount, Timed, Tools,
    remove_left, transactions_per_second, version_of,
};
