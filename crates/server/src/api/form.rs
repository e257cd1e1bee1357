//! The two representations of a document, YAML and JSON, and the redaction of its secrets.
//!
//! In a document that the server returns, three stars replace each secret. In a document that it receives, they refer to the
//! secret that is already stored, so that a client can read, change and put back a document without seeing the secret.

use axum::http::{HeaderMap, StatusCode, header};
use model::{DocumentKind, Fault};
use serde_json::{Map, Value};
use source::{Node, Scalar, Text};

use crate::http::problem::Problem;

/// The placeholder for a secret.
const HIDDEN: &str = "***";

/// The keys of a trace store with values that are never shown.
const SECRETS_OF_STORES: &[&str] = &[
    "headers",
    "password",
    "token",
    "accessKey",
    "accessToken",
    "secretAccessKey",
    "sessionToken",
];

/// The representation of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerFormat {
    Json,
    Yaml,
}

impl AnswerFormat {
    /// Returns the format that the `Accept` header prefers: JSON unless YAML has a higher quality.
    pub(super) fn accepted(headers: &HeaderMap) -> Result<Self, Problem> {
        let mut best: Option<(Self, f32)> = None;
        let mut is_any = true;
        for value in headers.get_all(header::ACCEPT) {
            for range in value.to_str().unwrap_or_default().split(',') {
                is_any = false;
                let Some((form, quality)) = Self::of_range(range) else { continue };
                if quality > best.map_or(0.0, |(_, best)| best) {
                    best = Some((form, quality));
                }
            }
        }
        match best {
            Some((form, _)) => Ok(form),
            None if is_any => Ok(Self::Json),
            None => Err(Problem::new(
                Fault::Invalid,
                "there is no such form: expected `Accept` to name `application/json` or `application/yaml`",
            )
            .with_status(StatusCode::NOT_ACCEPTABLE)),
        }
    }

    fn of_range(range: &str) -> Option<(Self, f32)> {
        let mut parts = range.split(';').map(str::trim);
        let form = match parts.next()?.to_ascii_lowercase().as_str() {
            "*/*" | "application/*" | "application/json" => Self::Json,
            "application/yaml" | "application/x-yaml" | "text/yaml" | "text/*" => Self::Yaml,
            _ => return None,
        };
        let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok());
        Some((form, quality.unwrap_or(1.0)))
    }
}

/// Renders a document for a response: the text as written, or the same as JSON; secrets are redacted in both.
pub(super) fn given(kind: DocumentKind, document: &str, form: AnswerFormat) -> String {
    if form == AnswerFormat::Yaml && !kind.holds_secrets() {
        // The stored text begins with empty lines in place of the documents before it in its file.
        return document.trim_start_matches('\n').to_owned();
    }
    let mut value = json(document);
    for secret in secrets(kind, &mut value) {
        *secret.1 = Value::from(HIDDEN);
    }
    match form {
        AnswerFormat::Json => format!("{value:#}\n"),
        AnswerFormat::Yaml => yaml(&value),
    }
}

/// Returns a document as it is stored: each placeholder is replaced by the secret of `stored`. Refuses one that it lacks.
pub(super) fn taken(
    kind: DocumentKind,
    document: String,
    stored: Option<&str>,
) -> Result<String, Problem> {
    let mut value = json(&document);
    let mut hidden: Vec<_> =
        secrets(kind, &mut value).into_iter().filter(|(_, secret)| **secret == HIDDEN).collect();
    if hidden.is_empty() {
        return Ok(document);
    }
    let mut stored = json(stored.unwrap_or_default());
    let mut known = secrets(kind, &mut stored);
    for (path, secret) in &mut hidden {
        let Some(known) = known.iter_mut().find(|(known, _)| known == path) else {
            let detail = format!(
                "`{path}` is hidden, and no earlier version of this {kind} has it: give the value itself instead of `{HIDDEN}`"
            );
            return Err(Problem::new(Fault::Invalid, detail));
        };
        **secret = known.1.take();
    }
    drop(hidden);
    Ok(format!("{value:#}\n"))
}

