//! Values of the project file as defaults of flags.

use std::{ffi::OsString, path::Path};

use clap::{ArgMatches, Command};
use model::ErrorCode;
use server::config::Environment;

use super::{FILE, KEYS, ProjectFile, ProjectKey, ProjectValue, keys::Destination};
use crate::{
    args::typed::{is_given, typed},
    exit::Exit,
    terminal::Terminal,
    trust::Consent,
};

/// A command as it was typed, before the project file gives it defaults.
pub(super) struct TypedCommand {
    path: Vec<String>,
    /// The ids of its flags and arguments.
    flags: Vec<String>,
    destination: Destination,
    root: ArgMatches,
}

/// Returns the program with the values of the project file as defaults, for the command that is typed.
pub(crate) fn prepare(
    program: Command,
    (typed, folder): (Vec<OsString>, &Path),
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Command, Exit> {
    let Some(command) = TypedCommand::read(&program, typed) else { return Ok(program) };
    if !KEYS.iter().any(|key| command.takes(key)) {
        return without_effect(&command, terminal).map(|()| program);
    }
    let matches = innermost(&command.root).1;
    let Some(file) = ProjectFile::find(folder, command.profile(), terminal)? else {
        return Ok(program);
    };
    let used = command.used(&file);
    let consent = Consent::new(matches.get_flag("trust"), environment);
    consent.require((&file.folder, &heading(&file)), trusted_lines(&used), terminal)?;
    Ok(command.with_defaults(program, &used))
}

impl TypedCommand {
    /// Reads what is typed. What is wrong with it is reported when it is parsed for good.
    pub(super) fn read(program: &Command, typed: Vec<OsString>) -> Option<Self> {
        let parsed = program.clone().ignore_errors(true).try_get_matches_from(typed);
        let root = parsed.ok()?;
        let (path, matches) = innermost(&root);
        let innermost =
            path.iter().try_fold(program, |command, name| command.find_subcommand(name));
        let flags = innermost.into_iter().flat_map(Command::get_arguments);
        let flags: Vec<_> = flags.map(|arg| arg.get_id().to_string()).collect();
        let has = |id: &str| flags.iter().any(|flag| flag == id);
        let destination = destination(&path, |id| has(id) && is_given(matches, id), has);
        let path = path.into_iter().map(str::to_owned).collect();
        Some(Self { path, flags, destination, root })
    }

    /// Whether a key is a default of it.
    pub(super) fn takes(&self, key: &ProjectKey) -> bool {
        let path: Vec<_> = self.path.iter().map(String::as_str).collect();
        key.is_of(&path, self.destination) && self.has(key)
    }

    /// Whether it has the flag of a key.
    pub(super) fn has(&self, key: &ProjectKey) -> bool {
        self.flags.iter().any(|flag| flag == key.flag)
    }

    /// Returns the profile that is typed with it.
    pub(super) fn profile(&self) -> Option<&str> {
        innermost(&self.root).1.get_one::<String>("profile").map(String::as_str)
    }

    /// Returns the values of a file that it uses.
    pub(super) fn used<'a>(&self, file: &'a ProjectFile) -> Vec<&'a ProjectValue> {
        let matches = innermost(&self.root).1;
        let is_used = |value: &&ProjectValue| {
            self.takes(value.key) && !value.texts.is_empty() && !is_given(matches, value.key.flag)
        };
        file.values.iter().filter(is_used).collect()
    }

    /// Returns the program with these values as defaults of the command.
    pub(super) fn with_defaults(&self, program: Command, used: &[&ProjectValue]) -> Command {
        with(program, &self.path, used)
    }
}

fn heading(file: &ProjectFile) -> String {
    format!("`{}` comes with this repository, and has:", file.path.display())
}

/// Returns the values that need trust, each as one line.
fn trusted_lines(used: &[&ProjectValue]) -> Vec<String> {
    let needed = used.iter().filter(|value| value.key.is_trusted_only);
    let line = |value: &&ProjectValue| {
        let words: Vec<_> = value.texts.iter().map(|text| format!("{text:?}")).collect();
        format!("{} = {}", value.key.full_name(), words.join(" "))
    };
    needed.map(line).collect()
}

/// Refuses flags about the project file where the command takes nothing from it.
fn without_effect(command: &TypedCommand, terminal: &Terminal) -> Result<(), Exit> {
    let (path, matches) = innermost(&command.root);
    let flags = match path.as_slice() {
        ["project", "show"] => &["trust"][..],
        // Its document may need trust.
        ["store", "test"] => &["profile"],
        _ => &["profile", "trust"],
    };
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

/// Returns the path of the subcommand that was typed, and what was typed of it.
pub(super) fn innermost(root: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let (mut path, mut matches) = (Vec::new(), root);
    while let Some((name, below)) = matches.subcommand() {
        path.push(name);
        matches = below;
    }
    (path, matches)
}
