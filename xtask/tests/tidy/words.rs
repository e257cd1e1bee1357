//! Words that documentation and comments do not use: readers search for the term of the field.

use std::{fs, path::Path};

use crate::{WORDS, workspace::Workspace};

/// Checks comments of Rust files, and pages at the root and under `docs`. Code and quotations may use every word.
pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in workspace.files() {
        let comments = file.text.lines().map(|line| line.trim_start().strip_prefix("//"));
        complaints.extend(find(&file.path, comments));
    }
    for path in pages(&workspace.root) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut is_code = false;
        let prose = text.lines().map(|line| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            (!is_code && !is_fence).then_some(line)
        });
        let name = path.strip_prefix(&workspace.root).unwrap_or(&path);
        complaints.extend(find(&name.display().to_string(), prose));
    }
    complaints
}

/// Returns a complaint for each line of prose with a word of the list; the other lines are none.
fn find<'t>(path: &str, lines: impl Iterator<Item = Option<&'t str>>) -> Vec<String> {
    let complaint = |(index, line): (usize, Option<&str>)| {
        let prose = without_quotations(line?);
        let mut words = prose.split(|c: char| !c.is_alphanumeric());
        let is = |word: &str, bad: &str| word.eq_ignore_ascii_case(bad);
        let (word, instead) = words.find_map(|word| WORDS.iter().find(|(bad, _)| is(word, bad)))?;
        Some(format!("{path}:{}: `{word}`: write {instead}", index + 1))
    };
    lines.enumerate().filter_map(complaint).collect()
}

/// Removes inline code, quotations and the targets of links.
fn without_quotations(line: &str) -> String {
    let mut prose = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (inside, end) = match first {
            '`' | '"' => (&rest[1..], first),
            '(' if prose.ends_with(']') => (&rest[1..], ')'),
            _ => {
                prose.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
        };
        rest = inside.split_once(end).map_or("", |(_, rest)| rest);
    }
    prose
}

/// Returns the Markdown pages, without the changelog, which quotes what was there before.
fn pages(root: &Path) -> Vec<std::path::PathBuf> {
    let folders = ["", "docs", "docs/adr", "docs/language"].map(|folder| root.join(folder));
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut pages: Vec<_> = entries.map(|entry| entry.path()).collect();
    pages.retain(|path| {
        path.extension().is_some_and(|it| it == "md") && !path.ends_with("CHANGELOG.md")
    });
    pages.sort();
    pages
}
