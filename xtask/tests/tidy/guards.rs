//! The rules: each checks a workspace and returns its complaints, one line each, with a remedy.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use crate::{
    EMPTY_NAMES, FILE_LINES_MAX, FLOORS, IMPURE_MODULES, IMPURE_WORDS, LIBRARIES, OWNERS, PRODUCT,
    PURE, STORE_PLACES, STORES, WIRE, WIRE_PLACES,
    code::code,
    workspace::{Crate, Source, Workspace},
};

pub(crate) type Guard = fn(&Workspace) -> Vec<String>;

/// Crates depend only on lower floors, never on neighbours.
pub(crate) fn floors(workspace: &Workspace) -> Vec<String> {
    let floors: BTreeMap<_, _> = FLOORS.iter().copied().collect();
    let mut complaints = Vec::new();
    for Crate { name, dependencies, .. } in &workspace.crates {
        let Some(allowed) = floors.get(name.as_str()) else {
            complaints
                .push(format!("`{name}` has no floor: give it a line in `xtask/tests/tidy.rs`"));
            continue;
        };
        for dependency in dependencies {
            if floors.contains_key(dependency.as_str()) && !allowed.contains(&dependency.as_str()) {
                complaints.push(format!("`{name}` may not depend on `{dependency}`"));
            }
        }
    }
    complaints
}

/// Only its owners depend on an external crate.
pub(crate) fn owners(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for Crate { name, dependencies, .. } in &workspace.crates {
        for (foreign, owners) in OWNERS {
            let named = dependencies.iter().any(|dependency| dependency == foreign);
            if named && !owners.contains(&name.as_str()) && name != "bench" {
                let owners = owners.join("` and `");
                complaints.push(format!("`{name}` names `{foreign}`, which only `{owners}` may"));
            }
        }
    }
    complaints
}

/// Only the library of clients and the listeners name the crates of HTTP and TLS. Tests may.
pub(crate) fn wire(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for one in &workspace.crates {
        let sources = format!("{}/src/", one.folder);
        let files = one.files.iter().filter(|file| file.path.starts_with(&sources));
        for file in files.filter(|file| !WIRE_PLACES.iter().any(|it| file.path.starts_with(it))) {
            let code = code(&file.body());
            let words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let words: BTreeSet<_> = words.collect();
            for name in WIRE.iter().filter(|name| words.contains(**name)) {
                complaints.push(format!(
                    "{}: `{name}` belongs into `lib/net` or into a listener",
                    file.path
                ));
            }
        }
    }
    complaints
}

/// Only its driver, its document and the tests name a trace store: everything else treats all of them alike.
pub(crate) fn stores(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for one in &workspace.crates {
        let sources = format!("{}/src/", one.folder);
        let files = one.files.iter().filter(|file| file.path.starts_with(&sources));
        for file in files.filter(|file| !STORE_PLACES.iter().any(|it| file.path.starts_with(it))) {
            let body = file.body();
            for store in STORES.iter().filter(|store| body.contains(&format!("\"{store}\""))) {
                complaints.push(format!(
                    "{}: `{store}` is a trace store: what depends on it belongs into its driver",
                    file.path
                ));
            }
        }
    }
    complaints
}

/// The pure floors depend only on external crates that are known to be pure too.
pub(crate) fn pure_manifests(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for (Crate { name, dependencies, .. }, allowed) in pure(workspace) {
        let foreign = dependencies.iter().filter(|d| FLOORS.iter().all(|(ours, _)| ours != d));
        for foreign in foreign.filter(|d| !allowed.contains(&d.as_str())) {
            complaints.push(format!(
                "`{name}` is pure and may not name `{foreign}`: one that never waits, reads or calls may be added to \
                 `PURE` in `xtask/tests/tidy.rs`"
            ));
        }
    }
    complaints
}

