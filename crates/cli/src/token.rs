//! `token create`: creates the first token of a server directly in its database.

use model::{Project, Role, World};
use server::{FirstToken, config::Environment, create_token};

use crate::{args, configuration, exit::Exit, terminal::Terminal};

/// The tokens of a server, for operators who have its configuration
#[derive(Debug, clap::Subcommand)]
pub(crate) enum TokenCommand {
    Create(Create),
}

/// Create a token in the database that the configuration names, and print it; it is shown once
///
/// This needs the configuration with the record's password, and no server: it is how the first admin gets in. Further tokens
/// are made by the API.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    #[command(flatten)]
    configuration: args::Configuration,
    /// What people call it
    #[arg(long, default_value = "admin", env = "QUALITYTRACE_TOKEN_NAME")]
    name: String,
    /// What its bearer may do: ingest (send spans and nothing else), viewer, editor or admin
    #[arg(long, default_value = "admin", env = "QUALITYTRACE_TOKEN_ROLE")]
    role: Role,
    /// Only in this project; several times for several
    #[arg(long, value_name = "PROJECT", value_delimiter = ',', env = "QUALITYTRACE_TOKEN_PROJECT")]
    project: Vec<Project>,
    /// For how many days it is good
    #[arg(
        long,
        default_value_t = 90,
        value_parser = clap::value_parser!(u16).range(1..=3660),
        env = "QUALITYTRACE_TOKEN_DAYS"
    )]
    days: u16,
}

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
