//! `foreread tune`.

use clap::Args;
use study::Budget;

use super::Context;
use super::dry_run::{StudyExtent, dry_run};
use super::study_options::StudyOptions;
use crate::exit::{Exit, bail_usage};

const AFTER_HELP: &str = "\
Examples:
  foreread tune /srv/data
  foreread tune /var/lib/postgresql --workload seq-8,mixed,rand-pread --budget 20
  foreread tune virtual:raid10-2008,fs=xfs     on a virtual disk array
  foreread tune /srv/video --purpose streaming    random reads do not matter there
  foreread tune -n /srv/data                   print what would be done

tune measures a few settings, fits a model of latency and bandwidth to them, measures where the
model predicts the best setting, and spends the rest of --budget on confirming that setting and
measuring its costs. --vary limits the values that may be tried. tune recommends the smallest
setting with at least 80 % of the possible gain, or the current one if the gain is below 10 %. If
random reads lose more than half of their throughput, the recommendation has a condition, and tune
also prints the best setting without a condition. --purpose selects the costs that count. All
settings are restored when tune ends.";

/// Find the best read-ahead for a target, in a few minutes
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct TuneArgs {
    #[command(flatten)]
    options: StudyOptions,
    /// Time limit of the trials, in minutes; with `sim:`, of simulated time
    #[arg(long, value_name = "MIN", allow_negative_numbers = true, default_value = "10")]
    budget: Budget,
}

impl TuneArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if let Some(other) = self.options.vary.iter().find(|v| v.tunable.name() != "read_ahead") {
            let name = other.tunable.name();
            bail_usage!("tune chooses read-ahead: foreread sweep --vary {name}=… varies it");
        }
        if self.options.dry_run {
            let extent = StudyExtent::Budget(self.budget.time);
            return dry_run(&self.options.plan(context)?, extent, context);
        }
        let (fresh, budget) = (self.options.fresh, self.budget);
        self.options.conduct(context, |plan, store, environment, shown| {
            study::tune(plan, budget, fresh, store, environment, shown)
        })
    }
}
