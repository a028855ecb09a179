//! The workspace's Rust code, parsed, without its tests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::spanned::Spanned;
use syn::{Attribute, Item};

/// A Rust file that is not a test.
pub struct SourceFile {
    /// Path relative to the repository.
    pub path: PathBuf,
    /// Directory of the package: `crates/units`.
    pub package: PathBuf,
    /// Module path in the crate: `["text", "hint"]`; empty for `lib.rs` and `main.rs`. `None` for
    /// examples, build scripts and `src/bin`, which are separate crates.
    pub module: Option<Vec<String>>,
    /// Items, without those for tests.
    pub items: Vec<Item>,
    /// Number of lines, without those of tests.
    pub lines: usize,
}

/// Returns every Rust file of the workspace except tests and benchmarks.
pub fn read(root: &Path) -> Result<Vec<SourceFile>> {
    let mut packages: Vec<PathBuf> = folder(&root.join("crates"))?;
    packages.extend([root.join("python"), root.join("xtask")]);
    let mut files = Vec::new();
    for package in packages {
        let mut paths = Vec::new();
        rust_files(&package, &mut paths)?;
        let mut parsed = Vec::new();
        for path in paths {
            parsed.push(parse(root, &package, &path)?);
        }
        remove_test_modules(&mut parsed);
        files.append(&mut parsed);
    }
    Ok(files)
}

fn folder(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(path).with_context(|| path.display().to_string())?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    Ok(paths)
}

fn rust_files(path: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in folder(path)? {
        let name = entry.file_name().unwrap_or_default();
        if entry.is_dir() {
            if !["tests", "benches", "target"].iter().any(|skipped| name == *skipped) {
                rust_files(&entry, found)?;
            }
        } else if entry.extension().is_some_and(|suffix| suffix == "rs") {
            found.push(entry);
        }
    }
    Ok(())
}

fn parse(root: &Path, package: &Path, path: &Path) -> Result<SourceFile> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let file = syn::parse_file(&text).with_context(|| format!("parsing {}", path.display()))?;
    let mut lines = text.lines().count();
    let (tests, items): (Vec<Item>, Vec<Item>) =
        file.items.into_iter().partition(|item| attributes(item).iter().any(is_for_tests));
    for test in &tests {
        lines -= test.span().end().line + 1 - test.span().start().line;
    }
    Ok(SourceFile {
        path: path.strip_prefix(root).unwrap_or(path).to_owned(),
        package: package.strip_prefix(root).unwrap_or(package).to_owned(),
        module: (path.strip_prefix(package.join("src")).ok())
            .filter(|path| !path.starts_with("bin"))
            .map(module),
        items: items.into_iter().chain(tests.into_iter().filter(declares_module)).collect(),
        lines,
    })
}

/// Returns the module path of a file below `src`.
fn module(path: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let last = parts.last().map(String::as_str);
    if matches!(last, Some("mod")) || (parts.len() == 1 && matches!(last, Some("lib" | "main"))) {
        parts.pop();
    }
    parts
}

/// Returns whether the item is `mod NAME;`, which is kept until that file is removed, too.
fn declares_module(item: &Item) -> bool {
    matches!(item, Item::Mod(declared) if declared.content.is_none())
}

/// Removes files that are test-only modules, and their declarations.
fn remove_test_modules(files: &mut Vec<SourceFile>) {
    let mut removed: Vec<Vec<String>> = Vec::new();
    for file in files.iter_mut() {
        let Some(module) = file.module.clone() else { continue };
        file.items.retain(|item| {
            let Item::Mod(declared) = item else { return true };
            let for_tests = declared.attrs.iter().any(is_for_tests);
            if for_tests {
                let mut path = module.clone();
                path.push(declared.ident.to_string());
                removed.push(path);
            }
            !for_tests
        });
    }
    files.retain(|file| {
        let module = file.module.as_ref();
        !module.is_some_and(|module| removed.iter().any(|test| module.starts_with(test)))
    });
}

fn is_for_tests(attribute: &Attribute) -> bool {
    let mut for_tests = false;
    if attribute.path().is_ident("cfg") {
        // Attributes that cannot be parsed here are other conditions.
        let _ = attribute.parse_nested_meta(|meta| {
            for_tests |= meta.path.is_ident("test");
            Ok(())
        });
    }
    for_tests
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
