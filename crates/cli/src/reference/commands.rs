//! The page of commands, from the description of the command line that `--help` prints too.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command};

use super::{
    MADE,
    table::{code, sentence, table},
};
use crate::args;

/// The arguments that every command for a server has, in their order.
const SERVER: &[&str] = &["server", "context", "token", "ca", "plain-http", "project"];
/// What every command has.
const ALL: &[&str] = &["profile", "trust", "help", "version"];

const HEAD: [&str; 3] = ["", "meaning", "variable"];

/// Returns the page.
pub(super) fn page() -> String {
    let mut root = args::command(|_| false);
    root.build();
    let mut text = format!("# Commands\n\n{MADE}");
    text.push_str(
        "
`qualitytrace COMMAND --help` prints what is here. A variable stands for its flag where the flag is not given; an empty one stands
for nothing. [`qualitytrace.toml`](project-file.md) has defaults of flags: a flag comes first, then its variable, a profile, the
file, and the default.

| exit code | meaning |
| --- | --- |
| 0 | everything that was requested holds |
| 1 | something was shown not to hold: a test failed, documents differ |
| 2 | usage, configuration or document error; nothing was tested |
| 3 | neither was shown: a verdict is inconclusive, or a server or another part could not be reached |
| 130, 143 | Ctrl-C or SIGTERM ended it |

",
    );
    let every: Vec<_> = root.get_arguments().filter(|arg| ALL.contains(&name(arg))).collect();
    let _written = write!(text, "## Flags of every command\n\n{}", rows(&every));
    if let Some(list) = root.find_subcommand("list") {
        let server: Vec<_> =
            list.get_arguments().filter(|arg| SERVER.contains(&name(arg))).collect();
        let _written = write!(text, "## Flags of commands for a server\n\n{}", rows(&server));
    }
    for command in root.get_subcommands() {
        add(&mut text, command, command.get_name());
    }
    text.trim_end().to_owned() + "\n"
}

/// Adds a command, and those below it.
fn add(text: &mut String, command: &Command, path: &str) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let _written = write!(text, "## {path}\n\n");
    let about = command.get_long_about().or_else(|| command.get_about());
    text.push_str(&prose(&about.map(ToString::to_string).unwrap_or_default()));
    let below: Vec<_> = command.get_subcommands().filter(|it| it.get_name() != "help").collect();
    if below.is_empty() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let _written = write!(text, "```text\n{usage}\n```\n\n");
        text.push_str(&arguments(command));
    }
    let examples = command.get_after_long_help().or_else(|| command.get_after_help());
    text.push_str(&prose(&examples.map(ToString::to_string).unwrap_or_default()));
    for command in below {
        add(text, command, &format!("{path} {}", command.get_name()));
    }
}

/// Returns the arguments of a command by their headings.
fn arguments(command: &Command) -> String {
    let shown = |arg: &&Arg| !arg.is_hide_set() && !ALL.contains(&name(arg));
    let (server, own): (Vec<_>, Vec<_>) = command
        .get_arguments()
        .filter(shown)
        .partition(|arg| arg.get_help_heading() == Some("Server") && SERVER.contains(&name(arg)));
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in &own {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    let mut text = String::new();
    for heading in headings {
        let below: Vec<_> =
            own.iter().copied().filter(|arg| arg.get_help_heading() == heading).collect();
        if let Some(heading) = heading {
            let _written = write!(text, "{heading}:\n\n");
        }
        text.push_str(&rows(&below));
    }
    if server.len() == SERVER.len() {
        text.push_str(
            "And the [flags of commands for a server](#flags-of-commands-for-a-server).\n\n",
        );
    } else {
        text.push_str(&rows(&server));
    }
    text
}

fn rows(args: &[&Arg]) -> String {
    let rows: Vec<_> =
        args.iter().map(|arg| [code(&form(arg)), meaning(arg), variable(arg)]).collect();
    table(HEAD, &rows)
}

fn name(arg: &Arg) -> &str {
    arg.get_id().as_str()
}

/// Returns how it is typed.
fn form(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default();
    let values: Vec<_> = values.iter().map(|value| format!("<{value}>")).collect();
    let takes = !matches!(
        arg.get_action(),
        ArgAction::SetTrue
            | ArgAction::Help
            | ArgAction::HelpLong
            | ArgAction::HelpShort
            | ArgAction::Version
    );
    let value = if takes { values.join(" ") } else { String::new() };
    let flag = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => return value,
    };
    format!("{flag} {value}").trim_end().to_owned()
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let mut parts = vec![sentence(&help.map(ToString::to_string).unwrap_or_default())];
    let values: Vec<_> = match arg.get_action() {
        ArgAction::SetTrue => Vec::new(),
        _ => arg.get_possible_values().into_iter().filter(|it| !it.is_hide_set()).collect(),
    };
    if !values.is_empty() && !arg.is_hide_possible_values_set() {
        let values: Vec<_> = values
            .iter()
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({help})", value.get_name()),
                None => code(value.get_name()),
            })
            .collect();
        parts.push(format!("One of {}.", values.join(", ")));
    }
    let defaults: Vec<_> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && !matches!(arg.get_action(), ArgAction::SetTrue) {
        parts.push(format!("Default: `{}`.", defaults.join(" ")));
    }
    let is_stated = parts.iter().any(|part| part.contains("several"));
    if matches!(arg.get_action(), ArgAction::Append) && !is_stated && !arg.is_last_set() {
        parts.push("Several times for several.".to_owned());
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

fn variable(arg: &Arg) -> String {
    code(&arg.get_env().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
}

/// Returns a text of `--help` as Markdown: indented lines are commands.
fn prose(help: &str) -> String {
    let mut text = String::new();
    let mut is_command = false;
    for line in help.trim_end().lines() {
        let indented = line.starts_with("  ");
        if indented != is_command {
            text.push_str(if indented { "\n```sh\n" } else { "```\n\n" });
            is_command = indented;
        }
        let _written = writeln!(text, "{}", line.strip_prefix("  ").unwrap_or(line));
    }
    if is_command {
        text.push_str("```\n");
    }
    let text = text.replace("\n\n\n", "\n\n");
    match text.trim() {
        "" => String::new(),
        text => format!("{text}\n\n"),
    }
}
