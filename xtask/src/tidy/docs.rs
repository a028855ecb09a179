//! Checks the documentation: links and anchors resolve, the book is complete, chapters are short.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Source directory of the book (`src` in book.toml).
const BOOK: &str = "docs";
const SUMMARY: &str = "docs/SUMMARY.md";
/// Directory of the chapters that users read from start to end.
const CHAPTERS: &str = "docs/book";
/// Maximum number of words in a chapter, including tables and examples.
const CHAPTER_WORDS_MAX: usize = 2000;

/// The parts of a Markdown file that the checks need.
#[derive(Debug, Default)]
struct Page {
    anchors: BTreeSet<String>,
    /// Targets of links and images.
    links: Vec<String>,
    /// Files and directories of the repository that the text names.
    paths: Vec<String>,
    words: usize,
}

/// Returns every broken rule, one per line. `files` has all files of the repository, relative to
/// its top, with the text of text files.
pub fn check(files: &BTreeMap<PathBuf, Option<String>>) -> Vec<String> {
    let pages: BTreeMap<&Path, Page> = files
        .iter()
        .filter(|(path, _)| path.extension().is_some_and(|end| end == "md"))
        .filter_map(|(path, text)| Some((path.as_path(), page(text.as_deref()?))))
        .collect();
    let mut complaints = Vec::new();
    for (path, page) in &pages {
        for link in &page.links {
            if let Some(problem) = link_problem(path, link, files, &pages) {
                complaints.push(format!("{}: link to {link}: {problem}", path.display()));
            }
        }
        // The changelog names files that existed at that time.
        for name in page.paths.iter().filter(|_| *path != Path::new("CHANGELOG.md")) {
            if !files.keys().any(|file| file.starts_with(name)) {
                complaints.push(format!("{}: {name} does not exist", path.display()));
            }
        }
        if path.starts_with(CHAPTERS) && page.words > CHAPTER_WORDS_MAX {
            let words = page.words;
            complaints
                .push(format!("{}: {words} words, at most {CHAPTER_WORDS_MAX}", path.display()));
        }
    }
    complaints.extend(missing_from_summary(&pages));
    for (path, text) in files {
        let text = text.as_deref().unwrap_or("");
        for name in paths_named_in_code(path, text) {
            if !files.contains_key(Path::new(name)) {
                complaints.push(format!("{}: {name} does not exist", path.display()));
            }
        }
    }
    complaints
}

/// Returns why this link is broken; `None` if it resolves or is not checked.
fn link_problem(
    from: &Path,
    link: &str,
    files: &BTreeMap<PathBuf, Option<String>>,
    pages: &BTreeMap<&Path, Page>,
) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, a)| (file, Some(a)));
    let target = match file {
        "" => from.to_path_buf(),
        _ => match join(from.parent().unwrap_or(Path::new("")), file) {
            Some(target) => target,
            None => return Some("outside the repository".to_owned()),
        },
    };
    let in_book = from.starts_with(BOOK);
    if in_book && !target.starts_with(BOOK) {
        return Some(format!("outside {BOOK}/, so the book does not have it"));
    }
    if !files.contains_key(&target) {
        let directory = files.keys().any(|path| path.starts_with(&target) && *path != target);
        return match directory && !in_book && anchor.is_none() {
            true => None,
            false => Some("no such file".to_owned()),
        };
    }
    let anchor = anchor?;
    match pages.get(target.as_path()) {
        Some(page) if page.anchors.contains(anchor) => None,
        Some(_) => Some("no heading has this anchor".to_owned()),
        // Anchors of other files, such as lines of code, depend on the viewer.
        None => None,
    }
}

/// Returns `file` relative to `directory`, normalised; `None` if it leaves the repository.
fn join(directory: &Path, file: &str) -> Option<PathBuf> {
    let mut joined = PathBuf::new();
    for part in directory.join(file).components() {
        match part {
            Component::Normal(name) => joined.push(name),
            Component::CurDir => {}
            Component::ParentDir if joined.pop() => {}
            _ => return None,
        }
    }
    Some(joined)
}

/// Returns pages of the book that its table of contents lacks; mdBook would omit them.
fn missing_from_summary(pages: &BTreeMap<&Path, Page>) -> Vec<String> {
    let Some(summary) = pages.get(Path::new(SUMMARY)) else {
        return vec![format!("{SUMMARY}: the book has no table of contents")];
    };
    let listed: BTreeSet<PathBuf> =
        summary.links.iter().filter_map(|link| join(Path::new(BOOK), link)).collect();
    pages
        .keys()
        .filter(|path| path.starts_with(BOOK) && **path != Path::new(SUMMARY))
        .filter(|path| !listed.contains(**path))
        .map(|path| format!("{}: not in {SUMMARY}", path.display()))
        .collect()
}

