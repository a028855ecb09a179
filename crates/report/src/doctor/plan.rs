//! Shows the plan: one value for each device, with numbered steps.

use anstyle::Style;
use doctor::plan::DevicePlan;

use super::page::TextPage;
use super::{bold, dim, green, sentence, yellow};

pub(super) fn show(page: &mut TextPage, plans: &[DevicePlan], nothing_shown: bool) {
    if nothing_shown && plans.is_empty() {
        return;
    }
    if plans.iter().any(DevicePlan::changes) {
        page.line(0, bold(), "Plan (as root)");
    } else {
        page.line(0, bold(), "Plan");
        page.hanging(2, "", Style::new(), "Nothing to change.");
    }
    for plan in plans {
        page.gap();
        device(page, plan);
    }
    page.gap();
}

fn device(page: &mut TextPage, plan: &DevicePlan) {
    let (present, target) = (plan.present_kib, plan.target_kib);
    if present == target {
        page.hanging(0, "", bold(), &format!("{}: stays at {present}", plan.device));
    } else {
        let sectors = target.to_sectors();
        let title = format!("{}: from {present} to {target} ({sectors})", plan.device);
        page.hanging(0, "", bold(), &title);
    }
    for reason in &plan.reasons {
        let text = format!("{target} is {} ({})", reason.reason, reason.finding);
        page.hanging(2, "", Style::new(), &text);
    }
    for other in &plan.overrides {
        let text = format!("{} ({}): {}", other.read_ahead_kib, other.source, other.reason);
        page.hanging(2, "not ", dim(), &text);
    }
    for note in &plan.notes {
        page.hanging(2, "! ", yellow(), &sentence(note));
    }
    for (index, step) in plan.steps.iter().enumerate() {
        page.hanging(2, &format!("{}. ", index + 1), green(), &format!("{}:", step.reason));
        page.command(&step.command);
    }
}
