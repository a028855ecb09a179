//! `--dry-run` of a study.

use std::path::Path;
use std::time::Duration;

use host::page_size;
use study::{Forecast, Plan, Role, Target};
use tunables::{REGISTRY, TunableScope};
use units::{Bytes, Kib};

use super::Context;
use super::vdisk::pace;
use crate::exit::{Exit, bail_usage};
use crate::output;

pub enum StudyExtent {
    /// The whole grid; repeats only within this time.
    Grid(Option<Duration>),
    /// Trials within this time.
    Budget(Duration),
}

/// Overhead of a trial in wall time: evicting, waiting for I/O in flight, recording.
const BESIDE_TRIAL: Duration = Duration::from_millis(500);

/// Prints the plan, the exact writes with their undo, and an estimate of the time.
pub fn dry_run(plan: &Plan, extent: StudyExtent, context: &Context) -> anyhow::Result<Exit> {
    let forecast = Forecast::new(plan, &context.dirs, &context.root)?;
    let mut text = format!("Target: {}\n", report::clean::plain(&plan.target.to_string()));
    let found = match &plan.target {
        Target::Path(path) => {
            let (described, found) = on_path(path, plan, &forecast, context)?;
            text.push_str(&described);
            found
        }
        Target::Virtual(spec) => {
            text.push_str(&on_virtual_disk(spec.get()?));
            None
        }
        Target::Simulation(spec) => {
            let machine = spec.get()?;
            text.push_str(&format!(
                "Simulated: {} with {} and a page cache of {}; nothing is read, written or \
                 changed\n",
                report::clean::plain(&machine.model.name),
                machine.policy,
                machine.cache
            ));
            Some(machine.read_ahead)
        }
        Target::Imported(title) => {
            let title = report::clean::plain(title);
            bail_usage!("{title} is imported: it cannot be measured again");
        }
    };
    text.push_str(&measurements(plan, found));
    text.push_str(&files(&forecast, plan));
    text.push_str(&time(plan, found, &forecast, &extent));
    output::print(&text)?;
    Ok(Exit::Fine)
}

/// Describes the changes on real storage; also returns its current read-ahead.
fn on_path(
    path: &Path,
    plan: &Plan,
    forecast: &Forecast,
    context: &Context,
) -> anyhow::Result<(String, Option<Kib>)> {
    let storage = host::resolve(&context.root, path)?;
    let mut text = format!("Backing device: bdi {}\n", storage.bdi);
    if std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0) {
        text.push_str("Not possible now: the file is empty\n");
    }
    if let Some(disk) = &forecast.known_disk {
        let disk = report::clean::plain(disk);
        text.push_str(&format!(
            "It is the virtual disk {disk}: times are divided by its dilation\n"
        ));
    }
    let site = TunableScope::from(&storage);
    let mut found = None;
    text.push_str("Changes, one before each trial, in random order:\n");
    for tunable in REGISTRY.iter().filter(|tunable| tunable.name() == "read_ahead") {
        let present = tunables::read(&context.root, tunable, &site)?;
        found = present.bytes().map(|bytes| bytes.to_kib_floor());
        let file = tunable.file(&site);
        for value in plan.read_ahead.values(page_size(), found) {
            let written = tunable.encode(&value.to_bytes().into())?;
            text.push_str(&format!("  echo {written} > {}\n", file.display()));
        }
        text.push_str("Undo, when it ends for any reason:\n");
        let undo = tunable.encode(&present)?;
        text.push_str(&format!("  echo {undo} > {}\n", file.display()));
        if let Err(error) = tunables::check_writable(&context.root, tunable, &site) {
            text.push_str(&format!("Not possible now: {error}\n"));
        }
    }
    text.push_str(&others(
        plan,
        &tunables::TunableScope::with_layers(&context.root, &storage),
        context,
    )?);
    Ok((text, found))
}

/// Describes the writes of the other varied tunables.
fn others(plan: &Plan, site: &TunableScope, context: &Context) -> anyhow::Result<String> {
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
            text.push_str(&format!("Not possible now: {error}\n"));
        }
    }
    Ok(text)
}

