//! The sections that the page's script fills with charts.

use maud::{Markup, html};

use super::ReportInput;

/// Which run of the page a section belongs to.
pub(super) struct RunSection {
    pub index: usize,
}

impl RunSection {
    /// The name of an element, which no other has.
    pub fn id(&self, name: &str) -> String {
        format!("{name}-{}", self.index)
    }
}

/// Where a chart goes, and what stands there without a script.
fn chart(place: &RunSection, draws: &str) -> Markup {
    html! {
        div data-draw=(draws) data-run=(place.index) {
            noscript { p class="soft" { "Charts need JavaScript; the tables have their figures." } }
        }
    }
}

/// Whether there is more than one size of read-ahead to draw a curve over.
pub(super) fn has_curves(exhibit: &ReportInput<'_>) -> bool {
    !crate::factors::varied(&exhibit.report()) || exhibit.report().settings().len() > 1
}

/// Setting against throughput, latency, amplification, requests.
pub(super) fn curves(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    html! {
        @if has_curves(exhibit) { (curves_section(place)) }
    }
}

fn curves_section(place: &RunSection) -> Markup {
    html! {
        section id=(place.id("curves")) aria-labelledby=(place.id("curves-title")) {
            h2 id=(place.id("curves-title")) { "What read-ahead does" }
            p class="soft" {
                "Bands are 95 % confidence intervals, or ranges of fewer than five repeats. A \
                 large ring: the smallest setting not measurably below the best; a small ring: \
                 the smallest with 80 % of the gain; a square: the knee, where the curve bends. \
                 Point or use the arrow keys to read values, drag or press + to zoom. Ticks on \
                 the axis are what vendors advise."
            }
            (chart(place, "curves"))
        }
    }
}

/// One workload's gain against another's loss.
pub(super) fn tradeoff(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    let report = exhibit.report();
    html! {
        @if report.workloads().len() > 1 && report.all_settings().len() > 2 {
            (section(place, "tradeoff", "What one gains, another pays", "Each point is a setting. \
                Up and to the right is better; what is on the front can only be improved for one \
                by a loss for the other."))
        }
    }
}

/// Latencies, sizes of requests, the course of time, drift.
pub(super) fn details(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    let cells = exhibit.trial_details.map(|trial_details| &trial_details.cells);
    let any = |has: &dyn Fn(&crate::trial_details::Detail) -> bool| {
        cells.is_some_and(|cells| cells.values().any(has))
    };
    html! {
        @if any(&|d| !d.stream.is_empty() || !d.random.is_empty()) {
            (section(place, "latencies", "How long reads take", "Of random reads where a workload \
                has some, else of all. Those of the marked settings are shown first."))
        }
        @if any(&|d| d.sizes.iter().any(|count| *count > 0)) {
            (section(place, "sizes", "How large the requests to the device were", "Every request \
                that the virtual or simulated disk got."))
        }
        @if any(&|d| d.course.len() > 1 || !d.series.is_empty()) {
            (section(place, "timelines", "The course of a trial", "The mean over the repeats, \
                moment by moment."))
        }
        @if exhibit.run.trials.len() > 2 {
            (section(place, "drift", "Did the machine drift?", "Trials ran in random order within \
                blocks. If the machine had become faster or slower meanwhile, the medians of the \
                blocks would not stay at one."))
        }
    }
}

fn section(place: &RunSection, draws: &str, title: &str, about: &str) -> Markup {
    let heading = place.id(&format!("{draws}-title"));
    html! {
        section id=(place.id(draws)) aria-labelledby=(heading) {
            h2 id=(heading) { (title) }
            p class="soft" { (about) }
            (chart(place, draws))
        }
    }
}

pub(super) fn trials(exhibit: &ReportInput<'_>, place: &RunSection) -> Markup {
    html! {
        @if !exhibit.run.trials.is_empty() {
            (section(place, "trials", "Every trial", "Raw counters as they were recorded. \
                Disturbed trials are kept and were repeated."))
        }
    }
}
