//! Checks the rules of the workspace in the repository itself.

mod docs;
mod layers;
mod modules;
mod names;
mod size;
mod source;
mod text;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Returns every broken rule, one per line.
pub fn complaints(root: &Path) -> Result<Vec<String>> {
    let mut texts = BTreeMap::new();
    let mut complaints = layers::complaints(root)?;
    for path in files(root)? {
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let name = path.strip_prefix(root).unwrap_or(&path);
        text::check(name, &bytes, &mut complaints);
        texts.insert(name.to_path_buf(), String::from_utf8(bytes).ok());
    }
    let document = |name: &str| texts.get(Path::new(name)).and_then(Option::as_deref).unwrap_or("");
    let code = source::read(root)?;
    complaints.extend(layers::table_complaints(document("docs/architecture.md")));
    complaints.extend(modules::complaints(&code));
    complaints.extend(names::complaints(&code, document("docs/glossary.md")));
    complaints.extend(size::complaints(&code));
    complaints.extend(docs::check(&texts));
    Ok(complaints)
}

/// Returns every file below the root, except those in directories named `.git` or `target`.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() && entry.file_name() != ".git" && entry.file_name() != "target" {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_keeps_its_own_rules() {
        let root = crate::repository().unwrap();
        let complaints = super::complaints(&root).unwrap();
        assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    }
}
