//! `login`, `logout`, `whoami` and `context`: the servers of a user, and the tokens for them.
//!
//! A token is stored after the server has reported the identity of it.

use std::io::{self, BufRead, IsTerminal, Read};

use model::{ErrorCode, Secret};
use serde_json::json;
use server::config::Environment;

use crate::{
    args::{ContextCommand, LoginArgs, LogoutArgs, OutputFormat, WhoamiArgs},
    contexts::{self, CONTEXT, ListedContext},
    exit::Exit,
    listing::{self, ListedRow, Listing},
    remote::{self, Me},
    terminal::Terminal,
};

/// The upper bound for the input, in bytes.
const TYPED_MAX: u64 = 4096;

pub(crate) async fn login(
    args: &LoginArgs,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let token = match &args.connection.address.token {
        Some(token) => token.clone(),
        None => typed(terminal)?,
    };
    let context = args.connection.address.context.as_deref().unwrap_or(CONTEXT);
    let stored = contexts::list(environment).map_err(|error| terminal.refuse(&error))?;
    // A new context does not exist yet; one that does knows its server.
    let known = args.connection.address.context.clone();
    let known = known.filter(|name| stored.iter().any(|it| it.name == *name));
    let mut given = args.connection.clone();
    (given.address.token, given.address.context) = (Some(token.clone()), known);
    let access = contexts::resolve(&given, environment);
    let access = access.map_err(|error| terminal.refuse(&error))?;
    let me = remote::me(&access).await.map_err(|error| terminal.refuse(&error))?;
    let place = (access.url.as_str(), args.connection.project.as_deref());
    let kept = contexts::keep(context, place, &token, environment);
    let kept = kept.map_err(|error| terminal.refuse(&error))?;
    terminal.result(&format!(
        "{} knows you as `{}`, {}; stored as context `{context}` in {}",
        access.url,
        me.name,
        me.role,
        kept.display()
    ));
    Ok(Exit::Passed)
}

/// Removes a context and its token.
pub(crate) fn logout(
    args: &LogoutArgs,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    forget(args.context.as_deref(), environment, terminal)
}

/// Removes this context, or the current one.
fn forget(
    name: Option<&str>,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let removed = contexts::remove(name, environment);
    let removed = removed.map_err(|error| terminal.refuse(&error))?;
    terminal.result(&format!("context `{removed}`: removed; its token stays valid at the server"));
    Ok(Exit::Passed)
}

/// Prints the identity of the caller.
pub(crate) async fn whoami(
    args: &WhoamiArgs,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let access = contexts::resolve(&args.connection, environment);
    let access = access.map_err(|error| terminal.refuse(&error))?;
    let me = remote::me(&access).await.map_err(|error| terminal.refuse(&error))?;
    let projects = me.projects.as_ref().map_or_else(|| "all".to_owned(), |all| all.join(","));
    match args.output.format {
        OutputFormat::Name => terminal.result(&me.name),
        OutputFormat::Table => terminal
            .result(&format!("{}: {} at {}, projects: {projects}", me.name, me.role, access.url)),
        format => {
            let Me { name, role, projects } = me;
            let server = access.url;
            let value = json!({"name": name, "role": role, "projects": projects, "server": server});
            listing::value(&value, format, terminal);
        }
    }
    Ok(Exit::Passed)
}

/// Lists, selects and removes contexts.
pub(crate) fn context(
    command: &ContextCommand,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    match command {
        ContextCommand::List(output) => {
            let stored = contexts::list(environment).map_err(|error| terminal.refuse(&error))?;
            let row = |it: ListedContext| ListedRow {
                cells: vec![
                    if it.is_current { "*".to_owned() } else { String::new() },
                    it.name.clone(),
                    it.server.clone(),
                    it.project.clone(),
                ],
                name: it.name.clone(),
                value: json!(it),
            };
            let (heads, rows) =
                (&["", "CONTEXT", "SERVER", "PROJECT"], stored.into_iter().map(row).collect());
            let none = "no contexts: `qualitytrace login` makes one";
            Listing { heads, rows, none }.print(output.format, terminal);
        }
        ContextCommand::Use { name } => {
            contexts::select(name, environment).map_err(|error| terminal.refuse(&error))?;
            terminal.result(&format!("context `{name}`: the current one"));
        }
        ContextCommand::Remove { name } => return forget(Some(name), environment, terminal),
    }
    Ok(Exit::Passed)
}

fn typed(terminal: &Terminal) -> Result<Secret, Exit> {
    // A pipe has the token already, or none.
    if io::stdin().is_terminal() {
        terminal.line("the token, then Enter (or give it by QUALITYTRACE_TOKEN):");
    }
    let mut line = String::new();
    let read = io::stdin().lock().take(TYPED_MAX).read_line(&mut line);
    match (read, line.trim()) {
        (Ok(_), token) if !token.is_empty() => Ok(Secret::new(token)),
        _ => {
            terminal.error(
                ErrorCode::TokenMissing,
                "no token: give it by `--token`, QUALITYTRACE_TOKEN or stdin",
            );
            Err(Exit::Refused)
        }
    }
}
