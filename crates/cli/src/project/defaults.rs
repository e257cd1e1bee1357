//! Values of the project file as defaults of flags.

use std::path::Path;

use clap::{ArgMatches, Command};
use model::ErrorCode;
use server::config::Environment;

use super::{FILE, ProjectFile, ProjectValue, keys::Destination, trust};
use crate::{
    args::typed::{is_given, typed},
    exit::Exit,
    terminal::Terminal,
};

/// Returns the program with the values of the project file as defaults, for the command that is typed.
pub(crate) fn prepare(
    command: Command,
    (typed, folder): (Vec<std::ffi::OsString>, &Path),
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Command, Exit> {
    // What is wrong with the command line is reported when it is parsed for good.
    let parsed = command.clone().ignore_errors(true).try_get_matches_from(typed);
    let Ok(root) = parsed else { return Ok(command) };
    let (path, matches) = innermost(&root);
    let innermost = path.iter().try_fold(&command, |command, name| command.find_subcommand(name));
    let has =
        |id: &str| innermost.is_some_and(|it| it.get_arguments().any(|arg| arg.get_id() == id));
    let destination = destination(&path, |id| has(id) && is_given(matches, id), has);
    if !super::KEYS.iter().any(|key| key.is_of(&path, destination) && has(key.flag)) {
        return without_effect(&path, matches, terminal).map(|()| command);
    }
    let profile = matches.get_one::<String>("profile");
    let Some(file) = ProjectFile::find(folder, profile.map(String::as_str), terminal)? else {
        return Ok(command);
    };
    let is_used = |value: &&ProjectValue| {
        value.key.is_of(&path, destination)
            && has(value.key.flag)
            && !value.texts.is_empty()
            && !is_given(matches, value.key.flag)
    };
    let used: Vec<_> = file.values.iter().filter(is_used).collect();
    trust::check(&file, &used, matches.get_flag("trust"), (environment, terminal))?;
    let path: Vec<_> = path.into_iter().map(str::to_owned).collect();
    Ok(with(command, &path, &used))
}

/// Refuses flags about the project file where the command takes nothing from it.
fn without_effect(path: &[&str], matches: &ArgMatches, terminal: &Terminal) -> Result<(), Exit> {
    let shows_profile = path == ["project", "show"];
    let flags = if shows_profile { &["trust"][..] } else { &["profile", "trust"] };
    let Some(flag) = typed(matches, flags) else { return Ok(()) };
    terminal.error(ErrorCode::Usage, format_args!(
        "`--{flag}` has no effect on `qualitytrace {}`, which takes nothing from `{FILE}`: leave it out",
        path.join(" ")
    ));
    Err(Exit::Refused)
}

/// Returns the command with defaults, along the path of subcommands.
fn with(command: Command, path: &[String], used: &[&ProjectValue]) -> Command {
    match path {
        // Not `mut_arg`, which moves an argument behind all others.
        [] => command.mut_args(|arg| {
            let value = used.iter().find(|value| arg.get_id() == value.key.flag);
            let Some(value) = value else { return arg };
            arg.required(false).default_values(value.texts.clone())
        }),
        [first, rest @ ..] => command.mut_subcommand(first, |below| with(below, rest, used)),
    }
}

fn destination(
    path: &[&str],
    is_given: impl Fn(&str) -> bool,
    has: impl Fn(&str) -> bool,
) -> Destination {
    // `shape` reads a file, unless it is given a run.
    let is_of_file = has("run") && !is_given("run");
    match path {
        _ if is_given("server") || is_given("context") => Destination::Named,
        ["run"] | ["doctor"] => Destination::Here,
        _ if is_of_file => Destination::Here,
        _ => Destination::Default,
    }
}

fn innermost(root: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let (mut path, mut matches) = (Vec::new(), root);
    while let Some((name, below)) = matches.subcommand() {
        path.push(name);
        matches = below;
    }
    (path, matches)
}
