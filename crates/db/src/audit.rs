//! The audit log: who changed what, and who logged in. Deliberately absent: the new content of a change, which may be a secret
//! and is in the versions.

use std::net::IpAddr;

use model::{Timestamp, TokenId};

use crate::{
    Db, DbError, PersonId,
    run::{moment, nanos},
};

/// An audit entry for a change that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAudit {
    /// The time of the change.
    pub at: Timestamp,
    /// The name of the user or token that makes the change.
    pub who: String,
    /// The identity of the person; none for a program, and where it is unknown.
    pub person: Option<PersonId>,
    /// The address of the client.
    pub address: Option<IpAddr>,
    /// The token of the request.
    pub token: Option<TokenId>,
    /// The method of the request.
    pub method: String,
    /// The route of the request, with placeholders for its parameters.
    pub route: String,
    /// The path of the request, without its query.
    pub path: String,
    /// The project of the request.
    pub project: Option<String>,
    /// The reason why a login failed.
    pub reason: Option<String>,
}

/// An audit entry as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAudit {
    /// Its number; numbers increase.
    pub n: i64,
    /// The requested change.
    pub change: NewAudit,
    /// The status of the response; none where the process ended before it recorded one.
    pub status: Option<i32>,
}

impl Db {
    /// Records a change before it is made, and returns its number.
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

    /// Records the status of the response to a change.
    pub async fn audit_answered(&self, n: i64, status: u16) -> Result<(), DbError> {
        sqlx::query!("update audit set status = $2 where n = $1", n, i32::from(status))
            .execute(&self.pool)
            .await
            .map_err(|error| self.error(error))?;
        Ok(())
    }

    /// Returns the changes before number `before`, the newest first.
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

    /// Deletes changes that were made before `before`, and returns how many.
    pub async fn prune_audit(&self, before: Timestamp) -> Result<u64, DbError> {
        let pruned = sqlx::query!("delete from audit where at_ns < $1", nanos(before))
            .execute(&self.pool)
            .await
            .map_err(|error| self.error(error))?;
        Ok(pruned.rows_affected())
    }
}
