//! `foreread experiment`.

use clap::{Args, Subcommand};
use experiment::activation::{self, ActivationPlan};
use experiment::sweeps::{SweepPlan, memory, mixed, readers};
use experiment::zones::{self, ZonePlan};
use study::{Store, Target};
use units::{Bytes, Nanos};

use super::answer::{AnswerFormat, ask};
use super::blocks::Blocks;
use super::{Context, number};
use crate::exit::Exit;

const AFTER_HELP: &str = "\
Examples:
  foreread experiment activation /srv/data
  foreread experiment activation virtual:hdd-2008,fs=ext4 --read-ahead 1M
  foreread experiment request-size /dev/sdb
  foreread experiment zones /dev/sdb
  foreread experiment zones sim:hdd-2008       in simulation, which needs no rights
  foreread experiment mixed /srv/data --read-ahead 128K,1M,8M
  foreread experiment memory /srv/data --memory 64M --streams 4,16,64
  foreread experiment readers sim:raid10-2008,cache=8G

Each prints its figures, a plot and an answer in sentences; --json gives all of it to programs. The
exit code is 5 where the figures do not suffice for an answer.";

/// Put one question to storage and kernel: a command each, with an answer and a plot
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Experiment {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    /// When does read-ahead start, how does it grow, and what breaks it?
    Activation(Activation),
    /// What do random reads beside streams cost, under each read-ahead?
    Mixed(Mixed),
    /// Do sequential reads scale with readers?
    Readers(Readers),
    /// What happens when memory is scarce: from where on does read-ahead thrash?
    Memory(Memory),
    /// How fast are start, middle and end of the disk?
    Zones(Zones),
    /// What does a larger request cost? (the same as `foreread blocks`)
    RequestSize(Blocks),
}

/// When does read-ahead start, how does it grow, and what breaks it?
///
/// A cold file is read in many ways, and after each read it is looked up what has come into the
/// page cache; beside it stands what the rules of the kernel say.
#[derive(Debug, Args)]
struct Activation {
    /// A directory (a file without a name is made in it), a file of 16 MiB or more (only read),
    /// virtual:MODEL[,key=value…] or sim:MODEL[,key=value…]
    target: String,
    /// Set read-ahead to this meanwhile; default: what is there
    #[arg(long, value_name = "SIZE")]
    read_ahead: Option<Bytes>,
    #[command(flatten)]
    format: AnswerFormat,
}

/// What do random reads beside streams cost, under each read-ahead?
///
/// Eight streams, with random reads of 4 KiB as a growing share of their requests; the run is in
/// the record and can be reported.
#[derive(Debug, Args)]
struct Mixed {
    /// Which share of the requests is random, in percent
    #[arg(long, value_name = "P[,P…]", value_delimiter = ',', default_value = "1,5,10,25,50")]
    percent: Vec<f64>,
    #[command(flatten)]
    sweep: SweepOptions,
}

/// Do sequential reads scale with readers?
///
/// Readers of 4 KiB, each with a file of its own; the run is in the record and can be reported.
#[derive(Debug, Args)]
struct Readers {
    /// How many readers
    #[arg(long, value_name = "N[,N…]", value_delimiter = ',', default_value = "1,2,4,8,16,32")]
    #[arg(value_parser = number::whole::<u32>)]
    readers: Vec<u32>,
    #[command(flatten)]
    sweep: SweepOptions,
}

/// What happens when memory is scarce: from where on does read-ahead thrash?
///
/// Streams of 4 KiB reads, each of a file of its own, while a control group (of version 1 or 2)
/// lets the page cache take no more than --memory. Where the windows of all streams do not fit,
/// data read ahead are evicted before they are used, and read again: how much, and at what loss, is
/// counted. Needs root and the memory controller; of a simulation the cache itself is limited.
#[derive(Debug, Args)]
struct Memory {
    /// What the page cache may take (8 MiB at least)
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    memory: Bytes,
    /// How many streams
    #[arg(long, value_name = "N[,N…]", value_delimiter = ',', default_value = "2,8,32")]
    #[arg(value_parser = number::whole::<u32>)]
    streams: Vec<u32>,
    #[command(flatten)]
    sweep: SweepOptions,
}

/// How fast are start, middle and end of the disk?
///
/// Streams of 8 MiB requests around the page cache at places from the start to the end, in random
/// order; nothing is written.
#[derive(Debug, Args)]
struct Zones {
    /// A block device, a file, virtual:MODEL[,key=value…] (its bare device) or
    /// sim:MODEL[,key=value…]
    target: String,
    /// How many places, the start and the end among them
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = number::whole::<u32>)]
    places: u32,
    /// How long each is read, in the storage's own time
    #[arg(long, value_name = "TIME", default_value = "1s")]
    duration: Nanos,
    /// Repeats of each
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = number::repeats)]
    repeats: u32,
    /// Seed of the order; default: drawn, and shown
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    seed: Option<u64>,
    #[command(flatten)]
    format: AnswerFormat,
}

/// Options of questions that a sweep answers.
#[derive(Debug, Args)]
struct SweepOptions {
    /// A directory, a file, a block device, virtual:MODEL[,key=value…] or sim:MODEL[,key=value…]
    target: String,
    /// The values of read-ahead
    #[arg(
        long,
        value_name = "SIZE[,SIZE…]",
        value_delimiter = ',',
        default_value = "4K,128K,1M,8M"
    )]
    read_ahead: Vec<Bytes>,
    /// Repeats of each figure
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = number::repeats)]
    repeats: u32,
    /// How long each is measured, in the storage's own time; default: as in a sweep
    #[arg(long, value_name = "TIME")]
    duration: Option<Nanos>,
    /// Size of each file that is laid out; default: chosen for the target
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Seed of all that is random; default: drawn, and shown
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    seed: Option<u64>,
    /// Begin anew, even if the same question was interrupted before and could go on
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

impl Experiment {
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
            Question::RequestSize(question) => question.run(context),
        }
    }
}
