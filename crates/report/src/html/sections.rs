//! The sections that the page's script fills with charts.

use maud::{Markup, html};

use super::ReportInput;
use super::parts::{about, section};

/// The index of the run on the page to which a section belongs.
pub(super) struct RunSection {
    pub index: usize,
}

impl RunSection {
    /// Returns a unique element id.
    pub fn id(&self, name: &str) -> String {
        format!("{name}-{}", self.index)
    }
}

/// Returns a section with the placeholder of a chart, which has a text for browsers without script.
fn chart(place: &RunSection, draws: &str, title: &str, explanation: &str) -> Markup {
    section(
        &place.id(draws),
        title,
        &html! {
            (about(explanation))
            div data-draw=(draws) data-run=(place.index) {
                noscript { (about("Charts need JavaScript; the tables have their figures.")) }
            }
        },
    )
}

/// Returns whether there are enough read-ahead values to draw a curve.
pub(super) fn has_curves(exhibit: &ReportInput<'_>) -> bool {
    !exhibit.report().varied() || exhibit.report().settings().len() > 1
}

/// Returns the section of throughput, latency, amplification and requests over the setting.
pub(super) fn curves(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    html! {
        @if has_curves(exhibit) {
            (chart(place, "curves", "The effect of read-ahead", "Bands are 95 % confidence \
                intervals, or ranges of fewer than five repeats. A large ring: the smallest \
                setting not measurably below the best; a small ring: the smallest with 80 % of \
                the gain; a square: the knee, where the curve bends. Point or use the arrow keys \
                to read values, drag or press + to zoom. Ticks on the axis are vendors' \
                recommendations."))
        }
    }
}

/// Returns the section of the gain of one workload against the loss of another.
pub(super) fn tradeoff(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    let report = exhibit.report();
    html! {
        @if report.workloads().len() > 1 && report.all_settings().len() > 2 {
            (chart(place, "tradeoff", "Trade-offs", "Each point is a setting. Up and to the \
                             right is better; on the line, one workload can gain only if the \
                             other loses."))
        }
    }
}

/// Returns the sections of latencies, request sizes, time series and drift.
pub(super) fn details(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    let cells = exhibit.trial_details.map(|trial_details| &trial_details.cells);
    let any = |has: &dyn Fn(&crate::trial_details::Detail) -> bool| {
        cells.is_some_and(|cells| cells.values().any(has))
    };
    html! {
        @if any(&|d| !d.stream.is_empty() || !d.random.is_empty()) {
            (chart(place, "latencies", "Latency of reads", "For random reads if a workload has \
                             some, otherwise for all reads. Marked settings are shown first."))
        }
        @if any(&|d| d.sizes.iter().any(|count| *count > 0)) {
            (chart(place, "sizes", "Sizes of device requests", "All requests to the virtual or \
                             simulated disk."))
        }
        @if any(&|d| d.course.len() > 1 || !d.series.is_empty()) {
            (chart(place, "timelines", "A trial over time", "The mean over the repeats at each \
                             time."))
        }
        @if exhibit.run.trials.len() > 2 {
            (chart(place, "drift", "Drift of the machine", "Trials ran in random order within \
                blocks. If the machine became faster or slower, the medians of the blocks would \
                deviate from one."))
        }
    }
}

pub(super) fn trials(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    html! {
        @if !exhibit.run.trials.is_empty() {
            (chart(place, "trials", "Every trial", "Raw counters as recorded, also of \
                             disturbed trials."))
        }
    }
}
