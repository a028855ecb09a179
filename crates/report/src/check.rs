//! The result of `foreread check`, as text, JSON and JUnit XML for continuous integration.

use anstyle::Style;
use doctor::check::{CheckOutcome, CheckReport, IdleRule};
use serde_json::{Value, json};
use units::text::counted;

use crate::Versioned;
use crate::clean;
use crate::doctor::{TextPage, bold, dim, green, yellow};
use crate::terminal_text::TermStyle;

/// Returns the document of `foreread check --json`; `root` is the captured host, or `None` for this
/// machine.
pub fn check_json(policy: &str, report: &CheckReport, root: Option<&str>) -> Versioned<Value> {
    Versioned::new(json!({
        "policy": policy,
        "root": root,
        "kept": report.kept(),
        "broken": report.broken(),
        "results": report.results,
        "idle_rules": report.idle_rules,
        "uncovered": report.uncovered,
    }))
}

pub fn check_text(
    policy: &str,
    report: &CheckReport,
    root: Option<&str>,
    look: TermStyle,
) -> String {
    let mut page = TextPage::new(look);
    if let Some(root) = root {
        page.hanging(0, "", bold(), &format!("The host in {root}, not this machine."));
        page.gap();
    }
    for outcome in &report.results {
        of_outcome(&mut page, outcome);
    }
    for idle in &report.idle_rules {
        let text = format!("{} (line {}) matches nothing here", idle.rule, idle.line);
        match &idle.violation {
            Some(violation) => page.marked(0, "✗ ", yellow(), &format!("{text}: {violation}")),
            None => page.marked(0, "– ", dim(), &text),
        }
    }
    if !report.uncovered.is_empty() {
        let text = format!("no rule matches {}", report.uncovered.join(", "));
        page.marked(0, "– ", dim(), &text);
    }
    page.gap();
    let checks = counted(report.checks(), "check");
    let verdict = match report.broken() {
        0 => format!("{policy} is met: {checks} passed"),
        broken => format!("{policy} is violated: {broken} of {checks} failed"),
    };
    page.line(0, bold(), &verdict);
    page.text()
}

fn of_outcome(page: &mut TextPage, outcome: &CheckOutcome) {
    let name = if outcome.storage == outcome.rule {
        outcome.rule.clone()
    } else {
        format!("{} · {}", outcome.storage, outcome.rule)
    };
    if outcome.violations.is_empty() {
        let kib = outcome.read_ahead;
        page.marked(0, "✓ ", green(), &format!("{name}: {kib} ({})", kib.to_sectors()));
        return;
    }
    page.marked(0, "✗ ", yellow(), &format!("{name} (line {})", outcome.line));
    for violation in &outcome.violations {
        page.hanging(4, "", Style::new(), violation);
    }
    page.hanging(4, "from ", dim(), &outcome.origin.summary);
}

/// Returns a check as JUnit XML: one test for each rule and storage.
pub fn check_junit(policy: &str, report: &CheckReport) -> String {
    let idle: Vec<&IdleRule> =
        report.idle_rules.iter().filter(|rule| rule.violation.is_some()).collect();
    let tests = report.checks();
    let counts = format!("tests=\"{tests}\" failures=\"{}\" errors=\"0\"", report.broken());
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    xml.push_str(&format!("<testsuites name=\"foreread check\" {counts}>\n"));
    xml.push_str(&format!("  <testsuite name=\"{}\" {counts}>\n", escape(policy)));
    for outcome in &report.results {
        let detail = format!("from {}", outcome.origin.summary);
        let message = outcome.violations.join("; ");
        let failure = (!message.is_empty()).then_some((message.as_str(), detail.as_str()));
        xml.push_str(&test(&outcome.rule, &outcome.storage, failure));
    }
    for rule in idle {
        let violation = rule.violation.as_deref().unwrap_or_default();
        let failure = Some(("this rule matches nothing here", violation));
        xml.push_str(&test(&rule.rule, "nothing", failure));
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn test(rule: &str, storage: &str, failure: Option<(&str, &str)>) -> String {
    let (rule, storage) = (escape(rule), escape(storage));
    let open = format!("    <testcase classname=\"{rule}\" name=\"{storage}\"");
    match failure {
        None => format!("{open}/>\n"),
        Some((message, detail)) => format!(
            "{open}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
            escape(message),
            escape(detail)
        ),
    }
}

/// Escapes text for XML. Characters that XML does not allow are escaped as on a terminal.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in clean::plain(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            // Allowed in Rust strings, but not in XML.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_break_no_xml() {
        let xml = test("a\"><b>", "x & \u{1b}y", Some(("<", "\u{ffff}")));
        assert!(xml.contains("classname=\"a&quot;&gt;&lt;b&gt;\""), "{xml}");
        assert!(xml.contains("x &amp; \\u{1b}y") && !xml.contains('\u{ffff}'), "{xml}");
    }
}
