//! How fast are start, middle and end of the disk? The experiment measures a stream of large direct
//! reads at each place.

use std::path::Path;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use stats::Estimate;
use study::{Environment, Progress, ProgressEvent, StudyPhase, Target, TargetSpec};
use sys::realtime;
use units::{Bytes, Nanos};

use crate::direct::{Aligned, Direct};
use crate::simulated::{DirectLoad, SimulatedDisk};
use crate::{ExperimentError, blocks::readable};
use study::{Findings, LiveTarget, ResultCurve, ResultPlot, ResultTable, drawn_seed};

pub const NAME: &str = "zones";
pub const QUESTION: &str = "How fast are start, middle and end of the disk?";

/// The request size: large enough that the kernel keeps several requests in flight.
const REQUEST_BYTES: Bytes = Bytes::from_mib(8);
/// Maximum relative difference of two rates that count as equal.
const EQUAL_RATE_TOLERANCE: f64 = 0.05;

#[derive(Clone, Debug, PartialEq)]
pub struct ZonePlan {
    /// A block device, a file, a virtual disk, or a simulation.
    pub target: Target,
    /// Number of places, including start and end; 2 to 1000.
    pub places: u32,
    /// Reading time at each place, in the storage's own time.
    pub duration: Nanos,
    pub repeats: u32,
    pub seed: Option<u64>,
}

pub fn run(
    plan: &ZonePlan,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Findings, ExperimentError> {
    if !(2..=1000).contains(&plan.places) || plan.duration < Nanos::from_millis(20) {
        let text = "needs 2 to 1000 places, and at least 20 ms at each";
        return Err(ExperimentError::Usage(text.to_owned()));
    }
    if let Target::Simulation(spec) = &plan.target {
        return simulated(plan, spec, environment);
    }
    let place = LiveTarget::open_raw(&plan.target, environment, progress)?;
    progress.step(&ProgressEvent::Phase(StudyPhase::Measuring));
    let measured = measure(plan, &place, environment, progress);
    let closed = place.close(progress);
    let answer = measured?;
    closed?;
    Ok(answer)
}

fn measure(
    plan: &ZonePlan,
    place: &LiveTarget,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Findings, ExperimentError> {
    let mut answer = Findings::new(NAME, QUESTION, plan.target.to_string());
    let seed = plan.seed.unwrap_or_else(drawn_seed);
    (answer.seed, answer.dilation) = (seed, place.dilation);
    let path = readable(place)?;
    let file = Direct::open(path)?;
    let size = file.size()?;
    roomy(plan, path, size)?;
    let (mut done, total) = (0, plan.places as usize * plan.repeats as usize);
    let found = gather(plan, seed, &mut |share| {
        progress.step(&ProgressEvent::Measured { done, total });
        done += 1;
        Stream { file: &file, size, share, place }.rate(plan.duration, environment)
    })?;
    conclude(&mut answer, &found);
    Ok(answer)
}

fn simulated(
    plan: &ZonePlan,
    spec: &TargetSpec<sim::SimMachine>,
    environment: &Environment,
) -> Result<Findings, ExperimentError> {
    let mut answer = Findings::new(NAME, QUESTION, plan.target.to_string());
    answer.seed = plan.seed.unwrap_or_else(drawn_seed);
    let mut disk = SimulatedDisk::open(spec.get()?, answer.seed)?;
    answer.set_simulated_by(disk.machine());
    let size = disk.size();
    roomy(plan, answer.target.as_ref(), size)?;
    let found = gather(plan, answer.seed, &mut |share| {
        if environment.cancel.is_cancelled() {
            return Err(ExperimentError::Cancelled);
        }
        let mut places = places(size, share);
        let mut place = |_| places.next().unwrap_or_default();
        let (duration, length) = (plan.duration, REQUEST_BYTES);
        let mut load = DirectLoad { readers: 1, length, part: None, duration, place: &mut place };
        let served = disk.serve(&mut load);
        Ok((REQUEST_BYTES * served.times.len() as u64).as_mib() / served.elapsed.as_secs_f64())
    })?;
    conclude(&mut answer, &found);
    Ok(answer)
}

/// Returns an error if the storage is too small for this many places.
fn roomy(plan: &ZonePlan, path: &Path, size: Bytes) -> Result<(), ExperimentError> {
    let needed = REQUEST_BYTES * 2 * u64::from(plan.places);
    match size < needed {
        true => Err(ExperimentError::TooSmall { path: path.to_owned(), size, needed }),
        false => Ok(()),
    }
}
fn gather(
    plan: &ZonePlan,
    seed: u64,
    rate: &mut dyn FnMut(f64) -> Result<f64, ExperimentError>,
) -> Result<Vec<(f64, Estimate)>, ExperimentError> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut rates = vec![Vec::new(); plan.places as usize];
    let share = |index: usize| index as f64 / f64::from(plan.places - 1);
    for _ in 0..plan.repeats {
        let mut order: Vec<usize> = (0..rates.len()).collect();
        order.shuffle(&mut random);
        for index in order {
            rates[index].push(rate(share(index))?);
        }
    }
    let found = rates.iter().enumerate();
    Ok(found
        .filter_map(|(index, rates)| Some((share(index), Estimate::from_values(rates)?)))
        .collect())
}

/// Returns the offsets of a stream at a share of the whole (0 to 1): a twentieth of the storage,
/// read in ascending order and repeated endlessly.
fn places(size: Bytes, share: f64) -> impl Iterator<Item = Bytes> {
    let requests = size.get() / REQUEST_BYTES.get();
    let room = (requests / 20).max(1);
    let first = (share * (requests - room) as f64) as u64;
    (0..room).cycle().map(move |read| REQUEST_BYTES * (first + read))
}
struct Stream<'a> {
    file: &'a Direct,
    size: Bytes,
    share: f64,
    place: &'a LiveTarget,
}

