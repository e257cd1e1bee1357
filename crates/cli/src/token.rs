//! `token create`: creates the first token of a server directly in its database.

use model::World;
use server::{FirstToken, config::Environment, create_token};

use crate::{args::TokenCommand, configuration, exit::Exit, terminal::Terminal};

pub(crate) async fn token(
    TokenCommand::Create(args): &TokenCommand,
    environment: &Environment,
    world: World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let configured = configuration::read(&args.configuration, environment, terminal)?;
    let wanted = FirstToken {
        name: args.name.clone(),
        role: args.role,
        projects: Some(args.project.clone()).filter(|projects| !projects.is_empty()),
        days: args.days,
    };
    let made = create_token(&configured.config, wanted, world).await;
    let made = made.map_err(|error| terminal.refuse(&error))?;
    terminal.line(&format!("a token for `{}`, {}, for {} days:", args.name, args.role, args.days));
    terminal.result(made.expose());
    Ok(Exit::Passed)
}
