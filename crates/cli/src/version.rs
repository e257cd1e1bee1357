//! The version of this program: of which commit and day it is, for which target, and which formats it writes and reads.

use std::env;

use serde_json::{Value, json};

use crate::{NAME, args, args::OutputFormat, exit::Exit, listing, terminal::Terminal};

/// The version with commit, day and target: `0.1.0 (a1b2c3d4 2026-11-20 x86_64-unknown-linux-musl)`. A development build has `dev`
/// in place of commit and day.
pub(crate) const LONG: &str = env!("PROGRAM_VERSION");

/// The version alone.
pub(crate) const SHORT: &str = env!("CARGO_PKG_VERSION");

/// Prints the version of this program.
pub(crate) fn version(args: &args::Version, terminal: &Terminal) -> Exit {
    match args.output.format {
        OutputFormat::Name => terminal.result(SHORT),
        OutputFormat::Table => terminal.result(&format!("{NAME} {LONG}")),
        format => listing::value(&value(), format, terminal),
    }
    Exit::Passed
}

/// Returns what programs read of the version.
fn value() -> Value {
    json!({
        "version": SHORT,
        "commit": known(env!("PROGRAM_COMMIT")),
        "date": known(env!("PROGRAM_DATE")),
        "target": env!("PROGRAM_TARGET"),
        "system": env::consts::OS,
        "machine": env::consts::ARCH,
        "api": server::API_VERSION,
        "reportSchema": report::SCHEMA_VERSION,
        "documentFormat": lang::DOCUMENT_FORMAT,
    })
}

/// Returns a text that a development build does not have.
fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{SHORT, known, value};

    #[test]
    fn the_promises_name_the_versions_of_this_program() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/stability.md");
        let page = fs::read_to_string(page).expect("the page is there");
        let formats = format!(
            "API `{}`, report schema {}, document format {}",
            server::API_VERSION,
            report::SCHEMA_VERSION,
            lang::DOCUMENT_FORMAT
        );
        let compiler = format!("`rust-version` is {}", env!("CARGO_PKG_RUST_VERSION"));
        for words in [formats, compiler] {
            assert!(page.contains(&words), "`{words}` is not on the page");
        }
    }

    #[test]
    fn commit_and_day_are_both_known_or_both_unknown() {
        let value = value();
        assert_eq!(value["version"], SHORT);
        assert_eq!(value["commit"].is_null(), value["date"].is_null(), "{value}");
        assert_eq!((known(""), known("a1")), (None, Some("a1")));
    }
}
