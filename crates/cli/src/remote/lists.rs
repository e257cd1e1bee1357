//! Lists of a server as tables: versions of documents, tokens, sessions, the audit log.

use http::Method;
use serde_json::Value;
use server::config::Environment;

use super::{
    client::{Server, connect},
    http::Request,
};
use crate::{
    args::{self, OutputFormat},
    exit::Exit,
    listing::{ListedRow, Listing, moment, text},
    terminal::Terminal,
};

/// The maximum number of items of a list that has no limit of its own.
const ITEMS_MAX: usize = 10_000;

/// A list of the API as a table.
struct ApiTable {
    heads: &'static [&'static str],
    cells: &'static [Cell],
    /// What is printed instead of a table without rows.
    none: &'static str,
}

/// A cell: a field of an item.
#[derive(Clone, Copy)]
enum Cell {
    Text(&'static str),
    Moment(&'static str),
    /// Null is all projects.
    Projects,
}

const VERSIONS: ApiTable = ApiTable {
    heads: &["VERSION", "CREATED", "NAME"],
    cells: &[Cell::Text("version"), Cell::Moment("createdAt"), Cell::Text("name")],
    none: "no versions",
};

const TOKENS: ApiTable = ApiTable {
    heads: &["TOKEN", "NAME", "ROLE", "PROJECTS", "EXPIRES", "REVOKED"],
    cells: &[
        Cell::Text("id"),
        Cell::Text("name"),
        Cell::Text("role"),
        Cell::Projects,
        Cell::Moment("expiresAt"),
        Cell::Moment("revokedAt"),
    ],
    none: "no tokens",
};

const SESSIONS: ApiTable = ApiTable {
    heads: &["SESSION", "NAME", "ROLE", "BEGAN", "EXPIRES", "ADDRESS"],
    cells: &[
        Cell::Text("id"),
        Cell::Text("name"),
        Cell::Text("role"),
        Cell::Moment("beganAt"),
        Cell::Moment("expiresAt"),
        Cell::Text("address"),
    ],
    none: "no sessions; `--all` lists those of all people, for admins",
};

const AUDIT: ApiTable = ApiTable {
    heads: &["AT", "WHO", "METHOD", "PATH", "PROJECT", "STATUS"],
    cells: &[
        Cell::Moment("at"),
        Cell::Text("who"),
        Cell::Text("method"),
        Cell::Text("path"),
        Cell::Text("project"),
        Cell::Text("status"),
    ],
    none: "no entries",
};

/// Lists the versions of a document, the newest first.
pub(crate) async fn history(
    args: &args::History,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let path = format!("/api/v1/{}/{}/versions", args.kind.collection(), args.id);
    let first = || server.request_in_project(Method::GET, &path);
    let name = |version: &Value| format!("{}@{}", args.id, text(version, "version"));
    server.print(&VERSIONS, (first, ITEMS_MAX, name), (args.output.format, terminal)).await
}

/// Lists the tokens, without the tokens themselves.
pub(crate) async fn tokens(
    args: &args::TokenList,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let first = || server.request(Method::GET, "/api/v1/tokens");
    let name = |token: &Value| text(token, "id");
    server.print(&TOKENS, (first, ITEMS_MAX, name), (args.output.format, terminal)).await
}

/// Lists the sessions of people.
pub(crate) async fn sessions(
    args: &args::SessionList,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let first = || {
        let request = server.request(Method::GET, "/api/v1/sessions");
        if args.all { request.query(&[("all", "true")]) } else { request }
    };
    let name = |session: &Value| text(session, "id");
    server.print(&SESSIONS, (first, ITEMS_MAX, name), (args.output.format, terminal)).await
}

/// Lists the entries of the audit log, the newest first.
pub(crate) async fn audit(
    args: &args::Audit,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let first = || server.request(Method::GET, "/api/v1/audit");
    let name = |entry: &Value| text(entry, "n");
    server.print(&AUDIT, (first, args.limit as usize, name), (args.output.format, terminal)).await
}

impl Server {
    /// Prints a list. `first` makes the request for its first page, `name` the name of an item.
    async fn print(
        &self,
        table: &ApiTable,
        (first, items_max, name): (impl Fn() -> Request, usize, impl Fn(&Value) -> String),
        (format, terminal): (OutputFormat, &Terminal),
    ) -> Result<Exit, Exit> {
        let found = self.pages(first, items_max).await.map_err(|error| terminal.refuse(&error))?;
        let row = |value: Value| ListedRow {
            name: name(&value),
            cells: table.cells.iter().map(|cell| cell.of(&value)).collect(),
            value,
        };
        let rows = found.into_iter().map(row).collect();
        Listing { heads: table.heads, rows, none: table.none }.print(format, terminal);
        Ok(Exit::Passed)
    }
}

impl Cell {
    fn of(self, value: &Value) -> String {
        match self {
            Self::Text(field) => text(value, field),
            Self::Moment(field) => moment(value, field),
            Self::Projects if value["projects"].is_null() => "all".to_owned(),
            Self::Projects => text(value, "projects"),
        }
    }
}
