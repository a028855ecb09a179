//! What a study would do, without doing it.

use std::path::Path;
use std::time::Duration;

use host::{StorageKind, page_size};
use study::{Plan, Role, Target};
use tunables::{REGISTRY, Site};
use units::Kib;

use super::Context;
use crate::exit::{Exit, Usage};
use crate::output;

/// How far a study goes.
pub enum Extent {
    /// Through the whole grid, but repeated only as far as this time lets it.
    Grid(Option<Duration>),
    /// As far as this time lets it.
    Budget(Duration),
}

/// Wall time that a trial takes beside its own: evicting, waiting for what is under way, recording.
const BESIDE_TRIAL: Duration = Duration::from_millis(500);

/// Prints the plan, the exact writes and their undo, and an estimate of the time.
pub fn dry_run(plan: &Plan, extent: Extent, context: &Context) -> anyhow::Result<Exit> {
    let mut text = format!("Target: {}\n", report::clean::plain(&plan.target.to_string()));
    let (found, dilation) = match &plan.target {
        Target::Path(path) => {
            let (described, found) = on_path(path, plan, context)?;
            text.push_str(&described);
            (found, 1.0)
        }
        Target::Virtual(words) => {
            let config = vdisk::Config::parse(words)?;
            text.push_str(&on_virtual_disk(&config));
            (None, config.dilation_factor())
        }
        Target::Simulation(words) => {
            let machine = study::simulated_machine(words)?;
            text.push_str(&format!(
                "Simulated: {} with {} and a page cache of {}; nothing is read or changed, and it \
                 takes less time than it simulates\n",
                report::clean::plain(&machine.model.name),
                machine.policy,
                machine.cache
            ));
            (Some(machine.read_ahead), 1.0)
        }
        Target::Imported(title) => {
            let title = report::clean::plain(title);
            return Err(Usage(format!("{title} was measured elsewhere")).into());
        }
    };
    text.push_str(&measurements(plan, found, dilation, &extent));
    output::print(&text)?;
    Ok(Exit::Fine)
}

/// What would happen on real storage, and what its read-ahead is now.
fn on_path(path: &Path, plan: &Plan, context: &Context) -> anyhow::Result<(String, Option<Kib>)> {
    let storage = host::resolve(&context.root, path)?;
    let mut text = format!("Backing device: bdi {}\n", storage.bdi);
    text.push_str(match storage.kind {
        StorageKind::Directory => {
            "Files: laid out in a directory of its own in there, removed at the end\n"
        }
        _ => "Files: none are made; it is only read\n",
    });
    let site = Site::from(&storage);
    let mut found = None;
    text.push_str("Changes, one before each trial, in random order:\n");
    for tunable in REGISTRY.iter().filter(|tunable| tunable.name() == "read_ahead") {
        let present = tunables::read(&context.root, *tunable, &site)?;
        found = present.bytes().map(|bytes| bytes.to_kib_floor());
        let file = tunable.file(&site);
        for value in plan.read_ahead.values(page_size(), found) {
            let written = tunable.encode(&value.to_bytes().into())?;
            text.push_str(&format!("  echo {written} > {}\n", file.display()));
        }
        text.push_str("Undo, when it ends, however it ends:\n");
        let undo = tunable.encode(&present)?;
        text.push_str(&format!("  echo {undo} > {}\n", file.display()));
        if let Err(error) = tunables::check_writable(&context.root, *tunable, &site) {
            text.push_str(&format!("That cannot be done now: {error}\n"));
        }
    }
    text.push_str(&others(plan, &tunables::Site::of(&context.root, &storage), context)?);
    Ok((text, found))
}

