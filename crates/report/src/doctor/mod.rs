//! The output of `foreread doctor`: the value and origin of each storage, then the plan.

mod json;
mod names;
mod page;
mod plan;
mod tree;

use anstyle::{AnsiColor, Style};
use doctor::plan::DevicePlan;
use doctor::{Confidence, Diagnosis, Finding, Missing, OriginKind, Severity};

use crate::terminal_text::TermStyle;
pub(crate) use page::TextPage;

pub use json::doctor_json;
pub use names::short as storage_name;

#[derive(Clone, Copy, Debug)]
pub struct DoctorReport<'a> {
    /// All examined bdis.
    pub diagnoses: &'a [Diagnosis],
    /// One plan per device.
    pub plan: &'a [DevicePlan],
    /// Items that could not be examined.
    pub missing: &'a [Missing],
    /// Captured tree; `None` for this machine.
    pub tree: Option<&'a str>,
    /// Kernel release.
    pub kernel: &'a str,
    /// True to show trees, queue settings and evidence.
    pub detail: bool,
}

pub(crate) fn bold() -> Style {
    Style::new().bold()
}

pub(crate) fn dim() -> Style {
    Style::new().dimmed()
}

pub(crate) fn yellow() -> Style {
    Style::new().fg_color(Some(AnsiColor::Yellow.into()))
}

pub(crate) fn green() -> Style {
    Style::new().fg_color(Some(AnsiColor::Green.into()))
}

/// Returns the whole output for a terminal.
pub fn doctor(doctor: &DoctorReport<'_>, look: TermStyle) -> String {
    let mut page = TextPage::new(look);
    captured_host_note(&mut page, doctor.tree);
    let shown: Vec<&Diagnosis> =
        doctor.diagnoses.iter().filter(|diagnosis| doctor.detail || !is_minor(diagnosis)).collect();
    for diagnosis in &shown {
        storage(&mut page, doctor, diagnosis);
    }
    if !doctor.detail {
        minor_devices(&mut page, doctor.diagnoses);
    }
    finding_section(&mut page, &shown, doctor.detail);
    plan::show(&mut page, doctor.plan, shown.is_empty());
    missing_section(&mut page, doctor.missing);
    if shown.is_empty() && doctor.diagnoses.is_empty() {
        page.line(0, Style::new(), "Nothing here has read-ahead.");
    }
    page.text()
}

/// Adds a note that the output describes another machine.
pub(crate) fn captured_host_note(page: &mut TextPage, tree: Option<&str>) {
    let Some(tree) = tree else { return };
    let text = format!(
        "The host in {tree}, not this machine: run the commands below on that host. Open files \
         and other state of a running kernel are unknown."
    );
    page.hanging(0, "", bold(), &text);
    page.gap();
}

/// Returns whether a storage needs no block of its own: members, which appear in the trees of the
/// devices that contain them, and empty devices.
fn is_minor(diagnosis: &Diagnosis) -> bool {
    let subject = &diagnosis.subject;
    subject.member || subject.vacant()
}

fn storage(page: &mut TextPage, doctor: &DoctorReport<'_>, diagnosis: &Diagnosis) {
    let value = diagnosis.read_ahead();
    let sizes = format!("{value} · {}", value.to_sectors());
    page.heading(&names::subject(&diagnosis.subject), &sizes, value_style(diagnosis));
    page.hanging(2, "from ", dim(), &origin_text(diagnosis));
    if doctor.detail {
        for evidence in &diagnosis.origin.evidence {
            page.hanging(7, "· ", dim(), &names::evidence(evidence));
        }
        tree::show(page, diagnosis);
        if let Some(beside) = names::queue_settings(&diagnosis.subject) {
            page.hanging(2, "queue ", dim(), &beside);
        }
    } else if let Some(below) = names::stack_line(&diagnosis.subject) {
        page.hanging(2, "over ", dim(), &below);
    }
    if let Some(open) = names::open(diagnosis) {
        page.hanging(2, "open ", dim(), &open);
    }
    for found in &diagnosis.findings {
        page.marked(2, severity_mark(found), severity_style(found), &found.title);
    }
    page.gap();
}

