//! `project show`: what holds, and where it comes from.

use std::path::Path;

use clap::{Arg, Command};
use serde_json::json;
use server::config::Environment;

use super::{KEYS, ProjectFile, ProjectKey};
use crate::{
    args::ProjectShow,
    exit::Exit,
    listing::{ListedRow, Listing},
    terminal::Terminal,
};

/// Prints each key of the project file with its value and its origin.
pub(crate) fn show(
    args: &ProjectShow,
    (program, folder, profile): (&Command, &Path, Option<&str>),
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let file = ProjectFile::find(folder, profile, terminal)?;
    let row = |key: &ProjectKey| {
        let (value, from) = effective(key, file.as_ref(), (program, environment));
        let name = key.full_name();
        ListedRow {
            cells: vec![
                name.clone(),
                value.clone().unwrap_or_else(|| "-".to_owned()),
                from.clone(),
            ],
            value: json!({"key": name, "value": value, "from": from}),
            name,
        }
    };
    let rows = KEYS.iter().map(row).collect();
    Listing { heads: &["KEY", "VALUE", "FROM"], rows, none: "no keys" }
        .print(args.output.format, terminal);
    Ok(Exit::Passed)
}

/// Returns the value and its origin: a variable, a profile, the file, or the program itself.
fn effective(
    key: &ProjectKey,
    file: Option<&ProjectFile>,
    (program, environment): (&Command, &Environment),
) -> (Option<String>, String) {
    let flag = flag(key, program);
    let variable = flag.and_then(Arg::get_env).and_then(|name| name.to_str());
    let set = variable.and_then(|name| Some((name, environment.get(name)?)));
    if let Some((name, value)) = set.filter(|(_, value)| !value.is_empty()) {
        return (Some(value.to_owned()), format!("variable {name}"));
    }
    if let Some((file, value)) = file.and_then(|file| Some((file, file.value(key)?))) {
        let place = format!("{}:{}", file.path.display(), value.line);
        let from = match &value.profile {
            Some(profile) => format!("profile {profile}, {place}"),
            None => place,
        };
        return (Some(value.texts.join(" ")), from);
    }
    let default = flag.map(Arg::get_default_values).unwrap_or_default();
    let default: Vec<_> = default.iter().filter_map(|text| text.to_str()).collect();
    ((!default.is_empty()).then(|| default.join(" ")), "default".to_owned())
}

fn flag<'a>(key: &ProjectKey, program: &'a Command) -> Option<&'a Arg> {
    let command = if key.section == "server" { "apply" } else { "run" };
    let command = program.find_subcommand(command)?;
    command.get_arguments().find(|arg| arg.get_id() == key.flag)
}
