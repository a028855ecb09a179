//! `foreread experiment`.

use clap::{Args, Subcommand};
use experiment::activation::{self, ActivationPlan};
use experiment::sweeps::{SweepPlan, memory, mixed, readers};
use experiment::zones::{self, ZonePlan};
use study::{Store, Target};
use units::{Bytes, Nanos};

use super::answer::{AnswerFormat, ask};
use super::blocks::BlocksArgs;
use super::pg::PgArgs;
use super::{Context, number};
use crate::exit::Exit;

const AFTER_HELP: &str = "\
Examples:
  foreread experiment activation /srv/data
  foreread experiment activation virtual:hdd-2008,fs=ext4 --read-ahead 1M
  foreread experiment blocks /dev/sdb
  foreread experiment postgres /srv/data
  foreread experiment zones /dev/sdb
  foreread experiment zones sim:hdd-2008       in simulation, without privileges
  foreread experiment mixed /srv/data --read-ahead 128K,1M,8M
  foreread experiment memory /srv/data --memory 64M --streams 4,16,64
  foreread experiment readers sim:raid10-2008,cache=8G

Each prints figures, a plot and an answer in words, or the same as JSON with --json. The exit
code is 5 if the figures do not suffice for an answer.";

/// Answer one question about storage or kernel by measuring it
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ExperimentArgs {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    /// When does read-ahead start, how does it grow, and what breaks it?
    Activation(Activation),
    /// How much do random reads alongside streams cost at each read-ahead setting?
    Mixed(Mixed),
    /// Do sequential reads scale with readers?
    Readers(Readers),
    /// With how little memory does read-ahead thrash?
    Memory(Memory),
    /// How fast are the start, the middle and the end of the disk?
    Zones(Zones),
    #[command(alias = "request-size")]
    Blocks(BlocksArgs),
    #[command(alias = "pg")]
    Postgres(PgArgs),
}

/// When does read-ahead start, how does it grow, and what breaks it?
///
/// Reads a cold file in many ways. After each read, it compares the pages that are in the cache
/// with those that the kernel's rules predict.
#[derive(Debug, Args)]
struct Activation {
    /// A directory (an unnamed file is created in it), a file of at least 16 MiB (only read),
    /// virtual:MODEL[,key=value…] or sim:MODEL[,key=value…]
    target: String,
    /// Read-ahead during the experiment; default: the current one
    #[arg(long, value_name = "SIZE")]
    read_ahead: Option<Bytes>,
    #[command(flatten)]
    format: AnswerFormat,
}

/// How much do random reads alongside streams cost at each read-ahead setting?
///
/// Reads eight streams, with random reads of 4 KiB as a growing share of the requests. The run is
/// recorded, and `foreread report` can show it.
#[derive(Debug, Args)]
struct Mixed {
    /// Shares of random requests, in percent
    #[arg(long, value_name = "P[,P…]", value_delimiter = ',', default_value = "1,5,10,25,50")]
    percent: Vec<f64>,
    #[command(flatten)]
    sweep: SweepOptions,
}

/// Do sequential reads scale with readers?
///
/// Each reader reads its own file, 4 KiB at a time. The run is recorded, and `foreread report` can
/// show it.
#[derive(Debug, Args)]
struct Readers {
    /// Numbers of readers
    #[arg(long, value_name = "N[,N…]", value_delimiter = ',', default_value = "1,2,4,8,16,32")]
    #[arg(value_parser = number::whole::<u32>)]
    readers: Vec<u32>,
    #[command(flatten)]
    sweep: SweepOptions,
}

/// With how little memory does read-ahead thrash?
///
/// Reads streams with 4 KiB requests, each from its own file, while a control group (v1 or v2)
/// limits the page cache to --memory. If the windows of all streams do not fit into it, pages
/// are evicted before they are used, and are read again. The experiment measures how many pages
/// these are and how much slower the streams become. Needs root and the memory controller; in a
/// simulation, the cache itself is limited.
#[derive(Debug, Args)]
struct Memory {
    /// Limit of the page cache, at least 8 MiB
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    memory: Bytes,
    /// Numbers of streams
    #[arg(long, value_name = "N[,N…]", value_delimiter = ',', default_value = "2,8,32")]
    #[arg(value_parser = number::whole::<u32>)]
    streams: Vec<u32>,
    #[command(flatten)]
    sweep: SweepOptions,
}

