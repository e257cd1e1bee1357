//! Who changed what, and who logged in. Deliberately absent: what something was changed to, which may be a secret and is in
//! the versions.

use std::net::IpAddr;

use model::{Timestamp, TokenId};

use crate::{
    Db, DbError, PersonId,
    run::{moment, nanos},
};

/// A change that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAudit {
    /// When.
    pub at: Timestamp,
    /// Who, by name.
    pub who: String,
    /// Who that is; none for a program, and where nobody knows.
    pub person: Option<PersonId>,
    /// From where.
    pub address: Option<IpAddr>,
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
    /// Why a login failed.
    pub reason: Option<String>,
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
            "insert into audit (at_ns, who, token, method, route, path, project, issuer, subject, address, reason)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) returning n",
            nanos(change.at),
            change.who,
            change.token.map(TokenId::as_uuid),
            change.method,
            change.route,
            change.path,
            change.project,
            change.person.as_ref().map(|person| &*person.issuer),
            change.person.as_ref().map(|person| &*person.subject),
            change.address.map(|address| address.to_string()),
            change.reason,
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
            "select n, at_ns, who, token, method, route, path, project, status, issuer, subject, address, reason
             from audit where n < $1 order by n desc limit $2",
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
                person: PersonId::of(row.issuer, row.subject),
                address: row.address.and_then(|text| text.parse().ok()),
                token: row.token.map(TokenId::from),
                method: row.method,
                route: row.route,
                path: row.path,
                project: row.project,
                reason: row.reason,
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
