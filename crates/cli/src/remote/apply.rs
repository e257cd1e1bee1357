//! `apply`: stores documents on a server.

use model::DocumentKind;
use server::config::Environment;

use super::client::connect;
use crate::{
    args,
    documents::{files, read},
    exit::Exit,
    terminal::Terminal,
};

/// Stores the documents of files on a server.
pub(crate) async fn apply(
    args: &args::Apply,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    for file in files(&args.paths, terminal)? {
        let text = read(&file, terminal)?;
        let applied = server.apply(&text).await;
        let applied = applied.map_err(|error| terminal.refuse(&error))?;
        terminal.line(&applied.notices);
        for one in applied.documents {
            let kind = one.kind.unwrap_or(DocumentKind::Test);
            let change = if one.changed { "new" } else { "unchanged" };
            terminal.result(&format!(
                "{kind} {} `{}`: version {} ({change})",
                one.id, one.name, one.version
            ));
        }
    }
    Ok(Exit::Passed)
}
