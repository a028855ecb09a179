//! `foreread blocks`.

use clap::Args;
use experiment::blocks::{self, BlockPlan};
use study::Target;
use units::{Bytes, Nanos};

use super::answer::{AnswerFormat, ask};
use super::{Context, number};
use crate::exit::{Exit, Usage};

const AFTER_HELP: &str = "\
Examples:
  foreread blocks /dev/sdb                       1 to 16 blocks of 8 KiB, 1 and 4 processes
  foreread blocks /srv/data/large.file --block 4K --blocks 1,4,16,64,256
  foreread blocks virtual:hdd-15k-2000 --span 2G --part 64K
                                                 the disk and the system of the table of 2002
  foreread blocks /dev/nvme0n1 --processes 1,16 --json

Nothing is written: the file or device is only read, around the page cache (O_DIRECT). Each row
reads at the same random places. Reading more is called nearly free as long as twice the data take
at most 25 % longer.";

/// Measure what random reads of 1, 2, 4, 8, 16 … blocks cost, by one process and by several
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Blocks {
    /// What to read: a block device, a file, virtual:MODEL[,key=value…] (its bare device) or
    /// sim:MODEL[,key=value…]
    target: String,
    /// The size of a block: a multiple of 4 KiB
    #[arg(long, value_name = "SIZE", default_value = "8K")]
    block: Bytes,
    /// How many blocks are read in one request
    #[arg(long, value_name = "N[,N…]", value_delimiter = ',', default_value = "1,2,4,8,16")]
    #[arg(value_parser = number::whole::<u64>)]
    blocks: Vec<u64>,
    /// How many processes read side by side
    #[arg(long, value_name = "N[,N…]", value_delimiter = ',', default_value = "1,4")]
    #[arg(value_parser = number::whole::<u32>)]
    processes: Vec<u32>,
    /// How long each row is measured, in the storage's own time
    #[arg(long, value_name = "TIME", default_value = "3s")]
    duration: Nanos,
    /// Read in the first part of this size only; default: all of it
    #[arg(long, value_name = "SIZE")]
    span: Option<Bytes>,
    /// Read larger requests in parts of this size, one after another, as systems do that ask the
    /// storage for no more at once; Linux has all parts of a request under way together
    #[arg(long, value_name = "SIZE")]
    part: Option<Bytes>,
    /// Seed of the places; default: drawn, and shown
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    seed: Option<u64>,
    #[command(flatten)]
    format: AnswerFormat,
}

impl Blocks {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = Target::parse(&self.target)?;
        if self.span == Some(Bytes::ZERO) {
            return Err(Usage("--span 0 leaves nothing to read".to_owned()).into());
        }
        let plan = BlockPlan {
            target,
            block: self.block,
            blocks: self.blocks,
            processes: self.processes,
            duration: self.duration,
            span: self.span,
            part: self.part,
            seed: self.seed,
        };
        let simulated = plan.target.is_simulated();
        ask(context, &self.format, simulated, |environment, shown| {
            blocks::run(plan, environment, shown)
        })
    }
}