/// Returns the origin of a value, with the confidence if it is low.
fn origin_text(diagnosis: &Diagnosis) -> String {
    let origin = &diagnosis.origin;
    match origin.confidence {
        Confidence::Certain | Confidence::High => origin.summary.clone(),
        Confidence::None if origin.kind == OriginKind::Unknown => origin.summary.clone(),
        confidence => format!("{} (confidence {})", origin.summary, confidence.word()),
    }
}

fn value_style(diagnosis: &Diagnosis) -> Style {
    match diagnosis.findings.iter().map(|found| found.severity).max() {
        Some(Severity::Warning) => yellow().bold(),
        _ => green().bold(),
    }
}

fn severity_mark(found: &Finding) -> &'static str {
    match found.severity {
        Severity::Warning => "! ",
        Severity::Notice => "i ",
    }
}

fn severity_style(found: &Finding) -> Style {
    match found.severity {
        Severity::Warning => yellow(),
        Severity::Notice => Style::new(),
    }
}

/// Adds members and empty devices, one line for each value.
fn minor_devices(page: &mut TextPage, diagnoses: &[Diagnosis]) {
    let lines = names::minor_devices(diagnoses.iter().filter(|diagnosis| is_minor(diagnosis)));
    if lines.is_empty() {
        return;
    }
    page.line(0, bold(), "Other devices");
    for line in lines {
        page.hanging(2, "", dim(), &line);
    }
    page.gap();
}

/// Explains why each finding matters, once for all storage with the finding.
fn finding_section(page: &mut TextPage, diagnoses: &[&Diagnosis], detail: bool) {
    let mut seen: Vec<(&'static str, Severity)> = Vec::new();
    for found in diagnoses.iter().flat_map(|diagnosis| &diagnosis.findings) {
        if !seen.iter().any(|(id, _)| *id == found.id) {
            seen.push((found.id, found.severity));
        }
    }
    seen.sort_by_key(|(_, severity)| std::cmp::Reverse(*severity));
    if seen.is_empty() {
        return;
    }
    page.line(0, bold(), "Findings");
    for (id, _) in seen {
        let about = diagnoses.iter().flat_map(|diagnosis| {
            diagnosis.findings.iter().filter(move |found| found.id == id).map(|f| (*diagnosis, f))
        });
        let about: Vec<(&Diagnosis, &Finding)> = about.collect();
        page.gap();
        one_finding(page, &about, detail);
    }
    page.gap();
}

/// Maximum number of storage whose evidence is listed for a finding; the rest is similar.
const MOST_SHOWN: usize = 3;

fn one_finding(page: &mut TextPage, about: &[(&Diagnosis, &Finding)], detail: bool) {
    let Some((_, first)) = about.first() else { return };
    let names: Vec<String> = about.iter().map(|(d, _)| names::short(&d.subject)).collect();
    let title = format!("{}: {}", first.id, names.join(", "));
    page.marked(0, severity_mark(first), severity_style(first).bold(), &title);
    page.hanging(2, "", Style::new(), &sentence(&first.why));
    for (_, found) in about.iter().take(MOST_SHOWN).filter(|_| detail) {
        for evidence in &found.evidence {
            page.hanging(2, "seen: ", dim(), &names::evidence(evidence));
        }
    }
    if detail && about.len() > MOST_SHOWN {
        let rest = format!("and {} more in the same way", about.len() - MOST_SHOWN);
        page.hanging(2, "", dim(), &rest);
    }
}

/// Turns a phrase into a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

fn missing_section(page: &mut TextPage, missing: &[Missing]) {
    if missing.is_empty() {
        return;
    }
    let root = missing.iter().any(|missing| missing.root_would);
    let title = if root { "Root would also see" } else { "Could not be seen" };
    page.line(0, bold(), title);
    for missing in missing {
        page.hanging(2, "· ", dim(), &format!("{} ({})", missing.what, missing.reason));
    }
}
