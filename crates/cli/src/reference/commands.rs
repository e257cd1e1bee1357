//! The page of commands, from the description of the command line that `--help` prints too.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command};

use super::{
    MADE,
    table::{code, sentence, table},
};
use crate::{args, exit};

/// The arguments that every command for a server has, in their order.
const SERVER: &[&str] = &["server", "context", "token", "ca", "plain-http", "project"];
/// What every command has.
const ALL: &[&str] = &["profile", "trust", "help", "version"];

/// The variables that are not of a flag, and not a key of the server.
pub(super) const VARIABLES: &[(&str, &str)] = &[
    ("NO_COLOR", "If it is not empty, nothing is coloured; a pipe never gets colour"),
    (
        "CI",
        "If it is not empty, nothing is coloured, no progress is shown live, trust is not prompted for, and `shape accept` is refused",
    ),
    ("COLUMNS", "The width of tables [default: that of the terminal; a pipe has none]"),
    (
        "XDG_CONFIG_HOME",
        "The folder with the folder `qualitytrace`, which has contexts, what is trusted, and perhaps the server's configuration",
    ),
    ("HOME", "Without `XDG_CONFIG_HOME`, that folder is its `.config`"),
    ("SSL_CERT_FILE", "A file with the trusted authorities [default: those of this machine]"),
    ("SSL_CERT_DIR", "A folder with the trusted authorities [default: those of this machine]"),
    (
        "HTTP_PROXY",
        "The proxy for `http://` targets of triggers and trace stores in local runs, or `http_proxy`; a server uses none",
    ),
    ("HTTPS_PROXY", "The same for `https://`, or `https_proxy`"),
    ("ALL_PROXY", "The same for both, or `all_proxy`"),
    ("NO_PROXY", "The hosts without a proxy, or `no_proxy`"),
    ("NOTIFY_SOCKET", "Where a server reports its start, reload and stop, as systemd sets it"),
    (
        "WATCHDOG_USEC",
        "How often a server has to report that it is alive, in microseconds, as systemd sets it",
    ),
    ("WATCHDOG_PID", "The process that this is for, as systemd sets it"),
    (
        "STATE_DIRECTORY",
        "The folder of a server's data where `server.dataDirectory` is not set, as systemd sets it",
    ),
    (
        "OTEL_*",
        "Those of OpenTelemetry: for the server's own telemetry, `demo`, and the program that `run` starts",
    ),
];

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

",
    );
    let exits: Vec<_> =
        exit::all().into_iter().map(|(code, meaning)| [code.to_string(), meaning]).collect();
    text.push_str(&table(["exit code", "meaning"], &exits));
    text.push_str(
        "Where a command does not handle a signal itself, the signal ends it: a shell then shows 130 or 143 too.\n\n",
    );
    let others: Vec<_> =
        VARIABLES.iter().map(|(name, about)| [code(name), sentence(about)]).collect();
    let _written =
        write!(text, "## Other variables\n\n{}", table(["variable", "meaning"], &others));
    let every: Vec<_> = root.get_arguments().filter(|arg| is_of_all(arg)).collect();
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
    let shown = |arg: &&Arg| !arg.is_hide_set() && !is_of_all(arg);
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

/// Whether every command has it. A command may have a `--version` of its own, that of a document.
fn is_of_all(arg: &Arg) -> bool {
    let is_own = name(arg) == "version" && !matches!(arg.get_action(), ArgAction::Version);
    ALL.contains(&name(arg)) && !is_own
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
    let help = help.map(ToString::to_string).unwrap_or_default();
    // A cell has no paragraphs.
    let mut parts = vec![sentence(&help.replace("\n\n", " "))];
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
