//! Checks that the modules of a crate do not use each other in cycles, and that a `mod` line names
//! each file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

use super::source::SourceFile;

/// Path of a module in its crate.
type Module = Vec<String>;

/// Returns every cycle of modules with a common parent, and every file that no `mod` line names.
pub fn complaints(files: &[SourceFile]) -> Vec<String> {
    let mut packages: BTreeMap<&Path, Vec<&SourceFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.module.is_some()) {
        packages.entry(&file.package).or_default().push(file);
    }
    let cycles = packages.into_iter().flat_map(|(package, files)| {
        let package: PathBuf = package.to_owned();
        let tree = Tree::of(&files);
        tree.cycles().into_iter().map(move |cycle| (package.clone(), cycle))
    });
    cycles
        .map(|(package, cycle)| {
            format!("{}: modules use each other: {}", package.display(), cycle.join(", "))
        })
        .chain(files.iter().filter(|file| !is_compiled(file, files)).map(|file| {
            format!("{}: no `mod` line names this file, so it is not compiled", file.path.display())
        }))
        .collect()
}

/// Returns whether a file is the root of a crate, or its parent module names it.
fn is_compiled(file: &SourceFile, files: &[SourceFile]) -> bool {
    let Some((name, parent)) = file.module.as_ref().and_then(|module| module.split_last()) else {
        return true;
    };
    let names = |item: &Item| matches!(item, Item::Mod(declared) if declared.ident == name);
    let is_parent = |other: &&SourceFile| {
        other.package == file.package && other.module.as_deref() == Some(parent)
    };
    files.iter().filter(is_parent).any(|other| other.items.iter().any(names))
}

/// The modules of a crate, the items that each declares, and the modules that each uses.
#[derive(Default)]
struct Tree {
    modules: BTreeMap<Module, Declared>,
    uses: BTreeSet<(Module, Module)>,
}

#[derive(Default)]
struct Declared {
    items: BTreeSet<String>,
    /// Names that are visible here but declared elsewhere, with their paths.
    exports: BTreeMap<String, Vec<String>>,
    /// Modules whose items are all visible here.
    globs: Vec<Vec<String>>,
}

impl Tree {
    fn of(files: &[&SourceFile]) -> Self {
        let mut tree = Self::default();
        for file in files {
            tree.declare(file.module.clone().unwrap_or_default(), &file.items);
        }
        let mut paths = Vec::new();
        for file in files {
            collect(file.module.clone().unwrap_or_default(), &file.items, &mut paths);
        }
        for (from, path) in paths {
            if let Some(to) = tree.resolve(&from, &path, 0)
                && to != from
            {
                tree.uses.insert((from, to));
            }
        }
        tree
    }

    fn declare(&mut self, module: Module, items: &[Item]) {
        let mut declared = Declared::default();
        for item in items {
            match item {
                Item::Use(item) if !matches!(item.vis, Visibility::Inherited) => {
                    each_use(&item.tree, &mut Vec::new(), &mut |path, name| match name {
                        Some(name) => drop(declared.exports.insert(name, path)),
                        None => declared.globs.push(path),
                    });
                }
                Item::Mod(item) => {
                    if let Some((_, items)) = &item.content {
                        let mut inner = module.clone();
                        inner.push(item.ident.to_string());
                        self.declare(inner, items);
                    }
                }
                item => declared.items.extend(name_of(item)),
            }
        }
        self.modules.insert(module, declared);
    }

    /// Returns the module that declares `path` as named in `from`; `None` if outside this crate.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let mut module = from.clone();
        let mut rest = path;
        let first = rest.first()?;
        match first.as_str() {
            "crate" => module.clear(),
            "self" => {}
            "super" => drop(module.pop()),
            name => {
                let mut child = module.clone();
                child.push(name.to_owned());
                if !self.modules.contains_key(&child) {
                    return None;
                }
                module = child;
            }
        }
        rest = &rest[1..];
        while let Some(name) = rest.first() {
            if name == "super" {
                module.pop();
            } else {
                module.push(name.clone());
                if !self.modules.contains_key(&module) {
                    module.pop();
                    return Some(self.declaring(module, rest, depth));
                }
            }
            rest = &rest[1..];
        }
        Some(module)
    }

    /// Follows the exports of `module` to the module that declares the item.
    fn declaring(&self, module: Module, rest: &[String], depth: usize) -> Module {
        let Some((name, after)) = rest.split_first() else { return module };
        let Some(declared) = self.modules.get(&module).filter(|_| depth < 8) else { return module };
        if declared.items.contains(name) {
            return module;
        }
        let exported = declared.exports.get(name).map(|path| [path, after].concat());
        let globs = declared.globs.iter().map(|path| [path.as_slice(), rest].concat());
        for path in exported.into_iter().chain(globs) {
            if let Some(found) = self.resolve(&module, &path, depth + 1)
                && found != module
            {
                return found;
            }
        }
        module
    }

    /// Returns siblings that use each other, directly or indirectly. Uses between a child and its
    /// parent do not count: a parent is the interface of its children.
    fn cycles(&self) -> Vec<Vec<String>> {
        let mut graphs: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (from, to) in &self.uses {
            let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
            let parent = from[..common].to_vec();
            let (Some(user), Some(used)) = (from.get(common), to.get(common)) else { continue };
            let graph = graphs.entry(parent).or_default();
            graph.entry(user.clone()).or_default().insert(used.clone());
        }
        graphs
            .into_iter()
            .flat_map(|(parent, graph)| {
                strongly_connected(&graph).into_iter().map(move |names| {
                    let path = |name: String| [parent.as_slice(), &[name]].concat().join("::");
                    names.into_iter().map(path).collect()
                })
            })
            .collect()
    }
}

