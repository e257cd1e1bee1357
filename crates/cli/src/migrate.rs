//! `migrate`: brings the tables of a database to this version, apart from the start of a server.

use server::config::Environment;

use crate::{args::Configuration, configuration, exit::Exit, terminal::Terminal};

/// Migrates the tables of the database of a configuration.
pub(crate) async fn migrate(
    args: &Configuration,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let configured = configuration::read(args, environment, terminal)?.config;
    let postgres = &configured.postgres;
    let database = format!("`{}` at `{}:{}`", postgres.dbname, postgres.host, postgres.port);
    server::migrate(&configured).await.map_err(|error| terminal.refuse(&error))?;
    terminal.result(&format!("the tables of {database} are those of this version"));
    Ok(Exit::Passed)
}
