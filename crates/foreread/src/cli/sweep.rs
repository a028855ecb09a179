//! `foreread sweep`.

use clap::Args;
use study::{Budget, Design};

use super::Context;
use super::dry_run::{StudyExtent, dry_run};
use super::study_options::{StudyOptions, words};
use crate::exit::Exit;

const AFTER_HELP: &str = "\
Examples:
  foreread sweep /srv/data
  foreread sweep /dev/sdb --vary read_ahead=128K,1M,8M --workload seq-1,seq-8 --repeats 5
  foreread sweep virtual:hdd-2008,fs=ext4 --workload seq-1 --csv > hdd.csv
  foreread sweep /srv/data --vary scheduler=none,mq-deadline --vary nr_requests=64,256
  foreread sweep -n /srv/data                  print what would be done

The trials run in random order, in blocks that hold each cell once, and each on a cold cache, which
is verified. The table shows the median with half its 95 % confidence interval, or with the range if
there are fewer than five repeats. The same command resumes an interrupted sweep.";

/// Measure a grid of read-ahead settings under each workload
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct SweepArgs {
    #[command(flatten)]
    options: StudyOptions,
    /// Time limit of the trials, in minutes; with `sim:`, of simulated time. Each cell is measured
    /// once regardless of the limit, and repeated as long as there is time; default: no limit
    #[arg(long, value_name = "MIN", allow_negative_numbers = true)]
    budget: Option<Budget>,
    /// How the values of several tunables are combined: each tunable alone, with the others at
    /// their current values; all combinations; or a fraction of these that still has each pair of
    /// values
    #[arg(long, default_value_t, value_parser = words::<Design>())]
    design: Design,
}

impl SweepArgs {
    pub fn run(mut self, context: &Context) -> anyhow::Result<Exit> {
        self.options.design = self.design;
        if self.options.dry_run {
            let extent = StudyExtent::Grid(self.budget.map(|budget| budget.time));
            return dry_run(&self.options.plan(context)?, extent, context);
        }
        let (fresh, budget) = (self.options.fresh, self.budget);
        self.options.conduct(context, |plan, store, environment, shown| {
            study::sweep(plan, budget, fresh, store, environment, shown)
        })
    }
}
