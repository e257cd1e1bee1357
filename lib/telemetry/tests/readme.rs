//! The tables of the README list every key with its default, and no key that does not exist.

use std::collections::BTreeMap;

use telemetry::config::KEYS;

const README: &str = include_str!("../README.md");

/// A row of a table of keys: its keys, and the cell of its default.
struct Row {
    paths: Vec<Vec<String>>,
    default: String,
}

#[test]
fn every_key_is_in_a_table_with_its_default() {
    let known: BTreeMap<_, _> = KEYS.iter().map(|key| (key.path, key.default)).collect();
    let mut told: Vec<&str> = Vec::new();
    for Row { paths, default } in rows() {
        let mut is_known = false;
        for paths in &paths {
            let found: Vec<_> =
                paths.iter().filter_map(|path| known.get_key_value(path.as_str())).collect();
            told.extend(found.iter().map(|(path, _)| **path));
            if found.len() == paths.len() {
                is_known = true;
                assert_eq!(default, said(found.iter().map(|(_, default)| **default)), "{paths:?}");
            }
        }
        assert!(is_known, "no key is one of {paths:?}");
    }
    let forgotten: Vec<_> = known.keys().filter(|path| !told.contains(path)).collect();
    assert!(forgotten.is_empty(), "the README says nothing of {forgotten:?}");
}

/// Formats the defaults of a row: the one that they share, or all of them.
fn said<'a>(defaults: impl Iterator<Item = &'a str>) -> String {
    let words = defaults.map(|default| if default.is_empty() { "none" } else { default });
    let mut words: Vec<_> = words.collect();
    if words.iter().all(|word| *word == words[0]) {
        words.truncate(1);
    }
    words.join(", ")
}

/// Returns the rows of the tables with keys in the header of the first column, each row under every one of those keys.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut heads: Vec<String> = Vec::new();
    for line in README.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, first, default, ..] = cells[..] else {
            heads.clear();
            continue;
        };
        if first.starts_with('`') && default == "default" {
            heads = quoted(first).map(|head| head.replace("<name>", "*")).collect();
        } else if let Some(key) = quoted(first).next() {
            let parts = expanded(key);
            let under = |head: &String| parts.iter().map(|part| format!("{head}.{part}")).collect();
            let paths: Vec<_> = heads.iter().map(under).collect();
            rows.extend((!paths.is_empty()).then(|| Row { paths, default: default.to_owned() }));
        }
    }
    rows
}

/// Returns the texts in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Expands `a.{b,c}` to `a.b` and `a.c`.
fn expanded(key: &str) -> Vec<String> {
    let Some((before, names)) = key.split_once('{') else { return vec![key.to_owned()] };
    let names = names.trim_end_matches('}').split(',');
    names.map(|name| format!("{before}{name}")).collect()
}
