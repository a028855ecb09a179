//! Draws a storage's stacks as trees.

use doctor::Diagnosis;
use host::{BdiId, Layer};

use super::names;
use super::page::TextPage;

/// Draws every stack of a storage.
pub(super) fn show(page: &mut TextPage, diagnosis: &Diagnosis) {
    for stack in &diagnosis.subject.stacks {
        branch(page, stack, &diagnosis.subject.bdi, "", "");
    }
}

fn branch(page: &mut TextPage, layer: &Layer, counts: &BdiId, drawing: &str, below: &str) {
    let value = layer.read_ahead.map(|kib| kib.to_string()).unwrap_or_default();
    let ours = layer.bdi.as_ref() == Some(counts);
    page.branch(drawing, &names::layer(layer), &value, ours);
    let last = layer.below.len().saturating_sub(1);
    for (index, child) in layer.below.iter().enumerate() {
        let (corner, bar) = if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        branch(page, child, counts, &format!("{below}{corner}"), &format!("{below}{bar}"));
    }
}
