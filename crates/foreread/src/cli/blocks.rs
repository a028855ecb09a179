//! `foreread experiment blocks`.

use clap::Args;
use experiment::blocks::{self, BlockPlan};
use study::Target;
use units::{Bytes, Nanos};

use super::answer::{AnswerFormat, ask};
use super::{Context, number};
use crate::exit::{Exit, bail_usage};

const AFTER_HELP: &str = "\
Examples:
  foreread experiment blocks /dev/sdb                     1 to 16 blocks of 8 KiB, 1 and 4 processes
  foreread experiment blocks /srv/data/large.file --block 4K --blocks 1,4,16,64,256
  foreread experiment blocks virtual:hdd-15k-2000 --span 2G --part 64K
                                                 the disk and the system of the table of 2002
  foreread experiment blocks /dev/nvme0n1 --processes 1,16 --json

The file or device is only read, bypassing the page cache (O_DIRECT). All rows read at the same
random places. Larger requests count as nearly free if each doubling takes at most 25 % longer.";

/// What do random reads of 1, 2, 4, 8, 16 … blocks cost?
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct BlocksArgs {
    /// What to read: a block device, a file, virtual:MODEL[,key=value…] (its raw device) or
    /// sim:MODEL[,key=value…]
    target: String,
    /// Size of a block, a multiple of 4 KiB
    #[arg(long, value_name = "SIZE", default_value = "8K")]
    block: Bytes,
    /// Numbers of blocks in one request
    #[arg(long, value_name = "N[,N…]", value_delimiter = ',', default_value = "1,2,4,8,16")]
    #[arg(value_parser = number::whole::<u64>)]
    blocks: Vec<u64>,
    /// Numbers of concurrent processes
    #[arg(long, value_name = "N[,N…]", value_delimiter = ',', default_value = "1,4")]
    #[arg(value_parser = number::whole::<u32>)]
    processes: Vec<u32>,
    /// How long each row is measured; for a virtual disk, in the model's time
    #[arg(long, value_name = "TIME", default_value = "3s")]
    duration: Nanos,
    /// Read only the first SIZE bytes of the target; default: all of it
    #[arg(long, value_name = "SIZE")]
    span: Option<Bytes>,
    /// Split larger requests into parts of this size and read the parts one after another, as some
    /// systems do; Linux submits all parts of a request at once
    #[arg(long, value_name = "SIZE")]
    part: Option<Bytes>,
    /// Seed of the random offsets; default: a random one, which is printed
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    seed: Option<u64>,
    #[command(flatten)]
    format: AnswerFormat,
}

impl BlocksArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let target = Target::parse(&self.target)?;
        if self.span == Some(Bytes::ZERO) {
            bail_usage!("--span 0 leaves nothing to read");
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
