//! Renders a page for the terminal.

use std::fmt::Write as _;

use anstyle::Style;

use super::block::Block;
use super::page::ManualPage;

const INDENT_COLUMNS: usize = 4;

pub fn render(page: &ManualPage, width: usize) -> String {
    let bold = Style::new().bold();
    let mut out = String::new();
    for section in &page.sections {
        let gap = if out.is_empty() { "" } else { "\n" };
        let _ = writeln!(out, "{gap}{bold}{}{bold:#}", section.title);
        let mut items = false;
        for (number, block) in section.blocks.iter().enumerate() {
            let item = matches!(block, Block::Item(..));
            if number > 0 && !(item && items) {
                out.push('\n');
            }
            items = item;
            write_block(&mut out, block, width);
        }
    }
    out
}

fn write_block(out: &mut String, block: &Block, width: usize) {
    match block {
        Block::Text(text) => wrap(out, text, INDENT_COLUMNS, width),
        Block::Verbatim(lines) => {
            for line in lines.lines() {
                let _ = writeln!(out, "{:INDENT_COLUMNS$}{line}", "");
            }
        }
        Block::Item(head, body) => {
            let bold = Style::new().bold();
            let _ = writeln!(out, "{:INDENT_COLUMNS$}{bold}{head}{bold:#}", "");
            body.iter().for_each(|text| wrap(out, text, 2 * INDENT_COLUMNS, width));
        }
    }
}

fn wrap(out: &mut String, text: &str, indent: usize, width: usize) {
    let words: Vec<&str> = text.split_whitespace().collect();
    for line in report::wrapped(&words.join(" "), width.saturating_sub(indent)) {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}
