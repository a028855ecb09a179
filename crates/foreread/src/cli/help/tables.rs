//! Sections that every page has. The tables of the book are their source, so both agree.

use super::block::Block;

const CONFIGURATION: &str = include_str!("../../../../../docs/book/configuration.md");
const EXIT_CODES: &str = include_str!("../../../../../docs/exit-codes.md");

pub fn files() -> Vec<Block> {
    let mut files = items(CONFIGURATION, "| file | scope |", |row| {
        (row[0].clone(), vec![format!("Configuration: {}", row[1])])
    });
    let fixed = [
        ("/etc/foreread/tunables.toml", "Tunables that the administrator declares."),
        ("/var/lib/foreread", "Record of runs and journals; ~/.local/state/foreread if not root."),
        ("/run/foreread", "Locks and sockets; $XDG_RUNTIME_DIR/foreread if not root."),
    ];
    files.extend(fixed.map(|(path, what)| Block::Item(path.to_owned(), vec![what.to_owned()])));
    files
}

pub fn environment() -> Vec<Block> {
    items(CONFIGURATION, "| variable | effect |", |row| {
        let default = (!row[2].is_empty()).then(|| format!("Default: {}", row[2]));
        (row[0].clone(), std::iter::once(row[1].clone()).chain(default).collect())
    })
}

pub fn exit_codes() -> Vec<Block> {
    items(EXIT_CODES, "| code | meaning |", |row| (row[0].clone(), vec![row[1].clone()]))
}

fn items(
    document: &str,
    head: &str,
    item: impl Fn(&[String]) -> (String, Vec<String>),
) -> Vec<Block> {
    let rows = document.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let (head, body) = item(&cells(row));
        Block::Item(head, body)
    })
    .collect()
}

/// Returns the cells of a row without Markdown, padded to at least three.
fn cells(row: &str) -> Vec<String> {
    let row = row.replace("\\|", "\u{1}");
    let row = row.trim_matches('|');
    let mut cells: Vec<String> = row
        .split('|')
        .map(|cell| without_links(&cell.replace('`', "").replace('\u{1}', "|")).trim().to_owned())
        .collect();
    cells.resize(cells.len().max(3), String::new());
    cells
}

/// Replaces `[text](address)` by `text`.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((label, tail)) = after.split_once("](") else { break };
        let Some((_, tail)) = tail.split_once(')') else { break };
        plain.push_str(before);
        plain.push_str(label);
        rest = tail;
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_the_book_are_found() {
        assert!(files().len() >= 5);
        assert!(environment().len() >= 10);
        let codes = exit_codes();
        let has = |code: &str| codes.iter().any(|b| matches!(b, Block::Item(c, _) if c == code));
        assert!(has("0") && has("6") && has("143"));
    }

    #[test]
    fn cells_lose_their_markdown() {
        let row = "| `a \\| b` | see [there](x.md), and `c` |";
        assert_eq!(cells(row), ["a | b", "see there, and c", ""]);
    }
}
