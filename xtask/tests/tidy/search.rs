//! Search by everyday words: CONTRIBUTING.md names the file where each thing is done, and names in the code lead there.

use std::fs;

use crate::{code::code, workspace::Workspace};

/// The heading of the table.
const HEADING: &str = "## Find your way by search";
/// How many files a newcomer opens.
const OPENED: usize = 3;
/// How many hits the name of a file counts for: an editor shows it first.
const OF_FILE_NAME: usize = 3;
/// Crates that measure or demonstrate, and are no part of the product.
const ASIDE: [&str; 2] = ["crates/bench/", "crates/demo/"];

/// For each word of the table, its file is among those with most hits in the names of files, types and functions.
pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    let page = fs::read_to_string(workspace.root.join("CONTRIBUTING.md")).unwrap_or_default();
    let rows: Vec<_> = rows(&page).collect();
    if rows.is_empty() {
        return vec![format!("CONTRIBUTING.md: no table of words under `{HEADING}`")];
    }
    let files = named_files(workspace);
    let complaint = |(word, file): (&str, &str)| {
        let mut hits: Vec<_> = hits(&files, word).collect();
        hits.sort_by_key(|(path, count)| (std::cmp::Reverse(*count), *path));
        hits.truncate(OPENED);
        let is_found = hits.iter().any(|(path, _)| *path == file);
        let found: Vec<_> = hits.iter().map(|(path, count)| format!("{path} ({count})")).collect();
        let found = found.join(", ");
        (!is_found).then(|| {
            format!(
                "CONTRIBUTING.md: a search for `{word}` does not lead to {file}, but to: {found}"
            )
        })
    };
    rows.into_iter().filter_map(complaint).collect()
}

/// Returns the words of the table with the files where the thing is done.
fn rows(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let section = page.lines().skip_while(|line| *line != HEADING).skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    section.filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let (word, file) = (cells.next()?, cells.next()?);
        Some((word, file.split('`').nth(1)?))
    })
}

/// A file of the product, and the names in it.
struct NamedFile<'a> {
    path: &'a str,
    stem: &'a str,
    /// The names of types and functions, in snake case.
    names: Vec<String>,
}

fn named_files(workspace: &Workspace) -> Vec<NamedFile<'_>> {
    let is_product = |path: &str| {
        let is_aside = ASIDE.iter().any(|aside| path.starts_with(aside));
        path.contains("/src/") && !path.contains("/tests") && !is_aside
    };
    let files = workspace.files().filter(|file| is_product(&file.path));
    let named = files.filter_map(|file| {
        let path = file.path.as_str();
        let stem = path.rsplit('/').find(|part| *part != "mod.rs")?.trim_end_matches(".rs");
        let names = names(&code(&file.body())).map(snake_case).collect();
        Some(NamedFile { path, stem, names })
    });
    named.collect()
}

/// Returns the files of which names contain the word, each with the number of hits.
fn hits<'a>(files: &'a [NamedFile<'a>], word: &str) -> impl Iterator<Item = (&'a str, usize)> {
    let word = format!("_{}", word.replace(' ', "_"));
    files.iter().filter_map(move |file| {
        let is_hit = |name: &str| format!("_{name}").contains(&word);
        let count = file.names.iter().filter(|name| is_hit(name)).count();
        let count = count + if is_hit(file.stem) { OF_FILE_NAME } else { 0 };
        (count > 0).then_some((file.path, count))
    })
}

/// Returns the names of the types and functions that the code defines.
fn names(code: &str) -> impl Iterator<Item = &str> {
    let mut words =
        code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|it| !it.is_empty());
    std::iter::from_fn(move || {
        words.find(|word| ["fn", "struct", "enum", "trait", "type"].contains(word))?;
        words.next()
    })
}

fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}
