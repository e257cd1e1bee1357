//! The server and its database: its row among the other servers, the documents of its configuration, and maintenance.

pub(crate) mod announcements;
pub(crate) mod identity;
pub(crate) mod keys;
pub(crate) mod maintenance;
pub(crate) mod peers;
pub(crate) mod provision;
pub(crate) mod receiver_reports;
mod refusals;
pub(crate) mod sharing;

use db::{Connect, Db, DbError, SecretKeys};
use model::World;
use tokio::runtime;

use crate::config::{self, Config};

/// The number of database connections for queries that must not wait behind work.
pub(crate) const CALM_POOL_MAX: u32 = 2;

/// Returns two pools to the database: a connection is driven by the runtime that created it, so each runtime has its own.
/// Neither is connected yet.
pub(crate) fn pools(
    config: &Config,
    world: World,
    work: &runtime::Handle,
) -> Result<(Db, Db), DbError> {
    let postgres = &config.postgres;
    let secrets = config.secrets.keys.iter().map(|key| (key.id.as_str(), key.expose()));
    let calm_db = Db::lazy(&connect(postgres, CALM_POOL_MAX))?;
    let _on_work = work.enter();
    let db = Db::lazy(&connect(postgres, postgres.pool_max))?;
    Ok((db.with_secrets(SecretKeys::new(secrets, world)), calm_db))
}

/// Returns the connection options.
pub(crate) fn connect(postgres: &config::Postgres, pool_max: u32) -> Connect {
    Connect {
        host: postgres.host.clone(),
        port: postgres.port,
        user: postgres.user.clone(),
        password: postgres.password.expose().to_owned(),
        dbname: postgres.dbname.clone(),
        params: postgres.params.clone(),
        pool_max,
        ..Connect::default()
    }
}
