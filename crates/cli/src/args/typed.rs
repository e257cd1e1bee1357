//! Flags that have no effect beside others: they are refused where they were typed. A variable is for other commands too.

use clap::{ArgMatches, parser::ValueSource};

/// Returns why a flag that was typed would have no effect.
pub(crate) fn without_effect(matches: &ArgMatches) -> Option<String> {
    local_run(matches).or_else(|| token_of_database(matches))
}

/// A run without a server sends nothing to one.
fn local_run(matches: &ArgMatches) -> Option<String> {
    let run = matches.subcommand_matches("run")?;
    if names_server(run) {
        return None;
    }
    let flag = typed(run, &["token", "ca", "plain-http", "project"])?;
    Some(format!(
        "`--{flag}` is for a run on a server: name the server by `--server` or `--context`, or leave it out"
    ))
}

/// A token is created by a server, or in the database of a configuration.
fn token_of_database(matches: &ArgMatches) -> Option<String> {
    let create = matches.subcommand_matches("token")?.subcommand_matches("create")?;
    if is_given(create, "config") {
        let flag = typed(create, &["server", "context", "token", "ca", "plain-http"])?;
        return Some(format!(
            "`--config` names the database that gets the token, and `--{flag}` a server: leave one out"
        ));
    }
    if names_server(create) {
        return None;
    }
    let flag = typed(create, &["token", "ca", "plain-http"])?;
    Some(format!(
        "`--{flag}` is for a token that a server creates: name the server by `--server` or `--context`, or leave it out"
    ))
}

fn names_server(matches: &ArgMatches) -> bool {
    is_given(matches, "server") || is_given(matches, "context")
}

/// Whether a flag that the command has was typed, or is set by its variable.
pub(crate) fn is_given(matches: &ArgMatches, flag: &str) -> bool {
    matches!(matches.value_source(flag), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}

/// Returns the first of these flags that was typed.
pub(crate) fn typed(matches: &ArgMatches, flags: &[&'static str]) -> Option<&'static str> {
    let is_typed = |flag: &&str| matches.value_source(flag) == Some(ValueSource::CommandLine);
    flags.iter().copied().find(is_typed)
}
