//! The page of the checks of `doctor`, from the table that the command prints by.

use std::fmt::Write;

use super::{
    MADE,
    table::{code, table},
};
use crate::doctor::{CHECKS, CheckGroup};

const GROUPS: &[(CheckGroup, &str, &str)] = &[
    (CheckGroup::Machine, "This machine", "`qualitytrace doctor` looks at what a local run needs."),
    (
        CheckGroup::Request,
        "A system under test",
        "`qualitytrace doctor URL`, `doctor URL -- COMMAND` and `doctor -- COMMAND` send one traced GET request, receive the spans, and \
         state what is missing of the trace and why. COMMAND is started as by `run`. Without a URL, the URL of `--ready` is requested, \
         else `/` of the one port on which COMMAND listens.",
    ),
    (
        CheckGroup::Server,
        "A server",
        "`qualitytrace doctor --server URL` and `doctor --context NAME` look at what is between this machine and a server.",
    ),
];

/// Returns the page.
pub(super) fn page() -> String {
    let mut text = format!(
        "# Checks of `doctor`

{MADE}
`qualitytrace doctor` prints a line for each check: ✔ is fine, `!` a warning, ✘ an error; below a warning or an error, what to do, and a page
about it. Errors come first. The exit code is 1 if there is an error. `--format json` prints the same, with the names of errors. It stores
nothing, and prints no secret.

"
    );
    for (group, title, about) in GROUPS {
        let rows = CHECKS.iter().filter(|row| row.group == *group).map(|row| {
            let page = row
                .page
                .strip_prefix("reference/")
                .map_or(format!("../{}", row.page), str::to_owned);
            let (file, _) = row.page.split_once('#').unwrap_or((row.page, ""));
            [code(row.name), row.about.to_owned(), format!("[{file}]({page})")]
        });
        let rows: Vec<_> = rows.collect();
        let table = table(["check", "what it looks at", "more"], &rows);
        let _written = write!(text, "## {title}\n\n{about}\n\n{table}");
    }
    text.trim_end().to_owned() + "\n"
}
