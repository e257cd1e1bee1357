//! An outcome for programs.
//!
//! One object on one line, so that reports can be piped, appended to a file and read line by line; `jq .` makes it
//! readable. Nothing is shortened. Deliberately absent: reading it back, which is the reader's matter.

use model::Outcome;
use serde::Serialize;

use crate::text::is_hidden;

/// The version of the form that [`json`] writes.
///
/// Raised when a field goes away or changes its meaning. A field that joins does not raise it, so readers should ignore
/// what they do not know.
pub const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    schema_version: u32,
    outcome: &'a Outcome,
}

/// Writes `{"schemaVersion":1,"outcome":{…}}` and a line break.
pub fn json(outcome: &Outcome) -> String {
    let report = Report { schema_version: SCHEMA_VERSION, outcome };
    let plain = serde_json::to_string(&report)
        .expect("an outcome has only fields with names and nothing in it refuses to be written");
    let mut line = escape_hidden(&plain);
    line.push('\n');
    line
}

/// Escapes what JSON itself would let through to a terminal, such as U+009B, which starts a control sequence.
///
/// Outside its strings JSON is visible ASCII, and within them no such character follows a backslash; so each can be
/// replaced where it stands, and the value stays the same.
fn escape_hidden(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}