/// The secrets of a document, each with a path that stays the same when others are added or removed.
fn secrets(kind: DocumentKind, document: &mut Value) -> Vec<(String, &mut Value)> {
    let mut found = Vec::new();
    match kind {
        DocumentKind::VariableSet => {
            let values = document.pointer_mut("/spec/values").and_then(Value::as_array_mut);
            for variable in values.into_iter().flatten().filter_map(Value::as_object_mut) {
                if variable.get("type").and_then(Value::as_str) == Some("secret") {
                    let key = variable.get("key").map(text).unwrap_or_default();
                    found.extend(variable.get_mut("value").map(|value| (key, value)));
                }
            }
        }
        DocumentKind::TraceStore => below(document, "", false, &mut found),
        DocumentKind::Test
        | DocumentKind::TestSuite
        | DocumentKind::SettleProfile
        | DocumentKind::Analyzer
        | DocumentKind::QualityGate => {}
    }
    found
}

fn below<'a>(
    value: &'a mut Value,
    path: &str,
    is_secret: bool,
    found: &mut Vec<(String, &'a mut Value)>,
) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let is_secret = is_secret || SECRETS_OF_STORES.contains(&key.as_str());
                below(value, &format!("{path}/{key}"), is_secret, found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                below(item, &format!("{path}/{at}"), is_secret, found);
            }
        }
        secret => {
            if is_secret && !is_named(secret) {
                found.push((path.to_owned(), secret));
            }
        }
    }
}

/// Whether the value is empty, or only a `${…}` reference that is resolved elsewhere.
fn is_named(value: &Value) -> bool {
    let inside = value.as_str().and_then(|text| text.strip_prefix("${")?.strip_suffix('}'));
    value.is_null() || value == "" || inside.is_some_and(|inside| !inside.contains('}'))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Parses a document as JSON; null for none. It was parsed when it was stored, so it has no errors.
fn json(document: &str) -> Value {
    let (nodes, _) = source::read_yaml(&Text::new("document.yaml", document));
    nodes.first().map_or(Value::Null, of_node)
}

fn of_node(node: &Node) -> Value {
    match &node.value {
        source::Value::Scalar(scalar) => of_scalar(scalar),
        source::Value::Sequence(items) => items.iter().map(of_node).collect(),
        source::Value::Table(entries) => {
            let entry = |entry: &source::Entry| (entry.key.text.clone(), of_node(&entry.value));
            Value::Object(entries.iter().map(entry).collect::<Map<_, _>>())
        }
    }
}

/// Converts a scalar. It becomes a typed value only if JSON writes that value the same way.
fn of_scalar(scalar: &Scalar) -> Value {
    if scalar.is_null() {
        return Value::Null;
    }
    let same = |value: Value| {
        let written = value.to_string();
        (written == scalar.text).then_some(value)
    };
    let typed = scalar
        .as_bool()
        .map(Value::from)
        .or_else(|| same(Value::from(scalar.as_i64()?)))
        .or_else(|| same(Value::from(scalar.as_f64()?)));
    typed.unwrap_or_else(|| Value::from(scalar.text.clone()))
}

/// Renders JSON as YAML for people: in block style, with strings quoted as in JSON.
pub(super) fn yaml(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    out
}

fn block(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                out.push_str(&format!("{indent}{}:", key_text(key)));
                below_key(value, depth + 1, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut inner = String::new();
                block(item, depth + 1, &mut inner);
                // The first line follows the dash.
                out.push_str(&format!("{indent}- {}", inner.trim_start_matches(' ')));
            }
        }
        other => out.push_str(&format!("{indent}{other}\n")),
    }
}

fn below_key(value: &Value, depth: usize, out: &mut String) {
    let is_block = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        out.push('\n');
        block(value, depth, out);
    } else {
        out.push_str(&format!(" {value}\n"));
    }
}

/// Renders a key, quoted unless it is a plain word.
fn key_text(key: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_plain = key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.chars().all(is_word);
    let is_reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .contains(&key.to_ascii_lowercase().as_str());
    if is_plain && !is_reserved { key.to_owned() } else { Value::from(key).to_string() }
}
