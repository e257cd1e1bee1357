//! A JSON Schema of the configuration, for editors: generated from the same table of keys.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{KEYS, Key, Kind};

/// A value with a variable reference is known only later.
const VARIABLE: &str = "\\$\\{";

/// Returns the schema (draft 2020-12) of a file with the keys of this library and those of its caller.
pub fn schema(extra_keys: &[Key], title: &str) -> Value {
    let mut root = Branch::default();
    for key in extra_keys.iter().chain(KEYS) {
        let branch = key
            .path
            .split('.')
            .fold(&mut root, |branch, segment| branch.children.entry(segment).or_default());
        branch.key = Some(key);
    }
    let mut schema = root.table();
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!(title));
    Value::Object(schema)
}

/// A key, a table of keys, or both.
#[derive(Default)]
struct Branch<'a> {
    key: Option<&'a Key>,
    children: BTreeMap<&'static str, Branch<'a>>,
}

impl Branch<'_> {
    fn schema(&self) -> Value {
        match (self.key, self.children.is_empty()) {
            (None, _) => {
                // An empty key in YAML is null, and counts as absent.
                let mut table = self.table();
                if !self.requires() {
                    table.insert("type".to_owned(), json!(["object", "null"]));
                }
                Value::Object(table)
            }
            (Some(key), true) => value(key),
            (Some(key), false) => {
                let mut both = value(key);
                let kinds = json!([only_kind(key.kind), self.table()]);
                if let Value::Object(both) = &mut both {
                    both.retain(|word, _| word == "description" || word == "default");
                    both.insert("anyOf".to_owned(), kinds);
                }
                both
            }
        }
    }

    fn table(&self) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut others = json!(false);
        let mut required = Vec::new();
        for (name, child) in &self.children {
            if *name == "*" {
                others = child.schema();
                continue;
            }
            properties.insert((*name).to_owned(), child.schema());
            if child.requires() {
                required.push(*name);
            }
            // If a key may be a value and a table, a file can only set both with dotted keys.
            if child.key.is_some() {
                for (inner, grandchild) in &child.children {
                    properties.insert(format!("{name}.{inner}"), grandchild.schema());
                }
            }
        }
        let mut table = Map::new();
        table.insert("type".to_owned(), json!("object"));
        if !properties.is_empty() {
            table.insert("properties".to_owned(), Value::Object(properties));
        }
        if !required.is_empty() {
            table.insert("required".to_owned(), json!(required));
        }
        table.insert("additionalProperties".to_owned(), others);
        table
    }

    /// Returns whether a key in this branch is mandatory; a user-defined name is always optional.
    fn requires(&self) -> bool {
        let is_required = |key: &Key| key.default == Key::REQUIRED;
        self.key.is_some_and(is_required)
            || self.children.iter().any(|(name, child)| *name != "*" && child.requires())
    }
}

fn value(key: &Key) -> Value {
    let mut value = only_kind(key.kind);
    if let Value::Object(value) = &mut value {
        let default = match key.default {
            "" | Key::REQUIRED => String::new(),
            default => format!(" Default: {default}."),
        };
        value.insert("description".to_owned(), json!(format!("{}{default}", key.meaning)));
    }
    value
}

fn only_kind(kind: Kind) -> Value {
    let or_variable =
        |kind: Value| json!({ "anyOf": [kind, { "type": "string", "pattern": VARIABLE }] });
    let text =
        |pattern: &str| json!({ "type": "string", "pattern": format!("{pattern}|{VARIABLE}") });
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Secret => json!({ "type": "string", "writeOnly": true }),
        Kind::Boolean => or_variable(json!({ "type": "boolean" })),
        Kind::Integer { min, max } => {
            or_variable(json!({ "type": "integer", "minimum": min, "maximum": max }))
        }
        Kind::Number { min, max } => {
            or_variable(json!({ "type": "number", "minimum": min, "maximum": max }))
        }
        Kind::Duration => {
            let mut duration = text(r"^([0-9]+(\.[0-9]+)?(ns|us|µs|μs|ms|s|m|h))+$|^0$");
            duration["examples"] = json!(["10s", "1m30s", "500ms"]);
            duration
        }
        Kind::Size => {
            let mut size = text(r"^[0-9]+ ?([KMGT]iB|[kKMGT]?B)?$");
            size["type"] = json!(["string", "integer"]);
            size["minimum"] = json!(0);
            size["examples"] = json!(["32MiB", "1GiB"]);
            size
        }
        Kind::Words(words) => or_variable(json!({ "enum": words })),
        Kind::Headers => json!({ "anyOf": [
            { "type": "array", "items": { "type": "string", "pattern": format!("^[^:]+:|{VARIABLE}") } },
            { "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } },
        ] }),
        Kind::List => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Secrets => {
            json!({ "type": "array", "items": { "type": "string", "writeOnly": true } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_becomes_a_tree() {
        let keys = [
            Key::new("server.httpPort", Kind::Integer { min: 1, max: 65535 }, "80", "Where."),
            Key::new("postgres.password", Kind::Secret, "", "Who."),
        ];
        let schema = schema(&keys, "an application");
        let at = |path: &str| schema.pointer(path).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(at("/title"), "an application");
        assert_eq!(at("/additionalProperties"), false);
        assert_eq!(at("/properties/server/properties/httpPort/description"), "Where. Default: 80.");
        assert_eq!(at("/properties/server/properties/httpPort/anyOf/0/maximum"), 65535);
        assert_eq!(at("/properties/postgres/properties/password/writeOnly"), true);
        let tracer = "/properties/tracer/additionalProperties";
        assert_eq!(at(&format!("{tracer}/required")), &json!(["type"]));
        assert_eq!(at(&format!("{tracer}/type")), "object");
        let words = at(&format!("{tracer}/properties/enable/anyOf/1/properties"));
        assert!(words.get("log-exporter").is_some());
        assert!(schema.pointer(&format!("{tracer}/properties/enable.span-exporter")).is_some());
        let exporter = "/properties/telemetry/properties/exporters/additionalProperties";
        assert_eq!(at(&format!("{exporter}/required")), &json!(["exporter"]));
        assert!(schema.pointer("/properties/metrics/required").is_none());
    }
}
