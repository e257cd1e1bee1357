//! An outcome for programs.
//!
//! One object on one line, so that reports can be piped, appended to a file and read line by line; `jq .` formats it.
//! Several outcomes are several lines. Nothing is truncated. Deliberately absent: a parser for it, which is the reader's
//! task.

use model::Outcome;
use serde::Serialize;

use crate::{
    format::Format,
    text::{begins_command, is_hidden},
};

/// For programs that need all fields.
pub(crate) const JSON: Format = Format {
    // One object on each line.
    media_type_of_several: Some("application/x-ndjson"),
    accepted_as: &["application/json"],
    part: Some(|outcome, _| json(outcome)),
    ..Format::new("json", "application/json", |_| String::new())
};

/// The version of the schema of `json` and `ndjson`.
///
/// It increases when a field is removed or changes its meaning. A new field does not increase it, so readers should
/// ignore unknown fields.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    schema_version: u32,
    outcome: &'a Outcome,
}

/// Writes `{"schemaVersion":1,"outcome":{…}}` and a line break.
fn json(outcome: &Outcome) -> String {
    line(&Report { schema_version: SCHEMA_VERSION, outcome })
}

/// Serializes a value of ours as one line of JSON.
pub(crate) fn line(value: &impl Serialize) -> String {
    let plain = serde_json::to_string(value)
        .expect("it has only fields with names and nothing in it refuses to be written");
    let mut line = harmless_json(&plain);
    line.push('\n');
    line
}

/// Escapes, in one line of JSON, characters that JSON allows but that affect a terminal, such as U+009B, which starts a control sequence, and
/// text that a CI pipeline would parse as a command.
///
/// Outside its strings JSON is visible ASCII, and within them no such character follows a backslash; so each can be
/// replaced in place, and the value stays the same.
pub fn harmless_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len() + 1);
    let mut before = None;
    for c in json.chars() {
        if is_hidden(c) || begins_command(before, c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
        before = Some(c);
    }
    escaped
}
