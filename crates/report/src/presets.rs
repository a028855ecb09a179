//! Output of `foreread presets`.

use anstyle::Style;
use doctor::host_presets::{Comparison, Contradiction, Position};
use doctor::presets::{Applies, AppliesTo, COLLECTED, VendorPreset};
use host::BdiId;
use serde_json::{Value, json};
use units::Kib;

use crate::Versioned;
use crate::doctor::{TextPage, bold, dim, green, yellow};
use crate::json::With;
use crate::terminal_text::TermStyle;

/// Vendors' recommendations, and what they mean on this host.
#[derive(Clone, Copy)]
pub struct PresetsReport<'a> {
    /// The requested recommendations.
    pub asked: &'a [&'a VendorPreset],
    /// The recommendations that apply to this host, compared with the current values.
    pub here: &'a [(&'a Applies, Vec<Comparison>)],
    /// Contradictory recommendations for the same storage.
    pub contradictions: &'a [Contradiction],
    pub named: bool,
    /// The name of a bdi.
    pub name_of: &'a dyn Fn(&BdiId) -> String,
}

/// Returns the document of `foreread presets --json`.
pub fn presets_json(presets: &PresetsReport<'_>) -> Versioned<Value> {
    let item = |preset: &&VendorPreset| {
        let here = presets.here.iter().find(|(applies, _)| applies.preset == *preset);
        let here = here
            .map(|(applies, compared)| json!({ "because": applies.because, "compared": compared }));
        let more = json!({
            "about_device": preset.about_device(),
            "outdated": preset.outdated(),
            "here": here,
        });
        json!(With { object: preset, more })
    };
    let pair = |found: &Contradiction| {
        json!({
            "storage": (presets.name_of)(&found.bdi),
            "one": side(&found.one),
            "other": side(&found.other),
        })
    };
    Versioned::new(json!({
        "collected": COLLECTED,
        "presets": presets.asked.iter().map(item).collect::<Vec<_>>(),
        "contradictions": presets.contradictions.iter().map(pair).collect::<Vec<_>>(),
    }))
}

fn side(applies: &Applies) -> Value {
    json!({
        "software": applies.preset.software,
        "recommended_kib": applies.preset.recommended_kib,
        "source_ref": applies.preset.source_ref,
    })
}

pub fn presets_text(presets: &PresetsReport<'_>, look: TermStyle) -> String {
    let mut page = TextPage::new(look);
    let asked = |preset: &VendorPreset| presets.asked.contains(&preset);
    let here: Vec<_> = presets.here.iter().filter(|(applies, _)| asked(applies.preset)).collect();
    if !here.is_empty() {
        page.line(0, bold(), "For this host");
        for (applies, compared) in &here {
            page.gap();
            of_here(&mut page, presets, applies, compared);
        }
        page.gap();
    }
    contradictions(&mut page, presets);
    let rest: Vec<&&VendorPreset> = presets
        .asked
        .iter()
        .filter(|preset| !here.iter().any(|(applies, _)| applies.preset == **preset))
        .collect();
    if presets.named {
        for preset in &rest {
            of_preset(&mut page, preset);
            page.gap();
        }
    } else {
        others(&mut page, &rest, here.is_empty());
    }
    let note = format!(
        "Collected in {COLLECTED} from publications; never applied automatically. foreread tune \
         measures the best value for your storage."
    );
    page.gap();
    page.hanging(0, "", dim(), &note);
    page.text()
}

fn of_here(
    page: &mut TextPage,
    presets: &PresetsReport<'_>,
    applies: &Applies,
    compared: &[Comparison],
) {
    of_preset(page, applies.preset);
    page.hanging(2, "here: ", dim(), &applies.because);
    if applies.storage == AppliesTo::Unknown {
        page.hanging(2, "", dim(), "its data directory is unknown");
    }
    for comparison in compared {
        let name = (presets.name_of)(&comparison.bdi);
        let (style, text) = match comparison.position {
            Position::Follows => (green(), "follows it"),
            Position::Below => (yellow(), "has less"),
            Position::Above => (yellow(), "has more"),
            Position::NoNumber => (Style::new(), "no number to compare with"),
        };
        page.marked(2, "", style, &format!("{name} has {}: {text}", comparison.present));
    }
}

fn of_preset(page: &mut TextPage, preset: &VendorPreset) {
    let value = match preset.advice.range() {
        Some((low, high)) if low == high => format!("{low} · {}", low.to_sectors()),
        Some((low, high)) if high.get() < (1 << 40) => {
            format!("{} to {high} · {} to {}", low.get(), sectors(low), high.to_sectors())
        }
        Some((low, _)) => format!("{low} or more"),
        None => preset.recommended_kib.clone(),
    };
    page.heading(&preset.software, &value, bold());
    page.hanging(2, "for ", dim(), &format!("{}; {}", preset.workload, preset.device));
    if !preset.condition.is_empty() {
        page.hanging(2, "", Style::new(), &preset.condition);
    }
    if preset.outdated() {
        page.hanging(2, "", yellow(), "outdated, superseded or never adopted");
    }
    if !preset.about_device() {
        page.hanging(
            2,
            "",
            dim(),
            "applies to the software's own buffer or unit, not to read_ahead_kb",
        );
    }
    let year = preset.year.map_or_else(|| "undated".to_owned(), |year| year.to_string());
    let source = format!("{} ({}, {year})", preset.source_title, preset.source_ref);
    page.hanging(2, "from ", dim(), &source);
}

fn sectors(kib: Kib) -> u64 {
    kib.to_sectors().get()
}

fn contradictions(page: &mut TextPage, presets: &PresetsReport<'_>) {
    let asked = |applies: &Applies| presets.asked.contains(&applies.preset);
    let ours: Vec<&Contradiction> = presets
        .contradictions
        .iter()
        .filter(|found| asked(&found.one) || asked(&found.other))
        .collect();
    if ours.is_empty() {
        return;
    }
    page.line(0, yellow().bold(), "Contradictory recommendations");
    for found in ours {
        let (one, other) = (found.one.preset, found.other.preset);
        let text = format!(
            "{}: {} says {}, {} says {}",
            (presets.name_of)(&found.bdi),
            one.software,
            one.recommended_kib,
            other.software,
            other.recommended_kib
        );
        page.hanging(2, "! ", yellow(), &text);
    }
    page.gap();
}

/// Lists the names of the remaining software.
fn others(page: &mut TextPage, rest: &[&&VendorPreset], nothing_here: bool) {
    if nothing_here {
        page.line(0, Style::new(), "No recommendation applies to this host.");
        page.gap();
    }
    let mut names: Vec<&str> =
        rest.iter().filter_map(|preset| preset.group()).map(|group| group.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let text = format!("foreread presets NAME, of {}", names.join(", "));
    page.hanging(0, "more: ", dim(), &text);
}
