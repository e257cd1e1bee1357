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
