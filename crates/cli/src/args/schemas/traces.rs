//! The schemas of what `shape diff` and `mutate` print.

use serde_json::{Value, json};

use super::object;

/// Returns the schema of `shape diff --format json`.
pub(super) fn shape_diff() -> Value {
    let text = || json!({"type": "string"});
    let texts = |about: &str| json!({"type": "array", "items": text(), "description": about});
    let count = || json!({"type": "integer", "minimum": 0});
    let under = || texts("The spans above it, from the root.");
    let value = |about: &str| json!({"type": ["string", "null"], "description": about});
    let says = || json!({"type": "string", "description": "The same for people."});
    let known = object(&json!({
        "kind": {"enum": ["missing", "extra"]}, "what": text(), "under": under(), "says": says(),
        "spansBelow": {"type": "integer", "minimum": 0, "description": "Spans below it, which are missing or extra too."},
    }));
    let moved = object(&json!({
        "kind": {"const": "moved"}, "what": text(), "says": says(),
        "from": texts("The spans above it in the shape."), "to": texts("Those above it in the trace."),
    }));
    let changed = object(&json!({
        "kind": {"const": "changed"}, "what": text(), "under": under(), "says": says(),
        "part": {"type": "string", "description": "Such as `status` or `attribute http.route`."},
        "from": value("What the shape has; null for nothing."), "to": value("What the trace has; null for nothing."),
    }));
    let counted = object(&json!({
        "kind": {"const": "count"}, "what": text(), "under": under(), "says": says(),
        "least": count(), "found": count(),
        "most": {"type": ["integer", "null"], "minimum": 0, "description": "Null for any number."},
    }));
    let mut schema = object(&json!({
        "schemaVersion": {"const": 1}, "shape": {"type": "string", "description": "The file with the shape."},
        "traceId": text(), "spans": count(), "same": {"type": "boolean"},
        "differences": {"type": "array", "items": {"oneOf": [known, moved, changed, counted]}},
    }));
    schema["description"] = "`same` is what the exit code states too.".into();
    schema
}

/// Returns the schema of `mutate --format json`.
pub(super) fn mutate() -> Value {
    let text = || json!({"type": "string"});
    let count = |about: &str| json!({"type": "integer", "minimum": 0, "description": about});
    let place = json!({"$ref": "#/components/schemas/Place"});
    let statement = object(&json!({"test": text(), "what": text(), "place": place}));
    let statements =
        |about: &str| json!({"type": "array", "items": statement, "description": about});
    let mutant = object(&json!({
        "id": text(), "operator": {"enum": ["drop", "reparent", "status", "attribute", "slow", "duplicate"]},
        "says": {"type": "string", "description": "What is different in it, for people."},
        "survived": {"type": "boolean", "description": "Whether no test failed on it."},
        "killedBy": {"type": "array", "items": text(), "description": "The ids of the tests that failed on it."},
        "lookedAtBy": statements("Of a survivor: the statements about the span that is different."),
        "lookedBesideBy": statements("Of a survivor at which none looks: those about the spans next to it."),
        "proposal": {"type": ["string", "null"], "description": "A claim that would have failed on it."},
        "accepted": {"type": ["string", "null"], "description": "The reason in the file of `--survivors`."},
    }));
    let trace = object(&json!({
        "name": text(), "file": text(), "traceId": text(), "spans": count("Spans of the trace."),
        "alike": count("Spans that equal an earlier one, and are not mutated themselves."),
        "leftOut": count("Mutants that are not in the sample."),
        "mutants": {"type": "array", "items": mutant},
    }));
    let test = object(&json!({
        "id": text(), "name": text(), "traces": count("The traces on which it passes as they are."),
        "killed": count("The mutants on which it failed."),
        "alone": count("Those of them on which no other test failed."),
    }));
    object(&json!({
        "schemaVersion": {"const": 1}, "killed": count("Mutants on which a test failed."), "total": count("All mutants."),
        "score": {"type": "number", "minimum": 0, "maximum": 100, "description": "Of `killed` in `total`, in percent, rounded down."},
        "minScore": {"type": ["integer", "null"], "minimum": 0, "maximum": 100, "description": "That of `--min-score`."},
        "tests": {"type": "array", "items": test}, "traces": {"type": "array", "items": trace},
    }))
}
