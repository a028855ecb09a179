//! A profile as one HTML file: the places with the highest cost, a flame graph, files over time,
//! waits and requests.

use maud::{Markup, html};
use profile::{
    FileStream, ProfileAnalysis, ProfileDiagnosis, ProfileRecording, WhatIfTable, code_line,
    gain_line, share,
};
use units::{Bytes, Nanos};

use super::assets::PageContent;
use super::data::text;
use super::page::{Delivery, document};
use super::parts::Heading::{Figure, SortsFigures, Text};
use super::parts::{about, section, table};
use super::profile_data::page_data;
use crate::names::brief;
use crate::number::short;
use units::text::counted;

/// Maximum number of rows in the table of files.
const MAX_FILES: usize = 500;

/// Returns a profile as a page that can be opened from disk or mailed.
pub fn profile_html(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> String {
    let delivery = Delivery { served: false, live: None, content: PageContent::Profile };
    let mut contents = vec![
        ("places", "Places"),
        ("flame", "Flame graph"),
        ("offsets", "Files over time"),
        ("waterfall", "Waits and requests"),
        ("files", "Files"),
    ];
    if analysis.what_if.is_some() {
        contents.insert(1, ("what-if", "Other settings"));
    }
    let contents: Vec<(String, String)> =
        contents.into_iter().map(|(to, name)| (format!("#{to}"), name.to_owned())).collect();
    let body = html! {
        (summary(recording, analysis))
        (places(recording, analysis))
        (what_if(recording, analysis))
        (chart("flame", "Flame graph", "Each box is a function that waited for storage, or called \
            one that did; its width is the chosen quantity. Click a box, or press Enter on it, to \
            see only what is below it."))
        (chart("offsets", "Files over time", "Where in a file the program reads, and when. Drag to \
            zoom, or use the keys + and -, arrows to move, and 0 to see all."))
        (chart("waterfall", "Waits and requests", "Waits of the threads that waited longest, and \
            the requests of each device, in as many rows as were in flight at once. The picture \
            above and this one show the same time."))
        (files(recording, analysis))
    };
    let title = format!("Profile of {}", brief(&recording.target));
    document(&title, &contents, &body, &text(&page_data(recording, analysis)), &delivery)
}

/// Returns the predicted effect of the settings of --what-if.
fn what_if(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> Markup {
    let Some(result) = &analysis.what_if else { return html! {} };
    section(
        "what-if",
        "Other settings",
        &html! {
            @match result {
                Err(why) => p { "Not predictable: " (why) "." },
                Ok(table) => {
                    p class="soft" { "The accesses replayed in the simulator. It waits "
                        (time(table.replayed)) " under the recorded settings, where "
                        (time(table.recorded)) " were recorded." }
                    (what_if_table(recording, table))
                }
            }
        },
    )
}

fn what_if_table(recording: &ProfileRecording, replays: &WhatIfTable) -> Markup {
    let row = |setting: &str, wall: Nanos, waited: Nanos, read: Bytes| {
        html! { tr {
            td class="word" { (setting) }
            td { (time(wall)) }
            td { (format!("{:.2}", recording.wall.as_secs_f64() / wall.as_secs_f64().max(1e-9))) }
            td { (time(waited)) }
            td { (size(read.get())) }
        } }
    };
    let figures = ["run", "times as fast", "waits", "read"].map(Figure);
    let headings: Vec<_> = [Text("setting")].into_iter().chain(figures).collect();
    table(
        "Other settings",
        &headings,
        &html! {
            (row("as recorded", recording.wall, replays.replayed, replays.read))
            @for it in &replays.rows { (row(&it.setting.to_string(), it.wall, it.waited, it.read)) }
        },
    )
}

fn time(time: Nanos) -> String {
    let micros = time.get() as f64 / 1e3;
    crate::number::time(micros).unwrap_or_else(|| "0".to_owned())
}

/// Formats bytes in a unit of their order of magnitude.
fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|(_, shift)| bytes >> shift > 0);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(unit, shift)| {
            let count = short(bytes as f64 / f64::from(1_u32 << shift)).unwrap_or_default();
            format!("{count} {unit}")
        },
    )
}

