//! An outcome for programs.
//!
//! One object on one line, so that reports can be piped, appended to a file and read line by line; `jq .` makes it
//! readable. Several outcomes are several lines. Nothing is shortened. Deliberately absent: reading it back, which is
//! the reader's matter.

use model::Outcome;
use serde::Serialize;

use crate::text::{begins_command, is_hidden};

/// The version of the forms that [`json`] and [`ndjson`](crate::ndjson()) write.
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
    line(&Report { schema_version: SCHEMA_VERSION, outcome })
}

/// A value of ours as one line of JSON.
pub(crate) fn line(value: &impl Serialize) -> String {
    let plain = serde_json::to_string(value)
        .expect("it has only fields with names and nothing in it refuses to be written");
    let mut line = escape_hidden(&plain);
    line.push('\n');
    line
}

/// Escapes what JSON itself would let through to a terminal, such as U+009B, which starts a control sequence, and what
/// a pipeline takes for a command.
///
/// Outside its strings JSON is visible ASCII, and within them no such character follows a backslash; so each can be
/// replaced where it stands, and the value stays the same.
fn escape_hidden(json: &str) -> String {
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
