//! Checks that names have one meaning: types and constants of the whole workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use syn::visit::{self, Visit};
use syn::{Ident, Item, ItemConst, Type, Visibility};

use super::source::SourceFile;

/// Heading of the glossary's table of type names that several crates may declare.
const SHARED_TYPES_HEADING: &str = "## Type names that occur more than once";

/// Single words that name a quantity clearly.
const CLEAR_WORDS: &[&str] = &["KIB", "MIB", "GIB", "TIB", "VERSION"];

/// Returns type names that are declared twice, and constants whose names lack a quantity.
pub fn complaints(files: &[SourceFile], glossary: &str) -> Vec<String> {
    let mut names = Names::default();
    for file in files {
        names.path.clone_from(&file.path);
        file.items.iter().for_each(|item| names.visit_item(item));
    }
    let shared = shared_types(glossary);
    let twice = names.types.iter().filter(|(_, paths)| paths.len() > 1);
    let refused = twice.clone().filter(|(name, _)| !shared.contains(name.as_str()));
    let refused = refused.map(|(name, paths)| {
        let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        format!("type {name} is declared {} times: {}", paths.len(), paths.join(", "))
    });
    let declared: BTreeSet<&str> = twice.map(|(name, _)| name.as_str()).collect();
    let stale = shared.difference(&declared);
    let stale = stale.map(|name| format!("docs/glossary.md: {name} is declared once by now"));
    refused.chain(stale).chain(names.constants).collect()
}

/// Returns the first column of the glossary's table of shared names.
fn shared_types(glossary: &str) -> BTreeSet<&str> {
    let table = glossary.split_once(SHARED_TYPES_HEADING).map_or("", |(_, after)| after);
    let table = table.split("\n## ").next().unwrap_or_default();
    let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    cells.collect()
}

#[derive(Default)]
struct Names {
    path: PathBuf,
    types: BTreeMap<String, Vec<PathBuf>>,
    constants: Vec<String>,
}

impl Names {
    /// Adds a type that other modules can see; private types cannot conflict.
    fn declare(&mut self, visibility: &Visibility, name: &Ident) {
        if !matches!(visibility, Visibility::Inherited) {
            self.types.entry(name.to_string()).or_default().push(self.path.clone());
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Enum(item) => self.declare(&item.vis, &item.ident),
            Item::Struct(item) => self.declare(&item.vis, &item.ident),
            Item::Trait(item) => self.declare(&item.vis, &item.ident),
            Item::Type(item) => self.declare(&item.vis, &item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        let name = item.ident.to_string();
        let is_clear = name.contains('_') || CLEAR_WORDS.contains(&name.as_str());
        if !is_clear && is_quantity(&item.ty) {
            let path = self.path.display();
            self.constants.push(format!("{path}: constant {name}: name its quantity and unit"));
        }
        visit::visit_item_const(self, item);
    }
}

/// Returns whether a constant of this type is a quantity.
fn is_quantity(of: &Type) -> bool {
    const QUANTITIES: &[&str] = &[
        "u8",
        "u16",
        "u32",
        "u64",
        "usize",
        "i32",
        "i64",
        "f32",
        "f64",
        "Duration",
        "Nanos",
        "Bytes",
        "Kib",
        "Pages",
        "Sectors",
        "BytesPerSecond",
    ];
    let Type::Path(path) = of else { return false };
    path.path.segments.last().is_some_and(|part| QUANTITIES.iter().any(|name| part.ident == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_of(code: &str, glossary: &str) -> Vec<String> {
        let file = SourceFile {
            path: PathBuf::from("a.rs"),
            package: PathBuf::new(),
            module: None,
            items: syn::parse_file(code).unwrap().items,
            lines: 0,
        };
        complaints(&[file], glossary)
    }

    const TWICE: &str = "mod a { pub struct Plan; } mod b { pub(super) enum Plan {} }";

    #[test]
    fn a_type_name_is_refused_the_second_time_unless_the_glossary_has_it() {
        assert_eq!(complaints_of(TWICE, "").len(), 1);
        let glossary =
            format!("{SHARED_TYPES_HEADING}\n\n| name | why |\n|---|---|\n| `Plan` | x |\n");
        assert_eq!(complaints_of(TWICE, &glossary), Vec::<String>::new());
        assert_eq!(complaints_of("pub struct Plan;", &glossary).len(), 1, "no longer needed");
    }

    #[test]
    fn a_quantity_of_one_word_is_refused() {
        for (code, count) in [
            ("const LONG: Duration = Duration::ZERO;", 1),
            ("fn f() { const MUCH: f64 = 0.2; }", 1),
            ("const IDLE_TIMEOUT: Duration = Duration::ZERO;", 0),
            ("const ENTRY: Entry = Entry;", 0),
        ] {
            assert_eq!(complaints_of(code, "").len(), count, "{code}");
        }
    }
}
