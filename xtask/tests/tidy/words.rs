//! Words that documentation and comments do not use: readers search for the term of the field.

use crate::{WORDS, code::code, workspace::Workspace};

/// Checks comments on lines of their own in Rust files, and pages. Code and quotations may use every word.
pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in workspace.files() {
        let comments = file.text.lines().map(|line| line.trim_start().strip_prefix("//"));
        complaints.extend(find(&file.path, comments));
    }
    // The changelog quotes what was there before.
    for page in workspace.pages().iter().filter(|page| page.path != "CHANGELOG.md") {
        let mut is_code = false;
        let prose = page.text.lines().map(|line| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            (!is_code && !is_fence).then_some(line)
        });
        complaints.extend(find(&page.path, prose));
    }
    complaints
}

/// Checks the names of functions, except in tests, whose names are sentences.
pub(crate) fn functions(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    for one in &workspace.crates {
        let sources = format!("{}/src/", one.folder);
        let files = one.files.iter().filter(|file| file.path.starts_with(&sources));
        for file in files.filter(|file| !file.path.contains("/tests")) {
            for name in code(&file.body()).split("fn ").skip(1) {
                let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
                let name = &name[..end.unwrap_or(name.len())];
                let bad = |part: &str| WORDS.iter().find(|(bad, _)| *bad == part);
                if let Some((word, instead)) = name.split('_').find_map(bad) {
                    let path = &file.path;
                    complaints.push(format!("{path}: `{name}` has `{word}`: write {instead}"));
                }
            }
        }
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
