//! `project show`: what holds, and where it comes from.

use std::{ffi::OsString, path::Path};

use clap::{Arg, ArgMatches, Command, parser::ValueSource};
use serde_json::json;
use server::config::Environment;

use super::{
    KEYS, ProjectFile, ProjectKey, ProjectValue,
    defaults::{TypedCommand, innermost},
};
use crate::{
    NAME,
    args::{ProjectShow, typed::is_given},
    exit::Exit,
    listing::{ListedRow, Listing},
    terminal::Terminal,
};

/// A value and its origin.
type Effective = (Option<String>, String);

/// Prints keys of the project file, each with its value and its origin.
pub(crate) fn show(
    args: &ProjectShow,
    (program, folder, profile): (&Command, &Path, Option<&str>),
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let rows = if args.command.is_empty() {
        let file = ProjectFile::find(folder, profile, terminal)?;
        let of = |key| row(key, effective(key, file.as_ref(), (program, environment)));
        KEYS.iter().map(of).collect()
    } else {
        let typed = [NAME.into()].into_iter().chain(args.command.iter().cloned()).collect();
        of_command((program, typed), (folder, profile), terminal)?
    };
    Listing { heads: &["KEY", "VALUE", "FROM"], rows, none: "this command takes no keys" }
        .print(args.output.format, terminal);
    Ok(Exit::Passed)
}

fn row(key: &ProjectKey, (value, from): Effective) -> ListedRow {
    let name = key.full_name();
    ListedRow {
        cells: vec![name.clone(), value.clone().unwrap_or_else(|| "-".to_owned()), from.clone()],
        value: json!({"key": name, "value": value, "from": from}),
        name,
    }
}

/// Returns the keys that hold for a command, or whose flags are given to it. It is parsed as it would be to execute it.
fn of_command(
    (program, typed): (&Command, Vec<OsString>),
    (folder, profile): (&Path, Option<&str>),
    terminal: &Terminal,
) -> Result<Vec<ListedRow>, Exit> {
    // Help is no error.
    let refuse = |error: clap::Error| match error.use_stderr() {
        true => {
            terminal.usage(&error);
            Exit::Refused
        }
        false => {
            terminal.report(&error.to_string());
            Exit::Passed
        }
    };
    let Some(command) = TypedCommand::read(program, typed.clone()) else {
        let parsed = program.clone().try_get_matches_from(typed);
        return parsed.map(|_| Vec::new()).map_err(refuse);
    };
    let file = ProjectFile::find(folder, command.profile().or(profile), terminal)?;
    let used = file.as_ref().map(|file| command.used(file)).unwrap_or_default();
    let program = command.with_defaults(program.clone(), &used);
    let root = program.clone().try_get_matches_from(typed).map_err(refuse)?;
    let (path, matches) = innermost(&root);
    let innermost = path.iter().try_fold(&program, |command, name| command.find_subcommand(name));
    let mut rows = Vec::new();
    for key in KEYS.iter().filter(|key| command.has(key)) {
        let arg = innermost.and_then(|it| it.get_arguments().find(|arg| arg.get_id() == key.flag));
        if command.takes(key) || is_given(matches, key.flag) {
            let value = used.iter().copied().find(|value| value.key == key);
            let from = match matches.value_source(key.flag) {
                Some(ValueSource::CommandLine) => arg.map(shown).unwrap_or_default(),
                Some(ValueSource::EnvVariable) => variable(arg.and_then(Arg::get_env)),
                _ => origin(file.as_ref(), value),
            };
            rows.push(row(key, (text(matches, key), from)));
        }
    }
    Ok(rows)
}

/// Returns a value as it was typed, or would be.
fn text(matches: &ArgMatches, key: &ProjectKey) -> Option<String> {
    let words = matches.get_raw(key.flag)?.map(|word| word.to_string_lossy().into_owned());
    Some(words.collect::<Vec<_>>().join(" "))
}

/// Returns the name of a flag, or of an argument.
fn shown(arg: &Arg) -> String {
    match arg.get_long() {
        Some(flag) => format!("flag --{flag}"),
        None => format!("argument {}", arg.get_value_names().unwrap_or_default().join(" ")),
    }
}

/// Returns the value and its origin: a variable, a profile, the file, or the program itself.
fn effective(
    key: &ProjectKey,
    file: Option<&ProjectFile>,
    (program, environment): (&Command, &Environment),
) -> Effective {
    let flag = flag(key, program);
    let name = flag.and_then(Arg::get_env);
    let set = name.and_then(|name| environment.get(name.to_str()?));
    if let Some(value) = set.filter(|value| !value.is_empty()) {
        return (Some(value.to_owned()), variable(name));
    }
    let value = file.and_then(|file| file.value(key));
    if let Some(value) = value {
        return (Some(value.texts.join(" ")), origin(file, Some(value)));
    }
    let default = flag.map(Arg::get_default_values).unwrap_or_default();
    let default: Vec<_> = default.iter().filter_map(|text| text.to_str()).collect();
    ((!default.is_empty()).then(|| default.join(" ")), origin(file, None))
}

fn variable(name: Option<&std::ffi::OsStr>) -> String {
    format!("variable {}", name.unwrap_or_default().to_string_lossy())
}

/// Returns where a value of the file is; without one, the program itself has it.
fn origin(file: Option<&ProjectFile>, value: Option<&ProjectValue>) -> String {
    let Some((file, value)) = file.zip(value) else { return "default".to_owned() };
    let place = format!("{}:{}", file.path.display(), value.line);
    match &value.profile {
        Some(profile) => format!("profile {profile}, {place}"),
        None => place,
    }
}

fn flag<'a>(key: &ProjectKey, program: &'a Command) -> Option<&'a Arg> {
    let command = if key.section == "server" { "apply" } else { "run" };
    let command = program.find_subcommand(command)?;
    command.get_arguments().find(|arg| arg.get_id() == key.flag)
}