impl Stream<'_> {
    /// Returns the throughput in MiB/s, in the storage's own time.
    fn rate(&self, duration: Nanos, environment: &Environment) -> Result<f64, ExperimentError> {
        let mut places = places(self.size, self.share);
        let mut buffer = Aligned::new(REQUEST_BYTES);
        let begun = realtime::now();
        let end = begun + duration.scaled(self.place.dilation);
        let mut read = 0;
        while read == 0 || realtime::now() < end {
            if environment.cancel.is_cancelled() {
                return Err(ExperimentError::Cancelled);
            }
            self.file.read(places.next().unwrap_or_default(), buffer.as_mut())?;
            read += 1;
        }
        let seconds = realtime::now().saturating_sub(begun).as_secs_f64() / self.place.dilation;
        Ok((REQUEST_BYTES * read).as_mib() / seconds)
    }
}

fn conclude(answer: &mut Findings, found: &[(f64, Estimate)]) {
    let columns = [
        ("place_percent", "place %"),
        ("throughput_mib_s", "MiB/s"),
        ("throughput_mib_s_low", "from"),
        ("throughput_mib_s_high", "to"),
        ("ratio_to_start", "× start"),
    ];
    let (Some((_, start)), Some((_, end))) = (found.first(), found.last()) else { return };
    let row = |(share, rate): &(f64, Estimate)| {
        vec![
            (share * 100.0).into(),
            rate.median.into(),
            rate.low().into(),
            rate.high().into(),
            (rate.median / start.median).into(),
        ]
    };
    let mut table = ResultTable::new("One stream", &columns);
    table.rows.extend(found.iter().map(row));
    answer.tables.push(table);
    let points = found.iter().map(|(share, rate)| (share * 100.0, rate.median)).collect();
    let mut plot = ResultPlot::new("MiB/s of a stream, by its place", "% of the disk", "MiB/s");
    plot.curves.push(ResultCurve { name: String::new(), points });
    answer.plots.push(plot);
    let ratio = end.median / start.median;
    answer.verdict.push(if (ratio - 1.0).abs() < EQUAL_RATE_TOLERANCE {
        format!("Start and end are alike: {:.1} and {:.1} MiB/s.", start.median, end.median)
    } else {
        format!(
            "The end reads at {:.0} % of the rate of the start: {:.1} and {:.1} MiB/s.",
            ratio * 100.0,
            end.median,
            start.median
        )
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_compared() {
        let said = |last: f64| {
            let found = [(0.0, 100.0), (0.5, 90.0), (1.0, last)]
                .map(|(share, rate)| (share, Estimate::exact(rate)));
            let mut answer = Findings::new(NAME, QUESTION, "disk".to_owned());
            conclude(&mut answer, &found);
            assert_eq!(answer.tables[0].rows.len(), 3);
            answer.verdict.concat()
        };
        assert!(said(50.0).contains("at 50 % of the rate of the start"));
        assert!(said(98.0).contains("are alike"));
    }
}
