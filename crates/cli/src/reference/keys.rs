//! The pages of keys: of the server's configuration and of the project file.

use std::fmt::Write;

use serde_json::json;
use server::config::KEYS;
use telemetry::config::{self, Key, Kind, environment_name};

use super::{
    MADE, schema,
    table::{code, sentence, table},
};
use crate::project;

const HEAD: [&str; 4] = ["key", "value", "default", "meaning"];

/// Returns the page of the server's keys.
pub(super) fn configuration() -> String {
    let mut text = format!(
        "# Configuration of the server

{MADE}
`qualitytrace serve --config FILE` reads these keys; `qualitytrace config check --config FILE` reads them and starts nothing;
`qualitytrace schema config` prints them as a JSON Schema. [The server](../server.md) and [telemetry](../telemetry.md) say what they are for.

Each key has a variable, which overrides the file: `QUALITYTRACE_` and the path in capitals, with `_` for every other character, so
`{}` for `server.httpPort`. `*` is a name of your own. A value may refer to a variable by `${{NAME}}`. Secrets are never printed.

",
        environment_name("QUALITYTRACE", "server.httpPort"),
    );
    let all: Vec<_> = KEYS.iter().chain(config::KEYS).collect();
    let mut sections: Vec<&str> = Vec::new();
    for key in &all {
        if !sections.contains(&section(key.path)) {
            sections.push(section(key.path));
        }
    }
    for name in sections {
        let rows: Vec<_> =
            all.iter().filter(|key| section(key.path) == name).map(|key| row(key)).collect();
        let _written = write!(text, "## {name}\n\n{}", table(HEAD, &rows));
    }
    text.trim_end().to_owned() + "\n"
}

/// Returns the page of the project file.
pub(super) fn project_file() -> String {
    let mut schema = project::schema();
    // A profile has the same keys.
    schema["properties"]["profile"] = json!({
        "type": "object",
        "description": "`[profile.NAME.run]`, `[profile.NAME.system]` and `[profile.NAME.server]` have the same keys.",
    });
    format!(
        "# The project file

{MADE}
`qualitytrace.toml` has defaults of flags, so that a command needs none. It is looked for in the working folder and above it, up to the
root of the repository. Paths are below its folder. A flag comes first, then its variable, the profile, the file, and the default:
`qualitytrace project show` prints each value with its origin, and `qualitytrace schema project` prints a JSON Schema.
`--profile NAME` selects a profile. [Running tests](../run.md) has an example.

Values that execute a program or contact a machine are used once you trust them: on a terminal a command requests that once for each new
or changed value; elsewhere `--trust` states it.

{}",
        schema::table_of(&schema).trim_end()
    ) + "\n"
}

fn section(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

fn row(key: &Key) -> [String; 4] {
    let default = match key.default {
        "" => String::new(),
        Key::REQUIRED => "required".to_owned(),
        // A text of several words describes the default.
        text if text.contains(' ') => text.to_owned(),
        text => code(text),
    };
    [code(key.path), value(key.kind), default, sentence(key.meaning)]
}

fn value(kind: Kind) -> String {
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Secret => "secret".to_owned(),
        Kind::Boolean => "`true`, `false`".to_owned(),
        Kind::Integer { min, max } => format!("{min} to {max}"),
        Kind::Number { min, max } => format!("{min} to {max}"),
        Kind::Duration => "duration".to_owned(),
        Kind::Size => "size".to_owned(),
        Kind::Words(words) => words.iter().map(|word| code(word)).collect::<Vec<_>>().join(", "),
        Kind::Headers => "headers, secret".to_owned(),
        Kind::List => "list".to_owned(),
        Kind::Secrets => "list, secret".to_owned(),
    }
}