/// How fast are the start, the middle and the end of the disk?
///
/// Reads sequentially with 8 MiB direct reads (O_DIRECT) at offsets from the start to the end, in
/// random order. Writes nothing.
#[derive(Debug, Args)]
struct Zones {
    /// A block device, a file, virtual:MODEL[,key=value…] (its raw device) or
    /// sim:MODEL[,key=value…]
    target: String,
    /// Number of offsets, including the start and the end
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = number::whole::<u32>)]
    places: u32,
    /// Reading time at each offset; for a virtual disk, in the model's time
    #[arg(long, value_name = "TIME", default_value = "1s")]
    duration: Nanos,
    /// Repeats at each offset
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = number::repeats)]
    repeats: u32,
    /// Seed of the order; default: a random one, which is shown
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    seed: Option<u64>,
    #[command(flatten)]
    format: AnswerFormat,
}

/// Options of experiments that run a sweep.
#[derive(Debug, Args)]
struct SweepOptions {
    /// A directory, a file, a block device, virtual:MODEL[,key=value…] or sim:MODEL[,key=value…]
    target: String,
    /// Values of read-ahead
    #[arg(
        long,
        value_name = "SIZE[,SIZE…]",
        value_delimiter = ',',
        default_value = "4K,128K,1M,8M"
    )]
    read_ahead: Vec<Bytes>,
    /// Number of trials for each figure
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = number::repeats)]
    repeats: u32,
    /// Length of each trial; for a virtual disk, in the model's time; default: as in a sweep
    #[arg(long, value_name = "TIME")]
    duration: Option<Nanos>,
    /// Size of each file that is created; default: chosen for the target
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Seed of all randomness; default: a random one, which is shown
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    seed: Option<u64>,
    /// Start from the beginning, even if an interrupted run of the same command could be resumed
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    format: AnswerFormat,
}

impl SweepOptions {
    fn plan(&self) -> anyhow::Result<SweepPlan> {
        Ok(SweepPlan {
            target: Target::parse(&self.target)?,
            read_ahead: self.read_ahead.iter().copied().map(Bytes::to_kib_floor).collect(),
            repeats: self.repeats,
            duration: self.duration,
            size: self.size,
            memory_limit: None,
            seed: self.seed,
            fresh: self.fresh,
        })
    }
}

impl ExperimentArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.question {
            Question::Activation(question) => {
                let plan = ActivationPlan {
                    target: Target::parse(&question.target)?,
                    read_ahead: question.read_ahead.map(Bytes::to_kib_floor),
                };
                ask(context, &question.format, plan.target.is_simulated(), |environment, shown| {
                    activation::run(&plan, environment, shown)
                })
            }
            Question::Mixed(Mixed { percent, sweep }) => {
                let plan = sweep.plan()?;
                let mut store = Store::open(&context.store_path())?;
                ask(context, &sweep.format, plan.target.is_simulated(), |environment, shown| {
                    mixed::run(&plan, &percent, &mut store, environment, shown)
                })
            }
            Question::Readers(Readers { readers, sweep }) => {
                let plan = sweep.plan()?;
                let mut store = Store::open(&context.store_path())?;
                ask(context, &sweep.format, plan.target.is_simulated(), |environment, shown| {
                    readers::run(&plan, &readers, &mut store, environment, shown)
                })
            }
            Question::Memory(Memory { memory: limit, streams, sweep }) => {
                let plan = sweep.plan()?;
                let mut store = Store::open(&context.store_path())?;
                ask(context, &sweep.format, plan.target.is_simulated(), |environment, shown| {
                    memory::run(&plan, limit, &streams, &mut store, environment, shown)
                })
            }
            Question::Zones(question) => {
                let Zones { places, duration, repeats, seed, .. } = question;
                let target = Target::parse(&question.target)?;
                let plan = ZonePlan { target, places, duration, repeats, seed };
                ask(context, &question.format, plan.target.is_simulated(), |environment, shown| {
                    zones::run(&plan, environment, shown)
                })
            }
            Question::Blocks(question) => question.run(context),
            Question::Postgres(question) => question.run(context),
        }
    }
}
