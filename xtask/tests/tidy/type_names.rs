//! The names of types: nouns, each unique in its crate.

use std::collections::BTreeMap;

use crate::{
    NOUNS, PARTICIPLES, WITHOUT_TYPE_NAMES,
    code::code,
    workspace::{Crate, Workspace},
};

/// A type has a noun for its name, which no other type of its crate has.
pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    let is_checked = |one: &&Crate| !WITHOUT_TYPE_NAMES.contains(&one.name.as_str());
    for one in workspace.crates.iter().filter(is_checked) {
        let mut places = BTreeMap::<String, Vec<String>>::new();
        let sources = format!("{}/src/", one.folder);
        for file in one.files.iter().filter(|file| file.path.starts_with(&sources)) {
            for (number, line) in code(&file.body()).lines().enumerate() {
                if let Some(name) = defined(line) {
                    let place = format!("{}:{}", file.path, number + 1);
                    places.entry(name.to_owned()).or_default().push(place);
                }
            }
        }
        for (name, places) in places {
            if is_participle(&name) {
                let place = &places[0];
                complaints.push(format!(
                    "{place}: `{name}` is not a noun: name the type for the thing that it is"
                ));
            }
            if let [first, second, ..] = places.as_slice() {
                complaints.push(format!(
                    "{second}: `{name}` is the name of another type too, at {first}"
                ));
            }
        }
    }
    complaints
}

/// Returns the type that a line defines at the top level.
fn defined(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")) {
        Some((_, rest)) => rest,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let (keyword, rest) = line.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type", "union"].contains(&keyword);
    let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    (is_type && !name.is_empty()).then_some(name)
}

/// Whether a name is one word and a participle, not a noun.
fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().filter(|c| c.is_uppercase()).count() == 1;
    let is_regular = name.ends_with("ed") || name.ends_with("ing");
    is_one_word && !NOUNS.contains(&name) && (is_regular || PARTICIPLES.contains(&name))
}