/// The pure floors do not access the system through `std` either, nor in build scripts. Their tests may.
pub(crate) fn pure_sources(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for (one, _) in pure(workspace) {
        let tests = format!("{}/tests/", one.folder);
        for file in one.files.iter().filter(|file| !file.path.starts_with(&tests)) {
            let code = code(&file.body());
            let modules = IMPURE_MODULES.iter().filter(|module| names_std(&code, module));
            let modules = modules.map(|module| format!("std::{module}"));
            let words = IMPURE_WORDS.iter().filter(|word| code.contains(**word));
            for found in modules.chain(words.map(|word| (*word).to_owned())) {
                complaints.push(format!(
                    "{}: `{}` is pure and may not use `{found}`",
                    file.path, one.name
                ));
            }
        }
    }
    complaints
}

/// Crates for any program do not name the product: neither in their sources nor in the files beside them.
pub(crate) fn libraries(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for one in workspace.crates.iter().filter(|one| LIBRARIES.contains(&one.name.as_str())) {
        for Source { path, text } in workspace.texts(one) {
            for (number, line) in text.lines().enumerate() {
                let line =
                    LIBRARIES.iter().fold(line.to_lowercase(), |line, it| line.replace(it, ""));
                if let Some(word) = PRODUCT.iter().find(|word| line.contains(**word)) {
                    let (name, number) = (&one.name, number + 1);
                    complaints.push(format!(
                        "{path}:{number}: `{name}` is for any program and may not speak of `{word}`"
                    ));
                }
            }
        }
    }
    complaints
}

/// A file is short enough to be read at once.
pub(crate) fn lengths(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in workspace.files() {
        let lines = file.body().lines().count();
        if lines > FILE_LINES_MAX {
            let path = &file.path;
            complaints.push(format!(
                "{path}: {lines} lines, more than {FILE_LINES_MAX}: split it by what it holds"
            ));
        }
    }
    complaints
}

/// Readers overlook code behind `mod tests`.
pub(crate) fn tests_last(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in workspace.files() {
        let (_, after) = file.around_tests();
        let after = after.trim_start();
        if !after.is_empty() {
            let line = file.text.lines().count() - after.lines().count() + 1;
            complaints.push(format!(
                "{}:{line}: stands behind the end of `mod tests`, the first `}}` in column 1: move it up",
                file.path
            ));
        }
    }
    complaints
}

/// A file name describes its content.
pub(crate) fn names(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for Source { path, .. } in workspace.files() {
        let empty = path.trim_end_matches(".rs").split('/').find(|part| EMPTY_NAMES.contains(part));
        if let Some(empty) = empty {
            complaints.push(format!(
                "{path}: `{empty}` says nothing about what is inside: name it for what it holds"
            ));
        }
    }
    complaints
}

/// A test that does not run is not a test.
pub(crate) fn ignored(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for Source { path, text } in workspace.files() {
        let code = code(text);
        for (at, _) in code.match_indices("#[").chain(code.match_indices("#![")) {
            let attribute: String = code[at..]
                .chars()
                .take_while(|c| *c != ']')
                .filter(|c| !c.is_whitespace())
                .collect();
            let mut words = attribute.split(|c: char| !c.is_alphanumeric() && c != '_');
            let bare = attribute.starts_with("#[ignore") || attribute.contains("cfg_attr(");
            let ignores = bare && words.any(|word| word == "ignore");
            let never = attribute.contains("cfg(") && attribute.contains("any()");
            if ignores || never || attribute.contains("cfg(false)") {
                let line = code[..at].matches('\n').count() + 1;
                complaints.push(format!("{path}:{line}: never runs: mend it or remove it"));
            }
        }
    }
    complaints
}

/// The lints of the workspace apply only where a manifest enables them.
pub(crate) fn lints(workspace: &Workspace) -> Vec<String> {
    let taken = |manifest: &str| {
        let section = manifest.lines().skip_while(|line| line.trim() != "[lints]").skip(1);
        section
            .take_while(|line| !line.starts_with('['))
            .any(|line| line.trim() == "workspace = true")
    };
    let without = workspace.crates.iter().filter(|one| !taken(&one.manifest));
    without
        .map(|one| format!("{}/Cargo.toml: add `[lints]` with `workspace = true`", one.folder))
        .collect()
}

