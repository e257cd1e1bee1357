//! The page of errors.

use std::{fmt::Write, fs, path::Path};

use clap::{Command, error::ErrorKind};
use model::{ErrorCode, ErrorPage};

use super::MADE;
use crate::args;

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

/// What pages name can be typed: commands, and flags of one of them. Placeholders are no values.
#[test]
fn pages_name_commands_and_flags_that_exist() {
    let root = args::command(|_| false);
    let is_command = |word: &str| root.find_subcommand(word).is_some();
    let mut commands = 0;
    for code in ErrorCode::ALL {
        let ErrorPage { message, cause, advice } = code.page();
        for span in
            [message, cause, advice].iter().flat_map(|text| text.split('`').skip(1).step_by(2))
        {
            let words: Vec<_> = span.split(' ').skip_while(|word| *word == crate::NAME).collect();
            let Some(first) = words.first() else { continue };
            if is_command(first) {
                commands += 1;
                let typed = [&[crate::NAME], words.as_slice()].concat();
                let parsed = root.clone().try_get_matches_from(typed);
                let wrong = parsed.err().map(|error| error.kind());
                let is_wrong = matches!(
                    wrong,
                    Some(ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand)
                );
                assert!(!is_wrong, "{code}: `{span}`");
            } else if *first == "--" {
                // What is behind it is a command of the user.
            } else if first.starts_with("--") {
                assert!(has_flag(&root, first), "{code}: `{span}`");
            } else {
                let is_unknown = words.len() < span.split(' ').count() && *first != "COMMAND";
                assert!(!is_unknown, "{code}: `{span}`");
            }
        }
    }
    assert!(commands > 20, "{commands}");
}

fn has_flag(command: &Command, flag: &str) -> bool {
    let name = flag.trim_start_matches('-');
    command.get_arguments().any(|arg| arg.get_long() == Some(name))
        || command.get_subcommands().any(|below| has_flag(below, flag))
}
