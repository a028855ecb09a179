//! `foreread experiment postgres`.

use clap::{Args, ValueEnum};
use pg::given::{self, GivenPlan};
use pg::{PostgresPlan, Test, WithAuto};
use study::{Store, Target};
use units::{Bytes, Nanos};

use super::answer::{AnswerFormat, ask};
use super::{Context, number};
use crate::exit::{Exit, bail_usage};

const AFTER_HELP: &str = "\
Examples:
  foreread experiment postgres /srv/data                               scan and prime a new cluster
  foreread experiment postgres virtual:hdd-2008,fs=xfs --vary read_ahead=128K,1M,8M --test seq
  foreread experiment postgres virtual:hdd-2008 --test prime --auto   with and without foreread auto
  foreread experiment postgres /srv/data --test bitmap --vary effective_io_concurrency=0,16,128
  foreread experiment postgres /srv --test seq --vary io_method=sync,worker,io_uring (PostgreSQL 18)
  foreread experiment postgres /var/lib/postgresql --connect 'dbname=shop' --table orders --key id

foreread creates a cluster in a new directory on the target, connects to it through a socket only,
and removes it at the end. As root, it runs the server as the user postgres (or nobody). Existing
clusters are never changed. Before each test, foreread stops the server, evicts its files from the
cache, and starts it again. With --connect, foreread reads a table of an existing server in
read-only sessions, and does not empty caches.";

/// How fast is PostgreSQL: scans, random selects from a cold cache, pgbench?
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct PgArgs {
    /// Where the cluster is created: a directory, mount point or virtual:MODEL[,key=value…]; with
    /// --connect, where that server keeps its data
    target: String,
    /// Tests to run
    #[arg(long, value_enum, value_name = "TEST[,TEST…]", value_delimiter = ',')]
    #[arg(default_value = "seq,index,bitmap,prime")]
    test: Vec<TestWord>,
    /// Tunable of the storage to vary, as in read_ahead=128K,1M, or setting of the server, as in
    /// effective_io_concurrency=0,16; may be repeated
    #[arg(long, value_name = "NAME=VALUE[,VALUE…]")]
    vary: Vec<String>,
    /// Run each test without and with `foreread auto`; with =only, only with it
    #[arg(long, value_enum, value_name = "WHEN", conflicts_with = "connect")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "both")]
    auto: Option<AutoWord>,
    /// Size of the table, without indexes and write-ahead log
    #[arg(long, value_name = "SIZE", default_value = "256M")]
    size: Bytes,
    /// Size of the server's own cache; small, so that reads reach the kernel and the storage
    #[arg(long, value_name = "SIZE", default_value = "16M")]
    shared_buffers: Bytes,
    /// Concurrent sessions of pgbench
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = number::whole::<u32>)]
    clients: u32,
    /// Time limit of the prime test, and duration of pgbench, in wall time
    #[arg(long, value_name = "TIME", default_value = "2min")]
    limit: Nanos,
    /// End the prime test when this share of the table and the index is cached, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 99.0)]
    primed: f64,
    /// Repeats of each test under each setting
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = number::repeats)]
    repeats: u32,
    /// Seed of the order and of the keys; default: a random one, which is printed
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    seed: Option<u64>,
    /// Read a table of this existing server; a connection string as for `psql -d`
    #[arg(long, value_name = "CONNECTION", requires = "table")]
    connect: Option<String>,
    /// The table to read on that server
    #[arg(long, value_name = "TABLE", requires = "connect")]
    table: Option<String>,
    /// An integer key column of that table, for random selects
    #[arg(long, value_name = "COLUMN", requires = "connect")]
    key: Option<String>,
    #[command(flatten)]
    format: AnswerFormat,
}

/// A test on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TestWord {
    /// `select count(*)` by a sequential scan
    Seq,
    /// Rows in the order of an index, which is not that of the table
    Index,
    /// Many rows by a bitmap scan
    Bitmap,
    /// Random selects by key from cold until everything is cached
    Prime,
    /// pgbench's own transactions
    Pgbench,
}

/// When `foreread auto` runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AutoWord {
    /// Without it and with it
    Both,
    /// With it, and never without
    Only,
}

impl From<AutoWord> for WithAuto {
    fn from(word: AutoWord) -> Self {
        match word {
            AutoWord::Both => Self::Both,
            AutoWord::Only => Self::Always,
        }
    }
}

impl From<TestWord> for Test {
    fn from(word: TestWord) -> Self {
        match word {
            TestWord::Seq => Self::Seq,
            TestWord::Index => Self::Index,
            TestWord::Bitmap => Self::Bitmap,
            TestWord::Prime => Self::Prime,
            TestWord::Pgbench => Self::Pgbench,
        }
    }
}

impl PgArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = Target::parse(&self.target)?;
        let format = self.format.clone();
        if let (Some(connection), Some(table)) = (self.connect, self.table) {
            if matches!(target, Target::Virtual(_)) {
                bail_usage!(
                    "--connect reads an existing server, which cannot be on a new virtual disk"
                );
            }
            let plan = GivenPlan {
                target,
                connection,
                table,
                key: self.key,
                vary: self.vary,
                clients: self.clients,
                limit: self.limit,
                repeats: self.repeats,
                seed: self.seed,
            };
            let mut store = Store::open(&context.store_path())?;
            return ask(context, &format, false, |environment, shown| {
                given::run(&plan, &mut store, environment, shown)
            });
        }
        let mut tests: Vec<Test> = self.test.iter().copied().map(Test::from).collect();
        tests.sort_unstable();
        tests.dedup();
        let plan = PostgresPlan {
            target,
            tests,
            vary: self.vary,
            auto: self.auto.map(WithAuto::from).unwrap_or_default(),
            size: self.size,
            shared_buffers: self.shared_buffers,
            clients: self.clients,
            limit: self.limit,
            primed: self.primed / 100.0,
            repeats: self.repeats,
            seed: self.seed,
        };
        let mut store = Store::open(&context.store_path())?;
        ask(context, &format, false, |environment, shown| {
            ::pg::run(&plan, &mut store, environment, shown)
        })
    }
}
