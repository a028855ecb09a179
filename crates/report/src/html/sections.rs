//! The sections that the page's script fills with charts.

use maud::{Markup, html};

use super::Exhibit;
use crate::names::brief;
use crate::number::short;

/// Which run of the page a section belongs to.
pub(super) struct Place {
    pub index: usize,
}

impl Place {
    /// The name of an element, which no other has.
    pub fn id(&self, name: &str) -> String {
        format!("{name}-{}", self.index)
    }
}

/// Where a chart goes, and what stands there without a script.
fn chart(place: &Place, draws: &str) -> Markup {
    html! {
        div data-draw=(draws) data-run=(place.index) {
            noscript { p class="soft" { "Charts need JavaScript; the tables have their figures." } }
        }
    }
}

/// Setting against throughput, latency, amplification, requests.
pub(super) fn curves(_exhibit: &Exhibit<'_>, place: &Place) -> Markup {
    html! {
        section id=(place.id("curves")) aria-labelledby=(place.id("curves-title")) {
            h2 id=(place.id("curves-title")) { "What read-ahead does" }
            p class="soft" {
                "Bands are 95 % intervals. A large ring: the smallest setting not measurably below \
                 the best; a small ring: the smallest with 80 % of the gain. Point or use the \
                 arrow keys to read values, drag or press + to zoom."
            }
            (chart(place, "curves"))
        }
    }
}

/// One workload's gain against another's loss.
pub(super) fn tradeoff(exhibit: &Exhibit<'_>, place: &Place) -> Markup {
    let findings = exhibit.findings();
    html! {
        @if findings.workloads().len() > 1 && findings.all_settings().len() > 2 {
            (section(place, "tradeoff", "What one gains, another pays", "Each point is a setting. \
                Up and to the right is better; what is on the front can only be improved for one \
                by a loss for the other."))
        }
    }
}

/// The reach of each workload's curve, widest first.
pub(super) fn effects(exhibit: &Exhibit<'_>, place: &Place) -> Markup {
    let heading = place.id("effects-title");
    let mut reaches: Vec<(String, f64, String)> = exhibit
        .findings()
        .workloads()
        .iter()
        .filter_map(|planned| reach(exhibit, &planned.workload.name))
        .collect();
    reaches.sort_by(|a, b| b.1.total_cmp(&a.1));
    let widest = reaches.first().map_or(1.0, |(_, ratio, _)| ratio.ln()).max(1e-9);
    html! {
        @if !reaches.is_empty() {
            section id=(place.id("effects")) aria-labelledby=(heading) {
                h2 id=(heading) { "How much it matters" }
                p class="soft" { "Throughput of the best setting against that of the worst." }
                div class="scroll" tabindex="0" role="region" aria-label="Effects" {
                    table {
                        thead { tr {
                            th scope="col" class="word" { "workload" }
                            th scope="col" { "best ÷ worst" }
                            th scope="col" class="word" { "on a logarithmic scale" }
                            th scope="col" class="word" { "from … to" }
                        } }
                        tbody {
                            @for (name, ratio, ends) in &reaches {
                                @let width = format!("{:.0}", 260.0 * ratio.ln() / widest);
                                tr {
                                    th scope="row" { (name) }
                                    td { (short(*ratio).unwrap_or_default()) "×" }
                                    td class="word" {
                                        (bar(&width))
                                    }
                                    td class="word" { (ends) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn bar(width: &str) -> Markup {
    html! {
        svg class="k0" width="264" height="14" aria-hidden="true" {
            rect class="dot" x="0" y="2" height="10" width=(width) {}
        }
    }
}

/// Best against worst of one workload, if there are two settings of it.
fn reach(exhibit: &Exhibit<'_>, workload: &str) -> Option<(String, f64, String)> {
    let cells = exhibit.analysis.cells.iter().filter(|cell| cell.workload == workload);
    let mut medians: Vec<(f64, units::Kib)> = cells
        .map(|cell| (cell.throughput_mib_s.median, cell.settings.read_ahead))
        .filter(|(median, _)| *median > 0.0 && median.is_finite())
        .collect();
    medians.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((worst, at_worst), (best, at_best)) = (*medians.first()?, *medians.last()?);
    (medians.len() > 1).then(|| {
        let ends = format!(
            "{} MiB/s at {at_worst} to {} MiB/s at {at_best}",
            short(worst).unwrap_or_default(),
            short(best).unwrap_or_default()
        );
        (brief(workload), best / worst, ends)
    })
}

/// Latencies, sizes of requests, the course of time, drift.
pub(super) fn details(exhibit: &Exhibit<'_>, place: &Place) -> Markup {
    let cells = exhibit.closeup.map(|closeup| &closeup.cells);
    let any = |has: &dyn Fn(&crate::closeup::Detail) -> bool| {
        cells.is_some_and(|cells| cells.values().any(has))
    };
    html! {
        @if any(&|d| !d.stream.is_empty() || !d.random.is_empty()) {
            (section(place, "latencies", "How long reads take", "Of random reads where a workload \
                has some, else of all. Those of the marked settings are shown first."))
        }
        @if any(&|d| d.sizes.iter().any(|count| *count > 0)) {
            (section(place, "sizes", "How large the requests to the device were", "As the virtual \
                disk got them."))
        }
        @if any(&|d| d.course.len() > 1) {
            (section(place, "timelines", "The course of a trial", "The mean over the repeats, slot \
                by slot."))
        }
        @if exhibit.run.trials.len() > 2 {
            (section(place, "drift", "Did the machine drift?", "Trials ran in random order within \
                blocks. If the machine had become faster or slower meanwhile, the medians of the \
                blocks would not stay at one."))
        }
    }
}

fn section(place: &Place, draws: &str, title: &str, about: &str) -> Markup {
    let heading = place.id(&format!("{draws}-title"));
    html! {
        section id=(place.id(draws)) aria-labelledby=(heading) {
            h2 id=(heading) { (title) }
            p class="soft" { (about) }
            (chart(place, draws))
        }
    }
}

/// All trials.
pub(super) fn trials(exhibit: &Exhibit<'_>, place: &Place) -> Markup {
    html! {
        @if !exhibit.run.trials.is_empty() {
            (section(place, "trials", "Every trial", "Raw counters as they were recorded. \
                Disturbed trials are kept and were repeated."))
        }
    }
}
