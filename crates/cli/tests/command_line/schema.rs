//! Checks values against JSON schemas, as far as those of `docs/reference/schemas` go: an unknown keyword is an error.

use regex::Regex;
use serde_json::{Map, Value};

/// Keywords that refuse no value.
const NOTES: [&str; 5] = ["$schema", "$defs", "title", "description", "format"];

/// Checks a value against a schema. `root` is the document of the schema.
pub(crate) fn check(value: &Value, schema: &Value, root: &Value) -> Result<(), String> {
    for (keyword, rule) in schema.as_object().into_iter().flatten() {
        if NOTES.contains(&keyword.as_str()) {
            continue;
        }
        let holds = match keyword.as_str() {
            "$ref" => {
                let pointer = rule.as_str().unwrap_or_default().trim_start_matches('#');
                let referred = root.pointer(pointer).ok_or_else(|| format!("no {pointer}"))?;
                check(value, referred, root)?;
                true
            }
            "type" => list(rule).iter().any(|kind| is_of(value, kind.as_str())),
            "const" => value == rule,
            "enum" => list(rule).contains(value),
            "minimum" => value.as_f64().is_none_or(|it| Some(it) >= rule.as_f64()),
            "maximum" => value.as_f64().is_none_or(|it| Some(it) <= rule.as_f64()),
            "pattern" => {
                let pattern = Regex::new(rule.as_str().unwrap_or_default());
                let pattern = pattern.map_err(|error| error.to_string())?;
                value.as_str().is_none_or(|text| pattern.is_match(text))
            }
            "oneOf" => {
                let fits = |form: &&Value| check(value, form, root).is_ok();
                list(rule).iter().filter(fits).count() == 1
            }
            "items" => {
                items(value).iter().try_for_each(|it| check(it, rule, root)).map(|()| true)?
            }
            "minItems" => {
                value.as_array().is_none_or(|it| it.len() as u64 >= rule.as_u64().unwrap_or(0))
            }
            "maxItems" => {
                value.as_array().is_none_or(|it| it.len() as u64 <= rule.as_u64().unwrap_or(0))
            }
            "required" | "properties" | "additionalProperties" | "propertyNames" => true,
            unknown => return Err(format!("the keyword `{unknown}` is not known here")),
        };
        if !holds {
            return Err(format!("`{keyword}: {rule}` does not hold for {value:#}"));
        }
    }
    object(value, schema, root)
}

/// Checks the properties of an object.
fn object(value: &Value, schema: &Value, root: &Value) -> Result<(), String> {
    let Some(fields) = value.as_object() else { return Ok(()) };
    for name in list(&schema["required"]) {
        if !fields.contains_key(name.as_str().unwrap_or_default()) {
            return Err(format!("{name} is not in {value:#}"));
        }
    }
    let none = Map::new();
    let known = schema["properties"].as_object().unwrap_or(&none);
    for (name, field) in fields {
        if let Some(names) = schema.get("propertyNames") {
            check(&Value::String(name.clone()), names, root)?;
        }
        match (known.get(name), schema.get("additionalProperties")) {
            (Some(rule), _) => check(field, rule, root).map_err(|why| format!("{name}: {why}"))?,
            (None, Some(Value::Bool(false))) => return Err(format!("`{name}` is not a property")),
            (None, Some(rule @ Value::Object(_))) => check(field, rule, root)?,
            (None, _) => {}
        }
    }
    Ok(())
}

fn is_of(value: &Value, kind: Option<&str>) -> bool {
    match kind.unwrap_or_default() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the items of a list; another value is a list of one.
fn list(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.clone(),
        one => vec![one.clone()],
    }
}

#[test]
fn a_value_that_is_not_as_its_schema_is_found() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"oneOf": [{"type": "null"}, {"enum": [1, 2]}]}},
        "$defs": {"a": {"type": ["array", "null"], "items": {"type": "string", "pattern": "^x"}, "maxItems": 1}},
    });
    let fits = |text: &str| {
        let value = serde_json::from_str(text).expect("JSON");
        check(&value, &schema, &schema).is_ok()
    };
    let right =
        [r#"{"a": null}"#, r#"{"a": []}"#, r#"{"a": ["xy"], "b": 2}"#, r#"{"a": null, "b": null}"#];
    let wrong = [
        "[]",
        "{}",
        r#"{"a": 1}"#,
        r#"{"a": ["y"]}"#,
        r#"{"a": ["x", "x"]}"#,
        r#"{"a": null, "b": 3}"#,
        r#"{"a": null, "c": 1}"#,
    ];
    assert!(right.into_iter().all(fits));
    assert!(!wrong.into_iter().any(fits));
    let unknown = serde_json::json!({"anyOf": []});
    assert!(check(&Value::Null, &unknown, &unknown).is_err(), "it is not passed over");
}