/// The writes of the other tunables that are varied.
fn others(plan: &Plan, site: &Site, context: &Context) -> anyhow::Result<String> {
    let mut text = String::new();
    for factor in &plan.factors {
        let tunable = tunables::find(&factor.tunable)?;
        for (file, present) in tunables::read_all(&context.root, tunable, site)? {
            let file = file.display();
            for level in &factor.levels {
                let value = tunable.parse(tunable.name(), level)?;
                text.push_str(&format!("  echo {} > {file}\n", tunable.encode(&value)?));
            }
            text.push_str(&format!(
                "  echo {} > {file}  # at the end\n",
                tunable.encode(&present)?
            ));
        }
        if let Err(error) = tunables::check_writable(&context.root, tunable, site) {
            text.push_str(&format!("That cannot be done now: {error}\n"));
        }
    }
    Ok(text)
}

fn on_virtual_disk(config: &vdisk::Config) -> String {
    let mut text = format!(
        "A virtual disk is made and removed: {}, {} with {}\n",
        report::clean::plain(&config.to_string()),
        config.size,
        config.filesystem
    );
    text.push_str(
        "Changes: only the read-ahead of that disk, which is gone at the end; nothing to undo\n",
    );
    if let Err(lack) = vdisk::availability(config.filesystem) {
        text.push_str(&format!("That cannot be done here: {lack}\n"));
    }
    text
}

fn measurements(plan: &Plan, found: Option<Kib>, dilation: f64, extent: &Extent) -> String {
    let settings = plan.read_ahead.values(page_size(), found);
    let combinations = plan.combinations(settings.len());
    let cells = combinations * plan.workloads.len();
    let mut text = String::from("Workloads:");
    for planned in &plan.workloads {
        let role = if planned.role == Role::Price { " (only its price)" } else { "" };
        text.push_str(&format!(" {}{role}", planned.workload.name));
    }
    let (low, high) = (plan.repeats.min as usize, plan.repeats.max.max(plan.repeats.min) as usize);
    let repeats = if low == high { low.to_string() } else { format!("{low} to {high}") };
    let trial = Duration::from_nanos(plan.trial.get());
    text.push_str(&format!(
        "\nSettings: {combinations} {} × {} workloads, {repeats} repeats of {} each\n",
        if plan.factors.is_empty() { "values of read-ahead" } else { "combinations" },
        plan.workloads.len(),
        plan.trial
    ));
    // The disk's own time is dilated; what passes beside a trial is the machine's.
    let each = trial.as_secs_f64() * dilation + BESIDE_TRIAL.as_secs_f64();
    let minutes = |trials: usize| each * trials as f64 / 60.0;
    match extent {
        Extent::Grid(limit) => {
            let limit = limit.map_or(f64::INFINITY, |time| time.as_secs_f64() / 60.0);
            // Each cell is measured once whatever that takes.
            let within = |trials: usize| minutes(trials).min(limit.max(minutes(cells))).max(1.0);
            text.push_str(&format!(
                "Time: {}, and the laying out of files{}\n",
                between(within(cells * low), within(cells * high)),
                dilation_words(dilation)
            ));
        }
        Extent::Budget(time) => text.push_str(&format!(
            "Time: at most {:.1} minutes of trials, chosen among those, and the laying out of \
             files\n",
            time.as_secs_f64() / 60.0
        )),
    }
    text
}

/// `2 to 6 minutes`, or `1 minute` where both are the same.
fn between(low: f64, high: f64) -> String {
    let (low, high) = (low.round(), high.round());
    match low == high {
        true if low == 1.0 => "1 minute".to_owned(),
        true => format!("{low} minutes"),
        false => format!("{low} to {high} minutes"),
    }
}

fn dilation_words(dilation: f64) -> String {
    if dilation > 1.0 {
        format!("; the disk runs {dilation} times slower than its model")
    } else if dilation < 1.0 {
        format!("; the disk runs {:.1} times faster than its model", 1.0 / dilation)
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_nothing_is_one_figure() {
        assert_eq!(between(1.0, 1.2), "1 minute");
        assert_eq!(between(2.0, 2.0), "2 minutes");
        assert_eq!(between(1.0, 6.4), "1 to 6 minutes");
    }
}
