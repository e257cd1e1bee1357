//! The page of errors.

use std::{fmt::Write, fs, path::Path};

use model::{ErrorCode, ErrorPage};

use super::MADE;

/// Where tests provoke errors by their names.
const TESTS: &[&str] = &[
    "crates/cli/tests/errors/cases.txt",
    "crates/cli/tests/errors/states.rs",
    "crates/server/tests/api.rs",
];

/// Returns the page.
pub(super) fn page() -> String {
    let mut text = format!(
        "# Errors

{MADE}
An error keeps its name when the words of its message change. Commands print it last, in brackets: `error: … [not-found]`. The API has
it as `code` of a problem, whose `type` is the path of its page on the server. Decide by names, not by words.

"
    );
    for code in ErrorCode::ALL {
        let ErrorPage { message, cause, advice } = code.page();
        let _written = write!(
            text,
            "## `{code}`\n\n{message}\n\n- **Cause:** {cause}\n- **What to do:** {advice}\n- **Test:** `{}`\n\n",
            test(*code).unwrap_or("none")
        );
    }
    text.trim_end().to_owned() + "\n"
}

/// Returns the file of the test that provokes an error.
fn test(code: ErrorCode) -> Option<&'static str> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    TESTS.iter().copied().find(|file| {
        let text = fs::read_to_string(root.join(file)).unwrap_or_default();
        let is_case = |line: &str| line.starts_with(&format!("{code}: "));
        let is_named = text.contains(&format!("\"{code}\"")) || text.contains(&format!("[{code}]"));
        is_named || text.lines().any(is_case)
    })
}

#[test]
fn a_test_provokes_every_error() {
    let all = ErrorCode::ALL.iter().copied();
    let without: Vec<_> = all.filter(|code| test(*code).is_none()).map(ErrorCode::as_str).collect();
    assert!(without.is_empty(), "no test: {without:?}");
}