/// Returns groups of names that reach each other.
fn strongly_connected(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reached = |start: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![start.clone()]);
        while let Some(name) = next.pop() {
            for used in graph.get(&name).into_iter().flatten() {
                if seen.insert(used.clone()) {
                    next.push(used.clone());
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|name| (name, reached(name))).collect();
    let mut groups: BTreeSet<Vec<String>> = BTreeSet::new();
    for (name, seen) in reach.iter().filter(|(name, seen)| seen.contains(**name)) {
        let back = |other: &&String| reach.get(other).is_some_and(|seen| seen.contains(*name));
        groups.insert(seen.iter().filter(back).cloned().collect());
    }
    groups.into_iter().collect()
}

fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// Calls `found` with each path of a `use` and its local name; with `None` for a glob.
fn each_use(
    tree: &UseTree,
    path: &mut Vec<String>,
    found: &mut impl FnMut(Vec<String>, Option<String>),
) {
    match tree {
        UseTree::Path(part) => {
            path.push(part.ident.to_string());
            each_use(&part.tree, path, found);
            path.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            found(path.clone(), path.last().cloned());
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            let path = path.iter().cloned().chain([name.clone()]).collect();
            found(path, Some(name));
        }
        UseTree::Rename(name) => {
            let original = name.ident.to_string();
            found([path.as_slice(), &[original]].concat(), Some(name.rename.to_string()));
        }
        UseTree::Glob(_) => found(path.clone(), None),
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| each_use(tree, path, found));
        }
    }
}

/// Adds every path that the code of a module names, with the module.
fn collect(module: Module, items: &[Item], paths: &mut Vec<(Module, Vec<String>)>) {
    let mut visitor = Paths::default();
    for item in items {
        match item {
            // An export of a child is not a use.
            Item::Use(item) if !matches!(item.vis, Visibility::Inherited) => {}
            Item::Mod(inner) => {
                if let Some((_, items)) = &inner.content {
                    let mut path = module.clone();
                    path.push(inner.ident.to_string());
                    collect(path, items, paths);
                }
            }
            item => visitor.visit_item(item),
        }
    }
    paths.extend(visitor.found.into_iter().map(|path| (module.clone(), path)));
}

#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.found.push(path.segments.iter().map(|part| part.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        each_use(&item.tree, &mut Vec::new(), &mut |path, _| self.found.push(path));
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        paths_in(called.tokens.clone(), &mut self.found);
        visit::visit_macro(self, called);
    }
}

/// Adds the paths among the tokens of a macro call: names joined by `::`.
fn paths_in(tokens: TokenStream, found: &mut Vec<Vec<String>>) {
    let (mut path, mut colons) = (Vec::new(), 0);
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                if colons != 2 {
                    found.push(std::mem::take(&mut path));
                }
                path.push(name.to_string());
                colons = 0;
            }
            TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
            other => {
                found.push(std::mem::take(&mut path));
                colons = 0;
                if let TokenTree::Group(group) = other {
                    paths_in(group.stream(), found);
                }
            }
        }
    }
    found.push(path);
    found.retain(|path| path.len() > 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(module: &str, code: &str) -> SourceFile {
        SourceFile {
            path: format!("{module}.rs").into(),
            package: PathBuf::new(),
            module: Some(
                Some(module.to_owned()).filter(|name| !name.is_empty()).into_iter().collect(),
            ),
            items: syn::parse_file(code).unwrap().items,
            lines: 0,
        }
    }

    /// Returns the cycles of a crate with modules `a` and `b`, both of which the root exports.
    fn cycles(a: &str, b: &str) -> Vec<Vec<String>> {
        let root = "pub mod a; pub mod b; pub use a::A; pub use b::B;";
        let files = [file("", root), file("a", a), file("b", b)];
        Tree::of(&files.iter().collect::<Vec<_>>()).cycles()
    }

    #[test]
    fn a_file_that_no_module_names_is_found() {
        let files = [file("", "mod a;"), file("a", ""), file("b", "")];
        let found = complaints(&files);
        assert!(found.len() == 1 && found[0].starts_with("b.rs: no `mod` line"), "{found:?}");
    }

    #[test]
    fn one_direction_is_no_cycle() {
        let a = "use crate::b::B; pub struct A;";
        assert_eq!(cycles(a, "pub struct B;"), Vec::<Vec<String>>::new());
    }

    #[test]
    fn both_directions_are_one_through_exports_inner_modules_and_macros_too() {
        for (a, b) in [
            ("use crate::b::B; pub struct A;", "use crate::a::A; pub struct B;"),
            ("use crate::B; pub struct A;", "use super::A; pub struct B;"),
            ("fn a() { crate::b::f() } pub struct A;", "fn f() { x!(1, super::a::f()) }"),
            ("use super::B; pub struct A;", "pub struct B; pub mod c { use crate::a::A; }"),
        ] {
            assert_eq!(cycles(a, b), vec![vec!["a".to_owned(), "b".to_owned()]], "{a} | {b}");
        }
    }
}
