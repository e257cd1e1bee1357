//! The keys of the project file: each is a flag of the same name.

use std::path::{Component, Path};

use model::Project;
use serde_json::{Map, Value, json};
use source::Item;
use url::Url;

use crate::args::{Ready, Target, address};

/// The tables of the file; the first is the root.
pub(super) const SECTIONS: &[&str] = &["", "system", "run", "server"];

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProjectKey {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    /// The id of the flag or argument.
    pub(super) flag: &'static str,
    pub(super) kind: KeyKind,
    /// Which commands have it.
    commands: Commands,
    /// Whether it can execute a program, or send something somewhere: such a value is used once the file is trusted.
    pub(super) is_trusted_only: bool,
    pub(super) about: &'static str,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// Files and folders below the folder of the file.
    Paths,
    Path,
    /// A program and its arguments.
    Command,
    Ready,
    Duration,
    Number {
        least: u32,
        most: u32,
    },
    Addresses,
    Reports,
    Url,
    Project,
}

/// Where a command sends its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// To no server: a run here, a trace in a file.
    Here,
    /// To the server that a flag or a variable names.
    Named,
    /// To the server that is not named.
    Default,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Commands {
    /// Those that read tests.
    Tests,
    /// `run`.
    Run,
    /// Those that send requests to a server; `run` is one with `--server` only.
    Server,
}

const fn key(
    (section, name): (&'static str, &'static str),
    flag: &'static str,
    (kind, commands): (KeyKind, Commands),
    about: &'static str,
) -> ProjectKey {
    ProjectKey { section, name, flag, kind, commands, is_trusted_only: false, about }
}

const fn trusted(key: ProjectKey) -> ProjectKey {
    ProjectKey { is_trusted_only: true, ..key }
}

/// All keys. A profile has the same.
pub(super) const KEYS: &[ProjectKey] = &[
    key(
        ("", "tests"),
        "paths",
        (KeyKind::Paths, Commands::Tests),
        "The files and folders that `run`, `check`, `fmt`, `mutate` and `apply` read without a path.",
    ),
    trusted(key(
        ("system", "command"),
        "command",
        (KeyKind::Command, Commands::Run),
        "What stands behind `--`: the program that starts the system under test, and its arguments.",
    )),
    trusted(key(
        ("system", "ready"),
        "ready",
        (KeyKind::Ready, Commands::Run),
        "When it is ready, as `--ready`.",
    )),
    key(
        ("system", "ready-timeout"),
        "ready_timeout",
        (KeyKind::Duration, Commands::Run),
        "How long it may take to be ready.",
    ),
    key(
        ("run", "jobs"),
        "jobs",
        (KeyKind::Number { least: 1, most: 256 }, Commands::Run),
        "Tests at a time.",
    ),
    key(
        ("run", "retries"),
        "retries",
        (KeyKind::Number { least: 0, most: u32::MAX }, Commands::Run),
        "How often a test that did not pass is run again.",
    ),
    key(
        ("run", "timeout"),
        "timeout",
        (KeyKind::Duration, Commands::Run),
        "The longest that a test may take.",
    ),
    trusted(key(
        ("run", "otlp"),
        "otlp",
        (KeyKind::Addresses, Commands::Run),
        "Where OTLP is received.",
    )),
    key(
        ("run", "report"),
        "targets",
        (KeyKind::Reports, Commands::Run),
        "Reports, as `--report`; a file is relative to the project file.",
    ),
    key(("run", "vars"), "files", (KeyKind::Paths, Commands::Run), "Files with variable sets."),
    trusted(key(
        ("server", "url"),
        "server",
        (KeyKind::Url, Commands::Server),
        "The server of the commands for servers. `run` is here unless `--server` or `--context` is given.",
    )),
    key(
        ("server", "project"),
        "project",
        (KeyKind::Project, Commands::Server),
        "The project there.",
    ),
    trusted(key(
        ("server", "ca"),
        "ca",
        (KeyKind::Path, Commands::Server),
        "A file with the authorities that the server is trusted by.",
    )),
];

impl ProjectKey {
    /// Returns the dotted name.
    pub(super) fn full_name(&self) -> String {
        match self.section {
            "" => self.name.to_owned(),
            section => format!("{section}.{}", self.name),
        }
    }

    /// Whether it is a default of a command with this destination.
    pub(super) fn is_of(&self, command: &[&str], destination: Destination) -> bool {
        match (self.commands, command) {
            (Commands::Tests, [command]) => {
                matches!(*command, "run" | "check" | "fmt" | "mutate" | "apply")
            }
            (Commands::Run, ["run"]) => destination == Destination::Here || self.flag == "targets",
            // Their `--project` and `--server` mean something else, or make a server known.
            (Commands::Server, ["token", "create"] | ["login"] | ["logout"]) => false,
            (Commands::Server, _) if self.flag == "project" => destination != Destination::Here,
            // The authorities are those of the URL: they say nothing of another server.
            (Commands::Server, _) => destination == Destination::Default,
            (Commands::Tests | Commands::Run, _) => false,
        }
    }

