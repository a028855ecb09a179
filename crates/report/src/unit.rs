//! The unit of a workload's figures: data per time, or a command's own metric.

use study::Run;

/// Unit of all workloads without their own metric.
pub(crate) const RATE: &str = "MiB/s";

/// Returns the name and unit of a workload's figures: `MiB/s`, `tps`, `bandwidth (MB/s)`.
pub(crate) fn unit(run: &Run, workload: &str) -> String {
    own(run, workload).unwrap_or_else(|| RATE.to_owned())
}

/// Returns the workload's own metric; `None` if its figures are data per time.
pub(crate) fn own(run: &Run, workload: &str) -> Option<String> {
    let planned = run.plan.workloads.iter().find(|one| one.workload.name == workload)?;
    planned.workload.figure().map(|figure| figure.to_string())
}

/// Returns the units of these workloads, for the legend of a table.
pub(crate) fn units<'a>(run: &Run, workloads: impl Iterator<Item = &'a str>) -> String {
    let (mut rates, mut named) = (false, Vec::new());
    for workload in workloads {
        match own(run, workload) {
            None => rates = true,
            Some(figure) => named.push((workload, figure)),
        }
    }
    let mut parts: Vec<String> = rates.then(|| RATE.to_owned()).into_iter().collect();
    match named.as_slice() {
        [(_, figure)] if !rates => parts.push(figure.clone()),
        _ => parts.extend(named.iter().map(|(name, figure)| format!("{name}: {figure}"))),
    }
    if parts.is_empty() { RATE.to_owned() } else { parts.join("; ") }
}
