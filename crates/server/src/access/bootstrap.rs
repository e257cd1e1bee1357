//! The first token: made by whoever holds the record's password, straight in the record.
//!
//! They could do everything anyway, so this opens no door. Nothing waits in an environment or a log to be found.

use db::{Db, DbError, TokenKind};
use model::{Project, Role, Secret, World};

use super::token::{self, DAYS_MAX, TokenSpec};
use crate::{CALM_POOL_MAX, config::Config, connect};

/// What the token is to be.
#[derive(Clone, Debug)]
pub struct FirstToken {
    /// What people call it.
    pub name: String,
    /// What its bearer may do.
    pub role: Role,
    /// Where that holds; none for everywhere.
    pub projects: Option<Vec<Project>>,
    /// For how many days it is good.
    pub days: u16,
}

/// Makes a token in the record that a configuration names, brought to this version's form. It is told here once.
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
