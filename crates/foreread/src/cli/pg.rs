//! `foreread pg`.

use clap::{Args, ValueEnum};
use experiment::postgres::given::{self, GivenPlan};
use experiment::postgres::{self, PostgresPlan, Test, WithAuto};
use study::{Store, Target};
use units::{Bytes, Nanos};

use super::answer::{AnswerFormat, ask};
use super::{Context, number};
use crate::exit::{Exit, Usage};

const AFTER_HELP: &str = "\
Examples:
  foreread pg /srv/data                               scan and prime a cluster of its own
  foreread pg virtual:hdd-2008,fs=xfs --vary read_ahead=128K,1M,8M --test seq
  foreread pg virtual:hdd-2008 --test prime --auto    with and without foreread auto
  foreread pg /srv/data --test bitmap --vary effective_io_concurrency=0,16,128
  foreread pg /srv/data --test seq --vary io_method=sync,worker,io_uring     (PostgreSQL 18)
  foreread pg /var/lib/postgresql --connect 'dbname=shop' --table orders --key id

A cluster of its own is made in a directory of its own on the target, as the user postgres (or
nobody) if this is root, reached by a socket only, and removed at the end; clusters that are there
already are never touched. Each test starts cold: the server is stopped, its files are evicted,
the server is started. With --connect a table of a server that is there is read, in sessions that
cannot write, and caches are as they are.";

/// Measure PostgreSQL on this storage: scans, priming by random selects, pgbench
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Pg {
    /// Where the cluster is made: a directory, mount point or virtual:MODEL[,key=value…]; with
    /// --connect, where that server's data lie
    target: String,
    /// What is tested
    #[arg(long, value_enum, value_name = "TEST[,TEST…]", value_delimiter = ',')]
    #[arg(default_value = "seq,index,bitmap,prime")]
    test: Vec<TestWord>,
    /// What is varied: a tunable of the storage, as in read_ahead=128K,1M, or a setting of the
    /// server, as in effective_io_concurrency=0,16; once for each
    #[arg(long, value_name = "NAME=VALUE[,VALUE…]")]
    vary: Vec<String>,
    /// Do everything twice, without and with `foreread auto` at work; with it alone if `=only`
    #[arg(long, value_enum, value_name = "WHEN", conflicts_with = "connect")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "both")]
    auto: Option<AutoWord>,
    /// The size of the table; its indexes and the log of changes come on top
    #[arg(long, value_name = "SIZE", default_value = "256M")]
    size: Bytes,
    /// The server's own cache: small, so that kernel and storage do the work
    #[arg(long, value_name = "SIZE", default_value = "16M")]
    shared_buffers: Bytes,
    /// Sessions of pgbench side by side
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = number::whole::<u32>)]
    clients: u32,
    /// How long priming may take, and pgbench takes, on the clock
    #[arg(long, value_name = "TIME", default_value = "2min")]
    limit: Nanos,
    /// Priming is over when so much of table and index is cached, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 99.0)]
    primed: f64,
    /// Repeats of each test under each setting
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = number::repeats)]
    repeats: u32,
    /// Seed of the order and of the keys; default: drawn, and shown
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    seed: Option<u64>,
    /// Read a table of this server instead of making one: what `psql -d` takes
    #[arg(long, value_name = "CONNECTION", requires = "table")]
    connect: Option<String>,
    /// The table to read there
    #[arg(long, value_name = "TABLE", requires = "connect")]
    table: Option<String>,
    /// A key of whole numbers of that table, for random selects
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

/// When `foreread auto` is at work.
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

impl Pg {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = Target::parse(&self.target)?;
        let format = self.format.clone();
        if let (Some(connection), Some(table)) = (self.connect, self.table) {
            if matches!(target, Target::Virtual(_)) {
                let usage = "a server that is there has no data on a virtual disk made now";
                return Err(Usage(usage.to_owned()).into());
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
            postgres::run(&plan, &mut store, environment, shown)
        })
    }
}
