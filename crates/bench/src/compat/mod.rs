//! `cargo xtask compat`: evaluates the predecessor's own material with this language.
//!
//! `--corpus DIR` compiles real documents, `--verdicts DIR` compares recorded results, such as those of `data/verdicts`.
//! Deliberately absent: the documents, which are read from their own folder.

pub mod corpus;
pub mod verdicts;

use std::path::Path;

use anyhow::{Result, bail};

/// Returns the findings as text; an error where a result is not as expected.
pub fn run(arguments: &[String]) -> Result<String> {
    let mut found = String::new();
    let (pairs, rest) = arguments.as_chunks();
    for [mode, folder] in pairs {
        found.push_str(&match mode.as_str() {
            "--corpus" => corpus::run(Path::new(folder))?,
            "--verdicts" => verdicts::run(Path::new(folder))?,
            _ => bail!("`{mode}` is not known: expected `--corpus DIR` or `--verdicts DIR`"),
        });
    }
    if pairs.is_empty() || !rest.is_empty() {
        bail!("expected `--corpus DIR`, `--verdicts DIR` or both");
    }
    Ok(found)
}