fn on_virtual_disk(config: &vdisk::DiskConfig) -> String {
    let mut text = format!(
        "A virtual disk is created and removed: {}, {} with {}\n",
        report::clean::plain(&config.to_string()),
        config.size,
        config.filesystem
    );
    text.push_str(
        "Changes: only the read-ahead of that disk, which is gone at the end; nothing to undo\n",
    );
    if let Err(lack) = vdisk::availability(config.filesystem) {
        text.push_str(&format!("Not possible here: {lack}\n"));
    }
    text
}

fn measurements(plan: &Plan, found: Option<Kib>) -> String {
    let combinations = combinations(plan, found);
    let (low, high) = repeats(plan);
    let repeats = if low == high { low.to_string() } else { format!("{low} to {high}") };
    let counted = |count: usize, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {more}"),
    };
    let settings = match plan.factors.is_empty() {
        true => counted(combinations, "value of read-ahead", "values of read-ahead"),
        false => counted(combinations, "combination", "combinations"),
    };
    format!(
        "Settings: {settings} × {}, {repeats} {} of {} each\n",
        counted(plan.workloads.len(), "workload", "workloads"),
        if high == 1 { "repeat" } else { "repeats" },
        plan.trial
    )
}

fn combinations(plan: &Plan, found: Option<Kib>) -> usize {
    plan.combinations(plan.read_ahead.values(page_size(), found).len())
}

/// Returns the minimum and maximum number of repeats.
fn repeats(plan: &Plan) -> (usize, usize) {
    (plan.repeats.min as usize, plan.repeats.max.max(plan.repeats.min) as usize)
}

/// Describes the files of each workload, and the total that is written.
fn files(forecast: &Forecast, plan: &Plan) -> String {
    let mut text = String::from("Workloads and their files:\n");
    let widest = forecast.workloads.iter().map(|workload| workload.name.len()).max().unwrap_or(0);
    for (planned, workload) in plan.workloads.iter().zip(&forecast.workloads) {
        let role = if planned.role == Role::Cost { "; only its cost is shown" } else { "" };
        let files = match (forecast.laid_out, Forecast::files_of(workload)) {
            (None, _) => "reads existing data".to_owned(),
            (_, (0, ..)) => "no files are created for it".to_owned(),
            (_, (1, _, total)) => format!("1 file of {}", amount(total)),
            (_, (count, largest, total)) if largest * count as u64 == total => {
                format!("{count} files of {}, {} in total", amount(largest), amount(total))
            }
            (_, (count, _, total)) => format!("{count} files, {} in total", amount(total)),
        };
        text.push_str(&format!("  {:widest$}  {files}{role}\n", workload.name));
    }
    text.push_str(&match (forecast.laid_out, forecast.simulated_trial) {
        (_, Some(_)) => "Written: nothing; the files are simulated as well\n".to_owned(),
        (None, _) => "Written: nothing; existing data is only read\n".to_owned(),
        (Some(total), _) => format!(
            "Written: {} in a directory of its own on the target, removed at the end; workloads \
             share files of the same size\n",
            amount(total)
        ),
    });
    text
}

/// Formats a size in the largest unit in which it is at least ten or a whole number.
fn amount(bytes: Bytes) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let bytes = bytes.get();
    let whole = |unit: u64| bytes > 0 && bytes.is_multiple_of(unit);
    match units.into_iter().find(|(unit, _)| bytes >= 10 * unit || whole(*unit)) {
        Some((unit, name)) if whole(unit) => format!("{} {name}", bytes / unit),
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}

