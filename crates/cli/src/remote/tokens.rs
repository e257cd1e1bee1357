//! Who has access to a server: tokens, and sessions of people.

use http::Method;
use model::RunId;
use serde::Deserialize;
use serde_json::{Value, json};
use server::config::Environment;

use super::client::{Server, connect};
use crate::{
    args::{self, Connection, SessionCommand},
    exit::Exit,
    listing::{ListedRow, Listing, moment, text},
    terminal::Terminal,
};

/// The maximum number of tokens and of sessions that are listed.
const ITEMS_MAX: usize = 10_000;

#[derive(Deserialize)]
struct CreatedToken {
    token: String,
}

/// Creates a token. Only stdout gets the token itself.
pub(crate) async fn create_token(
    args: &args::TokenCreate,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let connection = Connection { address: args.address.clone(), project: None };
    let server = connect(&connection, environment, terminal)?;
    let mut wanted = json!({"name": args.name, "role": args.role, "expiresInDays": args.days});
    if !args.project.is_empty() {
        wanted["projects"] = json!(args.project);
    }
    let request = server.request(Method::POST, "/api/v1/tokens");
    let request = request.header("content-type", "application/json").body(wanted.to_string());
    let created = server.send::<CreatedToken>(request).await;
    let CreatedToken { token } = created.map_err(|error| terminal.refuse(&error))?;
    terminal.line(&format!("a token for `{}`, {}, for {} days:", args.name, args.role, args.days));
    terminal.result(&token);
    Ok(Exit::Passed)
}

/// Lists the tokens, without the tokens themselves.
pub(crate) async fn tokens(
    args: &args::TokenList,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let found = server.pages(|| server.request(Method::GET, "/api/v1/tokens"), ITEMS_MAX).await;
    let row = |token: Value| ListedRow {
        name: text(&token, "id"),
        cells: vec![
            text(&token, "id"),
            text(&token, "name"),
            text(&token, "role"),
            if token["projects"].is_null() { "all".to_owned() } else { text(&token, "projects") },
            moment(&token, "expiresAt"),
            moment(&token, "revokedAt"),
        ],
        value: token,
    };
    let rows = found.map_err(|error| terminal.refuse(&error))?.into_iter().map(row).collect();
    let heads = &["TOKEN", "NAME", "ROLE", "PROJECTS", "EXPIRES", "REVOKED"];
    Listing { heads, rows, none: "no tokens" }.print(args.output.format, terminal);
    Ok(Exit::Passed)
}

/// Revokes tokens.
pub(crate) async fn revoke(
    args: &args::TokenRevoke,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    end(&server, &args.tokens, ("tokens", "revoked"), terminal).await
}

/// Lists and ends the sessions of people.
pub(crate) async fn sessions(
    command: &SessionCommand,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let args = match command {
        SessionCommand::List(args) => args,
        SessionCommand::End(args) => {
            let server = connect(&args.connection, environment, terminal)?;
            return end(&server, &args.sessions, ("sessions", "ended"), terminal).await;
        }
    };
    let server = connect(&args.connection, environment, terminal)?;
    let found = server.pages(|| server.request(Method::GET, "/api/v1/sessions"), ITEMS_MAX).await;
    let row = |session: Value| ListedRow {
        name: text(&session, "id"),
        cells: vec![
            text(&session, "id"),
            text(&session, "name"),
            text(&session, "role"),
            moment(&session, "beganAt"),
            moment(&session, "expiresAt"),
            text(&session, "address"),
        ],
        value: session,
    };
    let rows = found.map_err(|error| terminal.refuse(&error))?.into_iter().map(row).collect();
    let heads = &["SESSION", "NAME", "ROLE", "BEGAN", "EXPIRES", "ADDRESS"];
    Listing { heads, rows, none: "no sessions" }.print(args.output.format, terminal);
    Ok(Exit::Passed)
}

/// Deletes resources of a collection, each by its id.
async fn end(
    server: &Server,
    ids: &[RunId],
    (collection, done): (&str, &str),
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let mut exits = Vec::new();
    for id in ids {
        let request = server.request(Method::DELETE, &format!("/api/v1/{collection}/{id}"));
        match server.text(request).await {
            Ok(_) => terminal.result(&format!("{id}: {done}")),
            Err(error) => exits.push(terminal.refuse(&error)),
        }
    }
    Ok(Exit::over(exits))
}