/// ARCHITECTURE.md has a section for each crate: its boundary and its invariant.
pub(crate) fn architecture(workspace: &Workspace) -> Vec<String> {
    let Ok(text) = fs::read_to_string(workspace.root.join("ARCHITECTURE.md")) else {
        return vec!["ARCHITECTURE.md: is missing; it has a section for each crate".to_owned()];
    };
    let mut complaints = Vec::new();
    for one in &workspace.crates {
        let Some(section) = section(&text, one) else {
            complaints.push(format!("ARCHITECTURE.md: no section is headed `{}`", one.folder));
            continue;
        };
        for word in ["**Boundary.**", "**Invariant.**"] {
            if !section.contains(word) {
                complaints
                    .push(format!("ARCHITECTURE.md: the section `{}` has no {word}", one.folder));
            }
        }
    }
    complaints
}

/// Every Rust file and every type that ARCHITECTURE.md names exists.
pub(crate) fn architecture_names(workspace: &Workspace) -> Vec<String> {
    let text = fs::read_to_string(workspace.root.join("ARCHITECTURE.md")).unwrap_or_default();
    let code: Vec<_> = workspace.files().map(|file| code(&file.text)).collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words: BTreeSet<_> = code.iter().flat_map(|code| code.split(|c| !is_word(c))).collect();
    let mut complaints = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for name in line.split('`').skip(1).step_by(2) {
            let mut letters = name.chars();
            let is_type = letters.next().is_some_and(|c| c.is_ascii_uppercase())
                && letters.next().is_some_and(|c| c.is_ascii_lowercase())
                && name.chars().all(is_word);
            let is_there = match name.ends_with(".rs") {
                true => workspace.files().any(|file| is_path(&file.path, name)),
                false => !is_type || words.contains(name),
            };
            if !is_there {
                let number = number + 1;
                complaints.push(format!("ARCHITECTURE.md:{number}: there is no `{name}`"));
            }
        }
    }
    complaints
}

/// Whether a path ends with these components.
fn is_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// Returns the crates of the pure floors, each with the external crates that it may depend on.
fn pure(workspace: &Workspace) -> impl Iterator<Item = (&Crate, &'static [&'static str])> {
    workspace.crates.iter().filter_map(|one| {
        let (_, allowed) = PURE.iter().find(|(name, _)| *name == one.name)?;
        Some((one, *allowed))
    })
}

/// Returns the text under the heading that contains the crate's name or folder in backticks, up to the next heading.
fn section<'a>(text: &'a str, one: &Crate) -> Option<&'a str> {
    let names = [format!("`{}`", one.name), format!("`{}`", one.folder)];
    let mut sections = text.split("\n#");
    sections.find(|section| {
        let heading = section.lines().next().unwrap_or_default();
        names.iter().any(|name| heading.contains(name))
    })
}

/// Whether the code names this module of `std`, by its path or in a braced `use`.
fn names_std(code: &str, module: &str) -> bool {
    let path = code
        .match_indices("std::")
        .any(|(at, path)| first_word(&code[at + path.len()..]) == module);
    let mut groups =
        code.split("std::{").skip(1).map(|rest| rest.split(';').next().unwrap_or_default());
    path || groups.any(|group| top_level(group).any(|item| first_word(item) == module))
}

/// Returns the items that the code names behind a prefix such as `crate::`, in a braced `use` too, each with its line.
pub(crate) fn named_items<'c>(code: &'c str, prefix: &str) -> Vec<(usize, &'c str)> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        let (before, rest) = (&code[..at], &code[at + prefix.len()..]);
        if before.ends_with(|c: char| c.is_alphanumeric() || "_:$".contains(c)) {
            continue;
        }
        let line = before.matches('\n').count() + 1;
        match rest.strip_prefix('{') {
            Some(group) => {
                let group = group.split(';').next().unwrap_or_default();
                names.extend(top_level(group).map(|item| (line, first_word(item))));
            }
            None => names.push((line, first_word(rest))),
        }
    }
    names
}

/// Returns the items of a braced `use`, without the content of nested braces.
fn top_level(group: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    group.split(move |c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}