fn time(plan: &Plan, found: Option<Kib>, forecast: &Forecast, extent: &StudyExtent) -> String {
    let trial = Duration::from_nanos(plan.trial.get()).as_secs_f64().max(1e-9);
    let simulated = forecast.simulated_trial.map(|time| time.as_secs_f64());
    // Dilation applies to the trial; its overhead is wall time.
    let each = simulated.unwrap_or(trial * forecast.dilation + BESIDE_TRIAL.as_secs_f64());
    let besides = besides(plan, forecast);
    match extent {
        StudyExtent::Grid(limit) => {
            let cells = combinations(plan, found) * plan.workloads.len();
            // The budget of a simulation counts simulated time.
            let counted = if simulated.is_some() { trial } else { each };
            let limit = limit.map_or(f64::INFINITY, |limit| limit.as_secs_f64() / counted);
            // Each cell is measured at least once.
            let within = |repeats: usize| ((cells * repeats) as f64).min(limit.max(cells as f64));
            let (low, high) = repeats(plan);
            format!("Time: {}{besides}\n", span(within(low) * each, within(high) * each))
        }
        StudyExtent::Budget(budget) => {
            let budget = budget.as_secs_f64();
            match simulated {
                None => format!("Time: at most {} of trials{besides}\n", about(budget)),
                Some(each) => format!(
                    "Time: at most {} of simulated trials, which takes {}{besides}\n",
                    about(budget),
                    span(0.0, budget / trial * each)
                ),
            }
        }
    }
}

/// Describes other costs in time, and why trials take longer or shorter than stated.
fn besides(plan: &Plan, forecast: &Forecast) -> String {
    let replays = plan.workloads.iter().any(|planned| planned.workload.replay.is_some());
    let dilation = dilation_words(forecast.dilation);
    match (forecast.simulated_trial, forecast.laid_out) {
        (Some(_), _) if replays => " and the time to simulate the traces".to_owned(),
        (Some(_), _) => String::new(),
        (None, Some(total)) if !total.is_zero() => {
            format!(", and the time to write {}{dilation}", amount(total))
        }
        (None, _) => dilation,
    }
}

/// Formats a range of times, rounded as an estimate.
fn span(low: f64, high: f64) -> String {
    if high < 1.0 {
        return "less than a second".to_owned();
    }
    let (unit, name) = unit_of(high);
    let counts = [low, high].map(|seconds| (seconds / unit).round().max(1.0));
    if low < 1.0 {
        return format!("up to {}", counted(counts[1], name));
    }
    if counts[0] == counts[1] {
        return format!("about {}", counted(counts[1], name));
    }
    format!("{} to {}", counts[0], counted(counts[1], name))
}

/// Formats a time, rounded as an estimate.
fn about(seconds: f64) -> String {
    let (unit, name) = unit_of(seconds);
    counted((seconds / unit).round().max(1.0), name)
}

fn counted(count: f64, name: &str) -> String {
    if count == 1.0 { format!("1 {name}") } else { format!("{count} {name}s") }
}

/// Returns the unit for a time: its length in seconds and its name.
fn unit_of(seconds: f64) -> (f64, &'static str) {
    match seconds {
        ..120.0 => (1.0, "second"),
        120.0..7200.0 => (60.0, "minute"),
        _ => (3600.0, "hour"),
    }
}

fn dilation_words(dilation: f64) -> String {
    match dilation {
        1.0 => String::new(),
        _ => format!("; the disk runs {}", pace(dilation)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_and_no_span_begins_where_it_ends() {
        for (low, high, said) in [
            (0.1, 0.7, "less than a second"),
            (0.5, 3.2, "up to 3 seconds"),
            (1.2, 1.4, "about 1 second"),
            (40.0, 41.0, "40 to 41 seconds"),
            (61.0, 89.0, "61 to 89 seconds"),
            (61.0, 119.9, "61 to 120 seconds"),
            (100.0, 130.0, "about 2 minutes"),
            (60.0, 180.0, "1 to 3 minutes"),
            (3600.0, 36000.0, "1 to 10 hours"),
        ] {
            assert_eq!(span(low, high), said);
        }
    }

    #[test]
    fn amounts_keep_what_matters() {
        for (bytes, said) in [
            (0, "0 bytes"),
            (512, "512 bytes"),
            (1 << 30, "1 GiB"),
            (1907 << 20, "1907 MiB"),
            ((11 << 30) + (512 << 20), "11.5 GiB"),
            (17 << 10, "17 KiB"),
        ] {
            assert_eq!(amount(Bytes::new(bytes)), said);
        }
    }
}