/// Returns the documents that code, scripts and help texts refer to.
fn paths_named_in_code<'a>(path: &Path, text: &'a str) -> Vec<&'a str> {
    let source = path.extension().is_some_and(|end| end == "rs" || end == "c" || end == "h");
    if !(source && path.starts_with("crates") || path.starts_with("scripts")) {
        return Vec::new();
    }
    text.match_indices("docs/")
        // The compiler checks `../docs/…`, and other words may end like the prefix.
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '/'))
        .map(|(at, _)| {
            let rest = &text[at..];
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/._-".contains(c)));
            rest[..end.unwrap_or(rest.len())].trim_end_matches('.')
        })
        .filter(|name| name.ends_with(".md") || name.ends_with(".json"))
        .collect()
}

fn page(text: &str) -> Page {
    let mut page = Page { words: text.split_whitespace().count(), ..Page::default() };
    let mut heading: Option<String> = None;
    let mut seen: HashMap<String, usize> = HashMap::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let count = seen.entry(slug.clone()).or_default();
                page.anchors.insert(match *count {
                    0 => slug,
                    again => format!("{slug}-{again}"),
                });
                *count += 1;
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string());
            }
            Event::Text(ref words) | Event::Code(ref words) => {
                if matches!(event, Event::Code(_)) && is_path(words) {
                    page.paths.push(words.to_string());
                }
                if let Some(heading) = &mut heading {
                    heading.push_str(words);
                }
            }
            _ => {}
        }
    }
    page
}

/// Returns whether this is a path in the repository, not a pattern (`crates/*/tests`, `NAME.rs`).
fn is_path(code: &str) -> bool {
    let in_repository =
        ["crates/", "docs/", "xtask/", "scripts/"].iter().any(|top| code.starts_with(top));
    in_repository && !code.contains(['*', ' ', '…']) && !code.contains("NAME")
}

/// Returns the anchor that mdBook and code forges give a heading.
fn slug(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            c if c.is_whitespace() => Some('-'),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the complaints about these files, and a book that has `docs/a.md`.
    fn complaints(named: &[(&str, &str)]) -> Vec<String> {
        let fixed =
            [("docs/SUMMARY.md", "- [A](a.md)\n"), ("docs/a.md", "# One: *two* `x_y`\n\n# B\n")];
        let files = fixed.iter().chain(named);
        check(&files.map(|(path, text)| (path.into(), Some((*text).to_owned()))).collect())
    }

    #[test]
    fn links_that_resolve_are_fine() {
        let text = "[a](docs/a.md#one-two-x_y) [b](docs/a.md#b) [d](docs) <https://a.example/x#y>";
        assert_eq!(complaints(&[("README.md", text)]), Vec::<String>::new());
        assert_eq!(complaints(&[("README.md", "# Here\n[a](#here)")]), Vec::<String>::new());
        assert_eq!(complaints(&[("README.md", "`[a](gone.md)`")]), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_not() {
        for text in [
            "[a](docs/gone.md)",
            "[a](docs/a.md#gone)",
            "[a](#gone)",
            "[a](../elsewhere.md)",
            "![a](gone.png)",
            "| |\n|---|\n| [a](gone.md) |",
        ] {
            assert_eq!(complaints(&[("README.md", text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn paths_in_the_text_exist() {
        for (text, count) in [
            ("`docs/a.md`, `docs`, `docs/`, `docs/*.md` and `docs/NAME.md`", 0),
            ("`docs/gone.md`", 1),
            ("`crates/gone`", 1),
        ] {
            assert_eq!(complaints(&[("README.md", text)]).len(), count, "{text}");
        }
        assert_eq!(complaints(&[("CHANGELOG.md", "`docs/gone.md`")]), Vec::<String>::new());
    }

    #[test]
    fn pages_of_the_book_are_listed_and_stay_inside() {
        let unlisted = complaints(&[("docs/b.md", "# B\n")]);
        assert_eq!(unlisted, ["docs/b.md: not in docs/SUMMARY.md"]);
        let outside = [("docs/a.md", "[r](../README.md)"), ("README.md", "")];
        assert_eq!(complaints(&outside).len(), 1, "not part of the rendered book");
    }

    #[test]
    fn a_chapter_has_a_limit() {
        let summary = ("docs/SUMMARY.md", "- [A](a.md)\n- [C](book/c.md)\n");
        let long = "word ".repeat(CHAPTER_WORDS_MAX + 1);
        assert_eq!(complaints(&[summary, ("docs/book/c.md", &long)]).len(), 1);
        assert_eq!(complaints(&[summary, ("docs/book/c.md", &long[5..])]), Vec::<String>::new());
    }

    #[test]
    fn documents_named_in_code_exist() {
        assert_eq!(complaints(&[("crates/a.rs", "/// See docs/a.md.\n")]), Vec::<String>::new());
        assert_eq!(complaints(&[("crates/a.rs", "/// See docs/gone.md.\n")]).len(), 1);
    }
}
