//! Creates the first token directly in the database, for a caller that has the database password.
//!
//! Such a caller has full access anyway, so this grants no new right. No initial secret lies in an environment variable or a log.

use db::{Db, DbError, TokenKind};
use model::{Project, Role, Secret, World};

use super::token::{self, DAYS_MAX, TokenSpec};
use crate::{
    config::Config,
    database::{CALM_POOL_MAX, connect},
};

/// The specification of the first token.
#[derive(Clone, Debug)]
pub struct FirstToken {
    /// The display name.
    pub name: String,
    /// The role of the token's bearer.
    pub role: Role,
    /// The projects in which the role holds; `None` for all projects.
    pub projects: Option<Vec<Project>>,
    /// The lifetime in days.
    pub days: u16,
}

/// What made the token of the configuration.
const CONFIGURATION: &str = "the configuration (`server.auth.bootstrapToken`)";

/// Makes the token of the configuration valid, and revokes the one that was there before it.
pub(crate) async fn keep_token(
    db: &Db,
    token: Option<&Secret>,
    world: World,
) -> Result<(), DbError> {
    let wanted = TokenSpec {
        kind: TokenKind::Token,
        name: "bootstrap".to_owned(),
        role: Role::Admin,
        projects: None,
        seconds: u64::from(DAYS_MAX) * 24 * 60 * 60,
        made_by: CONFIGURATION.to_owned(),
        person: None,
        address: None,
    };
    let kept = token.and_then(|token| token::keep(token, wanted, world));
    db.keep_configured_token(kept.as_ref(), (CONFIGURATION, world.now())).await
}

/// Migrates the tables of the database of the configuration.
pub async fn migrate(config: &Config) -> Result<(), DbError> {
    let db = Db::connect(&connect(&config.postgres, CALM_POOL_MAX)).await?;
    let migrated = db.migrate().await;
    db.close().await;
    migrated
}

/// Creates a token in the database of the configuration, after migrating the schema. Only this call returns the token.
pub async fn create_token(
    config: &Config,
    wanted: FirstToken,
    world: World,
) -> Result<Secret, DbError> {
    let db = Db::connect(&connect(&config.postgres, CALM_POOL_MAX)).await?;
    db.migrate().await?;
    let FirstToken { name, role, projects, days } = wanted;
    let seconds = u64::from(days.min(DAYS_MAX)) * 24 * 60 * 60;
    let made_by = "whoever holds the configuration".to_owned();
    let (kind, person, address) = (TokenKind::Token, None, None);
    let wanted = TokenSpec { kind, name, role, projects, seconds, made_by, person, address };
    let (shown, kept) = token::make(wanted, world);
    db.create_token(&kept).await?;
    db.close().await;
    Ok(shown)
}
