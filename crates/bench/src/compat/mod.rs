//! `cargo xtask compat`: the predecessor's own material, held against this language.
//!
//! `--corpus DIR` compiles real documents, `--verdicts DIR` compares measured answers, such as those of
//! `data/verdicts`. Deliberately absent: the documents, which are read where they lie.

pub mod corpus;
pub mod verdicts;

use std::path::Path;

use anyhow::{Result, bail};

/// What was found, in words for people; an error where something is not as it has to be.
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
