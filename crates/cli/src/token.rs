//! `token`: creates the first token of a server directly in its database; creates, lists and revokes tokens by a server.

use model::World;
use server::{FirstToken, config::Environment, create_token};

use crate::{
    args::{TokenCommand, TokenCreate},
    configuration,
    exit::Exit,
    remote,
    terminal::Terminal,
};

pub(crate) async fn token(
    command: &TokenCommand,
    environment: &Environment,
    world: World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    match command {
        TokenCommand::Create(args)
            if args.configuration.config.is_none() && args.address.is_given() =>
        {
            remote::create_token(args, environment, terminal).await
        }
        TokenCommand::Create(args) => create(args, environment, world, terminal).await,
        TokenCommand::List(args) => remote::tokens(args, environment, terminal).await,
        TokenCommand::Revoke(args) => remote::revoke(args, environment, terminal).await,
    }
}

async fn create(
    args: &TokenCreate,
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
