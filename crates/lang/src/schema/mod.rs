//! A JSON Schema of the documents, for editors, generated from one table of all keys.
//!
//! Deliberately absent: rules that a schema cannot express, such as the syntax of a selector. The parser (`document`) is
//! handwritten; tests keep it and the table consistent.

mod keys;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use keys::{KEYS, PLAIN_KEYS};

use crate::document::{FieldForm, KINDS, TYPES, TriggerType, trigger_types};

/// A key of a document.
#[derive(Clone, Copy, Debug)]
struct Key {
    /// Its path below a kind of document, or below a part that several kinds share. `[]` is each element of a list, `*` is a name
    /// that the user chooses.
    path: &'static str,
    kind: Kind,
    /// The default, in words; [`REQUIRED`] if the key is mandatory, empty if it has no default.
    default: &'static str,
    /// The purpose, in one sentence.
    meaning: &'static str,
}

/// The type of a value.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Any scalar, read as text.
    Text,
    /// The same, but secret.
    Secret,
    Boolean,
    Integer {
        min: u64,
        max: u64,
    },
    /// A duration such as `10s`.
    Duration,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A type of trigger.
    TriggerTypes,
    /// A part that several kinds of document share.
    Part(&'static str),
    Anything,
    /// A table or list that only has children.
    Inner,
}

const REQUIRED: &str = "required";

/// The version of the document format. It is raised when a document that was right is not right any more, or has another meaning; a new
/// key does not raise it.
pub const DOCUMENT_FORMAT: u32 = 1;

/// Returns the schema (draft 2020-12) of a document.
pub fn schema() -> String {
    let mut parts: BTreeMap<&str, Branch> = BTreeMap::new();
    let keys = KEYS.iter().map(|key| (segments(key.path).collect(), *key));
    for (path, key) in keys.chain(protocol_keys()) {
        let mut segments = path.into_iter();
        let root = parts.entry(segments.next().unwrap_or_default()).or_default();
        let branch =
            segments.fold(root, |branch, segment| branch.children.entry(segment).or_default());
        branch.key = Some(key);
    }
    let definitions: Map<_, _> =
        parts.iter().map(|(name, branch)| ((*name).to_owned(), branch.container())).collect();
    let names: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
    let rules: Vec<_> = KINDS
        .iter()
        .map(|(name, part)| {
            json!({
                "if": { "properties": { "type": { "const": name } } },
                "then": { "properties": { "spec": { "$ref": format!("#/$defs/{part}") } } },
            })
        })
        .collect();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A document of Qualitytrace",
        "type": "object",
        "properties": {
            "type": { "enum": names, "description": "What the document is." },
            "spec": { "type": "object" },
        },
        "required": ["type", "spec"],
        "additionalProperties": false,
        "allOf": rules,
        "$defs": definitions,
    });
    format!("{schema:#}\n")
}

/// Returns the keys of the triggers of further protocols, each with its path.
fn protocol_keys() -> Vec<(Vec<&'static str>, Key)> {
    let protocols = TYPES.iter().filter_map(|known| match known {
        TriggerType::Call(protocol) => Some(*protocol),
        _ => None,
    });
    let mut keys = Vec::new();
    for protocol in protocols {
        for field in protocol.fields {
            let path = |rest: &mut dyn Iterator<Item = &'static str>| {
                ["Trigger", protocol.section, field.name].into_iter().chain(rest).collect()
            };
            let (kind, is_list, default) = match field.form {
                FieldForm::Text | FieldForm::Content | FieldForm::Script => (Kind::Text, false, ""),
                FieldForm::Verification => (Kind::Boolean, false, "true"),
                FieldForm::Auth => (Kind::Part("Auth"), false, ""),
                FieldForm::Texts => (Kind::Text, true, ""),
                FieldForm::Headers => (Kind::Part("Header"), true, ""),
                FieldForm::Plain => {
                    let inner = |inner: &Key| (path(&mut segments(inner.path)), *inner);
                    keys.extend(PLAIN_KEYS.iter().map(inner));
                    continue;
                }
            };
            let default = if field.is_required { REQUIRED } else { default };
            let key = Key { path: field.name, kind, default, meaning: field.meaning };
            keys.push((path(&mut is_list.then_some("[]").into_iter()), key));
        }
    }
    keys
}

/// Splits `a.b[].c` into its segments: `a`, `b`, `[]`, `c`.
fn segments(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('.').flat_map(|segment| {
        let name = segment.trim_end_matches("[]");
        let lists = segment.matches("[]");
        std::iter::once(name).chain(lists)
    })
}

/// A key, its children, or both.
#[derive(Default)]
struct Branch {
    key: Option<Key>,
    children: BTreeMap<&'static str, Branch>,
}

impl Branch {
    fn schema(&self) -> Value {
        let kinds: Vec<_> = self
            .key
            .and_then(|key| key.kind.schema())
            .into_iter()
            .chain((!self.children.is_empty()).then(|| self.container()))
            .collect();
        let mut schema = match <[Value; 1]>::try_from(kinds) {
            Ok([only]) => only,
            Err(several) => json!({ "anyOf": several }),
        };
        if let (Some(key), Value::Object(schema)) = (self.key, &mut schema) {
            let default = match key.default {
                "" | REQUIRED => String::new(),
                default => format!(" Default: {default}."),
            };
            schema.insert("description".to_owned(), json!(format!("{}{default}", key.meaning)));
        }
        schema
    }

    /// Returns the schema of the list or the table with these children.
    fn container(&self) -> Value {
        if let Some(items) = self.children.get("[]") {
            return json!({ "type": ["array", "null"], "items": items.schema() });
        }
        let others = self.children.get("*").map_or(json!(false), Self::schema);
        let named = || self.children.iter().filter(|(name, _)| **name != "*");
        let properties: Map<_, _> =
            named().map(|(name, child)| ((*name).to_owned(), child.schema())).collect();
        let required: Vec<_> = named()
            .filter(|(_, child)| child.key.is_some_and(|key| key.default == REQUIRED))
            .map(|(name, _)| *name)
            .collect();
        // An empty key in YAML is null, and counts as absent.
        json!({
            "type": ["object", "null"],
            "properties": properties,
            "required": required,
            "additionalProperties": others,
        })
    }
}

impl Kind {
    fn schema(self) -> Option<Value> {
        let text = ["string", "number", "boolean", "null"];
        Some(match self {
            Self::Text => json!({ "type": text }),
            Self::Secret => json!({ "type": text, "writeOnly": true }),
            Self::Boolean => json!({ "type": ["boolean", "null"] }),
            Self::Integer { min, max } => {
                json!({ "type": ["integer", "null"], "minimum": min, "maximum": max })
            }
            Self::Duration => json!({
                "type": ["string", "null"],
                "pattern": r"^([0-9]+(\.[0-9]+)?(ns|us|µs|μs|ms|s|m|h))+$",
                "examples": ["10s", "1m30s", "500ms"],
            }),
            Self::Words(words) => json!({ "enum": words }),
            Self::TriggerTypes => json!({ "enum": trigger_types() }),
            Self::Part(part) => json!({ "$ref": format!("#/$defs/{part}") }),
            Self::Anything => json!({}),
            Self::Inner => return None,
        })
    }
}
