//! Who changed what. Deliberately absent: what it was changed to, which may be a secret and is in the versions.

use model::{Timestamp, TokenId};

use crate::{
    Db, DbError,
    run::{moment, nanos},
};

/// A change that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAudit {
    /// When.
    pub at: Timestamp,
    /// Who, by name.
    pub who: String,
    /// By which token.
    pub token: Option<TokenId>,
    /// The method.
    pub method: String,
    /// What is asked for, with names for what differs.
    pub route: String,
    /// What is asked for, in full, without its query.
    pub path: String,
    /// In which project.
    pub project: Option<String>,
}

/// A change as the record holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAudit {
    /// Its number, which grows.
    pub n: i64,
    /// What was asked for.
    pub change: NewAudit,
    /// How it was answered; none where nobody lived to tell.
    pub status: Option<i32>,
}

impl Db {
    /// Notes a change before it is made, and tells its number.
    pub async fn audit(&self, change: &NewAudit) -> Result<i64, DbError> {
        sqlx::query_scalar!(
            "insert into audit (at_ns, who, token, method, route, path, project)
             values ($1, $2, $3, $4, $5, $6, $7) returning n",
            nanos(change.at),
            change.who,
            change.token.map(TokenId::as_uuid),
            change.method,
            change.route,
            change.path,
            change.project,
        )
        .fetch_one(&self.pool)
        .await
        .map_err(|error| self.error(error))
    }

    /// Notes how it was answered.
    pub async fn audit_answered(&self, n: i64, status: u16) -> Result<(), DbError> {
        sqlx::query!("update audit set status = $2 where n = $1", n, i32::from(status))
            .execute(&self.pool)
            .await
            .map_err(|error| self.error(error))?;
        Ok(())
    }

    /// Changes before the one of number `before`, the newest first.
    pub async fn audits(
        &self,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<StoredAudit>, DbError> {
        let rows = sqlx::query!(
            "select n, at_ns, who, token, method, route, path, project, status from audit
             where n < $1 order by n desc limit $2",
            before.unwrap_or(i64::MAX),
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        let stored = rows.into_iter().map(|row| StoredAudit {
            n: row.n,
            change: NewAudit {
                at: moment(row.at_ns),
                who: row.who,
                token: row.token.map(TokenId::from),
                method: row.method,
                route: row.route,
                path: row.path,
                project: row.project,
            },
            status: row.status,
        });
        Ok(stored.collect())
    }

    /// Forgets what was changed before `before`, and tells how much it was.
    pub async fn prune_audit(&self, before: Timestamp) -> Result<u64, DbError> {
        let pruned = sqlx::query!("delete from audit where at_ns < $1", nanos(before))
            .execute(&self.pool)
            .await
            .map_err(|error| self.error(error))?;
        Ok(pruned.rows_affected())
    }
}
