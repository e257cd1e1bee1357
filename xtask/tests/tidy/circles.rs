//! Circles of imports: the rooms of a crate, which are the folders in its `src`, form layers.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    code::code,
    guards::named_items,
    workspace::{Crate, Source, Workspace},
};

/// The modules at the root of a crate, each with the modules that it imports and one file that does so.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

/// No two folders of a crate import each other, directly or through other modules at its root.
pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    workspace.crates.iter().flat_map(complaints).collect()
}

fn complaints(one: &Crate) -> Vec<String> {
    let src = format!("{}/src/", one.folder);
    let sources = one.files.iter().filter_map(|file| Some((file.path.strip_prefix(&src)?, file)));
    let sources: Vec<_> = sources.collect();
    let folders: BTreeSet<_> =
        sources.iter().filter_map(|(path, _)| Some(path.split_once('/')?.0)).collect();
    let roots: BTreeSet<_> = sources.iter().map(|(path, _)| root(path)).collect();
    let mut imports = Imports::new();
    for (path, file) in &sources {
        let from = root(path);
        // The root wires the others.
        if ["lib", "main"].contains(&from) {
            continue;
        }
        for to in imported(path, file) {
            if to != from && roots.contains(to.as_str()) {
                let files = imports.entry(from.to_owned()).or_default();
                files.entry(to).or_insert_with(|| file.path.clone());
            }
        }
    }
    let mut complaints = Vec::new();
    for one in &folders {
        for other in folders.iter().filter(|other| *other > one) {
            if let (Some(first), Some(back)) =
                (path(&imports, one, other), path(&imports, other, one))
            {
                complaints.push(format!(
                    "{src}: `{one}` and `{other}` import each other: {first}; and back: {back}"
                ));
            }
        }
    }
    complaints
}

/// Returns the module at the root of the crate that a file belongs to.
fn root(path: &str) -> &str {
    path.split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

/// Returns the modules at the root of the crate that a file names by `crate::`, or by enough `super::`.
fn imported(path: &str, file: &Source) -> Vec<String> {
    let code = code(&file.body());
    let depth = path.split('/').count() - usize::from(path.ends_with("/mod.rs"));
    let mut names = Vec::new();
    for prefix in ["crate::".to_owned(), "super::".repeat(depth)] {
        names.extend(named_items(&code, &prefix).into_iter().map(|(_, name)| name.to_owned()));
    }
    names
}

/// Returns the shortest way from one module to another, with a file for each step.
fn path(imports: &Imports, from: &str, to: &str) -> Option<String> {
    let mut ways = BTreeMap::from([(from.to_owned(), String::new())]);
    let mut pending = vec![from.to_owned()];
    while let Some(module) = pending.first().cloned() {
        pending.remove(0);
        if module == to {
            return ways.remove(to);
        }
        for (next, file) in imports.get(&module).into_iter().flatten() {
            if !ways.contains_key(next) {
                let so_far = ways.get(&module).filter(|way| !way.is_empty());
                let way = so_far.map_or_else(String::new, |way| format!("{way}, "));
                ways.insert(next.clone(), format!("{way}{file} names `{next}`"));
                pending.push(next.clone());
            }
        }
    }
    None
}