    /// Returns the value as it would be typed; a wrong one is reported at its place.
    pub(super) fn texts(&self, item: &Item<'_>, above: &Path) -> Option<Vec<String>> {
        match self.kind {
            KeyKind::Paths => {
                item.list()?.iter().map(|item| path(item, item.string()?, above)).collect()
            }
            KeyKind::Path => Some(vec![path(item, item.string()?, above)?]),
            KeyKind::Command => {
                let words: Option<Vec<_>> =
                    item.list()?.iter().map(|word| Some(word.string()?.to_owned())).collect();
                words
            }
            KeyKind::Ready => checked(item, |text| text.parse::<Ready>().map(drop)),
            KeyKind::Duration => {
                item.duration()?;
                Some(vec![item.string()?.to_owned()])
            }
            KeyKind::Number { least, most } => Some(vec![item.integer(least..=most)?.to_string()]),
            KeyKind::Addresses => item
                .list()?
                .iter()
                .map(|item| {
                    Some(
                        checked(item, |text| address(text).map(drop).map_err(str::to_owned))?
                            .concat(),
                    )
                })
                .collect(),
            KeyKind::Reports => item.list()?.iter().map(|item| report(item, above)).collect(),
            KeyKind::Url => checked(item, |text| match Url::parse(text) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(()),
                _ => Err("expected a URL such as `https://quality.example.com`".to_owned()),
            }),
            KeyKind::Project => checked(item, |text| {
                text.parse::<Project>().map(drop).map_err(|error| error.to_string())
            }),
        }
    }
}

fn checked(item: &Item<'_>, check: impl Fn(&str) -> Result<(), String>) -> Option<Vec<String>> {
    let text = item.string()?;
    match check(text) {
        Ok(()) => Some(vec![text.to_owned()]),
        Err(reason) => {
            item.refuse(&reason);
            None
        }
    }
}

fn report(item: &Item<'_>, above: &Path) -> Option<String> {
    let text = checked(item, |text| text.parse::<Target>().map(drop))?.concat();
    match text.split_once('=') {
        None | Some((_, "-")) => Some(text),
        Some((format, file)) => Some(format!("{format}={}", path(item, file, above)?)),
    }
}

/// Returns a path from the working folder. It stays below the folder of the file, links included: a file that comes with a
/// repository neither reads nor writes elsewhere.
fn path(item: &Item<'_>, text: &str, above: &Path) -> Option<String> {
    let is_plain = !text.is_empty()
        && Path::new(text)
            .components()
            .all(|it| matches!(it, Component::Normal(_) | Component::CurDir));
    if !is_plain {
        item.refuse("a path below the folder of this file, without `..`");
        return None;
    }
    if !stays_below(Path::new(text), above) {
        item.refuse("a path below the folder of this file: a link leads elsewhere");
        return None;
    }
    Some(above.join(text).display().to_string())
}

/// Whether every link on the way to a path leads to a place below this folder.
fn stays_below(path: &Path, folder: &Path) -> bool {
    let mut way = folder.to_owned();
    path.components().all(|part| {
        way.push(part);
        if !way.is_symlink() {
            return true;
        }
        let root = Path::new(".").join(folder).canonicalize();
        root.and_then(|root| Ok(way.canonicalize()?.starts_with(root))).unwrap_or(false)
    })
}

/// Returns the JSON schema of the file.
pub(crate) fn schema() -> Value {
    let mut root = tables();
    root["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    root["title"] = "qualitytrace.toml".into();
    root["properties"]["profile"] = json!({
        "type": "object",
        "description": "Values that `--profile NAME` or QUALITYTRACE_PROFILE puts before those of the file.",
        "additionalProperties": tables(),
    });
    root
}

fn tables() -> Value {
    let mut root = table("");
    for section in SECTIONS.iter().filter(|section| !section.is_empty()) {
        root["properties"][*section] = table(section);
    }
    root
}

fn table(section: &str) -> Value {
    let keys = KEYS.iter().filter(|key| key.section == section);
    let properties: Map<_, _> = keys.map(|key| (key.name.to_owned(), property(key))).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn property(key: &ProjectKey) -> Value {
    let mut property = match key.kind {
        KeyKind::Paths | KeyKind::Command | KeyKind::Addresses | KeyKind::Reports => {
            json!({"type": "array", "items": {"type": "string"}})
        }
        KeyKind::Number { least, most } => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        KeyKind::Path | KeyKind::Ready | KeyKind::Duration | KeyKind::Url | KeyKind::Project => {
            json!({"type": "string"})
        }
    };
    let trust = if key.is_trusted_only { " Used once the file is trusted." } else { "" };
    property["description"] = format!("{}{trust}", key.about).into();
    property
}
