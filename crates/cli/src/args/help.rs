//! The list of commands: in five groups, for people who look for one.

use std::fmt::Write;

use clap::Command;

/// Commands that do alike things, and what.
type HelpLine = (&'static [&'static str], &'static str);

/// The groups, each with its commands.
const GROUPS: &[(&str, &[HelpLine])] = &[
    (
        "Write",
        &[
            (&["init"], "a first test, for the demo shop"),
            (&["project"], "the defaults of `qualitytrace.toml`"),
            (&["new"], "a test from a curl command and its trace"),
            (&["check"], "are documents right; judge a recorded trace"),
            (&["fmt"], "statements in their one form"),
            (&["lint"], "hold a trace against the analyzer's rules"),
            (&["explain"], "how a selector narrows a trace"),
        ],
    ),
    (
        "Run",
        &[
            (&["run"], "run tests, here or on a server"),
            (&["demo"], "a shop of five services to try it on"),
            (&["learn"], "commit what was learned of the system"),
        ],
    ),
    (
        "Compare",
        &[
            (&["shape"], "record shapes of traces, and compare them"),
            (&["mutate"], "test the tests"),
            (&["trend"], "the last runs of tests, and flaky ones"),
        ],
    ),
    (
        "Server",
        &[
            (&["login", "logout", "whoami", "context"], "servers and tokens of yours"),
            (&["apply"], "store documents; --diff, --prune"),
            (&["list", "get", "delete", "export"], "documents that a server keeps"),
            (&["history"], "the versions of a document"),
            (&["runs"], "list, view, watch, report, rejudge, stop"),
            (&["open"], "the web page of a run or test"),
            (&["api"], "any request, with your token"),
        ],
    ),
    (
        "Operate",
        &[
            (&["serve", "migrate"], "run the server; migrate its database"),
            (&["status", "doctor"], "is it ready; what keeps tests from working"),
            (&["config", "telemetry", "store"], "try out a configuration or a trace store"),
            (&["token", "session", "audit"], "who has access, and who changed what"),
            (&["schema", "completion", "man", "version"], "for editors and shells"),
        ],
    ),
];

/// The width of the column of names.
const NAMES: usize = 32;

const TEMPLATE: &str = "{about-with-newline}
{usage-heading} {usage}{after-help}

Options:
{options}
";

/// Returns the program with its commands in groups: a line each with `-h`, and with `--help` each command in its own words.
pub(super) fn grouped(root: Command) -> Command {
    let long = long(&root);
    root.help_template(TEMPLATE).after_help(short()).after_long_help(long)
}

/// Returns the program for `-h`, which has no variables and no headings: with `--help` they are there.
pub(crate) fn shortened(command: Command) -> Command {
    let plain = |arg: clap::Arg| arg.hide_env(true).help_heading(None::<&'static str>);
    command.mut_args(plain).mut_subcommands(shortened)
}

fn short() -> String {
    let mut text = String::new();
    for (name, lines) in GROUPS {
        let _written = writeln!(text, "{name}:");
        for (commands, about) in *lines {
            let _written = writeln!(text, "  {:NAMES$} {about}", commands.join(", "));
        }
    }
    text.trim_end().to_owned()
}

fn long(root: &Command) -> String {
    let mut text = String::new();
    for (name, lines) in GROUPS {
        let _written = writeln!(text, "{name}:");
        for command in lines.iter().flat_map(|(commands, _)| *commands) {
            let about = root.find_subcommand(command).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _written = writeln!(text, "  {command:12} {about}");
        }
        text.push('\n');
    }
    text + "`qualitytrace COMMAND --help` has more about each."
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Command, CommandFactory};

    use super::{super::Args, GROUPS, grouped, shortened};

    /// The columns and lines of a small terminal.
    const SCREEN: (usize, usize) = (80, 40);

    /// Returns how many lines of a screen a text takes.
    fn lines_of_screen(text: &str) -> usize {
        text.lines().map(|line| line.chars().count().div_ceil(SCREEN.0).max(1)).sum()
    }

    #[test]
    fn every_command_is_in_one_group() {
        let root = Args::command();
        let all = root.get_subcommands().filter(|it| !it.is_hide_set()).map(Command::get_name);
        let all: BTreeSet<_> = all.collect();
        let lines = GROUPS.iter().flat_map(|(_, lines)| *lines);
        let listed: Vec<_> = lines.flat_map(|(names, _)| *names).copied().collect();
        assert_eq!(listed.len(), all.len(), "{listed:?}");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), all);
    }

    #[test]
    fn the_short_help_fits_a_screen() {
        let help = grouped(Args::command()).render_help().to_string();
        assert!(help.lines().count() <= 40, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }

    #[test]
    fn the_short_help_of_every_command_fits_a_screen() {
        let mut root = shortened(grouped(Args::command()));
        root.build();
        let mut commands = vec![root];
        let mut long = Vec::new();
        while let Some(mut command) = commands.pop() {
            // That of clap has no `-h` of its own.
            let below = command.get_subcommands().filter(|it| it.get_name() != "help");
            commands.extend(below.cloned());
            let help = command.render_help().to_string();
            let lines = lines_of_screen(&help);
            if lines > SCREEN.1 {
                long.push(format!("{lines} lines:\n{help}"));
            }
        }
        assert!(long.is_empty(), "{}", long.join("\n"));
    }

    /// A heading is for all arguments behind it, up to the next one.
    #[test]
    fn no_argument_is_below_the_heading_of_others() {
        let of_others = [
            ("Server", &["server", "context", "token", "ca", "plain-http", "project"][..]),
            ("Variables", &["files", "variables", "secrets"]),
            ("Output", &["targets", "traces", "quiet", "verbose"]),
        ];
        let mut commands = vec![Args::command()];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            for arg in command.get_arguments() {
                let heading = of_others.iter().find(|it| Some(it.0) == arg.get_help_heading());
                let is_below = heading.is_none_or(|(_, ids)| ids.contains(&arg.get_id().as_str()));
                assert!(is_below, "{}: {}", command.get_name(), arg.get_id());
            }
        }
    }

    #[test]
    fn every_command_has_an_example() {
        let mut commands = vec![Args::command()];
        let mut bare = Vec::new();
        while let Some(command) = commands.pop() {
            let below: Vec<_> = command.get_subcommands().cloned().collect();
            let mut shown = command.clone();
            if below.is_empty() && !command.is_hide_set() {
                let help = shown.render_long_help().to_string();
                if !help.contains("Example") && !help.contains("  qualitytrace ") {
                    bare.push(command.get_name().to_owned());
                }
            }
            commands.extend(below);
        }
        assert_eq!(bare, Vec::<String>::new(), "commands without an example");
    }
}
