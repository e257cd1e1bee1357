//! The statements of the database crate, read from its checked queries. Never a copy, which could drift.

use std::fs;

use anyhow::{Result, bail};
use serde_json::Value;

/// The folder of the checked queries.
const CHECKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../db/.sqlx");

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SqlStatement {
    /// The text as executed.
    pub(crate) text: String,
    /// The text on one line, to be identified by.
    pub(crate) line: String,
}

/// Returns all statements, sorted by their lines.
pub(crate) fn all() -> Result<Vec<SqlStatement>> {
    let mut all = Vec::new();
    for file in fs::read_dir(CHECKED)? {
        let checked: Value = serde_json::from_slice(&fs::read(file?.path())?)?;
        let text = checked["query"].as_str().unwrap_or_default().to_owned();
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        all.push(SqlStatement { text, line });
    }
    all.sort_by(|one, other| one.line.cmp(&other.line));
    Ok(all)
}

/// Returns the only statement that has these words in its line.
pub(crate) fn with<'a>(all: &'a [SqlStatement], words: &str) -> Result<&'a SqlStatement> {
    let mut found = all.iter().filter(|statement| statement.line.contains(words));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => bail!("no statement of the record has the words `{words}`"),
        (Some(_), Some(_)) => bail!("several statements of the record have the words `{words}`"),
    }
}
