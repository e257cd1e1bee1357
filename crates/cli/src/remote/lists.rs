//! Lists of a server: versions of documents, the audit log.

use http::Method;
use serde_json::Value;
use server::config::Environment;

use super::client::connect;
use crate::{
    args,
    exit::Exit,
    listing::{ListedRow, Listing, moment, text},
    terminal::Terminal,
};

/// The maximum number of versions that are listed.
const ITEMS_MAX: usize = 10_000;

/// Lists the versions of a document, the newest first.
pub(crate) async fn history(
    args: &args::History,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let path = format!("/api/v1/{}/{}/versions", args.kind.collection(), args.id);
    let found = server.pages(|| server.request_in_project(Method::GET, &path), ITEMS_MAX).await;
    let row = |version: Value| ListedRow {
        name: format!("{}@{}", args.id, text(&version, "version")),
        cells: vec![
            text(&version, "version"),
            moment(&version, "createdAt"),
            text(&version, "name"),
        ],
        value: version,
    };
    let rows = found.map_err(|error| terminal.refuse(&error))?.into_iter().map(row).collect();
    let heads = &["VERSION", "CREATED", "NAME"];
    Listing { heads, rows, none: "no versions" }.print(args.output.format, terminal);
    Ok(Exit::Passed)
}

/// Lists the entries of the audit log, the newest first.
pub(crate) async fn audit(
    args: &args::Audit,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let first = || server.request(Method::GET, "/api/v1/audit");
    let found = server.pages(first, args.limit as usize).await;
    let row = |entry: Value| ListedRow {
        name: text(&entry, "n"),
        cells: vec![
            moment(&entry, "at"),
            text(&entry, "who"),
            text(&entry, "method"),
            text(&entry, "path"),
            text(&entry, "project"),
            text(&entry, "status"),
        ],
        value: entry,
    };
    let rows = found.map_err(|error| terminal.refuse(&error))?.into_iter().map(row).collect();
    let heads = &["AT", "WHO", "METHOD", "PATH", "PROJECT", "STATUS"];
    Listing { heads, rows, none: "no entries" }.print(args.output.format, terminal);
    Ok(Exit::Passed)
}
