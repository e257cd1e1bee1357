//! The schemas of the reports for programs. A new field does not change their version, so readers ignore those that they do not know.

use serde_json::{Map, Value, json};

/// The commands that write reports.
pub(super) const COMMANDS: [&str; 6] =
    ["check", "lint", "run", "runs rejudge", "runs report", "runs watch"];

/// Returns the schema of a line of `--report json`: one outcome.
pub(super) fn json() -> Value {
    let outcome = json!({"$ref": "#/components/schemas/Outcome"});
    open(&json!({"schemaVersion": {"const": 1}, "outcome": outcome}), &[])
}

/// Returns the schema of a line of `--report ndjson`.
pub(super) fn ndjson(api: &Value) -> Value {
    let lines = [test(api), assertion(api), claim(api), output(), finding(api), summary()];
    json!({
        "description": "Lines of a test follow its line of type `test`; the last line is of type `summary`.",
        "oneOf": lines,
    })
}

fn test(api: &Value) -> Value {
    let mut fields = Map::new();
    let taken =
        ["verdict", "reasons", "diagnoses", "overtaken", "traceId", "settlement", "provisional"];
    for name in taken.iter().chain(&["superseded", "earlier"]) {
        fields.insert((*name).to_owned(), of_api(api, "Outcome", name));
    }
    let answer = open(
        &json!({
            "status": {"type": ["integer", "null"]}, "durationNs": nanoseconds(), "message": or_null("string"),
            "noAnswer": {"type": ["string", "null"], "description": "Why there is no answer, as one word."},
        }),
        &[],
    );
    let broken = open(
        &json!({
            "plugin": text(), "rule": text(), "level": of_api(api, "RuleAnalysis", "level"), "findings": count(),
        }),
        &[],
    );
    let analysis = open(
        &json!({"score": count(), "minimumScore": count(), "broken": {"type": "array", "items": broken}}),
        &[],
    );
    for (name, schema) in [
        ("began", json!({"type": ["string", "null"], "format": "date-time"})),
        ("durationNs", nanoseconds()),
        ("answer", json!({"oneOf": [{"type": "null"}, answer]})),
        ("analysis", json!({"oneOf": [{"type": "null"}, analysis]})),
    ] {
        fields.insert(name.to_owned(), schema);
    }
    line("test", fields, &["provisional", "superseded", "earlier"])
}

fn assertion(api: &Value) -> Value {
    let mut fields = statement(api, "AssertionJudgement", "assertion");
    fields.insert("spec".to_owned(), or_null("string"));
    fields.insert("selector".to_owned(), of_api(api, "SpecJudgement", "selector"));
    fields.insert("matched".to_owned(), of_api(api, "SpecJudgement", "matched"));
    line("assertion", fields, &["evidence"])
}

fn claim(api: &Value) -> Value {
    let mut fields = statement(api, "ClaimJudgement", "claim");
    fields.insert("name".to_owned(), or_null("string"));
    line("claim", fields, &["evidence"])
}

/// Returns the fields of an assertion or a claim.
fn statement(api: &Value, schema: &str, own: &str) -> Map<String, Value> {
    let names = [own, "place", "verdict", "decided", "reason", "spans", "moreSpans", "evidence"];
    names.map(|name| (name.to_owned(), of_api(api, schema, name))).into_iter().collect()
}

fn output() -> Value {
    let fields = [("name", text()), ("value", or_null("string")), ("reason", or_null("string"))];
    line("output", fields.map(|(name, it)| (name.to_owned(), it)).into_iter().collect(), &[])
}

fn finding(api: &Value) -> Value {
    let of_rule = [("plugin", text()), ("rule", text())].map(|(name, it)| (name.to_owned(), it));
    let mut fields: Map<_, _> = of_rule.into_iter().collect();
    fields.insert("level".to_owned(), of_api(api, "RuleAnalysis", "level"));
    for name in ["spanId", "name", "message"] {
        fields.insert(name.to_owned(), of_api(api, "Finding", name));
    }
    line("finding", fields, &[])
}

fn summary() -> Value {
    open(
        &json!({
            "type": {"const": "summary"}, "schemaVersion": {"const": 1}, "tests": count(), "passed": count(),
            "failed": count(), "inconclusive": count(), "durationNs": nanoseconds(),
        }),
        &[],
    )
}

/// Returns a line of a test.
fn line(kind: &str, mut fields: Map<String, Value>, optional: &[&str]) -> Value {
    for (name, schema) in [
        ("type", json!({"const": kind})),
        ("schemaVersion", json!({"const": 1})),
        ("test", json!({"type": "string", "description": "The name of the test."})),
        ("runId", or_null("string")),
    ] {
        fields.insert(name.to_owned(), schema);
    }
    open(&Value::Object(fields), optional)
}

/// Returns an object that may have further properties.
fn open(properties: &Value, optional: &[&str]) -> Value {
    let names = properties.as_object().into_iter().flat_map(Map::keys);
    let required: Vec<_> = names.filter(|name| !optional.contains(&name.as_str())).collect();
    json!({"type": "object", "required": required, "properties": properties})
}

/// Returns the schema of a property of the API.
fn of_api(api: &Value, schema: &str, name: &str) -> Value {
    let property = &api["components"]["schemas"][schema]["properties"][name];
    assert!(property.is_object(), "the API has no `{schema}.{name}`");
    property.clone()
}

fn text() -> Value {
    json!({"type": "string"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn nanoseconds() -> Value {
    json!({"type": ["integer", "null"], "minimum": 0})
}

fn or_null(kind: &str) -> Value {
    json!({"type": [kind, "null"]})
}
