//! Renders a page for man(1), with the macros of man(7).

use std::fmt::Write as _;

use super::block::Block;
use super::page::ManualPage;

pub fn render(page: &ManualPage) -> String {
    let mut out = String::new();
    let version = env!("CARGO_PKG_VERSION");
    let title = escaped(&page.name.to_uppercase());
    let _ = writeln!(out, ".TH \"{title}\" 1 \"\" \"foreread {version}\" \"foreread\"");
    // Disables hyphenation and justification.
    out.push_str(".nh\n.ad l\n");
    for section in &page.sections {
        let _ = writeln!(out, ".SH {}", escaped(&section.title));
        for block in &section.blocks {
            write_block(&mut out, block, section.title == "NAME");
        }
    }
    out
}

fn write_block(out: &mut String, block: &Block, is_name: bool) {
    let _ = match block {
        // whatis(1) expects `name \- text`.
        Block::Text(text) if is_name => writeln!(out, "{}", escaped(text)),
        Block::Text(text) => writeln!(out, ".PP\n{}", escaped(text)),
        Block::Verbatim(lines) => {
            let lines: Vec<String> = lines.lines().map(escaped).collect();
            writeln!(out, ".PP\n.nf\n{}\n.fi", lines.join("\n"))
        }
        Block::Item(head, body) => {
            let body: Vec<String> = body.iter().map(|text| escaped(text)).collect();
            writeln!(out, ".TP\n\\fB{}\\fR\n{}", escaped(head), body.join("\n.IP\n"))
        }
    };
}

fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line,
    }
}

/// Extracts the words of a page that [`render`] wrote.
#[cfg(test)]
pub fn plain(page: &str) -> String {
    let text = |line: &str| line.strip_prefix(".SH ").unwrap_or(line).to_owned();
    let lines = page.lines().filter(|line| !line.starts_with('.') || line.starts_with(".SH "));
    let lines: Vec<String> = lines.map(text).collect();
    let marks = [("\\fB", ""), ("\\fR", ""), ("\\&", ""), ("\\-", "-"), ("\\e", "\\")];
    marks.iter().fold(lines.join("\n"), |text, (mark, plain)| text.replace(mark, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_taken_for_a_macro() {
        assert_eq!(escaped(".so file"), "\\&.so file");
        assert_eq!(escaped("'a'"), "\\&'a'");
        assert_eq!(escaped("a\\b -n"), "a\\eb \\-n");
    }
}
