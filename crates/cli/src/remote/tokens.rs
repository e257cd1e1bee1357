//! Who has access to a server: creates tokens, ends tokens and sessions of people.

use http::Method;
use model::RunId;
use serde::Deserialize;
use serde_json::json;
use server::config::Environment;

use super::client::{Server, connect};
use crate::{
    args::{self, Connection},
    exit::Exit,
    terminal::Terminal,
};

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

/// Revokes tokens.
pub(crate) async fn revoke(
    args: &args::TokenRevoke,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    end(&server, &args.tokens, ("tokens", "revoked"), terminal).await
}

/// Ends sessions of people.
pub(crate) async fn end_sessions(
    args: &args::SessionEnd,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    end(&server, &args.sessions, ("sessions", "ended"), terminal).await
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