fn summary(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> Markup {
    let all = analysis.busy();
    let card = |name: &str, part: Nanos| {
        let share = share(part, all);
        html! { div {
            dt { (name) }
            dd { (time(part)) small { (share) " of the threads\u{2019} busy time" } }
        } }
    };
    html! {
        section class="verdict" aria-labelledby="headline" {
            h2 class="headline" id="headline" { (headline(recording, analysis)) }
            dl class="cards" {
                div { dt { "Run" } dd { (time(recording.wall))
                    small { (counted(recording.threads.len(), "thread")) } } }
                (card("Compute", analysis.compute()))
                (card("Avoidable waits", analysis.avoidable))
                (card("Waits without a prediction", analysis.unpredicted()))
                (card("Device-bound waits", analysis.device_bound()))
            }
            @let notes = profile::notes(recording, analysis);
            @if !notes.is_empty() { ul class="said note" { @for note in notes { li { (note) } } } }
        }
    }
}

fn headline(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> String {
    let waits = format!(
        "Waits for storage take {} of the threads\u{2019} busy time",
        share(analysis.waited, analysis.busy())
    );
    let worst = analysis.diagnoses.iter().find(|one| one.is_problem());
    match worst {
        _ if analysis.waited == Nanos::ZERO => "No thread waited for storage".to_owned(),
        None => format!("{waits}; no rule finds a fix"),
        Some(one) if one.gain.saved() > Nanos::ZERO => format!(
            "{waits}; fixing {} saves {} of {}",
            one.rule.name,
            time(one.gain.saved()),
            time(recording.wall)
        ),
        Some(one) => format!("{waits}; the first problem is {}", one.rule.name),
    }
}

fn places(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> Markup {
    section(
        "places",
        "The places that cost most",
        &html! {
            @if analysis.diagnoses.is_empty() { p { "No rule applies." } }
            @for (one, others) in profile::places(recording, analysis) {
                (place(recording, analysis, one, &others))
            }
        },
    )
}

fn place(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
    one: &ProfileDiagnosis,
    others: &[&ProfileDiagnosis],
) -> Markup {
    let finding = &one.finding;
    let file = one.stream.map(|place| analysis.streams[place].inode as usize);
    let stack = finding.stack.and_then(|place| recording.stacks.get(place as usize));
    html! {
        h3 {
            (one.rule.name) " (" (one.rule.code) "): " (time(finding.waited)) ", "
            (share(finding.waited, recording.wall)) " of the run"
        }
        dl class="facts" {
            @if let Some(file) = file {
                dt { "file" } dd class="mono small" { (recording.files[file].path) }
            }
            dt { "code" }
            dd class="mono small" {
                (code_line(stack).unwrap_or_else(|| "no stack of the program".to_owned()))
            }
            dt { "cause" } dd { (finding.cause) }
            dt { "fix" }
            dd {
                (finding.fix)
                @if let Some(snippet) = &finding.snippet {
                    div class="command" {
                        pre { code { (snippet) } }
                        button type="button" data-copy="" { "Copy" }
                    }
                }
            }
            dt { "gain" } dd { (gain_line(one, recording.wall)) }
            @if let Some(others) = profile::others_line(one, others) {
                dt { "also" }
                dd { (others) }
            }
        }
    }
}

/// Returns a section that the page's script fills.
fn chart(name: &str, title: &str, explanation: &str) -> Markup {
    section(
        name,
        title,
        &html! {
            (about(explanation))
            div id={ (name) "-chart" } { noscript { (about("Charts need JavaScript.")) } }
        },
    )
}

fn files(recording: &ProfileRecording, analysis: &ProfileAnalysis) -> Markup {
    let left_out = analysis.streams.len().saturating_sub(MAX_FILES);
    let figures = ["waited", "waits", "calls", "asked", "read", "read ÷ asked"].map(SortsFigures);
    let headings: Vec<_> = [Text("file"), Text("by")].into_iter().chain(figures).collect();
    let rows = html! {
        @for stream in analysis.streams.iter().take(MAX_FILES) { (file_row(recording, stream)) }
    };
    section(
        "files",
        "Files",
        &html! {
            p class="soft" {
                "Each open file, and the mappings of each file. Bytes read are those submitted for \
                 the file, by all its open files."
                @if left_out > 0 { " " (left_out) " more were waited for less." }
            }
            (table("Files", &headings, &rows))
        },
    )
}

/// Returns the row of one open file or mapping.
fn file_row(recording: &ProfileRecording, stream: &FileStream) -> Markup {
    let (calls, asked) = (stream.calls(), stream.bytes());
    let submitted = recording.submitted.iter().filter(|pages| pages.inode == stream.inode);
    let submitted: u64 = submitted.map(|pages| pages.length.get()).sum();
    let ratio = submitted as f64 / asked.get().max(1) as f64;
    let way = if stream.file == 0 { "mapping" } else { "read" };
    html! {
        tr {
            th scope="row" class="mono" { (recording.files[stream.inode as usize].path) }
            td class="word" { (way) }
            td data-v=(stream.waited.get()) { (time(stream.waited)) }
            td data-v=(stream.waits.len()) { (stream.waits.len()) }
            td data-v=(calls) { (calls) }
            td data-v=(asked.get()) { (size(asked.get())) }
            td data-v=(submitted) { (size(submitted)) }
            td data-v=(ratio) { (short(ratio).unwrap_or_default()) }
        }
    }
}
