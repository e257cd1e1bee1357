//! Checks that every field of every kind of document has an effect, is descriptive, or is rejected; none is silently ignored.
//!
//! The fields come from the schema, so that a new field without a class fails here. A field that changes a run is tested by
//! changing it: `effect` renders the effect of a document on a run, and its result has to differ.

#![expect(clippy::panic, reason = "a document that cannot be read is a broken test")]

mod classes;
mod effect;

use std::collections::{BTreeMap, BTreeSet};

use classes::{ALIASES, CHANGES, FOR_PEOPLE, REFUSED};
use effect::{effect, told};
use serde_json::Value as Json;

#[test]
fn every_field_is_in_one_class() {
    let mut classes: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    for (kind, field) in fields() {
        let of = ALIASES.iter().find(|(alias, _)| *alias == kind).map_or(&*kind, |(_, of)| *of);
        let mut found = Vec::new();
        if CHANGES.iter().any(|it| it.kind == of && it.field == field) {
            found.push("changes a run");
        }
        if FOR_PEOPLE.iter().any(|(known, path, _)| *known == of && *path == field) {
            found.push("for people");
        }
        if REFUSED.iter().any(|it| it.kind == of && field.starts_with(it.field)) {
            found.push("refused");
        }
        classes.insert((kind, field), found);
    }
    let wrong: Vec<_> = classes.iter().filter(|(_, found)| found.len() != 1).collect();
    assert!(wrong.is_empty(), "in no class, or in several: {wrong:#?}");
    assert!(classes.len() >= 240, "{} fields", classes.len());
}

/// The reverse: checks that no class has a field that is not in the schema.
#[test]
fn every_class_is_about_fields_that_exist() {
    let fields = fields();
    let has = |kind: &str, path: &str| fields.contains(&(kind.to_owned(), path.to_owned()));
    for change in CHANGES {
        assert!(has(change.kind, change.field), "{} {}", change.kind, change.field);
    }
    for (kind, field, reason) in FOR_PEOPLE {
        assert!(has(kind, field) && !reason.is_empty(), "{kind} {field}");
    }
    for refused in REFUSED {
        let is_there = fields
            .iter()
            .any(|(kind, path)| kind == refused.kind && path.starts_with(refused.field));
        assert!(is_there, "{} {}", refused.kind, refused.field);
    }
}

#[test]
fn what_changes_a_run_changes_it() {
    let mut same = Vec::new();
    for change in CHANGES {
        assert!(
            change.base.contains(change.from),
            "{}: `{}` is not there",
            change.field,
            change.from
        );
        let changed = change.base.replacen(change.from, change.to, 1);
        let kinds = ALIASES.iter().filter(|(_, of)| *of == change.kind).map(|(alias, _)| *alias);
        for kind in [change.kind].into_iter().chain(kinds) {
            let named = |text: &str| {
                text.replace(&format!("type: {}", change.kind), &format!("type: {kind}"))
            };
            if effect(&named(change.base)) == effect(&named(&changed)) {
                same.push(format!("{kind} {}: {} -> {}", change.field, change.from, change.to));
            }
        }
    }
    assert!(same.is_empty(), "no run differs by: {same:#?}");
}

#[test]
fn what_is_refused_is_named_at_its_place() {
    for refused in REFUSED {
        let told = told(refused.document);
        assert!(told.contains(refused.words), "{}: {told}", refused.field);
        assert!(told.contains("--> it.yaml:"), "{}: {told}", refused.field);
    }
}

/// Returns all fields of all kinds from the schema: `[]` for an element of a list, `*` for a name that the user chooses.
fn fields() -> BTreeSet<(String, String)> {
    let schema: Json = serde_json::from_str(&lang::schema()).expect("JSON");
    let mut fields = BTreeSet::new();
    for rule in schema["allOf"].as_array().expect("rules") {
        let kind = rule["if"]["properties"]["type"]["const"].as_str().expect("a kind");
        let mut paths = Vec::new();
        walk(&schema, &rule["then"]["properties"]["spec"], "", &mut paths);
        fields.extend(paths.into_iter().map(|path| (kind.to_owned(), path)));
    }
    fields
}

fn walk(root: &Json, schema: &Json, path: &str, paths: &mut Vec<String>) {
    if let Some(part) = schema["$ref"].as_str() {
        let part = root.pointer(part.trim_start_matches('#')).expect("a part");
        return walk(root, part, path, paths);
    }
    if let Some(either) = schema["anyOf"].as_array() {
        return either.iter().for_each(|one| walk(root, one, path, paths));
    }
    let before = paths.len();
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    if schema["items"].is_object() {
        walk(root, &schema["items"], &format!("{path}[]"), paths);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        walk(root, inner, &below(name), paths);
    }
    if schema["additionalProperties"].is_object() {
        walk(root, &schema["additionalProperties"], &below("*"), paths);
    }
    if paths.len() == before {
        paths.push(path.to_owned());
    }
}
